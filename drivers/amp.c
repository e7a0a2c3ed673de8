/*
 * amp.c - Amp (`amp -x --stream-json --stream-json-input`): Claude's shape, one message in.
 *
 * Written after its documents: it runs only with an account, so what is proven
 * is how it fails.  Without a key it begins a login and waits for ever.
 */
#include "base/limits.h"
#include "base/mem.h"
#include "drivers/claude.h"
#include "drivers/launch.h"

#include <string.h>

#define SETTINGS_FILE     ".agentbox/amp-settings.json"
#define INSTRUCTIONS_FILE ".config/amp/AGENTS.md"

static const struct look tools[] = {
        {"Bash", "execute", "cmd", false},
        {"Grep", "search", "pattern", false},
        {"Read", "read", "path", true},
        {"Task", "think", "description", false},
        {"create_file", "edit", "path", true},
        {"edit_file", "edit", "path", true},
        {"finder", "search", "query", false},
        {"glob", "search", "filePattern", false},
        {"oracle", "think", "task", false},
        {"read_web_page", "fetch", "url", false},
        {"todo_write", "think", NULL, false},
        {"web_search", "fetch", "query", false},
};

/* ---- before the start ---- */

static int amp_check(const struct driver_spec *spec, struct err *e)
{
	if (spec->resume && !launch_id_ok(spec->resume))
		return err_set(e, -ENOEXEC, "resume: '%.80s' is no id of a thread", spec->resume);
	int r = launch_check(&driver_amp, spec, e);
	return r < 0 ? r : launch_check_names("tools.deny", spec->tools_deny, e);
}

static int put_settings(struct driver_command *c, const struct driver_spec *spec, struct err *e)
{
	auto_buf struct buf b = BUF_INIT((size_t)LIMIT_YAML_FILE * 6);
	struct jw w = JW_INIT(&b);
	jw_open(&w, NULL, '{');
	jw_bool(&w, "amp.dangerouslyAllowAll", true); /* the jail is the sandbox */
	jw_str(&w, "amp.updates.mode", "disabled");
	if (spec->tools_deny && spec->tools_deny[0]) {
		jw_open(&w, "amp.tools.disable", '[');
		for (const char *const *t = spec->tools_deny; *t; t++)
			jw_str(&w, NULL, *t);
		jw_close(&w, ']');
	}
	if (spec->nmcp)
		launch_put_servers(
		        &w, "amp.mcpServers", spec, &(struct launch_servers){.url = "url"});
	jw_close(&w, '}');
	if (b.failed)
		return err_set(e, b.failed, "tools.mcp: too large");
	launch_file(c, SETTINGS_FILE, buf_take(&b));
	launch_args(
	        c, (const char *const[]){"--settings-file", DRIVER_HOME "/" SETTINGS_FILE, NULL});
	return 0;
}

static int amp_command(const struct driver_spec *spec, struct driver_command *ret, struct err *e)
{
	int r = amp_check(spec, e);
	if (r < 0)
		return r;
	launch_arg(ret, spec->program ? spec->program : "/opt/agent/bin/amp");
	launch_args(ret, spec->args);
	if (spec->resume)
		launch_args(ret, (const char *const[]){"threads", "continue", spec->resume, NULL});
	launch_args(ret, (const char *const[]){"--no-ide", "--no-color", "-x", "--stream-json",
	                         "--stream-json-input", NULL});
	if (spec->model)
		launch_args(ret, (const char *const[]){"-m", spec->model, NULL});
	launch_env(ret, "AMP_SKIP_UPDATE_CHECK", "1");
	/* Also without one: that of an earlier run must not count. */
	launch_file(
	        ret, INSTRUCTIONS_FILE, xstrdup(spec->system_prompt ? spec->system_prompt : ""));
	r = put_settings(ret, spec, e);
	if (r < 0)
		driver_command_done(ret);
	return r;
}

/* ---- what differs ---- */

static const struct driver_dialect dialect = {
        .looks = {tools, ARRAY_LEN(tools)},
        .lost = "Thread not found",
        .hangs = "No API key found",
        .one_message = true,
        .files_by_input = true,
};

const struct driver driver_amp = {
        .name = "amp",
        .can = CAN(RESUME) | CAN(SYSTEM_PROMPT) | CAN(MODEL) | CAN(TOOLS_DENY) | CAN(MCP_STDIO) |
               CAN(MCP_HTTP) | CAN(THINKING) | CAN(PLAN) | CAN(USAGE),
        .dialect = &dialect,
        .check = amp_check,
        .command = amp_command,
        .open = claude_open,
        .start = claude_start,
        .line = claude_line,
        .error_line = claude_error_line,
        .turns = claude_turns,
        .end = claude_end,
        .close = claude_close,
};
