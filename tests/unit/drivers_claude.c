/*
 * Replays every recorded run of tests/fixtures/claude through the driver and
 * compares with <case>.events; GOLDEN_WRITE=1 writes those files instead (then
 * review them against the recording).  Then the command lines.  What happens
 * line by line is in drivers_claude_lines.c.
 */
#include "drivers/driver.h"
#include "tests/driver_replay.h"

/* ---- replay ---- */

static bool starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

static void prepare(struct replay *p)
{
	static const char *const interrupted[] = {"\"control_response\"", NULL};
	static const char *allow[8];
	size_t n = 0;
	for (const struct json *a = json_first(json_get(p->meta, "allow")); a && n < 7;
	        a = json_next(a))
		allow[n++] = json_text(a);
	allow[n] = NULL;
	if (n)
		p->spec.tools_allow = allow;
	else if (replay_flag(p, "--permission-prompt-tool"))
		p->spec.permissions = PERMISSIONS_ASK;
	if (starts(p->name, "stdin-interrupt"))
		p->interrupt_before = interrupted;
	if (starts(p->name, "perm-stdio-deny"))
		p->answer = ANSWER_DENY;
}

/* ---- command lines ---- */

static bool has(char *const *list, const char *word)
{
	for (; list && *list; list++)
		if (strcmp(*list, word) == 0)
			return true;
	return false;
}

/* argv as one line, words separated by a blank; returns owned. */
static char *joined(char *const *list)
{
	struct buf b = BUF_INIT(1 << 20);
	for (; list && *list; list++)
		buf_printf(&b, "%s%s", b.len ? " " : "", *list);
	return buf_take(&b);
}

#define FIXED                                                                                      \
	"/opt/agent/bin/claude -p --input-format stream-json --output-format stream-json "         \
	"--verbose"

