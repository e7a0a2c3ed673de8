/*
 * Replays every recorded run of tests/fixtures/claude through the driver and
 * compares with <case>.events; GOLDEN_WRITE=1 writes those files instead (then
 * review them against the recording).  Then the command lines.  What happens
 * line by line is in drivers_claude_lines.c.
 */
#include "drivers/driver.h"
#include "tests/driver_golden.h"
#include "tests/t.h"

#include <dirent.h>

#define DIR_CLAUDE "tests/fixtures/claude"

/* ---- replay ---- */

struct replay {
	const char *name;
	struct json *meta; /* owned */
	struct record rec;
	struct driver_run *run;
	struct buf to_stdin;
	bool eof;
};

/* The value after a flag in the recorded argv, "" for a flag that is last, NULL without it. */
static const char *recorded_flag(const struct json *meta, const char *flag)
{
	for (const struct json *a = json_first(json_get(meta, "argv")); a; a = json_next(a))
		if (json_text(a) && strcmp(json_text(a), flag) == 0) {
			const struct json *next = json_next(a);
			return next && json_text(next) ? json_text(next) : "";
		}
	return NULL;
}

static bool starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

static void feed_line(struct replay *p, const char *line, size_t n)
{
	bool eof = false;
	if (starts(p->name, "stdin-interrupt") && memmem(line, n, "\"control_response\"", 18))
		driver_claude.interrupt(p->run, &p->to_stdin);
	driver_claude.line(p->run, line, n, true, &p->to_stdin, &eof);
	if (p->rec.permission) {
		auto_free char *id = take(p->rec.permission);
		enum driver_answer a =
		        starts(p->name, "perm-stdio-deny") ? ANSWER_DENY : ANSWER_ONCE;
		driver_claude.answer(p->run, id, a, &p->to_stdin);
	}
	record_stdin(&p->rec, &p->to_stdin, eof && !p->eof);
	p->eof |= eof;
}

static void feed_file(struct replay *p, const char *ext)
{
	auto_free char *path = xasprintf(DIR_CLAUDE "/%s%s", p->name, ext);
	size_t n = 0;
	auto_free char *text = read_file(path, &n);
	for (char *at = text, *end = text ? text + n : NULL; at && at < end;) {
		char *nl = memchr(at, '\n', (size_t)(end - at));
		size_t len = nl ? (size_t)(nl - at) : (size_t)(end - at);
		if (strcmp(ext, ".stderr") == 0)
			driver_claude.error_line(p->run, at, len);
		else
			feed_line(p, at, len);
		at = nl ? nl + 1 : end;
	}
}

static void replay(struct replay *p)
{
	struct driver_spec spec = {.prompt = "Go.", .prompt_len = 3};
	spec.resume = recorded_flag(p->meta, "--resume");
	const char *allow[8] = {NULL};
	size_t n = 0;
	for (const struct json *a = json_first(json_get(p->meta, "allow")); a && n < 7;
	        a = json_next(a))
		allow[n++] = json_text(a);
	if (n)
		spec.tools_allow = allow;
	else if (recorded_flag(p->meta, "--permission-prompt-tool"))
		spec.permissions = PERMISSIONS_ASK;
	p->run = driver_claude.open(&spec, &p->rec.sink);
	int rc = driver_claude.start(p->run, &p->to_stdin, &p->eof);
	ok(rc == 0 && !p->eof && p->to_stdin.len > 0, "%s: starts", p->name);
	buf_clear(&p->to_stdin);
	feed_file(p, ".jsonl");
	feed_file(p, ".stderr");
	struct driver_exit x = {.code = (int)json_int(p->meta, "exit", -1)};
	x.interrupted = starts(p->name, "stdin-interrupt");
	struct driver_outcome o = {0};
	driver_claude.end(p->run, &x, &o);
	record_outcome(&p->rec, &o);
	driver_outcome_done(&o);
	driver_claude.close(p->run);
}

static void test_case(const char *name)
{
	struct replay p = {.name = name, .to_stdin = BUF_INIT(64 << 20)};
	record_init(&p.rec);
	auto_free char *meta = xasprintf(DIR_CLAUDE "/%s.meta.json", name);
	auto_free char *golden = xasprintf(DIR_CLAUDE "/%s.events", name);
	size_t n = 0;
	auto_free char *text = read_file(meta, &n);
	p.meta = text ? json_parse(text, n, NULL) : NULL;
	must(p.meta, "%s: has its meta.json", name);
	replay(&p);
	golden_compare(&p.rec, golden, name);
	json_free(p.meta);
	buf_done(&p.to_stdin);
	record_done(&p.rec);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void test_recorded(void)
{
	char *names[512];
	size_t n = 0;
	DIR *d = opendir(DIR_CLAUDE);
	must(d, DIR_CLAUDE " opens");
	for (struct dirent *e; (e = readdir(d)) && n < ARRAY_LEN(names);) {
		char *dot = strstr(e->d_name, ".jsonl");
		if (dot && !strstr(e->d_name, ".in.jsonl") && dot[6] == '\0')
			names[n++] = xstrndup(e->d_name, (size_t)(dot - e->d_name));
	}
	closedir(d);
	qsort(names, n, sizeof(names[0]), by_name);
	ok(n >= 55, "%zu recorded runs", n);
	for (size_t i = 0; i < n; i++) {
		test_case(names[i]);
		free(names[i]);
	}
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
}

static void test_files(void)
{
	struct driver_mcp mcp[] = {
	        {.name = "local", .command = LIST("node", "a b.mjs"), .env = LIST("A=1=2", "B=")},
	        {.name = "far", .url = "http://far.example/mcp", .headers = LIST("X-Key: v")},
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
	        "b.mjs\"],\"env\":{\"A\":\"1=2\",\"B\":\"\"}},\"far\":{\"type\":\"http\",\"url\":"
	        "\"http://far.example/mcp\",\"headers\":{\"X-Key\":\"v\"}}}}",
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
	test_recorded();
	test_argv();
	test_files();
	test_refused();
	return done();
}
