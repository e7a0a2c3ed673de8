/*
 * copilot.c - GitHub Copilot CLI (`copilot --output-format json`): one process a run, JSON lines
 * out.
 *
 * Each line is {type, data}.  The answer comes in pieces and then whole; a tool
 * has execution_start, pieces of output, execution_complete; session.error says
 * why it failed and `result` is the last word.  Cancelled, it says abort and then
 * a result with exit code 0, which is none.
 *
 * Tokens are told nowhere; the egress proxy meters them.
 */
#include "base/mem.h"
#include "drivers/emit.h"
#include "drivers/launch.h"
#include "drivers/oneshot.h"

#include <string.h>

#define INSTRUCTIONS_FILE ".copilot/copilot-instructions.md"

static const struct look tools[] = {
        {"bash", "execute", "command", false},
        {"create", "edit", "path", true},
        {"edit", "edit", "path", true},
        {"fetch_copilot_cli_documentation", "fetch", NULL, false},
        {"glob", "search", "pattern", false},
        {"grep", "search", "pattern", false},
        {"skill", "other", "skill", false},
        {"sql", "think", "description", false},
        {"task", "think", "description", false},
        {"view", "read", "path", true},
        {"web_fetch", "fetch", "url", false},
};

/* ---- before the start ---- */

static int copilot_check(const struct driver_spec *spec, struct err *e)
{
	if (spec->tools_allow && !spec->tools_allow[0])
		return err_set(e, -ENOEXEC, "tools.allow: this agent cannot be told to use none");
	return oneshot_check(&driver_copilot, spec, e);
}

static void put_names(struct driver_command *c, const char *flag, const char *const *names)
{
	for (; names && *names; names++)
		launch_args(c, (const char *const[]){flag, *names, NULL});
}

static int put_servers(struct driver_command *c, const struct driver_spec *spec, struct err *e)
{
	if (!spec->nmcp)
		return 0;
	auto_buf struct buf b = BUF_INIT(LIMIT_EXEC_BLOB);
	struct jw w = JW_INIT(&b);
	jw_open(&w, NULL, '{');
	static const struct launch_spelling texts = {.dollar = LAUNCH_DEFAULT_DOLLAR};
	launch_put_servers(&w, "mcpServers", spec,
	        &(struct launch_servers){.stdio = "local",
	                .http = "http",
	                .url = "url",
	                .env = &texts,
	                .headers = &texts,
	                .words = &texts,
	                .more = "\"tools\":[\"*\"]"});
	jw_close(&w, '}');
	if (b.failed)
		return err_set(e, b.failed, "tools.mcp: too large");
	launch_arg(c, "--additional-mcp-config");
	launch_arg(c, b.p);
	return 0;
}

static int copilot_command(
        const struct driver_spec *spec, struct driver_command *ret, struct err *e)
{
	int r = copilot_check(spec, e);
	if (r < 0)
		return r;
	launch_arg(ret, spec->program ? spec->program : "/opt/agent/bin/copilot");
	launch_args(ret, spec->args);
	launch_args(ret, (const char *const[]){"--output-format", "json", "--no-auto-update",
	                         "--disable-builtin-mcps", NULL});
	/* Without it, what would ask is denied. */
	if (spec->permissions == PERMISSIONS_AUTO)
		launch_arg(ret, "--allow-all-tools");
	put_names(ret, "--available-tools", spec->tools_allow);
	put_names(ret, "--excluded-tools", spec->tools_deny);
	if (spec->model)
		launch_env(ret, "COPILOT_MODEL", spec->model);
	launch_env(ret, "COPILOT_AUTO_UPDATE", "false");
	if (spec->resume) {
		auto_free char *resume = xasprintf("--resume=%s", spec->resume);
		launch_arg(ret, resume);
	}
	/* Also without one: that of an earlier run must not count. */
	launch_file(
	        ret, INSTRUCTIONS_FILE, xstrdup(spec->system_prompt ? spec->system_prompt : ""));
	r = put_servers(ret, spec, e);
	if (r < 0)
		driver_command_done(ret);
	return r;
}

/* ---- calls ---- */

static bool call_started(struct driver_run *r, const struct json *data)
{
	return oneshot_call(r, json_str(data, "toolCallId", NULL), json_str(data, "toolName", NULL),
	        json_get(data, "arguments"));
}

