#include "abctl/pack_facts.h"
#include "abctl/fail.h"
#include "abctl/local.h"
#include "abctl/verb.h"
#include "base/mem.h"

#include <string.h>
#include <unistd.h>

static void take_line(struct pack_facts *f, char *key, char *value)
{
	const struct {
		const char *key;
		const char **to;
	} rows[] = {{"name", &f->name}, {"version", &f->version}, {"description", &f->description},
	        {"dir", &f->dir}};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (strcmp(key, rows[i].key) == 0)
			*rows[i].to = value;
	bool wish = strcmp(key, "wish") == 0, harness = strcmp(key, "harness") == 0;
	char *second = wish || harness ? strchr(value, ' ') : NULL;
	if (!second)
		return;
	*second++ = '\0';
	if (wish)
		f->wishes[f->nwishes++] = (struct pack_wish){value, second};
	else
		f->harnesses[f->nharnesses++] = (struct pack_harness){value, second};
}

int pack_facts_read(int tree, const char *name, const char *dflt, struct pack_facts *f)
{
	*f = (struct pack_facts){.text = NULL};
	auto_free char *dir = xasprintf("/proc/%d/fd/%d", (int)getpid(), tree);
	const char *argv[] = {"pack", dir, name ? name : "-", dflt, NULL};
	int code = local_capture(argv, &f->text);
	if (code == EXIT_FAILED && f->text) {
		f->text[strcspn(f->text, "\n")] = '\0';
		return fail_usage("the pack is refused: %s", f->text);
	}
	if (code)
		return code;
	char *rest = f->text;
	for (char *line; (line = strsep(&rest, "\n"));) {
		char *value = strchr(line, ' ');
		if (f->nwishes == PACK_LINES || f->nharnesses == PACK_LINES)
			return fail_usage("the pack asks for more than %d things", PACK_LINES - 1);
		if (value) {
			*value++ = '\0';
			take_line(f, line, value);
		}
	}
	return f->name && f->dir ? 0 : fail_system("agentbox-policyc does not say what it is");
}

void pack_facts_done(struct pack_facts *f)
{
	free(f->text);
}
