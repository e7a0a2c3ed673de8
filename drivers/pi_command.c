#include "base/limits.h"
#include "base/mem.h"
#include "drivers/launch.h"
#include "drivers/pi.h"

#include <ctype.h>
#include <string.h>

#define PROMPT_FILE ".agentbox/system-prompt.md"
#define ASK_FILE    ".agentbox/ask.mjs"
#define MODULES     ".agentbox/node_modules"
#define MCP_FILE    ".pi/agent/mcp.json"

/* pi asks nobody by itself.  An extension of ours asks us before each call that may change
 * something; without an answer the call does not run. */
static const char ask_extension[] =
        "const harmless = new Set(['read', 'grep', 'find', 'ls']);\n"
        "export default function (pi) {\n"
        "  pi.on('tool_call', async (event, ctx) => {\n"
        "    if (harmless.has(event.toolName)) return;\n"
        "    const about = JSON.stringify({ toolCallId: event.toolCallId, input: event.input });\n"
        "    if (await ctx.ui.confirm(event.toolName, about)) return;\n"
        "    return { block: true, reason: 'The call was declined.' };\n"
        "  });\n"
        "}\n";

/* pi loads extensions through a compiler that is a package of its own; where that is not installed,
 * this takes its place: ours needs no compiling. */
static const char load_extension[] =
        "const { pathToFileURL } = require('node:url');\n"
        "exports.createJiti = () => ({\n"
        "  import: async (path) => (await import(pathToFileURL(path).href)).default,\n"
        "});\n";

bool pi_session_ok(const char *id)
{
	size_t n = id ? strnlen(id, 65) : 0;
	if (n == 0 || n > 64 || *id == '-')
		return false;
	for (; *id; id++)
		if (!isalnum((unsigned char)*id) && *id != '-' && *id != '_')
			return false;
	return true;
}

/* ---- check ---- */

/* Names only: what a call is about cannot be told pi. */
static int check_names(const char *const *names, const char *key, struct err *e)
{
	for (; names && *names; names++) {
		const char *n = *names;
		if (!*n || *n == '-' || *n == '+' || strlen(n) > CALLS_TEXT_MAX)
			return err_set(
			        e, -ENOEXEC, "tools.%s: '%.80s' is no name of a tool", key, n);
		for (; *n; n++)
			if (!isalnum((unsigned char)*n) && !strchr("_-*", *n))
				return err_set(e, -ENOEXEC,
				        "tools.%s: '%.80s': pi takes names of tools, no patterns",
				        key, *names);
	}
	return 0;
}

static int check(const struct driver *d, const struct driver_spec *spec, struct err *e)
{
	int r = launch_check(d, spec, e);
	if (r == 0)
		r = check_names(spec->tools_allow, "allow", e);
	if (r == 0)
		r = check_names(spec->tools_deny, "deny", e);
	if (r < 0)
		return r;
	if (spec->resume && !pi_session_ok(spec->resume))
		return err_set(e, -ENOEXEC, "resume: '%.80s' is no session id", spec->resume);
	return 0;
}

int pi_check(const struct driver_spec *spec, struct err *e)
{
	return check(&driver_pi, spec, e);
}

int pi_json_check(const struct driver_spec *spec, struct err *e)
{
	return check(&driver_pi_json, spec, e);
}

/* ---- argv ---- */

static void put_names(struct driver_command *c, const char *flag, const char *const *names)
{
	auto_buf struct buf b = BUF_INIT(LIMIT_EXEC_BLOB);
	for (; names && *names; names++)
		buf_printf(&b, "%s%s", b.len ? "," : "", *names);
	if (!b.len)
		return;
	launch_arg(c, flag);
	launch_arg(c, b.p);
}

static void put_tools(struct driver_command *c, const struct driver_spec *spec)
{
	/* Servers that the harness declares are offered unless the list names tools of them. */
	if (spec->tools_allow && !spec->tools_allow[0])
		launch_arg(c, spec->nmcp ? "--no-builtin-tools" : "--no-tools");
	put_names(c, "--tools", spec->tools_allow);
	put_names(c, "--exclude-tools", spec->tools_deny);
}

static void put_server(struct jw *w, const struct driver_mcp *m)
{
	static const struct launch_spelling values = {.dollar = "$$", .bang = "$!"};
	jw_open(w, m->name, '{');
	if (m->url) {
		jw_str(w, "url", m->url);
		launch_put_pairs(w, "headers", m->headers, ':', &values);
	} else {
		jw_str(w, "command", m->command[0]);
		launch_put_args(w, "args", m->command, NULL);
		launch_put_pairs(w, "env", m->env, '=', &values);
	}
	/* Else its tools are not offered, only found by code that the model writes. */
	jw_str(w, "exposure", "direct");
	jw_close(w, '}');
}

static int put_mcp(struct driver_command *c, const struct driver_spec *spec, struct err *e)
{
	auto_buf struct buf b = BUF_INIT((size_t)LIMIT_YAML_FILE * 6);
	struct jw w = JW_INIT(&b);
	jw_open(&w, NULL, '{');
	jw_open(&w, "mcpServers", '{');
	for (size_t i = 0; i < spec->nmcp; i++)
		put_server(&w, &spec->mcp[i]);
	jw_close(&w, '}');
	jw_close(&w, '}');
	if (b.failed)
		return err_set(e, b.failed, "tools.mcp: too large");
	/* Also without servers: those of an earlier run must not count. */
	launch_file(c, MCP_FILE, buf_take(&b));
	return 0;
}

static int command(
        const struct driver_spec *spec, const char *mode, struct driver_command *ret, struct err *e)
{
	launch_arg(ret, spec->program ? spec->program : "/opt/agent/bin/node");
	launch_args(ret, spec->args);
	launch_arg(ret, "--mode");
	launch_arg(ret, mode);
	if (spec->model) {
		launch_arg(ret, "--model");
		launch_arg(ret, spec->model);
	}
	if (spec->system_prompt && *spec->system_prompt) {
		/* A file: argv is public and an argument is limited to 128 KiB. */
		launch_arg(ret, "--append-system-prompt");
		launch_arg(ret, DRIVER_HOME "/" PROMPT_FILE);
		launch_file(ret, PROMPT_FILE, xstrdup(spec->system_prompt));
	}
	if (spec->resume) {
		launch_arg(ret, "--session");
		launch_arg(ret, spec->resume);
	}
	if (spec->permissions != PERMISSIONS_AUTO) {
		launch_arg(ret, "--extension");
		launch_arg(ret, DRIVER_HOME "/" ASK_FILE);
		launch_file(ret, ASK_FILE, xstrdup(ask_extension));
		launch_env(ret, "NODE_PATH", DRIVER_HOME "/" MODULES);
		launch_file(ret, MODULES "/jiti/index.js", xstrdup(load_extension));
	}
	put_tools(ret, spec);
	int r = put_mcp(ret, spec, e);
	if (r < 0)
		driver_command_done(ret);
	return r;
}

int pi_rpc_command(const struct driver_spec *spec, struct driver_command *ret, struct err *e)
{
	int r = pi_check(spec, e);
	return r < 0 ? r : command(spec, "rpc", ret, e);
}

int pi_json_command(const struct driver_spec *spec, struct driver_command *ret, struct err *e)
{
	int r = pi_json_check(spec, e);
	return r < 0 ? r : command(spec, "json", ret, e);
}
