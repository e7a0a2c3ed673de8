/*
 * Replays the recorded runs of tests/fixtures/pi* through the drivers pi and pi-json
 * (driver_replay.h); then what they write, and conversations that were never recorded.
 */
#include "drivers/driver.h"
#include "tests/driver_replay.h"
#include "tests/driver_talk.h"

/* ---- recorded ---- */

static void prepare(struct replay *p)
{
	static const char *const stopped[] = {"\"aborted\"", "Command aborted", NULL};
	if (strncmp(p->name, "rpc-abort", 9) == 0)
		p->interrupt_before = stopped;
	if (strncmp(p->name, "rpc-gate", 8) == 0)
		p->spec.permissions = PERMISSIONS_ASK;
}

static void test_recorded(void)
{
	replay_all(&driver_pi, "tests/fixtures/pi", "", 8, prepare);
	replay_all(&driver_pi, "tests/fixtures/pi-n20", "", 2, prepare);
	replay_all(&driver_pi_json, "tests/fixtures/pi-json", "", 32, NULL);
	replay_all(&driver_pi_json, "tests/fixtures/pi-n20-json", "", 3, NULL);
}

/* ---- a conversation, line by line ---- */

static void begin(struct talk *t, enum driver_permissions permissions)
{
	const struct driver_spec spec = {
	        .prompt = "Go.", .prompt_len = 3, .permissions = permissions};
	talk_begin(t, &driver_pi, &spec);
}

static void has(const struct talk *t, const char *want, const char *what)
{
	if (!ok(t->rec.out.p && strstr(t->rec.out.p, want), "%s", what))
		printf("# %s\n", t->rec.out.p ? t->rec.out.p : "");
}

static void finish(struct talk *t, int code, const char *want, const char *what)
{
	const struct driver_exit x = {.code = code};
	struct driver_outcome o = {0};
	t->driver->end(t->run, &x, &o);
	record_outcome(&t->rec, &o);
	driver_outcome_done(&o);
	t->driver->close(t->run);
	has(t, want, what);
	buf_done(&t->to_stdin);
	record_done(&t->rec);
}

static bool input(struct talk *t, const char *text)
{
	bool taken = t->driver->input(t->run, text, strlen(text), &t->to_stdin);
	record_stdin(&t->rec, &t->to_stdin, false);
	return taken;
}

#define STARTED                                                                                    \
	"{\"type\":\"response\",\"command\":\"prompt\",\"success\":true,\"data\":{"                \
	"\"disposition\":"                                                                         \
	"\"started\"}}"
#define QUEUED                                                                                     \
	"{\"type\":\"response\",\"command\":\"prompt\",\"success\":true,\"data\":{"                \
	"\"disposition\":"                                                                         \
	"\"queued\"}}"
#define MESSAGE(stop, more)                                                                        \
	"{\"type\":\"message_end\",\"message\":{\"role\":\"assistant\",\"content\":[{\"type\":"    \
	"\"text\",\"text\":\"Done.\"}],\"stopReason\":\"" stop "\"" more "}}"
#define SETTLED "{\"type\":\"agent_settled\",\"aborted\":false}"
#define CALL                                                                                       \
	"{\"type\":\"tool_execution_start\",\"toolCallId\":\"c1\",\"toolName\":\"bash\",\"args\":" \
	"{"                                                                                        \
	"\"command\":\"rm x\"}}"
#define CONFIRM(id)                                                                                \
	"{\"type\":\"extension_ui_request\",\"id\":\"" id                                          \
	"\",\"method\":\"confirm\",\"title\":\"bash\",\"message\":\"{\\\"toolCallId\\\":"          \
	"\\\"c1\\\",\\\"input\\\":{\\\"command\\\":\\\"rm x\\\"}}\"}"