static bool call_output(struct driver_run *r, const struct json *data)
{
	const char *id = json_str(data, "toolCallId", NULL), *text = json_str(data, "text", NULL);
	if (!id || !text || !calls_name(&r->calls, id))
		return false;
	auto_buf struct buf b = EMIT_BUF;
	struct jw w = JW_INIT(&b);
	jw_str(&w, "callId", id);
	jw_str(&w, "output", text);
	return emit_members(r->sink, EVENT_TOOL_UPDATE, &b);
}

/* {path, kind: create|edit|delete}; the diff of the only one is the result's detail. */
static void files_edited(struct driver_run *r, const struct json *data)
{
	const struct json *edits = json_get(data, "fileEdits");
	const char *diff = json_str(json_get(data, "result"), "detailedContent", NULL);
	if (!json_is_array(edits))
		return;
	const struct json *first = json_first(edits);
	for (const struct json *it = first; it; it = json_next(it)) {
		const char *path = json_str(it, "path", NULL), *kind = json_str(it, "kind", "");
		if (!path)
			continue;
		bool fresh = strcmp(kind, "create") == 0, gone = strcmp(kind, "delete") == 0;
		oneshot_changed(r, path,
		        fresh  ? "add"
		        : gone ? "delete"
		               : "edit",
		        json_next(first) ? NULL : diff);
	}
}

static bool call_complete(struct driver_run *r, const struct json *data)
{
	const char *id = json_str(data, "toolCallId", NULL);
	const struct json *error = json_get(data, "error");
	const char *output = json_str(json_get(data, "result"), "content", NULL);
	int64_t code = json_int(json_get(data, "shellExecution"), "exitCode", -1);
	if (!id || !calls_name(&r->calls, id))
		return false;
	if (code < 0 || code > 255)
		code = -1;
	bool ok = json_bool(data, "success", false) && code <= 0;
	if (strcmp(json_str(error, "code", ""), "denied") == 0)
		emit_answered(r->sink, id, id, "deny", "agent", json_str(error, "message", NULL));
	if (!output)
		output = json_str(error, "message", "");
	bool whole = oneshot_result(r, id, ok, output, (int)code);
	if (ok)
		files_edited(r, data);
	return whole;
}

/* ---- what it says of itself ---- */

/* A call of the API that failed; whether it is tried again, the next line says. */
static bool call_failure(struct driver_run *r, const struct json *data)
{
	int64_t status = json_int(data, "statusCode", 0);
	free(r->retry);
	r->retry =
	        status ? xasprintf("the API answered %lld", (long long)status)
	               : xasprintf("the API failed: %.200s", json_str(data, "errorMessage", "?"));
	return true;
}

static bool retry_line(struct driver_run *r, const struct json *data)
{
	const char *reason = json_str(data, "reason", "api_retry");
	auto_free char *text =
	        xasprintf("%s: it is tried again", r->retry ? r->retry : "the API failed");
	emit_error(r->sink, text, reason, true);
	return true;
}

static bool server_line(struct driver_run *r, const struct json *data)
{
	const char *status = json_str(data, "status", "");
	if (strcmp(status, "failed") != 0 && strcmp(status, "needs-auth") != 0)
		return strcmp(status, "pending") == 0 || strcmp(status, "connected") == 0;
	auto_free char *text =
	        xasprintf("MCP server %.80s did not start (%s): its tools are missing",
	                json_str(data, "serverName", "?"), status);
	emit_error(r->sink, text, "mcp_failed", true);
	return true;
}

static bool aborted(struct driver_run *r, const struct json *data)
{
	auto_free char *why = xasprintf("interrupted (%.80s)", json_str(data, "reason", "?"));
	oneshot_fail(r, why, "interrupted");
	return true;
}

static bool result_line(struct driver_run *r, const struct json *line)
{
	int64_t code = json_int(line, "exitCode", -1);
	oneshot_session(r, json_str(line, "sessionId", NULL));
	if (code == 0 && !r->error) {
		oneshot_success(r);
	} else if (!r->error) {
		auto_free char *why =
		        xasprintf("copilot says that it failed (%lld)", (long long)code);
		oneshot_fail(r, why, "failed");
	}
	return true;
}

