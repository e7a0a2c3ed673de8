#include "base/limits.h"
#include "base/mem.h"
#include "drivers/acp.h"
#include "drivers/launch.h"

#include <string.h>

#define MCP_FILE ".agentbox/mcp.json"
/* All of a harness spelled and escaped: mcp_dollar is of 32 bytes at most. */
#define MCP_TEXT_MAX (LIMIT_YAML_FILE * 64 + 4096)

int acp_check(const struct driver_spec *spec, struct err *e)
{
	if (spec->resume && (!*spec->resume || strlen(spec->resume) > CALLS_TEXT_MAX))
		return err_set(e, -ENOEXEC, "resume: '%.80s' is no id of a session", spec->resume);
	return launch_check(&driver_acp, spec, e);
}

/* The servers that are programs, where the protocol does not take them. */
static void put_programs(struct driver_command *c, const struct driver_spec *spec)
{
	struct driver_mcp *programs = xcalloc(spec->nmcp + 1, sizeof(*programs));
	struct driver_spec some = {.mcp = programs};
	auto_buf struct buf b = BUF_INIT(MCP_TEXT_MAX);
	struct jw w = JW_INIT(&b);
	for (size_t i = 0; spec->mcp_flag && i < spec->nmcp; i++)
		if (!spec->mcp[i].url)
			programs[some.nmcp++] = spec->mcp[i];
	/* That file's variables are put into all of it. */
	const struct launch_spelling texts = {.dollar = spec->mcp_dollar};
	if (some.nmcp) {
		jw_open(&w, NULL, '{');
		launch_put_servers(&w, "mcpServers", &some,
		        &(struct launch_servers){.stdio = "local",
		                .more = "\"tools\":[\"*\"]",
		                .env = &texts,
		                .words = &texts});
		jw_close(&w, '}');
		launch_args(c,
		        (const char *const[]){spec->mcp_flag, "@" DRIVER_HOME "/" MCP_FILE, NULL});
		launch_file(c, MCP_FILE, buf_take(&b));
	}
	free(programs);
}

int acp_command(const struct driver_spec *spec, struct driver_command *ret, struct err *e)
{
	int r = acp_check(spec, e);
	if (r < 0)
		return r;
	struct driver_spec told = *spec;
	told.model = spec->model_flag ? spec->model : NULL;
	ret->below_acp = spec->acp_files || spec->acp_terminals;
	if (ret->below_acp)
		launch_env(ret, "AGENTBOX_ACP",
		        !spec->acp_terminals ? "files"
		        : !spec->acp_files   ? "terminals"
		                             : "files terminals");
	launch_arg(ret, spec->program);
	launch_agent(ret, &told);
	put_programs(ret, spec);
	return 0;
}

/* "K=V" or "K: V" as the protocol has them: [{"name":K,"value":V}]. */
static void put_pairs(struct jw *w, const char *key, const char *const *pairs, char sep,
        const struct launch_spelling *how)
{
	jw_open(w, key, '[');
	for (; pairs && *pairs; pairs++) {
		auto_free char *value = launch_pair_value(*pairs, sep, how);
		jw_open(w, NULL, '{');
		jw_bytes(w, "name", *pairs, strcspn(*pairs, (char[]){sep, '\0'}));
		jw_str(w, "value", value);
		jw_close(w, '}');
	}
	jw_close(w, ']');
}

char *acp_mcp_text(const struct driver_spec *spec)
{
	const struct launch_spelling values = {.dollar = spec->mcp_dollar};
	auto_buf struct buf b = BUF_INIT(MCP_TEXT_MAX);
	struct jw w = JW_INIT(&b);
	jw_open(&w, NULL, '[');
	for (size_t i = 0; i < spec->nmcp; i++) {
		const struct driver_mcp *m = &spec->mcp[i];
		if (spec->mcp_flag && !m->url)
			continue;
		jw_open(&w, NULL, '{');
		if (m->url)
			jw_str(&w, "type", "http");
		jw_str(&w, "name", m->name);
		if (m->url) {
			/* who takes servers by mcp_flag treats all their texts alike */
			auto_free char *url =
			        launch_spelled(m->url, spec->mcp_flag ? &values : NULL);
			jw_str(&w, "url", url);
			put_pairs(&w, "headers", m->headers, ':', &values);
		} else {
			jw_str(&w, "command", m->command ? m->command[0] : NULL);
			if (m->command && m->command[0])
				launch_put_args(&w, "args", m->command, NULL);
			put_pairs(&w, "env", m->env, '=', &values);
		}
		jw_close(&w, '}');
	}
	jw_close(&w, ']');
	return buf_take(&b);
}
