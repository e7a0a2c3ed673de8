#include "base/limits.h"
#include "base/mem.h"
#include "drivers/acp.h"
#include "drivers/launch.h"

#include <string.h>

int acp_check(const struct driver_spec *spec, struct err *e)
{
	if (spec->resume && (!*spec->resume || strlen(spec->resume) > CALLS_TEXT_MAX))
		return err_set(e, -ENOEXEC, "resume: '%.80s' is no id of a session", spec->resume);
	if (spec->model && (!*spec->model || *spec->model == '-'))
		return err_set(
		        e, -ENOEXEC, "model: this agent cannot be told '%.80s'", spec->model);
	int r = launch_check_mcp(spec, e);
	if (r < 0)
		return r;
	/* The protocol itself tells the rest: the model, the system prompt, permissions, servers.
	 */
	struct driver_spec told = *spec;
	told.model = spec->model_flag ? spec->model : NULL;
	told.system_prompt = NULL;
	told.permissions = PERMISSIONS_AUTO;
	told.nmcp = 0;
	return launch_check(&told, e);
}

int acp_command(const struct driver_spec *spec, struct driver_command *ret, struct err *e)
{
	int r = acp_check(spec, e);
	if (r < 0)
		return r;
	struct driver_spec told = *spec;
	told.model = spec->model_flag ? spec->model : NULL;
	launch_arg(ret, spec->program);
	launch_agent(ret, &told);
	return 0;
}

/* "K=V" or "K: V" as the protocol has them: [{"name":K,"value":V}]. */
static void put_pairs(struct jw *w, const char *key, const char *const *pairs, char sep)
{
	jw_open(w, key, '[');
	for (; pairs && *pairs; pairs++) {
		const char *at = strchr(*pairs, sep), *value = at ? at + 1 : "";
		while (sep == ':' && *value == ' ')
			value++;
		jw_open(w, NULL, '{');
		jw_bytes(w, "name", *pairs, at ? (size_t)(at - *pairs) : strlen(*pairs));
		jw_str(w, "value", value);
		jw_close(w, '}');
	}
	jw_close(w, ']');
}

char *acp_mcp_text(const struct driver_spec *spec)
{
	auto_buf struct buf b = BUF_INIT(LIMIT_YAML_FILE * 6 + 4096); /* all of it escaped */
	struct jw w = JW_INIT(&b);
	jw_open(&w, NULL, '[');
	for (size_t i = 0; i < spec->nmcp; i++) {
		const struct driver_mcp *m = &spec->mcp[i];
		jw_open(&w, NULL, '{');
		if (m->url)
			jw_str(&w, "type", "http");
		jw_str(&w, "name", m->name);
		if (m->url) {
			jw_str(&w, "url", m->url);
			put_pairs(&w, "headers", m->headers, ':');
		} else {
			jw_str(&w, "command", m->command ? m->command[0] : NULL);
			if (m->command && m->command[0])
				launch_put_args(&w, "args", m->command);
			put_pairs(&w, "env", m->env, '=');
		}
		jw_close(&w, '}');
	}
	jw_close(&w, ']');
	return buf_take(&b);
}
