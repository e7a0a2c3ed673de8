/*
 * gemini.c - Gemini CLI (`gemini -o stream-json`): one process a run, JSON lines out.
 *
 * It says init, then the answer in pieces, tool_use and tool_result, then a
 * result line with what was used and whether it went well.  A command that fails
 * is a tool_result with success all the same: only its text says the code.
 *
 * What it must be told and has no flag for goes into its settings, which are
 * therefore the driver's: settings above the user's count only when root owns them.
 */
#include "base/mem.h"
#include "drivers/emit.h"
#include "drivers/launch.h"
#include "drivers/oneshot.h"
#include "drivers/usage.h"

#include <stdlib.h>
#include <string.h>

#define SETTINGS_FILE     ".gemini/settings.json"
#define INSTRUCTIONS_FILE ".gemini/GEMINI.md"

static const struct look tools[] = {
        {"glob", "search", "pattern", false},
        {"google_web_search", "search", "query", false},
        {"grep_search", "search", "pattern", false},
        {"list_directory", "read", "dir_path", true},
        {"read_file", "read", "file_path", true},
        {"replace", "edit", "file_path", true},
        {"run_shell_command", "execute", "command", false},
        {"web_fetch", "fetch", "prompt", false},
        {"write_file", "edit", "file_path", true},
        {"write_todos", "think", NULL, false},
};

/* ---- before the start ---- */

static int gemini_check(const struct driver_spec *spec, struct err *e)
{
	return oneshot_check(&driver_gemini, spec, e);
}

static void put_flag(struct jw *w, const char *section, const char *key, bool value)
{
	jw_open(w, section, '{');
	jw_bool(w, key, value);
	jw_close(w, '}');
}

static int put_settings(struct driver_command *c, const struct driver_spec *spec, struct err *e)
{
	auto_buf struct buf b = BUF_INIT((size_t)LIMIT_YAML_FILE * 6);
	struct jw w = JW_INIT(&b);
	jw_open(&w, NULL, '{');
	/* No update, no telemetry: the network of a jail is for the model. */
	put_flag(&w, "general", "enableAutoUpdate", false);
	put_flag(&w, "privacy", "usageStatisticsEnabled", false);
	put_flag(&w, "telemetry", "enabled", false);
	/* Else a base URL of one's own makes it guess another way to log in. */
	jw_open(&w, "security", '{');
	jw_open(&w, "auth", '{');
	jw_str(&w, "selectedType", "gemini-api-key");
	jw_close(&w, '}');
	jw_close(&w, '}');
	if (spec->max_turns) {
		jw_open(&w, "model", '{');
		jw_int(&w, "maxSessionTurns", spec->max_turns);
		jw_close(&w, '}');
	}
	if (spec->tools_deny && spec->tools_deny[0]) {
		jw_open(&w, "tools", '{');
		jw_open(&w, "exclude", '[');
		for (const char *const *t = spec->tools_deny; *t; t++)
			jw_str(&w, NULL, *t);
		jw_close(&w, ']');
		jw_close(&w, '}');
	}
	/* It puts variables into all of its settings, and then again into env and headers. */
	static const struct launch_spelling once = {.dollar = LAUNCH_DEFAULT_DOLLAR},
	                                    twice = {.dollar = "${AGENTBOX_NONE:-\\$}"};
	if (spec->nmcp)
		launch_put_servers(&w, "mcpServers", spec,
		        &(struct launch_servers){.url = "httpUrl",
		                .more = "\"trust\":true",
		                .env = &twice,
		                .headers = &twice,
		                .words = &once});
	jw_close(&w, '}');
	if (b.failed)
		return err_set(e, b.failed, "tools.mcp: too large");
	launch_file(c, SETTINGS_FILE, buf_take(&b));
	return 0;
}

static int gemini_command(const struct driver_spec *spec, struct driver_command *ret, struct err *e)
{
	int r = gemini_check(spec, e);
	if (r < 0)
		return r;
	launch_arg(ret, spec->program ? spec->program : "/opt/agent/bin/gemini");
	launch_args(ret, spec->args);
	launch_args(ret, (const char *const[]){"-o", "stream-json", "--skip-trust", NULL});
	/* Without it, what would ask is not offered to the model. */
	if (spec->permissions == PERMISSIONS_AUTO)
		launch_arg(ret, "--yolo");
	if (spec->model)
		launch_args(ret, (const char *const[]){"-m", spec->model, NULL});
	if (spec->resume)
		launch_args(ret, (const char *const[]){"--resume", spec->resume, NULL});
	/* It starts itself a second time with more memory, and that parent ignores signals. */
	launch_env(ret, "GEMINI_CLI_NO_RELAUNCH", "true");
	/* Also without one: that of an earlier run must not count. */
	launch_file(
	        ret, INSTRUCTIONS_FILE, xstrdup(spec->system_prompt ? spec->system_prompt : ""));
	r = put_settings(ret, spec, e);
	if (r < 0)
		driver_command_done(ret);
	return r;
}

/* ---- lines ---- */

