/*
 * qwen.c - Qwen Code (`qwen --input-format stream-json -o stream-json`): Claude's shape, both ways.
 *
 * It asks, and can be interrupted, once it has been greeted with `initialize`.
 * Each block of a message is a message of its own, and only the last one has the
 * usage.  At its limits it says nothing on stdout: it exits with 53.
 */
#include "base/limits.h"
#include "base/mem.h"
#include "drivers/claude.h"
#include "drivers/launch.h"

#include <stdlib.h>
#include <string.h>

enum {
	TURNS_CODE = 53,
	SYSTEM_PROMPT_MAX = 100 << 10, /* it is an argument, which may have 128 KiB */
};

static const struct look tools[] = {
        {"agent", "think", "description", false},
        {"edit", "edit", "file_path", true},
        {"glob", "search", "pattern", false},
        {"grep_search", "search", "pattern", false},
        {"list_directory", "read", "path", true},
        {"monitor", "execute", "command", false},
        {"notebook_edit", "edit", "notebook_path", true},
        {"read_file", "read", "file_path", true},
        {"run_shell_command", "execute", "command", false},
        {"skill", "other", "skill", false},
        {"todo_write", "think", NULL, false},
        {"tool_search", "search", "query", false},
        {"web_fetch", "fetch", "url", false},
        {"write_file", "edit", "file_path", true},
};

/* ---- before the start ---- */

static int qwen_check(const struct driver_spec *spec, struct err *e)
{
	if (spec->resume && !launch_id_ok(spec->resume))
		return err_set(e, -ENOEXEC, "resume: '%.80s' is no session id", spec->resume);
	if (spec->system_prompt && strlen(spec->system_prompt) > SYSTEM_PROMPT_MAX)
		return err_set(e, -ENOEXEC,
		        "the text of the harness is longer than this agent can be told (%d KiB)",
		        SYSTEM_PROMPT_MAX >> 10);
	int r = launch_check(&driver_qwen, spec, e);
	return r < 0 ? r : launch_check_names("tools.deny", spec->tools_deny, e);
}

static int put_servers(struct driver_command *c, const struct driver_spec *spec, struct err *e)
{
	if (!spec->nmcp)
		return 0;
	auto_buf struct buf b = BUF_INIT(LIMIT_EXEC_BLOB);
	struct jw w = JW_INIT(&b);
	jw_open(&w, NULL, '{');
	launch_put_servers(&w, "mcpServers", spec, &(struct launch_servers){.url = "httpUrl"});
	jw_close(&w, '}');
	if (b.failed)
		return err_set(e, b.failed, "tools.mcp: too large");
	launch_args(c, (const char *const[]){"--mcp-config", b.p, NULL});
	return 0;
}

static int qwen_command(const struct driver_spec *spec, struct driver_command *ret, struct err *e)
{
	int r = qwen_check(spec, e);
	if (r < 0)
		return r;
	launch_arg(ret, spec->program ? spec->program : "/opt/agent/bin/qwen");
	launch_args(ret, spec->args);
	launch_args(ret,
	        (const char *const[]){"--input-format", "stream-json", "-o", "stream-json", NULL});
	if (spec->permissions == PERMISSIONS_AUTO)
		launch_arg(ret, "--yolo");
	if (spec->model)
		launch_args(ret, (const char *const[]){"-m", spec->model, NULL});
	if (spec->system_prompt && *spec->system_prompt)
		launch_args(ret,
		        (const char *const[]){"--append-system-prompt", spec->system_prompt, NULL});
	if (spec->max_turns) {
		auto_free char *n = xasprintf("%u", spec->max_turns);
		launch_args(ret, (const char *const[]){"--max-session-turns", n, NULL});
	}
	for (const char *const *t = spec->tools_deny; t && *t; t++)
		launch_args(ret, (const char *const[]){"--exclude-tools", *t, NULL});
	if (spec->resume)
		launch_args(ret, (const char *const[]){"--resume", spec->resume, NULL});
	launch_env(ret, "QWEN_CODE_SUPPRESS_YOLO_WARNING", "1"); /* the jail is the sandbox */
	r = put_servers(ret, spec, e);
	if (r < 0)
		driver_command_done(ret);
	return r;
}

/* ---- what differs ---- */

/* A command's status is among what its result says when it failed, or said nothing else:
 * "Command: ...\nExit Code: 3\n". */
static bool exit_code(
        const char *tool, bool ok, const char *output, const struct json *detail, int *ret_code)
{
	static const char words[] = "\nExit Code: ";
	(void)detail;
	if (strcmp(tool, "run_shell_command") != 0)
		return false;
	const char *at = strncmp(output, "Command: ", 9) == 0 ? strstr(output, words) : NULL;
	if (!at) {
		*ret_code = 0;
		return ok;
	}
	char *end;
	long code = strtol(at + sizeof(words) - 1, &end, 10);
	*ret_code = (int)code;
	return end != at + sizeof(words) - 1 && code >= 0 && code <= 255;
}

static const char *const noise[] = {"Warning: running headless", NULL};

static const struct driver_dialect dialect = {
        .looks = {tools, ARRAY_LEN(tools)},
        .lost = "No saved session found",
        .noise = noise,
        .greets = true,
        .sums = true,
        .files_by_input = true,
        .turns_code = TURNS_CODE,
        .exit_code = exit_code,
};

const struct driver driver_qwen = {
        .name = "qwen",
        .can = CAN(RESUME) | CAN(INPUT) | CAN(INTERRUPT) | CAN(ASK) | CAN(DENY) |
               CAN(SYSTEM_PROMPT) | CAN(MODEL) | CAN(TOOLS_DENY) | CAN(MCP_STDIO) | CAN(MCP_HTTP) |
               CAN(MAX_TURNS) | CAN(THINKING) | CAN(PLAN) | CAN(USAGE),
        .dialect = &dialect,
        .check = qwen_check,
        .command = qwen_command,
        .open = claude_open,
        .start = claude_start,
        .line = claude_line,
        .error_line = claude_error_line,
        .interrupt = claude_interrupt,
        .answer = claude_answer,
        .input = claude_input,
        .end = claude_end,
        .close = claude_close,
};
