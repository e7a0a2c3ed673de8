/* Which calls a rule covers: names, commands taken apart, paths, hosts, MCP servers. */
#include "drivers/rules.h"
#include "base/mem.h"
#include "tests/driver_record.h"
#include "tests/t.h"

static bool allows(
        const char *const *rules, const char *tool, const char *member, const char *value)
{
	auto_buf struct buf b = BUF_INIT(1 << 16);
	struct jw w = JW_INIT(&b);
	jw_open(&w, NULL, '{');
	jw_str(&w, member, value);
	jw_close(&w, '}');
	auto_json struct json *input = json_parse(b.p, b.len, NULL);
	return rules_allow(rules, tool, input, "/workspace");
}

static void test_commands(void)
{
	const char *const *rules = LIST("Bash(node:*)", "Bash(npm run build)", "Bash(git log *)");
	static const char *const good[] = {"node", "node a.js", "  node  a.js  ", "node\ta.js",
	        "node -e 'x; rm y'", "node \"a; b\" | node", "node a && node b; node c", "node a &",
	        "npm run build", "git log --oneline", "node a 2>&1",
	        "node a >/dev/null 2>&1; node b", "node $FILE", "node 'it''s' \\; x",
	        "node a\nnode b", "node \"$HOME/x\"", "node \"a\\\"b\""};
	static const char *const bad[] = {"", " ", "rm x", "nodejs", "/usr/bin/node", "\"node\" x",
	        "node; rm x", "node && rm x", "node | sh", "node & rm x", "node\nrm x",
	        "rm x; node", "node $(rm x)", "node `rm x`", "node \"$(rm x)\"", "node \"`rm x`\"",
	        "node ${x:-$(rm x)}", "node > out", "node >> out", "node < in", "node <<EOF\nEOF",
	        "node <(rm x)", "(node; rm x)", "{ node; rm x; }", "node # '\nrm x\n#'",
	        "node $'\\'' ; rm x; echo '", "node 'open", "node \"open", "npm run build x",
	        "npm run", "git logx", "X=1 node", "node \\\n; rm x", "node $[$(rm x)]",
	        "node &> f", "node a >/dev/nullx", "node a >&2x", "node \r\n rm",
	        "if node; then rm x; fi"};
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		ok(allows(rules, "Bash", "command", good[i]), "covered: command %zu", i);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ok(!allows(rules, "Bash", "command", bad[i]), "not covered: command %zu", i);
	ok(!allows(rules, "Read", "command", "node"), "another tool is not");
	ok(!allows(rules, "Bash", "cmd", "node"), "a call without a command is not");
	ok(allows(LIST("Bash"), "Bash", "command", "node $(rm x)"), "the whole tool is anything");
	ok(!allows(LIST(), "Bash", "command", "node") && !allows(NULL, "Bash", "command", "node"),
	        "nothing is nothing");
}

static void test_paths(void)
{
	const char *const *rules =
	        LIST("Write(out/**)", "Read(*.md)", "Edit(/src/*.c)", "Read(//etc/hosts)");
	ok(allows(rules, "Write", "file_path", "/workspace/out/a/b.txt"), "below the workspace");
	ok(allows(rules, "Write", "file_path", "out/a.txt"), "relative");
	ok(!allows(rules, "Write", "file_path", "/workspace/outside.txt"), "another name");
	ok(!allows(rules, "Write", "file_path", "/out/a.txt"), "another root");
	ok(!allows(rules, "Write", "file_path", "/workspace/out/../x"), "no way out");
	ok(!allows(rules, "Write", "file_path", "/workspace/out/./x"), "no dots");
	ok(!allows(rules, "Write", "file_path", "/workspace//out/x"), "no empty parts");
	ok(!allows(rules, "Write", "file_path", "/workspace-two/out/x"), "no neighbour");
	ok(allows(rules, "Read", "file_path", "/workspace/README.md"), "a glob");
	ok(!allows(rules, "Read", "file_path", "/workspace/docs/README.md"), "is anchored");
	ok(allows(rules, "Edit", "file_path", "/workspace/src/a.c"), "one slash: the workspace");
	ok(allows(rules, "Read", "file_path", "/etc/hosts"), "two: the root");
	ok(!allows(rules, "Read", "file_path", "/workspace/etc/hosts"), "and only that");
	ok(!allows(rules, "Edit", "file_path", "/workspace/out/a.txt"),
	        "rules of one tool stay its own");
	ok(!allows(LIST("Grep(src/**)"), "Grep", "pattern", "x"), "no path is no match");
}

static void test_hosts(void)
{
	const char *const *rules =
	        LIST("WebFetch(domain:docs.example.com)", "WebFetch(domain:*.x.org)");
	ok(allows(rules, "WebFetch", "url", "https://docs.example.com/a?b"), "the host");
	ok(allows(rules, "WebFetch", "url", "http://Docs.Example.com:8080"),
	        "case and port do not count");
	ok(allows(rules, "WebFetch", "url", "https://a.x.org/"), "a star");
	ok(!allows(rules, "WebFetch", "url", "https://x.org/"), "stands for something");
	ok(!allows(rules, "WebFetch", "url", "https://docs.example.com.evil.net/"),
	        "a longer host");
	ok(!allows(rules, "WebFetch", "url", "https://docs.example.com@evil.net/"), "a user name");
	ok(!allows(rules, "WebFetch", "url", "https://evil.net/docs.example.com"), "a path");
	ok(!allows(rules, "WebFetch", "url", "https://evil.net\\@docs.example.com"), "a backslash");
	ok(!allows(rules, "WebFetch", "url", "ftp://docs.example.com"), "another scheme");
}

static void test_names(void)
{
	ok(rules_names("mcp__a", "mcp__a__b") && rules_names("mcp__a__*", "mcp__a__b"),
	        "a whole server");
	ok(rules_names("mcp__a__b", "mcp__a__b") && !rules_names("mcp__a__b", "mcp__a__c"),
	        "one tool");
	ok(!rules_names("mcp__a", "mcp__ab__c") && !rules_names("mcp__a__b", "mcp__a__bc"),
	        "not a prefix");
	ok(rules_names("Task", "Agent") && rules_names("Agent(x)", "Task"),
	        "two names of one tool");
	ok(!rules_names("Rea", "Read") && !rules_names("Read", "Rea"), "names are whole");
	struct err e;
	ok(rules_check("mcp__a__*", true, &e) == 0 && rules_check("mcp__*", true, &e) < 0,
	        "where a star may be");
	ok(rules_check("Bash(rm:*)", true, &e) == 0 && rules_check("Bash()", true, &e) < 0,
	        "no empty pattern");
	ok(rules_check("Agent(x)", false, &e) == 0 && rules_check("Agent(x)", true, &e) < 0,
	        "what is only passed on need not be enforced here");
}

int main(void)
{
	test_commands();
	test_paths();
	test_hosts();
	test_names();
	return done();
}