static void argv_is(const struct driver_spec *spec, const char *want, const char *what)
{
	struct driver_command c = {0};
	struct err e = {0};
	must(driver_claude.command(spec, &c, &e) == 0, "%s: accepted (%s)", what, e.text);
	auto_free char *got = joined(c.argv);
	is_str(got, want, "%s: argv", what);
	ok(has(c.env, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1") &&
	                has(c.env, "DISABLE_AUTOUPDATER=1"),
	        "%s: quiet", what);
	driver_command_done(&c);
}

static void test_argv(void)
{
	argv_is(&(struct driver_spec){.prompt = "secret", .prompt_len = 6},
	        FIXED " --dangerously-skip-permissions --strict-mcp-config", "plain");
	argv_is(&(struct driver_spec){.program = "/x/claude",
	                .args = LIST("--bare"),
	                .model = "m",
	                .max_turns = 7,
	                .resume = "11111111-2222"},
	        "/x/claude --bare -p --input-format stream-json --output-format stream-json "
	        "--verbose "
	        "--model m --max-turns 7 --resume 11111111-2222 --dangerously-skip-permissions "
	        "--strict-mcp-config",
	        "model, turns, resume");
	argv_is(&(struct driver_spec){.tools_allow = LIST("Read", "Write", "Read")},
	        FIXED " --tools Read,Write --allowedTools Read Write Read "
	              "--dangerously-skip-permissions --strict-mcp-config",
	        "an allow list");
	argv_is(&(struct driver_spec){.tools_allow = LIST()},
	        FIXED " --tools  --dangerously-skip-permissions --strict-mcp-config",
	        "no tool at all");
	argv_is(&(struct driver_spec){.tools_allow = LIST("Read", "Bash(node:*)", "Bash(ls)"),
	                .tools_deny = LIST("WebFetch")},
	        FIXED " --tools Read,Bash --allowedTools Read --permission-prompt-tool stdio "
	              "--settings {\"permissions\":{\"ask\":[\"Bash\"]}} "
	              "--disallowedTools WebFetch AskUserQuestion EnterPlanMode ExitPlanMode "
	              "--strict-mcp-config",
	        "patterns are never combined with skipping");
	argv_is(&(struct driver_spec){.tools_deny = LIST("Bash(rm:*)", "WebFetch")},
	        FIXED " --dangerously-skip-permissions --disallowedTools Bash(rm:*) WebFetch "
	              "--strict-mcp-config",
	        "a deny list");
	argv_is(&(struct driver_spec){.permissions = PERMISSIONS_DENY,
	                .tools_allow = LIST("ExitPlanMode")},
	        FIXED
	        " --tools ExitPlanMode --allowedTools ExitPlanMode --permission-prompt-tool stdio "
	        "--disallowedTools AskUserQuestion EnterPlanMode --strict-mcp-config",
	        "permissions: deny");
	argv_is(&(struct driver_spec){.permissions = PERMISSIONS_ASK},
	        FIXED
	        " --permission-prompt-tool stdio --disallowedTools EnterPlanMode ExitPlanMode "
	        "--strict-mcp-config",
	        "permissions: ask");
}

static void test_files(void)
{
	struct driver_mcp mcp[] = {
	        {.name = "local",
	                .command = LIST("node", "a b.mjs", "$1"),
	                .env = LIST("A=1=2", "B=", "C=${A}")},
	        {.name = "far",
	                .url = "http://far.example/mcp",
	                .headers = LIST("X-Key: v", "X-Odd: ${v}")},
	};
	struct driver_spec spec = {.system_prompt = "Be brief.\n",
	        .mcp = mcp,
	        .nmcp = 2,
	        .tools_allow = LIST("Read", "mcp__far__one")};
	struct driver_command c = {0};
	must(driver_claude.command(&spec, &c, NULL) == 0, "servers and a system prompt");
	must(c.nfiles == 2, "two files");
	is_str(c.files[0].path, ".agentbox/system-prompt.md", "where the system prompt is");
	is_str(c.files[0].text, "Be brief.\n", "the system prompt");
	is_str(c.files[1].path, ".agentbox/mcp.json", "where the servers are");
	is_str(c.files[1].text,
	        "{\"mcpServers\":{\"local\":{\"type\":\"stdio\",\"command\":\"node\",\"args\":[\"a "
	        "b.mjs\",\"${AGENTBOX_NONE:-$}1\"],\"env\":{\"A\":\"1=2\",\"B\":\"\","
	        "\"C\":\"${AGENTBOX_NONE:-$}{A}\"}},\"far\":{\"type\":\"http\",\"url\":"
	        "\"http://far.example/mcp\",\"headers\":{\"X-Key\":\"v\",\"X-Odd\":"
	        "\"${AGENTBOX_NONE:-$}{AGENTBOX_NONE:-$}{v}\"}}}}",
	        "the servers");
	auto_free char *argv = joined(c.argv);
	ok(strstr(argv, "--append-system-prompt-file /home/agent/.agentbox/system-prompt.md"),
	        "claude is told where");
	ok(strstr(argv, "--mcp-config /home/agent/.agentbox/mcp.json"),
	        "and where the servers are");
	ok(strstr(argv, "--tools Read --allowedTools Read mcp__far__one mcp__local "),
	        "a declared server is allowed unless the list narrows it");
	ok(strstr(argv, "--permission-prompt-tool stdio") && !strstr(argv, "--dangerously"),
	        "one tool of a server: the others are asked for");
	ok(has(c.env, "ENABLE_TOOL_SEARCH=false"), "tools are offered, not searched for");
	driver_command_done(&c);
}

static void refused(const struct driver_spec *spec, const char *word)
{
	struct driver_command c = {0};
	struct err e = {0};
	int r = driver_claude.check(spec, &e);
	ok(r == -ENOEXEC && strstr(e.text, word), "refused: %s", e.text);
	ok(driver_claude.command(spec, &c, &e) == -ENOEXEC && !c.argv, "and not started");
}

static void test_refused(void)
{
	refused(&(struct driver_spec){.tools_allow = LIST("Bash(")}, "Bash(");
	refused(&(struct driver_spec){.tools_allow = LIST("--evil")}, "--evil");
	refused(&(struct driver_spec){.tools_allow = LIST("Read,Bash")}, "','");
	refused(&(struct driver_spec){.tools_allow = LIST("")}, "NAME");
	refused(&(struct driver_spec){.tools_allow = LIST("Skill(x)")}, "cannot be enforced");
	refused(&(struct driver_spec){.tools_allow = LIST("WebFetch(x.org)")}, "domain:");
	refused(&(struct driver_spec){.tools_allow = LIST("mcp__a__b(c)")}, "no pattern");
	refused(&(struct driver_spec){.tools_deny = LIST("-x")}, "-x");
	refused(&(struct driver_spec){.model = "--evil"}, "--evil");
	refused(&(struct driver_spec){.resume = "--evil"}, "--evil");
	refused(&(struct driver_spec){.resume = "a/../b"}, "session id");
	struct driver_mcp none = {.name = "x"}, bad = {.name = "a\"b", .url = "http://x"};
	refused(&(struct driver_spec){.mcp = &none, .nmcp = 1}, "either command or url");
	refused(&(struct driver_spec){.mcp = &bad, .nmcp = 1}, "names are letters");
}

int main(void)
{
	replay_all(&driver_claude, "tests/fixtures/claude", "", 55, prepare);
	test_argv();
	test_files();
	test_refused();
	return done();
}
