/*
 * opencode.c - opencode (`opencode run --format json`): one process a run, JSON lines out.
 *
 * It says step_start when a model is asked, then text, reasoning and tool_use
 * (a call and its result in one line, once it is done), then step_finish with
 * what the step used and why it ended.  There is no last line: it exits.  So
 * success is a step that ended with "stop", and then exit code 0.
 *
 * Errors that it tries again it does not tell; an `error` line is the end.
 */
#include "base/mem.h"
#include "drivers/emit.h"
#include "drivers/launch.h"
#include "drivers/oneshot.h"
#include "drivers/usage.h"

#include <string.h>

#define PROMPT_FILE ".agentbox/system-prompt.md"

static const struct look tools[] = {
        {"bash", "execute", "command", false},
        {"edit", "edit", "filePath", true},
        {"glob", "search", "pattern", false},
        {"grep", "search", "pattern", false},
        {"list", "read", "path", true},
        {"read", "read", "filePath", true},
        {"skill", "other", "name", false},
        {"task", "think", "description", false},
        {"todowrite", "think", NULL, false},
        {"webfetch", "fetch", "url", false},
        {"write", "edit", "filePath", true},
};

/* ---- before the start ---- */

static int opencode_check(const struct driver_spec *spec, struct err *e)
{
	return oneshot_check(&driver_opencode, spec, e);
}

static void put_server(struct jw *w, const struct driver_mcp *m)
{
	jw_open(w, m->name, '{');
	jw_str(w, "type", m->url ? "remote" : "local");
	jw_str(w, "url", m->url);
	if (!m->url) {
		jw_open(w, "command", '[');
		jw_str(w, NULL, m->command[0]);
		for (const char *const *a = m->command + 1; *a; a++)
			jw_str(w, NULL, *a);
		jw_close(w, ']');
	}
	launch_put_pairs(w, "headers", m->url ? m->headers : NULL, ':', NULL);
	launch_put_pairs(w, "environment", m->url ? NULL : m->env, '=', NULL);
	jw_bool(w, "enabled", true);
	jw_close(w, '}');
}

/* Before it reads its configuration as JSON it puts variables and files in the place of {env:NAME}
 * and {file:PATH}, wherever they are.  Returns owned. */
static char *without_places(const char *json)
{
	struct buf b = BUF_INIT(strlen(json) * 6);
	for (; *json; json++)
		if (strncmp(json, "{env:", 5) == 0 || strncmp(json, "{file:", 6) == 0)
			buf_puts(&b, "\\u007b");
		else
			buf_putc(&b, *json);
	return buf_take(&b);
}

/* Its configuration may be a variable, which adds to the file. */
static int put_config(struct driver_command *c, const struct driver_spec *spec, struct err *e)
{
	auto_buf struct buf b = BUF_INIT(LIMIT_EXEC_BLOB);
	struct jw w = JW_INIT(&b);
	jw_open(&w, NULL, '{');
	if (spec->system_prompt && *spec->system_prompt) {
		jw_open(&w, "instructions", '[');
		jw_str(&w, NULL, DRIVER_HOME "/" PROMPT_FILE);
		jw_close(&w, ']');
		launch_file(c, PROMPT_FILE, xstrdup(spec->system_prompt));
	}
	if (spec->tools_deny && spec->tools_deny[0]) {
		jw_open(&w, "tools", '{');
		for (const char *const *t = spec->tools_deny; *t; t++)
			jw_bool(&w, *t, false);
		jw_close(&w, '}');
	}
	if (spec->nmcp) {
		jw_open(&w, "mcp", '{');
		for (size_t i = 0; i < spec->nmcp; i++)
			put_server(&w, &spec->mcp[i]);
		jw_close(&w, '}');
	}
	jw_close(&w, '}');
	if (b.failed)
		return err_set(e, b.failed, "tools.mcp: too large");
	auto_free char *text = without_places(b.p);
	if (b.len > 2)
		launch_env(c, "OPENCODE_CONFIG_CONTENT", text);
	return 0;
}

static int opencode_command(
        const struct driver_spec *spec, struct driver_command *ret, struct err *e)
{
	int r = opencode_check(spec, e);
	if (r < 0)
		return r;
	launch_arg(ret, spec->program ? spec->program : "/opt/agent/bin/opencode");
	launch_args(ret, spec->args);
	launch_args(ret, (const char *const[]){"run", "--format", "json", NULL});
	/* Else what its configuration would ask for is refused. */
	if (spec->permissions == PERMISSIONS_AUTO)
		launch_arg(ret, "--auto");
	if (spec->model)
		launch_args(ret, (const char *const[]){"-m", spec->model, NULL});
	if (spec->resume)
		launch_args(ret, (const char *const[]){"--session", spec->resume, NULL});
	r = put_config(ret, spec, e);
	if (r < 0)
		driver_command_done(ret);
	return r;
}

/* ---- lines ---- */

static void changed(
        struct driver_run *r, const char *path, const struct json *meta, const char *tool)
{
	const char *diff = json_str(meta, "diff", NULL);
	bool fresh = strcmp(tool, "write") == 0 && !json_bool(meta, "exists", true);
	if (path)
		oneshot_changed(r, path, fresh ? "add" : "edit", diff);
}