static void test_input(void)
{
	struct talk t;
	begin(&t, PERMISSIONS_AUTO);
	has(&t, "{\\\"id\\\":\\\"get_state\\\",\\\"type\\\":\\\"get_state\\\"}",
	        "asks for the session");
	say(&t, STARTED);
	ok(input(&t, "And this."), "a message while it works");
	has(&t, "\\\"message\\\":\\\"And this.\\\",\\\"streamingBehavior\\\":\\\"steer\\\"",
	        "joins the run");
	say(&t, QUEUED);
	ok(input(&t, "Late."), "and one");
	say(&t, MESSAGE("stop", ""));
	say(&t, SETTLED);
	ok(!t.eof, "whose answer is awaited");
	say(&t, STARTED);
	ok(!t.eof, "that came too late for the run begins another");
	say(&t, MESSAGE("stop", ""));
	say(&t, SETTLED);
	ok(t.eof && !input(&t, "Later."), "then stdin is closed");
	finish(&t, 0, "\"status\":\"succeeded\"", "done");
	begin(&t, PERMISSIONS_AUTO);
	say(&t, "{\"type\":\"response\",\"command\":\"get_state\",\"success\":true,\"data\":{"
	        "\"sessionId\":\"11111111-1111-4111-8111-111111111111\"}}");
	say(&t, STARTED);
	finish(&t, 143, "\"resume\":\"11111111-1111-4111-8111-111111111111\"",
	        "a run that is cut has its session all the same");
	begin(&t, PERMISSIONS_AUTO);
	say(&t, "{\"type\":\"response\",\"command\":\"prompt\",\"success\":true,\"data\":{"
	        "\"disposition\":\"handled\"}}");
	ok(t.eof, "a prompt that is a command of pi's own");
	finish(&t, 0, "took the prompt for a command", "is no success");
	begin(&t, PERMISSIONS_AUTO);
	say(&t, "{\"type\":\"response\",\"command\":\"prompt\",\"success\":false,\"error\":\"No "
	        "API key\"}");
	ok(t.eof, "a prompt that is refused");
	finish(&t, 0, "\"error\":\"No API key\"", "says why");
}

static void answer(struct talk *t, const char *id, enum driver_answer a, bool want)
{
	ok(t->driver->answer(t->run, id, a, &t->to_stdin) == want, "answer to %s", id);
	record_stdin(&t->rec, &t->to_stdin, false);
}

static void test_ask(void)
{
	struct talk t;
	begin(&t, PERMISSIONS_ASK);
	say(&t, CALL);
	say(&t, CONFIRM("q1"));
	has(&t, "\"permissionId\":\"q1\",\"callId\":\"c1\",\"name\":\"bash\",\"title\":\"rm x\"",
	        "a call is asked for");
	answer(&t, "q1", ANSWER_ALWAYS, true);
	answer(&t, "q1", ANSWER_ONCE, false);
	has(&t, "\\\"id\\\":\\\"q1\\\",\\\"confirmed\\\":true", "and allowed");
	has(&t, "\"input\":{\"command\":\"rm x\"}", "by who saw what would run");
	say(&t, CONFIRM("q1"));
	has(&t, "\\\"id\\\":\\\"q1\\\",\\\"confirmed\\\":false",
	        "its id is not for another question");
	say(&t, CONFIRM("q2"));
	has(&t,
	        "\"permissionId\":\"q2\",\"callId\":\"c1\",\"answer\":\"always\",\"by\":"
	        "\"harness\"",
	        "always");
	say(&t, "{\"type\":\"extension_ui_request\",\"id\":\"q3\",\"method\":\"select\",\"title\":"
	        "\"Which?\",\"options\":[\"a\",\"b\"]}");
	has(&t,
	        "{\"type\":\"question.asked\",\"questionId\":\"q3\",\"text\":\"Which?\","
	        "\"options\":[\"a\",\"b\"]}",
	        "a question");
	ok(!driver_pi.answer(t.run, "q3", ANSWER_ONCE, &t.to_stdin), "wants text");
	ok(driver_pi.reply(t.run, "q3", "b", 1, &t.to_stdin), "and gets it");
	record_stdin(&t.rec, &t.to_stdin, false);
	has(&t, "\\\"id\\\":\\\"q3\\\",\\\"value\\\":\\\"b\\\"", "as its value");
	say(&t, "{\"type\":\"extension_ui_request\",\"id\":\"q4\",\"method\":\"input\",\"title\":"
	        "\"x\"}");
	ok(driver_pi.reply(t.run, "q4", NULL, 0, &t.to_stdin), "nobody answers");
	record_stdin(&t.rec, &t.to_stdin, false);
	has(&t, "\\\"id\\\":\\\"q4\\\",\\\"cancelled\\\":true", "and it is cancelled");
	finish(&t, 0, "\"status\":\"failed\"", "cut");
	begin(&t, PERMISSIONS_DENY);
	say(&t, CALL);
	say(&t, CONFIRM("q1"));
	has(&t, "\\\"confirmed\\\":false", "permissions: deny");
	say(&t, "{\"type\":\"extension_ui_request\",\"id\":\"q3\",\"method\":\"input\",\"title\":"
	        "\"x\"}");
	has(&t, "\\\"cancelled\\\":true", "nobody answers a question");
	finish(&t, 0, "\"status\":\"failed\"", "cut");
}

