#include "abctl/agent_facts.h"
#include "abctl/fail.h"
#include "abctl/local.h"
#include "abctl/verb.h"
#include "base/id.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int take_line(struct agent_facts *f, char *value)
{
	char *to = strchr(value, ' ');
	if (!to || f->ntakes == AGENT_TAKES)
		return fail_usage("agent %s takes more than %d paths of its package",
		        f->name ? f->name : "", AGENT_TAKES);
	*to++ = '\0';
	f->takes[f->ntakes++] = (struct agent_take){value, to};
	return 0;
}

static int take_lines(struct agent_facts *f)
{
	const struct {
		const char *key;
		const char **to;
	} rows[] = {{"name", &f->name}, {"version", &f->version}, {"package", &f->package},
	        {"integrity", &f->integrity}, {"node", &f->node},
	        {"node_integrity", &f->node_integrity}, {"unavailable", &f->unavailable}};
	char *rest = f->text;
	for (char *line; (line = strsep(&rest, "\n"));) {
		char *value = strchr(line, ' ');
		if (!value)
			continue;
		*value++ = '\0';
		for (size_t i = 0; i < ARRAY_LEN(rows); i++)
			if (strcmp(line, rows[i].key) == 0)
				*rows[i].to = value;
		int r = strcmp(line, "take") == 0 ? take_line(f, value) : 0;
		if (r)
			return r;
	}
	return 0;
}

/* As agentboxd looks for its harnesses: installed, or in the tree that it was built in. */
static int find(const char *name, char path[PATH_MAX])
{
	static const char *const places[] = {"../share/agentbox/harnesses/agents/",
	        "../../../harnesses/agents/", "../../../../harnesses/agents/", NULL};
	auto_free char *file = xasprintf("%s/agent.yaml", name);
	return local_find(places, file, R_OK, path);
}

static int check(const struct agent_facts *f, const char *name)
{
	if (!f->name || strcmp(f->name, name) != 0)
		return fail_usage(
		        "that file is about agent '%s', not '%s'", f->name ? f->name : "", name);
	if (f->unavailable)
		return fail_usage(
		        "agent '%s' cannot be installed by this: %s", name, f->unavailable);
	if (!f->package)
		return fail_usage("agent '%s' says no package (`npm` in its agent.yaml)", name);
	return f->version ? 0 : fail_usage("agent '%s' says no version in its agent.yaml", name);
}

int agent_facts_read(const char *name, const char *file, struct agent_facts *ret)
{
	*ret = (struct agent_facts){.text = NULL};
	char path[PATH_MAX];
	if (!name_valid(name))
		return fail_usage("'%s' is not the name of an agent", name);
	if (!file && find(name, path) < 0)
		return fail_usage(
		        "there is no agent '%s' (abctl agent ls); one of your own: --file "
		        "AGENT.yaml",
		        name);
	const char *argv[] = {"facts", file ? file : path, NULL};
	int code = local_capture(argv, &ret->text);
	if (code == EXIT_FAILED)
		return fail_usage("%s", ret->text ? ret->text : "");
	if (code != EXIT_DONE)
		return code;
	code = take_lines(ret);
	return code ? code : check(ret, name);
}

void agent_facts_done(struct agent_facts *f)
{
	free(f->text);
}
