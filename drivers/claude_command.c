#include "drivers/claude.h"
#include "base/limits.h"
#include "base/mem.h"
#include "drivers/launch.h"
#include "drivers/rules.h"

#include <string.h>

#define PROMPT_FILE ".agentbox/system-prompt.md"
#define MCP_FILE    ".agentbox/mcp.json"

/* In --permission-prompt-tool mode Claude offers tools that ask a person something: withheld where
 * nobody is there to be asked, and plans, which are for a screen, unless a harness names them. */
static const char *const interactive[] = {"AskUserQuestion", "EnterPlanMode", "ExitPlanMode"};

/* ---- check ---- */

static int check_rules(const char *const *rules, bool enforce, struct err *e)
{
	for (; rules && *rules; rules++) {
		int r = rules_check(*rules, enforce, e);
		if (r < 0)
			return r;
	}
	return 0;
}

int claude_check(const struct driver_spec *spec, struct err *e)
{
	int r = check_rules(spec->tools_allow, true, e);
	if (r == 0)
		r = check_rules(spec->tools_deny, false, e);
	if (r == 0)
		r = launch_check(&driver_claude, spec, e);
	if (r < 0)
		return r;
	if (spec->resume && !launch_id_ok(spec->resume))
		return err_set(e, -ENOEXEC, "resume: '%.80s' is no session id", spec->resume);
	return 0;
}

/* ---- which tools ---- */

static bool any_mcp_rule_of(const char *const *rules, const char *server)
{
	auto_free char *prefix = xasprintf("mcp__%s", server);
	size_t n = strlen(prefix);
	for (; *rules; rules++)
		if (strncmp(*rules, prefix, n) == 0 &&
		        ((*rules)[n] == '\0' || strncmp(*rules + n, "__", 2) == 0))
			return true;
	return false;
}

char **claude_allow_list(const struct driver_spec *spec)
{
	if (!spec->tools_allow)
		return NULL;
	struct driver_command list = {0};
	launch_args(&list, spec->tools_allow);
	/* A server the harness declares is allowed whole unless the list narrows it. */
	for (size_t i = 0; i < spec->nmcp; i++)
		if (!any_mcp_rule_of(spec->tools_allow, spec->mcp[i].name)) {
			auto_free char *rule = xasprintf("mcp__%s", spec->mcp[i].name);
			launch_arg(&list, rule);
		}
	return list.argv ? list.argv : xcalloc(1, sizeof(char *));
}

/* mcp__server or mcp__server__*: everything that server has. */
static bool is_whole_server(const char *rule)
{
	const char *tool = rules_is_mcp(rule) ? strstr(rule + 5, "__") : NULL;
	return rules_is_mcp(rule) && (!tool || strcmp(tool, "__*") == 0);
}

bool claude_wants_asking(const struct driver_spec *spec)
{
	for (const char *const *r = spec->tools_allow; r && *r; r++)
		if (rules_has_pattern(*r) || (rules_is_mcp(*r) && !is_whole_server(*r)))
			return true;
	return false;
}

static bool skips_permissions(const struct driver_spec *spec)
{
	return spec->permissions == PERMISSIONS_AUTO && !claude_wants_asking(spec);
}

static bool listed_before(char *const *list, size_t i, const char *base)
{
	for (size_t k = 0; k < i; k++) {
		auto_free char *other = rules_base(list[k]);
		if (strcmp(other, base) == 0)
			return true;
	}
	return false;
}

/* --tools: the built-in tools that are offered at all, each once. */
static void put_offered(struct driver_command *c, char *const *allow)
{
	auto_buf struct buf names = BUF_INIT(LIMIT_EXEC_BLOB);
	for (size_t i = 0; allow[i]; i++) {
		auto_free char *base = rules_base(allow[i]);
		if (rules_is_mcp(base) || listed_before(allow, i, base))
			continue;
		if (names.len)
			buf_putc(&names, ',');
		buf_puts(&names, base);
	}
	launch_arg(c, "--tools");
	launch_arg(c, names.p ? names.p : "");
}

/* --allowedTools: what needs no question, that is what has no pattern. */
static void put_allowed(struct driver_command *c, char *const *allow)
{
	bool any = false;
	for (; *allow; allow++) {
		if (rules_has_pattern(*allow))
			continue;
		if (!any)
			launch_arg(c, "--allowedTools");
		any = true;
		launch_arg(c, *allow);
	}
}

/* Claude runs some calls unasked (reading, `ls`) even where a pattern speaks of the tool; an ask
 * rule for the tool makes it ask for each, and rules.c decides alone. */
static void put_ask_rules(struct driver_command *c, char *const *allow)
{
	auto_buf struct buf b = BUF_INIT(LIMIT_EXEC_BLOB);
	struct jw w = JW_INIT(&b);
	jw_open(&w, NULL, '{');
	jw_open(&w, "permissions", '{');
	jw_open(&w, "ask", '[');
	for (size_t i = 0; allow && allow[i]; i++) {
		auto_free char *base = rules_base(allow[i]);
		if (rules_has_pattern(allow[i]) && !listed_before(allow, i, base))
			jw_str(&w, NULL, base);
	}
	jw_close(&w, ']');
	jw_close(&w, '}');
	jw_close(&w, '}');
	launch_arg(c, "--settings");
	launch_arg(c, b.p);
}