static void test_interrupt(void)
{
	struct talk t;
	begin(&t, PERMISSIONS_AUTO);
	say(&t, STARTED);
	say(&t, CALL);
	ok(driver_pi.interrupt(t.run, &t.to_stdin) && !driver_pi.interrupt(t.run, &t.to_stdin),
	        "once");
	record_stdin(&t.rec, &t.to_stdin, false);
	has(&t, "\\\"type\\\":\\\"abort\\\"", "an interrupt");
	ok(!input(&t, "x"), "nothing is added");
	say(&t, CONFIRM("q"));
	has(&t, "\\\"confirmed\\\":false", "what is asked now is denied");
	say(&t, MESSAGE("aborted", ",\"errorMessage\":\"Request was aborted\""));
	say(&t, SETTLED);
	has(&t, "\"name\":\"bash\",\"ok\":false", "the call is closed");
	say(&t, "{\"type\":\"tool_execution_end\",\"toolCallId\":\"c1\",\"toolName\":\"bash\"}");
	ok(t.eof, "the end");
	finish(&t, 0, "\"error\":\"Request was aborted\"", "is a failure");
}

static void yields(const char *line, const char *want)
{
	struct talk t;
	begin(&t, PERMISSIONS_AUTO);
	buf_clear(&t.rec.out);
	say(&t, CALL);
	say(&t, line);
	has(&t, want, line);
	finish(&t, 0, "\"status\":\"failed\"", "cut");
}

static void test_lines(void)
{
	static const char raw[] = "{\"type\":\"agent.raw\"";
	yields("not JSON", raw);
	yields("{\"type\":\"new_thing\"}", raw);
	yields("{\"type\":\"session\",\"id\":\"--evil\"}", raw);
	yields("{\"type\":\"extension_ui_request\",\"id\":\"n\",\"method\":\"notify\"}", raw);
	yields("{\"type\":\"message_end\",\"message\":{\"role\":\"custom\"}}", raw);
	yields("{\"type\":\"tool_execution_update\",\"toolCallId\":\"c1\",\"partialResult\":{"
	       "\"content\":[{\"type\":\"text\",\"text\":\"ab\"}]}}",
	        "{\"type\":\"tool.update\",\"callId\":\"c1\",\"output\":\"ab\"}");
	struct talk t;
	begin(&t, PERMISSIONS_AUTO);
	say(&t, CALL);
	for (int i = 0; i < 3; i++) {
		auto_free char *line =
		        xasprintf("{\"type\":\"tool_execution_update\","
		                  "\"toolCallId\":\"c1\",\"partialResult\":{"
		                  "\"content\":[{\"type\":\"text\",\"text\":\"%s\"}]}}",
		                (const char *const[]){"ab", "abc", "xbc"}[i]);
		say(&t, line);
	}
	has(&t,
	        "\"output\":\"ab\"}\n{\"type\":\"tool.update\",\"callId\":\"c1\",\"output\":\"c\"}"
	        "\n",
	        "what is new in the output");
	ok(!strstr(t.rec.out.p, "xbc"), "not what is only its end");
	finish(&t, 0, "\"status\":\"failed\"", "cut");
}