/* A turn is told by nothing: it begins with what the model says first after a tool, or at all. */
static void seen_model(struct driver_run *r)
{
	if (r->usage.turns == 0 || (r->next_is_new && r->calls.n == 0))
		r->usage.turns++;
}

static bool message_line(struct driver_run *r, const struct json *line)
{
	const char *role = json_str(line, "role", "");
	if (strcmp(role, "user") == 0)
		return true; /* our own words */
	if (strcmp(role, "assistant") != 0)
		return false;
	seen_model(r);
	return oneshot_text(
	        r, json_str(line, "content", NULL), json_bool(line, "delta", false), NULL);
}

static bool call_line(struct driver_run *r, const struct json *line)
{
	const char *name = json_str(line, "tool_name", NULL);
	const struct json *input = json_get(line, "parameters");
	seen_model(r);
	if (!oneshot_call(r, json_str(line, "tool_id", NULL), name, input))
		return false;
	if (strcmp(name, "write_todos") == 0 && json_is_array(json_get(input, "todos")))
		emit_todos(r->sink, json_get(input, "todos"));
	return true;
}

/* "Command exited with code: 124" is all that tells of a status; -1: it does not. */
static int exit_code(const char *output)
{
	static const char words[] = "Command exited with code: ";
	const char *at = strstr(output, words);
	char *end;
	if (!at || (at != output && at[-1] != '\n'))
		return -1;
	long code = strtol(at + sizeof(words) - 1, &end, 10);
	return end != at + sizeof(words) - 1 && code >= 0 && code <= 255 ? (int)code : -1;
}

static bool result_of_call(struct driver_run *r, const struct json *line)
{
	const char *id = json_str(line, "tool_id", NULL);
	const char *name = id ? calls_name(&r->calls, id) : NULL;
	const char *status = json_str(line, "status", ""), *output = json_str(line, "output", NULL);
	if (!name)
		return false;
	bool shell = strcmp(name, "run_shell_command") == 0;
	auto_free char *path =
	        calls_path(&r->calls, id) ? xstrdup(calls_path(&r->calls, id)) : NULL;
	if (!output)
		output = json_str(json_get(line, "error"), "message", "");
	int code = shell ? exit_code(output) : -1;
	bool ok = strcmp(status, "success") == 0 && code <= 0;
	bool whole = oneshot_result(r, id, ok, output, code);
	if (ok && path) /* whether the file is new is not told */
		oneshot_changed(r, path, "edit", NULL);
	return whole;
}

/* The last word: the counts are the run's, cached tokens among the input. */
static bool result_line(struct driver_run *r, const struct json *line)
{
	const struct json *stats = json_get(line, "stats"), *error = json_get(line, "error");
	const char *type = json_str(error, "type", "failed");
	if (json_is_object(stats)) {
		r->usage.input_tokens = usage_tokens(stats, "input_tokens");
		r->usage.output_tokens = usage_tokens(stats, "output_tokens");
		r->usage.cached_tokens = usage_tokens(stats, "cached");
		emit_usage(r->sink, &r->usage);
	}
	if (strcmp(json_str(line, "status", ""), "success") == 0) {
		oneshot_success(r);
		return true;
	}
	r->max_turns = strcmp(type, "FatalTurnLimitedError") == 0;
	oneshot_fail(r, json_str(error, "message", type), r->max_turns ? "error_max_turns" : type);
	return true;
}

static bool gemini_object(struct driver_run *r, const struct json *line)
{
	const char *type = json_str(line, "type", "");
	if (strcmp(type, "init") == 0) {
		oneshot_session(r, json_str(line, "session_id", NULL));
		return true;
	}
	if (strcmp(type, "message") == 0)
		return message_line(r, line);
	if (strcmp(type, "tool_use") == 0)
		return call_line(r, line);
	if (strcmp(type, "tool_result") == 0)
		return result_of_call(r, line);
	if (strcmp(type, "result") == 0)
		return result_line(r, line);
	if (strcmp(type, "error") != 0) /* what it goes on after */
		return false;
	emit_error(r->sink, json_str(line, "message", "?"), json_str(line, "severity", NULL), true);
	return true;
}

/* ---- the driver ---- */

static const char *const noise[] = {"Warning: ", "YOLO mode is enabled.", NULL};

static const struct driver_dialect dialect = {
        .looks = {tools, ARRAY_LEN(tools)},
        .lost = "Error resuming session",
        .noise = noise,
        .line = gemini_object,
};

const struct driver driver_gemini = {
        .name = "gemini",
        .can = CAN(RESUME) | CAN(DENY) | CAN(SYSTEM_PROMPT) | CAN(MODEL) | CAN(TOOLS_DENY) |
               CAN(MCP_STDIO) | CAN(MCP_HTTP) | CAN(MAX_TURNS) | CAN(PLAN) | CAN(USAGE),
        .dialect = &dialect,
        .check = gemini_check,
        .command = gemini_command,
        .open = oneshot_open,
        .start = oneshot_start,
        .line = oneshot_line,
        .error_line = oneshot_error_line,
        .end = oneshot_end,
        .close = oneshot_close,
};