static bool names_tool(char *const *allow, const char *tool)
{
	for (; allow && *allow; allow++)
		if (rules_names(*allow, tool))
			return true;
	return false;
}

static void put_denied(struct driver_command *c, const struct driver_spec *spec, char *const *allow)
{
	bool any = false;
	for (const char *const *d = spec->tools_deny; d && *d; d++) {
		if (!any)
			launch_arg(c, "--disallowedTools");
		any = true;
		launch_arg(c, *d);
	}
	if (skips_permissions(spec))
		return;
	for (size_t i = 0; i < ARRAY_LEN(interactive); i++) {
		bool heard = i == 0 && spec->permissions == PERMISSIONS_ASK && !allow;
		if (heard || names_tool(allow, interactive[i]))
			continue;
		if (!any)
			launch_arg(c, "--disallowedTools");
		any = true;
		launch_arg(c, interactive[i]);
	}
}

static void put_tools(struct driver_command *c, const struct driver_spec *spec)
{
	struct driver_command list = {.argv = claude_allow_list(spec)};
	if (list.argv) {
		put_offered(c, list.argv);
		put_allowed(c, list.argv);
	}
	if (skips_permissions(spec)) {
		launch_arg(c, "--dangerously-skip-permissions");
	} else {
		launch_arg(c, "--permission-prompt-tool");
		launch_arg(c, "stdio");
		if (claude_wants_asking(spec))
			put_ask_rules(c, list.argv);
	}
	put_denied(c, spec, list.argv);
	driver_command_done(&list);
}

/* ---- MCP ---- */

static int put_mcp(struct driver_command *c, const struct driver_spec *spec, struct err *e)
{
	/* Also without servers of our own: the workspace may hold a .mcp.json. */
	launch_arg(c, "--strict-mcp-config");
	if (!spec->nmcp)
		return 0;
	auto_buf struct buf b = BUF_INIT((size_t)LIMIT_YAML_FILE * 6);
	struct jw w = JW_INIT(&b);
	jw_open(&w, NULL, '{');
	/* Variables are put into all of it, and then again into headers. */
	static const struct launch_spelling once = {.dollar = LAUNCH_DEFAULT_DOLLAR},
	                                    twice = {.dollar = LAUNCH_DEFAULT_DOLLAR
	                                             "{AGENTBOX_NONE:-$}"};
	launch_put_servers(&w, "mcpServers", spec,
	        &(struct launch_servers){.stdio = "stdio",
	                .http = "http",
	                .url = "url",
	                .env = &once,
	                .headers = &twice,
	                .words = &once});
	jw_close(&w, '}');
	if (b.failed)
		return err_set(e, b.failed, "tools.mcp: too large");
	launch_arg(c, "--mcp-config");
	launch_arg(c, DRIVER_HOME "/" MCP_FILE);
	launch_file(c, MCP_FILE, buf_take(&b));
	/* Else the servers' tools hide behind a search tool and are not offered. */
	launch_env(c, "ENABLE_TOOL_SEARCH", "false");
	return 0;
}

/* ---- the command ---- */

static void put_fixed(struct driver_command *c, const struct driver_spec *spec)
{
	launch_arg(c, spec->program ? spec->program : "/opt/agent/bin/claude");
	launch_args(c, spec->args);
	launch_args(c, (const char *const[]){"-p", "--input-format", "stream-json",
	                       "--output-format", "stream-json", "--verbose", NULL});
	/* No update, no telemetry, no feature flags: the network of a jail is for the model. */
	launch_env(c, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
	launch_env(c, "DISABLE_AUTOUPDATER", "1");
	launch_env(c, "DISABLE_TELEMETRY", "1");
	launch_env(c, "DISABLE_ERROR_REPORTING", "1");
}

int claude_command(const struct driver_spec *spec, struct driver_command *ret, struct err *e)
{
	int r = claude_check(spec, e);
	if (r < 0)
		return r;
	put_fixed(ret, spec);
	if (spec->model) {
		launch_arg(ret, "--model");
		launch_arg(ret, spec->model);
	}
	if (spec->system_prompt && *spec->system_prompt) {
		/* A file: argv is public and an argument is limited to 128 KiB. */
		launch_arg(ret, "--append-system-prompt-file");
		launch_arg(ret, DRIVER_HOME "/" PROMPT_FILE);
		launch_file(ret, PROMPT_FILE, xstrdup(spec->system_prompt));
	}
	if (spec->max_turns) {
		auto_free char *n = xasprintf("%u", spec->max_turns);
		launch_arg(ret, "--max-turns");
		launch_arg(ret, n);
	}
	if (spec->resume) {
		launch_arg(ret, "--resume");
		launch_arg(ret, spec->resume);
	}
	put_tools(ret, spec);
	r = put_mcp(ret, spec, e);
	if (r < 0)
		driver_command_done(ret);
	return r;
}