/* Calls that stay open, with paths and outputs that no file and no pi has. */
static void test_held(void)
{
	struct talk t;
	begin(&t, PERMISSIONS_AUTO);
	auto_free char *text = record_long(2 << 20);
	size_t before = record_held();
	for (int i = 0; i < 40; i++) {
		auto_free char *call = xasprintf(
		        "{\"type\":\"tool_execution_start\",\"toolCallId\":\"h%d\",\"toolName\":"
		        "\"write\",\"args\":{\"path\":\"%s\"}}",
		        i, text);
		auto_free char *output = xasprintf(
		        "{\"type\":\"tool_execution_update\",\"toolCallId\":\"h%d\","
		        "\"partialResult\":{\"content\":[{\"type\":\"text\",\"text\":\"%s\"}]}}",
		        i, text);
		buf_clear(&t.rec.out);
		say(&t, call);
		has(&t, "tool.call", "a call");
		buf_clear(&t.rec.out);
		say(&t, output);
		has(&t, "agent.raw", "whose output is passed on");
	}
	ok(record_held() < before + (32 << 20), "of 160 MiB little is held");
	buf_clear(&t.rec.out);
	finish(&t, 0, "\"status\":\"failed\"", "cut");
}

static void ends(
        const struct driver *d, const char *line, const char *last, int code, const char *want)
{
	struct talk t;
	talk_begin(&t, d, &(struct driver_spec){.prompt = "Go.", .prompt_len = 3});
	say(&t, line);
	if (last)
		say(&t, last);
	finish(&t, code, want, want);
}

static void test_ends(void)
{
	static const char old[] = "{\"type\":\"agent_end\",\"messages\":[]}";
	ends(&driver_pi_json, MESSAGE("stop", ""), SETTLED, 0, "\"status\":\"succeeded\"");
	ends(&driver_pi_json, MESSAGE("stop", ""), old, 0, "\"status\":\"succeeded\"");
	ends(&driver_pi_json, MESSAGE("stop", ""), SETTLED, 143, "\"status\":\"succeeded\"");
	ends(&driver_pi_json, MESSAGE("stop", ""), SETTLED, 1,
	        "pi settled and then exited with code 1");
	ends(&driver_pi_json, MESSAGE("stop", ""), NULL, 0,
	        "pi exited with code 0, without a result");
	ends(&driver_pi_json, MESSAGE("stop", ""), "{\"type\":\"agent_end\",\"willRetry\":true}", 0,
	        "without a result");
	ends(&driver_pi_json, MESSAGE("length", ""), SETTLED, 0, "cut at the model's limit");
	ends(&driver_pi_json, MESSAGE("error", ",\"errorMessage\":\"401\""), SETTLED, 0,
	        "\"error\":\"401\"");
	ends(&driver_pi_json, SETTLED, NULL, 0, "\"status\":\"failed\"");
	ends(&driver_pi_json,
	        "{\"message\":{\"stopReason\":\"stop\",\"content\":[{\"text\":\"a\xe2\x80\xa8"
	        "b\",\"type\":"
	        "\"text\"}],\"role\":\"assistant\"},\"type\":\"message_end\"}",
	        SETTLED, 0,
	        "\"finalText\":\"a\xe2\x80\xa8"
	        "b\"");
}

/* ---- before the start ---- */

static char *joined(char *const *list)
{
	struct buf b = BUF_INIT(1 << 20);
	for (; list && *list; list++)
		buf_printf(&b, "%s%s", b.len ? " " : "", *list);
	return buf_take(&b);
}

static void argv_is(const struct driver *d, const struct driver_spec *spec, const char *want)
{
	struct driver_command c = {0};
	struct err e = {0};
	must(d->command(spec, &c, &e) == 0, "accepted (%s)", e.text);
	auto_free char *got = joined(c.argv);
	is_str(got, want, "%s", want);
	driver_command_done(&c);
}

