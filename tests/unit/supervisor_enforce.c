/* What an agent cannot be told: turns by the events, tools by their names. */
#include "supervisor/enforce.h"
#include "base/mem.h"
#include "drivers/ability.h"
#include "tests/t.h"

/* ---- turns ---- */

static int64_t see(struct enforce *k, enum event_type t, const char *members)
{
	return enforce_turn(k, t, members, strlen(members));
}

static void test_turns(void)
{
	struct enforce k = {0};
	ok(see(&k, EVENT_AGENT_RAW, "\"line\":\"hello\"") == 0, "noise begins nothing");
	ok(see(&k, EVENT_USAGE, "\"turns\":9") == 0, "nor does what it says of its turns");
	ok(see(&k, EVENT_AGENT_THINKING, "\"text\":\"hm\"") == 1, "a thought does");
	ok(see(&k, EVENT_AGENT_MESSAGE, "\"text\":\"a\"") == 1, "and goes on as text");
	ok(see(&k, EVENT_TOOL_CALL, "\"callId\":\"1\"") == 1, "and as calls");
	ok(see(&k, EVENT_TOOL_CALL, "\"callId\":\"2\"") == 1, "several");
	ok(see(&k, EVENT_TOOL_UPDATE, "\"callId\":\"2\"") == 1, "what a tool prints is none");
	ok(see(&k, EVENT_TOOL_RESULT, "\"callId\":\"1\"") == 1 &&
	                see(&k, EVENT_TOOL_RESULT, "\"callId\":\"2\"") == 1,
	        "results are none");
	ok(see(&k, EVENT_AGENT_MESSAGE, "\"text\":\"s\",\"parentCallId\":\"3\"") == 1,
	        "nor is what another agent says");
	ok(see(&k, EVENT_TOOL_CALL, "\"callId\":\"4\"") == 2, "a call after results is the next");
	ok(see(&k, EVENT_TOOL_RESULT, "\"callId\":\"4\"") == 2 &&
	                see(&k, EVENT_AGENT_MESSAGE, "\"text\":\"b\"") == 3,
	        "and a word after it the one after");
	ok(see(&k, EVENT_USER_MESSAGE, "\"text\":\"c\"") == 3 &&
	                see(&k, EVENT_AGENT_MESSAGE, "\"text\":\"d\"") == 4,
	        "who is spoken to answers anew");
	ok(see(&k, EVENT_AGENT_MESSAGE, "not JSON") == 4, "what is no JSON is no new one");
}

/* ---- tools ---- */

static struct harness *harness_of(const char *tools)
{
	struct err e = {0};
	auto_free char *text = xasprintf("---\nbackend: x\ntools: %s\n---\n", tools);
	struct harness *h = harness_parse("h.md", text, strlen(text), NULL, NULL, &e);
	must(h, "a harness: %s", e.text);
	return h;
}

/* `bits` of what its agent cannot. */
static void call(
        const char *tools, uint32_t bits, const char *name, const char *kind, const char *want)
{
	struct harness *h = harness_of(tools);
	auto_free char *members =
	        xasprintf("\"callId\":\"1\",\"name\":\"%s\",\"kind\":\"%s\"", name, kind);
	auto_free char *why = enforce_call(h, bits, members, strlen(members));
	if (want)
		is_str(why ? why : "", want, "%s: %s", tools, name);
	else
		ok(!why, "%s: %s may (%s)", tools, name, why ? why : "");
	harness_unref(h);
}

static void test_calls(void)
{
	const uint32_t deny = CAN(TOOLS_DENY), allow = CAN(TOOLS_ALLOW);
	call("{ deny: [shell] }", deny, "shell", "execute",
	        "it called the tool 'shell', which 'shell' of tools.deny refuses");
	call("{ deny: [shell] }", 0, "shell", "execute", NULL); /* the agent keeps it itself */
	call("{ deny: [shell] }", allow, "shell", "execute", NULL);
	call("{ deny: [x, Shell] }", deny, "sHELL", "execute",
	        "it called the tool 'sHELL', which 'Shell' of tools.deny refuses");
	call("{ deny: [shell] }", deny, "shell2", "execute", NULL);
	call("{ deny: ['sh*'] }", deny, "shell2", "execute",
	        "it called the tool 'shell2', which 'sh*' of tools.deny refuses");
	call("{ deny: [execute] }", deny, "bash", "execute",
	        "it called the tool 'bash', which 'execute' of tools.deny refuses");
	call("{ deny: [mcp__files] }", deny, "mcp__files__read", "other",
	        "it called the tool 'mcp__files__read', which 'mcp__files' of tools.deny refuses");
	call("{ deny: [mcp__files] }", deny, "mcp__filesystem__read", "other", NULL);
	call("{ deny: [mcp__f__read] }", deny, "mcp__f__read__all", "other", NULL);
	call("{ deny: ['*'] }", deny, "", "other",
	        "it called the tool '', which '*' of tools.deny refuses");

	call("{ allow: [read] }", allow, "read", "read", NULL);
	call("{ allow: [read] }", allow, "Read", "read",
	        "it called the tool 'Read', which tools.allow does not name");
	call("{ allow: [read] }", allow, "cat", "read",
	        "it called the tool 'cat', which tools.allow does not name");
	call("{ allow: [read] }", allow, "read ", "read",
	        "it called the tool 'read ', which tools.allow does not name");
	call("{ allow: [] }", allow, "read", "read",
	        "it called the tool 'read', which tools.allow does not name");
	call("{ allow: ['mcp__s__*'] }", allow, "mcp__s__x", "other", NULL);
	call("{ allow: [read], mcp: { s: { command: x } } }", allow, "mcp__s__x", "other", NULL);
	call("{ allow: [read], mcp: { s: { command: x } } }", allow, "mcp__t__x", "other",
	        "it called the tool 'mcp__t__x', which tools.allow does not name");
	call("{ allow: [mcp__s__y], mcp: { s: { command: x } } }", allow, "mcp__s__x", "other",
	        "it called the tool 'mcp__s__x', which tools.allow does not name");
	call("{ allow: [mcp__sx__y], mcp: { s: { command: x }, sx: { command: x } } }", allow,
	        "mcp__s__x", "other", NULL); /* of a name that only begins so */
	call("{ allow: ['mcp__s*'], mcp: { s: { command: x } } }", allow, "mcp__s__x", "other",
	        NULL);
	call("{ allow: [read], deny: [read] }", allow | deny, "read", "read",
	        "it called the tool 'read', which 'read' of tools.deny refuses");

	struct harness *h = harness_of("{ allow: [read] }");
	auto_free char *none = enforce_call(h, allow, "not JSON", 8);
	ok(none != NULL, "a call without a name is not one that is allowed");
	harness_unref(h);
}

int main(void)
{
	test_turns();
	test_calls();
	return done();
}