/* A call and its result.  A tool that it has not is told as "invalid", completed. */
static bool tool_line(struct driver_run *r, const struct json *part)
{
	const char *id = json_str(part, "callID", NULL), *tool = json_str(part, "tool", NULL);
	const struct json *state = json_get(part, "state"), *input = json_get(state, "input");
	const struct json *meta = json_get(state, "metadata");
	const char *status = json_str(state, "status", ""), *error = json_str(state, "error", NULL);
	bool failed = strcmp(status, "error") == 0;
	if (!tool || (!failed && strcmp(status, "completed") != 0))
		return false;
	bool invalid = strcmp(tool, "invalid") == 0 && json_str(input, "tool", NULL);
	auto_free char *path = NULL;
	if (!oneshot_call(r, id, invalid ? json_str(input, "tool", NULL) : tool, input))
		return false;
	if (calls_path(&r->calls, id))
		path = xstrdup(calls_path(&r->calls, id));
	/* -1: no command; what is no exit code is none. */
	int64_t code = json_int(meta, "exit", -1);
	if (code < 0 || code > 255)
		code = -1;
	bool ok = !failed && !invalid && code <= 0;
	if (failed && error && strncmp(error, "The user rejected permission", 28) == 0) {
		emit_answered(r->sink, id, id, "deny", "agent", error);
		r->stop = "at a refused permission";
	}
	bool whole = oneshot_result(r, id, ok,
	        failed ? (error ? error : "") : json_str(state, "output", ""), (int)code);
	if (ok)
		changed(r, path, meta, tool);
	if (ok && strcmp(tool, "todowrite") == 0 && json_is_array(json_get(input, "todos")))
		emit_todos(r->sink, json_get(input, "todos"));
	return whole;
}

/* Each step tells what it alone used, cached tokens apart. */
static bool finish_line(struct driver_run *r, const struct json *part)
{
	const struct json *tokens = json_get(part, "tokens"), *cache = json_get(tokens, "cache");
	const char *reason = json_str(part, "reason", NULL);
	if (!reason || !json_is_object(tokens))
		return false;
	struct driver_usage u = {
	        .cached_tokens = usage_tokens(cache, "read"),
	        .output_tokens = usage_tokens(tokens, "output") + usage_tokens(tokens, "reasoning"),
	        .cost_usd = json_num(part, "cost", -1),
	        .turns = 1,
	};
	u.input_tokens =
	        usage_tokens(tokens, "input") + u.cached_tokens + usage_tokens(cache, "write");
	if (r->usage.turns == 0)
		r->usage.cost_usd = 0;
	usage_add(&r->usage, &u);
	emit_usage(r->sink, &r->usage);
	if (strcmp(reason, "stop") == 0) {
		oneshot_success(r);
	} else if (strcmp(reason, "tool-calls") != 0) {
		auto_free char *why = xasprintf("opencode's model stopped: %.80s", reason);
		oneshot_fail(r, why, "stopped");
	}
	return true;
}

static bool error_line(struct driver_run *r, const struct json *error)
{
	const char *name = json_str(error, "name", "error");
	if (!json_is_object(error))
		return false;
	oneshot_fail(r, json_str(json_get(error, "data"), "message", name), name);
	return true;
}

static bool opencode_object(struct driver_run *r, const struct json *line)
{
	const char *type = json_str(line, "type", "");
	const struct json *part = json_get(line, "part");
	const char *message = json_str(part, "messageID", NULL);
	oneshot_session(r, json_str(line, "sessionID", NULL));
	if (strcmp(type, "text") == 0)
		return oneshot_text(r, json_str(part, "text", NULL), false, message);
	if (strcmp(type, "reasoning") == 0)
		return oneshot_thinking(r, json_str(part, "text", NULL), false, message);
	if (strcmp(type, "tool_use") == 0)
		return tool_line(r, part);
	if (strcmp(type, "step_finish") == 0)
		return finish_line(r, part);
	if (strcmp(type, "error") == 0)
		return error_line(r, json_get(line, "error"));
	if (strcmp(type, "step_start") != 0)
		return false;
	r->begun++;
	r->won = false;
	return true;
}

/* ---- the driver ---- */

static const struct driver_dialect dialect = {
        .looks = {tools, ARRAY_LEN(tools)},
        .lost = "Session not found",
        .exit_is_word = true,
        .line = opencode_object,
};

const struct driver driver_opencode = {
        .name = "opencode",
        .can = CAN(RESUME) | CAN(DENY) | CAN(SYSTEM_PROMPT) | CAN(MODEL) | CAN(TOOLS_DENY) |
               CAN(MCP_STDIO) | CAN(MCP_HTTP) | CAN(THINKING) | CAN(PLAN) | CAN(COST) | CAN(USAGE),
        .dialect = &dialect,
        .check = opencode_check,
        .command = opencode_command,
        .open = oneshot_open,
        .start = oneshot_start,
        .line = oneshot_line,
        .error_line = oneshot_error_line,
        .turns = oneshot_turns,
        .end = oneshot_end,
        .close = oneshot_close,
};
