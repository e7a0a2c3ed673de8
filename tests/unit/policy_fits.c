/* What a harness asks of its agent, and what is said where the agent cannot. */
#include "policy/fits.h"
#include "base/mem.h"
#include "tests/t.h"

static char *words(const char *text)
{
	return xstrdup(text);
}

static struct agent *agent_of(const char *name, const char *driver, const char *more)
{
	struct err e = {0};
	auto_free char *text =
	        xasprintf("name: %s\ndriver: %s\nprogram: /x\n%s", name, driver, more);
	struct agent *a = agent_parse("agent.yaml", text, strlen(text), &e);
	must(a, "an agent: %s", e.text);
	return a;
}

static struct harness *harness_of(const char *keys)
{
	struct err e = {0};
	auto_free char *text = xasprintf("---\nbackend: x\n%s---\nBe brief.\n", keys);
	struct harness *h = harness_parse("h.md", text, strlen(text), NULL, NULL, &e);
	must(h, "a harness: %s", e.text);
	return h;
}

/* Every ability a harness can ask for, by a harness that asks for it and nothing else. */
static const struct {
	enum ability a;
	const char *keys;
	int line;
} asked[] = {
        {ABILITY_ASK, "\npermissions: ask\n", 4},
        {ABILITY_DENY, "permissions: deny\n", 3},
        {ABILITY_MODEL, "\n\nmodel: m\n", 5},
        {ABILITY_TOOLS_ALLOW, "tools:\n  allow: []\n", 4},
        {ABILITY_TOOLS_DENY, "tools:\n  allow: [Read]\n  deny: [x]\n", 5},
        {ABILITY_TOOL_PATTERNS, "tools:\n  deny: [x]\n  allow: ['Bash(a:*)']\n", 5},
        {ABILITY_TOOL_PATTERNS, "tools:\n  deny: ['Bash(a:*)']\n", 4},
        {ABILITY_MCP_STDIO, "tools:\n  mcp:\n    a: { url: 'http://a' }\n    b: { command: b }\n",
                6},
        {ABILITY_MCP_HTTP, "tools:\n  mcp:\n    a: { url: 'http://a' }\n    b: { command: b }\n",
                5},
        {ABILITY_WARM, "warm: { idleMs: 1000 }\n", 3},
        {ABILITY_MAX_TURNS, "limits:\n  pids: 50\n  maxTurns: 2\n", 5},
};

static void test_refused(void)
{
	struct agent *other = agent_of("able", "claude", "");
	const struct agent *others[] = {other};
	for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
		const char *name = ability_name(asked[i].a);
		auto_free char *cannot = xasprintf("cannot: [%s]\n", name);
		struct agent *a = agent_of("lame", "claude", cannot);
		struct harness *h = harness_of(asked[i].keys);
		struct fit f;
		struct err e = {0};
		int r = fits(h, other, NULL, 0, &f, &e);
		ok(r == 0 && f.enforced == 0, "%s: who can does", name);
		if (r == 0)
			fit_done(&f);
		ok(fits_line(h, asked[i].a) == asked[i].line, "line %d", fits_line(h, asked[i].a));
		r = fits(h, a, others, 1, &f, &e);
		if (ability_enforced(asked[i].a)) {
			ok(r == 0 && f.enforced == UINT32_C(1) << asked[i].a, "%s: enforced", name);
			ok(!(driver_wants(&f.spec) & f.enforced), "and not told the driver");
			fit_done(&f);
		} else {
			auto_free char *want = xasprintf(
			        "h.md:%d: %s: agent 'lame' cannot do that (%s); use an agent that "
			        "can (able), or leave it out",
			        asked[i].line, ability_key(asked[i].a), name);
			ok(r == -ENOEXEC, "%s: refused", name);
			is_str(e.text, want, "in these words");
		}
		harness_unref(h);
		agent_free(a);
	}
	agent_free(other);
}

/* Each that a harness may ask for is in the table above. */
static void test_all(void)
{
	for (enum ability a = 0; a < ABILITY_COUNT; a++) {
		bool there = a == ABILITY_SYSTEM_PROMPT || !ability_key(a);
		for (size_t i = 0; i < ARRAY_LEN(asked); i++)
			there |= asked[i].a == a;
		ok(there, "%s is tried", ability_name(a));
	}
}

static void test_told(void)
{
	struct err e = {0};
	struct fit f;
	struct harness *h = harness_of("");
	struct agent *a = agent_of("mute", "exec", "");
	ok(fits(h, a, NULL, 0, &f, &e) == -ENOEXEC, "no file for the text");
	is_str(e.text,
	        "h.md:1: the text of the harness: agent 'mute' cannot do that (system_prompt); "
	        "leave it out",
	        "nobody can");
	agent_free(a);
	a = agent_of("told", "exec", "instructions: a/b\n");
	ok(fits(h, a, NULL, 0, &f, &e) == 0, "a file for it");
	is_str(f.spec.system_prompt, "Be brief.", "it is told");
	fit_done(&f);
	free(a->program);
	a->program = NULL;
	free(a->instructions);
	a->instructions = NULL;
	ok(fits(h, a, NULL, 0, &f, &e) == -ENOEXEC && strstr(e.text, "h.md: backend exec needs"),
	        "what the driver says, with the file");
	h->command = xcalloc(2, sizeof(char *));
	h->command[0] = words("x");
	ok(fits(h, a, NULL, 0, &f, &e) == 0 && !f.spec.system_prompt,
	        "beside a command the text is for people");
	fit_done(&f);
	free(a->driver);
	a->driver = words("morse");
	ok(fits(h, a, NULL, 0, &f, &e) == -ENOEXEC && strstr(e.text, "'morse', which does not"),
	        "no such driver");
	agent_free(a);
	harness_unref(h);
}

int main(void)
{
	test_refused();
	test_all();
	test_told();
	return done();
}
