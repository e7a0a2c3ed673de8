#include "drivers/driver.h"
#include "base/mem.h"
#include "drivers/rules.h"

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

uint32_t driver_wants(const struct driver_spec *s)
{
	uint32_t wants = s->resume ? CAN(RESUME) : 0;
	wants |= s->permissions == PERMISSIONS_ASK ? CAN(ASK) : 0;
	wants |= s->permissions == PERMISSIONS_DENY ? CAN(DENY) : 0;
	wants |= s->system_prompt && *s->system_prompt ? CAN(SYSTEM_PROMPT) : 0;
	wants |= s->model ? CAN(MODEL) : 0;
	wants |= s->tools_allow ? CAN(TOOLS_ALLOW) : 0;
	wants |= s->tools_deny && s->tools_deny[0] ? CAN(TOOLS_DENY) : 0;
	bool patterns = rules_any_pattern(s->tools_allow) || rules_any_pattern(s->tools_deny);
	wants |= patterns ? CAN(TOOL_PATTERNS) : 0;
	for (size_t i = 0; i < s->nmcp; i++)
		wants |= s->mcp[i].url ? CAN(MCP_HTTP) : CAN(MCP_STDIO);
	wants |= s->stays ? CAN(WARM) : 0;
	wants |= s->max_turns ? CAN(MAX_TURNS) : 0;
	return wants;
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
