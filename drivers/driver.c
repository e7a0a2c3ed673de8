#include "drivers/driver.h"
#include "base/mem.h"

#include <string.h>

static const struct driver *const drivers[] = {
        &driver_exec,
        &driver_claude,
        &driver_codex,
        &driver_codex_exec,
        &driver_pi,
        &driver_pi_json,
        &driver_acp,
        &driver_opencode,
        &driver_gemini,
        &driver_copilot,
        &driver_qwen,
        &driver_amp,
};

const struct driver *driver_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(drivers); i++)
		if (strcmp(drivers[i]->name, name) == 0)
			return drivers[i];
	return NULL;
}

const char *driver_name(size_t i)
{
	return i < ARRAY_LEN(drivers) ? drivers[i]->name : NULL;
}

static void free_list(char **list)
{
	for (char **s = list; s && *s; s++)
		free(*s);
	free(list);
}

void driver_command_done(struct driver_command *c)
{
	free_list(c->argv);
	free_list(c->env);
	for (size_t i = 0; i < c->nfiles; i++) {
		free(c->files[i].path);
		free(c->files[i].text);
	}
	free(c->files);
	*c = (struct driver_command){0};
}

void driver_outcome_done(struct driver_outcome *o)
{
	free(o->final_text);
	free(o->error);
	free(o->resume);
	*o = (struct driver_outcome){0};
}