static void test_command(void)
{
	struct driver_mcp mcp = {.name = "s", .command = LIST("node", "x y"), .env = LIST("A=1")};
	struct driver_mcp odd[] = {
	        {.name = "near", .command = LIST("n", "$1"), .env = LIST("A=!$B!")},
	        {.name = "far", .url = "http://h/", .headers = LIST("K: !a ${B} !")}};
	struct driver_spec spec = {.program = "/n",
	        .args = LIST("cli.js"),
	        .model = "anthropic/m",
	        .system_prompt = "Be brief.",
	        .prompt = "--version",
	        .prompt_len = 9,
	        .resume = "01-a",
	        .permissions = PERMISSIONS_DENY,
	        .tools_allow = LIST("read", "mcp__s__*"),
	        .tools_deny = LIST("bash"),
	        .mcp = &mcp,
	        .nmcp = 1};
	argv_is(&driver_pi, &spec,
	        "/n cli.js --mode rpc --model anthropic/m --append-system-prompt "
	        "/home/agent/.agentbox/system-prompt.md --session 01-a --extension "
	        "/home/agent/.agentbox/ask.mjs --tools read,mcp__s__* --exclude-tools bash");
	argv_is(&driver_pi_json, &(struct driver_spec){.tools_allow = LIST()},
	        "/opt/agent/bin/node --mode json --no-tools");
	argv_is(&driver_pi, &(struct driver_spec){.tools_allow = LIST(), .mcp = &mcp, .nmcp = 1},
	        "/opt/agent/bin/node --mode rpc --no-builtin-tools");
	struct driver_command c = {0};
	struct err e = {0};
	must(driver_pi.command(&spec, &c, &e) == 0 && c.nfiles == 4, "four files");
	is_str(c.files[0].text, "Be brief.", "the system prompt");
	ok(strstr(c.files[1].text, "ctx.ui.confirm"), "what asks");
	is_str(c.files[2].path, ".agentbox/node_modules/jiti/index.js", "what loads it");
	is_str(c.env[0], "NODE_PATH=/home/agent/.agentbox/node_modules", "where it is found");
	is_str(c.files[3].path, ".pi/agent/mcp.json", "where servers are");
	is_str(c.files[3].text,
	        "{\"mcpServers\":{\"s\":{\"command\":\"node\",\"args\":[\"x "
	        "y\"],\"env\":{\"A\":\"1\"},"
	        "\"exposure\":\"direct\"}}}",
	        "the servers");
	driver_command_done(&c);
	must(driver_pi_json.command(
	             &(struct driver_spec){.mcp = odd, .nmcp = ARRAY_LEN(odd)}, &c, &e) == 0,
	        "accepted");
	is_str(c.files[c.nfiles - 1].text,
	        "{\"mcpServers\":{\"near\":{\"command\":\"n\",\"args\":[\"$1\"],\"env\":{\"A\":"
	        "\"$!$$B!\"},\"exposure\":\"direct\"},\"far\":{\"url\":\"http://h/\",\"headers\":{"
	        "\"K\":\"$!a $${B} !\"},\"exposure\":\"direct\"}}}",
	        "what pi would run or put a variable for");
	driver_command_done(&c);
	struct driver_spec bad[] = {spec, spec, spec, spec, spec, spec};
	static const char *const words[] = {
	        "session id", "no model", "(tool_patterns)", "no name", "maxTurns", "needs either"};
	bad[0].resume = "--last";
	bad[1].model = "-m";
	bad[2].tools_allow = LIST("bash(ls)");
	bad[3].tools_deny = LIST("-x");
	bad[4].max_turns = 2;
	for (size_t i = 0; i + 1 < ARRAY_LEN(bad); i++)
		bad[i].nmcp = 0;
	mcp.command = NULL;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ok(driver_pi.command(&bad[i], &c, &e) == -ENOEXEC && !c.argv &&
		                strstr(e.text, words[i]),
		        "refused: %s", e.text);
	ok(driver_pi_json.check(&(struct driver_spec){.permissions = PERMISSIONS_ASK}, &e) ==
	                        -ENOEXEC &&
	                strstr(e.text, "(ask)"),
	        "refused: %s", e.text);
}

int main(void)
{
	test_recorded();
	test_input();
	test_ask();
	test_interrupt();
	test_lines();
	test_held();
	test_ends();
	test_command();
	return done();
}