/* Lines that are known and say nothing that an event does not say better. */
static bool says_nothing(const char *type, const struct json *data)
{
	static const char *const nothing[] = {
	        "assistant.idle", "assistant.message_start", "assistant.tool_call_delta",
	        "assistant.turn_end", "agent.interrupted", /* abort says so */
	        "model.call_start", "model.call_finished", "model.call_final_result",
	        "session.background_tasks_changed", "session.custom_agents_updated",
	        "session.mcp_server_tools_loaded", "session.mcp_servers_loaded",
	        "session.skills_loaded", "session.tools_updated",
	        "tool.execution_partial_result", /* all of it so far, again and again */
	        "user.message",                  /* our own words */
	};
	static const char *const infos[] = {
	        "cancellation", "configuration", "file_created", "model_retry"};
	for (size_t i = 0; i < ARRAY_LEN(nothing); i++)
		if (strcmp(type, nothing[i]) == 0)
			return true;
	for (size_t i = 0; i < ARRAY_LEN(infos) && strcmp(type, "session.info") == 0; i++)
		if (strcmp(json_str(data, "infoType", ""), infos[i]) == 0)
			return true;
	return false;
}

/* ---- lines ---- */

static bool assistant_line(struct driver_run *r, const char *what, const struct json *data)
{
	const char *message = json_str(data, "messageId", NULL);
	const char *thought = json_str(data, "reasoningId", NULL);
	if (strcmp(what, "message") == 0) {
		tail_clear(&r->text); /* its pieces, which it repeats */
		return oneshot_text(r, json_str(data, "content", NULL), false, message);
	}
	if (strcmp(what, "message_delta") == 0)
		return oneshot_text(r, json_str(data, "deltaContent", NULL), true, message);
	if (strcmp(what, "reasoning") == 0)
		return oneshot_thinking(r, json_str(data, "content", NULL), false, thought);
	if (strcmp(what, "reasoning_delta") == 0)
		return oneshot_thinking(r, json_str(data, "deltaContent", NULL), true, thought);
	if (strcmp(what, "turn_retry") == 0)
		return retry_line(r, data);
	if (strcmp(what, "turn_start") != 0)
		return false;
	r->usage.turns++;
	r->begun++;
	r->won = false;
	return true;
}

static bool copilot_object(struct driver_run *r, const struct json *line)
{
	const char *type = json_str(line, "type", "");
	const struct json *data = json_get(line, "data");
	if (strcmp(type, "result") == 0)
		return result_line(r, line);
	if (!json_is_object(data))
		return false;
	if (says_nothing(type, data))
		return true;
	if (strncmp(type, "assistant.", 10) == 0)
		return assistant_line(r, type + 10, data);
	if (strcmp(type, "tool.execution_start") == 0)
		return call_started(r, data);
	if (strcmp(type, "tool.shell_output") == 0)
		return call_output(r, data);
	if (strcmp(type, "tool.execution_complete") == 0)
		return call_complete(r, data);
	if (strcmp(type, "model.call_failure") == 0)
		return call_failure(r, data);
	if (strcmp(type, "session.mcp_server_status_changed") == 0)
		return server_line(r, data);
	if (strcmp(type, "abort") == 0)
		return aborted(r, data);
	if (strcmp(type, "session.warning") == 0)
		emit_error(r->sink, json_str(data, "message", "?"),
		        json_str(data, "warningType", NULL), true);
	else if (strcmp(type, "session.error") == 0)
		oneshot_fail(r, json_str(data, "message", "failed without a reason"),
		        json_str(data, "errorType", NULL));
	else
		return false;
	return true;
}

/* ---- the driver ---- */

static const char *const noise[] = {"Package extraction took", NULL};

static const struct driver_dialect dialect = {
        .looks = {tools, ARRAY_LEN(tools)},
        .lost = "No session, task, or name matched",
        .noise = noise,
        .line = copilot_object,
};

const struct driver driver_copilot = {
        .name = "copilot",
        .can = CAN(RESUME) | CAN(DENY) | CAN(SYSTEM_PROMPT) | CAN(MODEL) | CAN(TOOLS_ALLOW) |
               CAN(TOOLS_DENY) | CAN(MCP_STDIO) | CAN(MCP_HTTP) | CAN(THINKING),
        .dialect = &dialect,
        .check = copilot_check,
        .command = copilot_command,
        .open = oneshot_open,
        .start = oneshot_start,
        .line = oneshot_line,
        .error_line = oneshot_error_line,
        .turns = oneshot_turns,
        .end = oneshot_end,
        .close = oneshot_close,
};
