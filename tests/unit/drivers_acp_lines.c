/*
 * The Agent Client Protocol message by message: what we ask and in which order,
 * how a turn can end, who may do what, and what was never recorded.
 */
#include "tests/acp_bed.h"

/* ---- on the way to the prompt ---- */

static void test_way(void)
{
	struct bed b;
	const struct driver_mcp mcp[] = {
	        {.name = "one", .command = LIST("node", "x y"), .env = LIST("A=1=2")},
	        {.name = "two", .url = "http://h/", .headers = LIST("K: v")}};
	begin(&b, SPEC(.system_prompt = "Be brief.", .mcp = mcp, .nmcp = 2, .model = "m2",
	                  .mode = "yolo"));
	ok(wrote(&b, "\"method\":\"initialize\"") && wrote(&b, "\"protocolVersion\":1"),
	        "initialize");
	ok(wrote(&b, "\"readTextFile\":false,\"writeTextFile\":false},\"terminal\":false"),
	        "no files and no terminal are offered");
	ok(!strstr(b.to_stdin.p, "elicitation"), "nor somebody to ask");
	answer(&b, INITIALIZED);
	ok(wrote(&b, "session/new\",\"params\":{\"cwd\":\"/workspace\",\"mcpServers\":[{\"name\":"
	             "\"one\",\"command\":\"node\",\"args\":[\"x y\"],\"env\":[{\"name\":\"A\","
	             "\"value\":\"1=2\"}]},{\"type\":\"http\",\"name\":\"two\",\"url\":"
	             "\"http://h/\",\"headers\":[{\"name\":\"K\",\"value\":\"v\"}]}]"),
	        "session/new, with the servers");
	answer(&b, "\"result\":{\"sessionId\":\"s1\",\"modes\":{\"availableModes\":[{\"id\":"
	           "\"yolo\"}],\"currentModeId\":\"yolo\"},\"configOptions\":[{\"id\":\"mm\","
	           "\"category\":\"model\",\"options\":[{\"group\":\"g\",\"options\":[{\"value\":"
	           "\"m2\"}]}]}]}");
	ok(wrote(&b, "session/set_mode\",\"params\":{\"sessionId\":\"s1\",\"modeId\":\"yolo\"}"),
	        "the mode, though it is the present one");
	answer(&b, "\"result\":{}");
	ok(wrote(&b, "session/set_config_option\",\"params\":{\"sessionId\":\"s1\",\"configId\":"
	             "\"mm\",\"value\":\"m2\"}"),
	        "the model, by an option");
	answer(&b, "\"result\":{}");
	ok(wrote(&b,
	           "session/prompt\",\"params\":{\"sessionId\":\"s1\",\"prompt\":[{\"type\":"
	           "\"text\",\"text\":\"<system-instructions>\\nBe brief.\\n</system-instructions>"
	           "\"},{\"type\":\"text\",\"text\":\"Go.\"}]"),
	        "the prompt, after the system prompt");
	ok(driver_acp.input(b.run, "More.", 5, &b.to_stdin), "a further message is taken");
	say(&b, TEXT("Hi"));
	answer(&b, ENDED);
	ok(wrote(&b, "\"prompt\":[{\"type\":\"text\",\"text\":\"More.\"}]") && !b.eof,
	        "and follows, without the system prompt");
	say(&b, TEXT("Ho"));
	answer(&b, ENDED);
	ok(b.eof && !b.to_stdin.len, "then stdin ends");
	ok(!driver_acp.input(b.run, "x", 1, &b.to_stdin), "too late for another");
	end(&b, 0, "\"status\":\"succeeded\",\"finalText\":\"Ho\"", "all of it");

	begin(&b,
	        SPEC(.system_prompt = "S", .instructions = "F", .model = "m", .model_flag = "-m"));
	answer(&b, INITIALIZED);
	answer(&b, SESSION);
	ok(wrote(&b, "\"prompt\":[{\"type\":\"text\",\"text\":\"Go.\"}]"),
	        "what was told by a file and an argument is not told again");
	end(&b, 143, "\"status\":\"failed\"", "cut off");
}

/* Something on the way goes wrong: the run fails, and stdin ends. */
static void wrong(
        const struct driver_spec *spec, const char *init, const char *session, const char *want)
{
	struct bed b;
	begin(&b, spec);
	answer(&b, init);
	if (session)
		answer(&b, session);
	ok(b.eof && told(&b, "\"retryable\":false"), "stdin ends, an error is told");
	end(&b, 0, want, "on the way");
}

static void test_wrong(void)
{
	const struct driver_mcp far = {.name = "x", .url = "http://x"};
	wrong(SPEC(.nmcp = 0), "\"result\":{\"protocolVersion\":2}", NULL,
	        "\"error\":\"the agent speaks version 2 of the Agent Client Protocol, not 1\"");
	wrong(SPEC(.nmcp = 0),
	        "\"error\":{\"code\":-32603,\"message\":\"Internal error\",\"data\":"
	        "{\"details\":\"no node\"}}",
	        NULL, "\"error\":\"Internal error: no node\"");
	wrong(SPEC(.mcp = &far, .nmcp = 1), "\"result\":{\"protocolVersion\":1}", NULL,
	        "cannot reach MCP servers at URLs");
	wrong(SPEC(.resume = "old"), "\"result\":{\"protocolVersion\":1}", NULL,
	        "\"resumeLost\":true");
	wrong(SPEC(.resume = "old"), INITIALIZED,
	        "\"error\":{\"code\":-32602,\"message\":\"no such session\"}",
	        "\"error\":\"no such session\",\"resumeLost\":true");
	wrong(SPEC(.model = "m9"), INITIALIZED, SESSION,
	        "\"error\":\"the agent does not offer the model m9\"");
	wrong(SPEC(.mode = "safe"), INITIALIZED, SESSION,
	        "\"error\":\"the agent does not offer the mode safe\"");
	wrong(SPEC(.nmcp = 0), INITIALIZED, "\"result\":{}", "without an id");
	wrong(SPEC(.nmcp = 0), INITIALIZED,
	        "\"error\":{\"code\":-32000,\"message\":\"Authentication required\"}",
	        "\"error\":\"Authentication required\"");
	wrong(SPEC(.nmcp = 0), INITIALIZED,
	        "\"error\":{\"code\":401,\"message\":\"{\\\"error\\\":{\\\"message\\\":\\\"bad "
	        "key\\\"}}\"}",
	        "\"error\":\"bad key\"");
}

static void test_auth(void)
{
	struct bed b;
	begin(&b, SPEC(.auth_method = "key"));
	answer(&b, INITIALIZED);
	answer(&b, "\"error\":{\"code\":-32000,\"message\":\"Authentication required\"}");
	ok(wrote(&b, "authenticate\",\"params\":{\"methodId\":\"key\"}"),
	        "it logs in when it must");
	answer(&b, "\"result\":{}");
	ok(wrote(&b, "session/new"), "and asks again");
	answer(&b, "\"error\":{\"code\":-32000,\"message\":\"Authentication required\"}");
	ok(b.eof, "but not for ever");
	end(&b, 0, "\"error\":\"Authentication required\"", "login");
}

static void test_old_session(void)
{
	struct bed b;
	begin(&b, SPEC(.resume = "s1", .system_prompt = "Be brief."));
	answer(&b, "\"result\":{\"protocolVersion\":1,\"agentCapabilities\":{"
	           "\"sessionCapabilities\":{\"resume\":{}}}}");
	ok(wrote(&b, "session/resume\",\"params\":{\"sessionId\":\"s1\",\"cwd\""),
	        "resumed where it cannot be loaded");
	say(&b, TEXT("An old answer."));
	ok(!b.rec.out.len, "what it was is not told again");
	answer(&b, "\"result\":{}");
	ok(wrote(&b, "\"prompt\":[{\"type\":\"text\",\"text\":\"Go.\"}]"),
	        "nor are the instructions");
	say(&b, UPDATE("\"sessionUpdate\":\"user_message_chunk\",\"content\":{\"type\":\"text\","
	               "\"text\":\"An old question.\"}"));
	say(&b, TEXT("The only answer."));
	ok(!b.rec.out.len, "an old question late begins old words");
	answer(&b, ENDED);
	ok(told(&b, "\"type\":\"agent.message\",\"text\":\"The only answer.\",\"delta\":false"),
	        "which are told when nothing else is said");
	end(&b, 0, "\"status\":\"succeeded\"", "an old session");
}

/* ---- how a turn ends ---- */

static void stops(const char *result, int code, const char *want)
{
	struct bed b;
	prompted(&b, SPEC(.failure_text = LIST("Error: ")));
	say(&b, TEXT("Hi"));
	answer(&b, result);
	ok(b.eof, "stdin ends");
	end(&b, code, want, result);
}

static void test_stops(void)
{
	struct bed b;
	stops(ENDED, 0, "\"status\":\"succeeded\",\"finalText\":\"Hi\"");
	stops(ENDED, 143, "\"status\":\"succeeded\"");
	stops(ENDED, 3, "\"error\":\"the agent ended its turn and then exited with code 3\"");
	stops("\"result\":{\"stopReason\":\"max_tokens\"}", 0, "its limit of tokens");
	stops("\"result\":{\"stopReason\":\"max_turn_requests\"}", 0, "\"maxTurns\":true");
	stops("\"result\":{\"stopReason\":\"refusal\"}", 0, "refuses to go on");
	stops("\"result\":{\"stopReason\":\"cancelled\"}", 0, "cancelled its turn");
	stops("\"result\":{\"stopReason\":\"new_reason\"}", 0, "stopped its turn: new_reason");
	stops("\"result\":null", 0, "\"status\":\"failed\"");
	prompted(&b, SPEC(.failure_text = LIST("Error: ")));
	answer(&b, ENDED);
	end(&b, 0, "\"error\":\"the agent ended its turn without a word\"", "silence");
	prompted(&b, SPEC(.failure_text = LIST("Error: ")));
	say(&b, TEXT("Error: 500"));
	answer(&b, ENDED);
	end(&b, 0, "\"error\":\"the agent reports a failure: Error: 500\"", "an error as text");
	prompted(&b, SPEC(.failure_text = LIST("Error: ")));
	say(&b, TEXT("Error: 500"));
	say(&b, TEXT(" was solved"));
	answer(&b, ENDED);
	end(&b, 0, "\"status\":\"succeeded\"", "words that go on after it");
	prompted(&b, SPEC(.usage_sums = true));
	ok(driver_acp.input(b.run, "x", 1, &b.to_stdin), "another message");
	say(&b, TEXT("Hi"));
	answer(&b, "\"result\":{\"stopReason\":\"end_turn\",\"usage\":{\"inputTokens\":10,"
	           "\"outputTokens\":2,\"totalTokens\":112,\"cachedReadTokens\":100}}");
	ok(told(&b, "\"inputTokens\":110,\"outputTokens\":2,\"cachedTokens\":100"),
	        "cached tokens that were not counted are");
	say(&b, TEXT("Ho"));
	answer(&b, "\"result\":{\"stopReason\":\"end_turn\",\"usage\":{\"inputTokens\":20,"
	           "\"outputTokens\":4}}");
	end(&b, 0, "\"inputTokens\":20,\"outputTokens\":4", "sums of the session");
}

/* ---- permissions ---- */

#define ASKS(options) ASKS_AS("q-7", options)
#define ASKS_AS(id, options)                                                                       \
	"{\"id\":\"" id "\",\"method\":\"session/"                                                 \
	"request_permission\",\"params\":{\"sessionId\":\"s1\","                                   \
	"\"toolCall\":{\"toolCallId\":\"c1\",\"title\":\"says\",\"kind\":\"execute\","             \
	"\"rawInput\":"                                                                            \
	"{\"command\":\"rm x\"}},\"options\":[" options "]}}"
#define OPTION(id, kind) "{\"optionId\":\"" id "\",\"kind\":\"" kind "\"}"

/* The ids lie: the kind counts. */
#define LIES                                                                                       \
	OPTION("deny", "allow_always")                                                             \
	"," OPTION("no", "allow_once") "," OPTION("ok", "reject_once")

static void decides(
        enum driver_permissions p, const char *asks, const char *want, const char *event)
{
	struct bed b;
	prompted(&b, SPEC(.permissions = p));
	say(&b, asks);
	ok(wrote(&b, "\"id\":\"q-7\"") && wrote(&b, want), "answered: %s", want);
	ok(told(&b, "\"type\":\"tool.call\",\"callId\":\"c1\"") &&
	                told(&b, "\"type\":\"permission.asked\",\"permissionId\":\"q-7\"") &&
	                told(&b, "\"title\":\"rm x\"") && told(&b, event),
	        "the call, the question and the answer are told");
	end(&b, 0, "\"toolCalls\":1", "permission");
}

static void asked(struct bed *b, enum driver_answer a, const char *options, const char *want)
{
	prompted(b, SPEC(.permissions = PERMISSIONS_ASK));
	say(b, options);
	ok(!b->to_stdin.len, "a person is to be asked");
	buf_clear(&b->rec.out);
	ok(!driver_acp.answer(b->run, "q-8", a, &b->to_stdin), "not of another question");
	ok(driver_acp.answer(b->run, "q-7", a, &b->to_stdin) && wrote(b, want), "%s", want);
	ok(told(b, "\"by\":\"user\""), "by the user");
	ok(!driver_acp.answer(b->run, "q-7", a, &b->to_stdin), "once only");
}

static void test_permissions(void)
{
	struct bed b;
	decides(PERMISSIONS_AUTO, ASKS(LIES), "\"optionId\":\"no\"",
	        "\"answer\":\"once\",\"by\":\"harness\"");
	decides(PERMISSIONS_AUTO, ASKS(OPTION("x", "allow_always")), "\"optionId\":\"x\"",
	        "\"answer\":\"once\"");
	decides(PERMISSIONS_AUTO, ASKS(OPTION("x", "reject_once")), "\"optionId\":\"x\"",
	        "\"answer\":\"deny\"");
	decides(PERMISSIONS_DENY, ASKS(LIES), "\"optionId\":\"ok\"",
	        "\"answer\":\"deny\",\"by\":\"harness\"");
	decides(PERMISSIONS_DENY, ASKS(OPTION("x", "allow_once")), "\"outcome\":\"cancelled\"",
	        "\"answer\":\"deny\"");
	asked(&b, ANSWER_ONCE, ASKS(LIES), "\"outcome\":\"selected\",\"optionId\":\"no\"");
	end(&b, 0, "\"status\":\"failed\"", "once");
	asked(&b, ANSWER_ONCE, ASKS(OPTION("x", "allow_always") "," OPTION("y", "reject_once")),
	        "\"optionId\":\"y\"");
	ok(told(&b, "\"answer\":\"deny\"") && told(&b, "for always only"), "once is not always");
	end(&b, 0, "\"status\":\"failed\"", "once");
	asked(&b, ANSWER_ALWAYS, ASKS(LIES), "\"optionId\":\"deny\"");
	end(&b, 0, "\"status\":\"failed\"", "always");
	asked(&b, ANSWER_ALWAYS, ASKS(OPTION("x", "allow_once")), "\"optionId\":\"x\"");
	say(&b, ASKS(OPTION("y", "allow_once")));
	ok(!told(&b, "harness") && wrote(&b, "\"id\":\"q-7\",\"error\""),
	        "an id that had its answer is not for another question");
	say(&b, ASKS_AS("q-9", OPTION("y", "allow_once")));
	ok(told(&b, "\"title\":\"rm x\",\"input\":{\"command\":\"rm x\"}"),
	        "all that would run is told");
	ok(wrote(&b, "\"optionId\":\"y\"") && told(&b, "\"answer\":\"always\",\"by\":\"harness\""),
	        "always is remembered for an agent that has no such option");
	end(&b, 0, "\"status\":\"failed\"", "always");
	asked(&b, ANSWER_DENY, ASKS(LIES), "\"optionId\":\"ok\"");
	say(&b, UPDATE("\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"c1\",\"status\":"
	               "\"failed\""));
	answer(&b, ENDED);
	end(&b, 0, "stopped when a permission was refused", "no word after a refusal");
}

static void test_interrupt(void)
{
	struct bed b;
	begin(&b, SPEC(.permissions = PERMISSIONS_ASK));
	ok(!driver_acp.interrupt(b.run, &b.to_stdin), "before the prompt it is signalled");
	answer(&b, INITIALIZED);
	answer(&b, SESSION);
	say(&b, ASKS(LIES));
	buf_clear(&b.rec.out);
	ok(driver_acp.interrupt(b.run, &b.to_stdin), "at the prompt it is told");
	ok(wrote(&b, "\"id\":\"q-7\",\"result\":{\"outcome\":{\"outcome\":\"cancelled\"}}}\n{"
	             "\"jsonrpc\":\"2.0\",\"method\":\"session/cancel\",\"params\":{\"sessionId\":"
	             "\"s1\"}}\n"),
	        "questions are taken back, then the turn");
	ok(told(&b, "\"answer\":\"cancelled\""), "and told so");
	say(&b, ASKS_AS("q-8", LIES));
	ok(wrote(&b, "\"id\":\"q-8\",\"result\":{\"outcome\":{\"outcome\":\"cancelled\""),
	        "later questions, too");
	ok(!driver_acp.input(b.run, "x", 1, &b.to_stdin), "no further message");
	answer(&b, "\"result\":{\"stopReason\":\"cancelled\"}");
	ok(b.eof && !strstr(b.rec.out.p, "\"type\":\"error\""), "no error of its own");
	end(&b, 0, "\"status\":\"failed\"", "interrupted");

	prompted(&b, SPEC(.permissions = PERMISSIONS_ASK));
	say(&b, ASKS(LIES));
	say(&b, "{\"method\":\"$/cancel_request\",\"params\":{\"requestId\":\"q-7\"}}");
	ok(told(&b, "\"answer\":\"cancelled\",\"by\":\"agent\""), "the agent withdraws");
	ok(!driver_acp.answer(b.run, "q-7", ANSWER_ONCE, &b.to_stdin), "then it is too late");
	end(&b, 0, "\"status\":\"failed\"", "withdrawn");
}

/* ---- questions ---- */

#define FORM(fields)                                                                               \
	"{\"id\":9,\"method\":\"elicitation/"                                                      \
	"create\",\"params\":{\"sessionId\":\"s1\",\"mode\":\"form\","                             \
	"\"message\":\"Which?\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{" fields  \
	"}}}}"

static void replies(const char *form, const char *text, const char *want)
{
	struct bed b;
	prompted(&b, SPEC(.permissions = PERMISSIONS_ASK));
	say(&b, form);
	ok(told(&b, "\"type\":\"question.asked\",\"questionId\":\"9\",\"text\":\"Which?\""),
	        "asked");
	ok(!driver_acp.answer(b.run, "9", ANSWER_ONCE, &b.to_stdin), "it is no permission");
	ok(driver_acp.reply(b.run, "9", text, strlen(text), &b.to_stdin) && wrote(&b, want), "%s",
	        want);
	ok(told(&b, "\"type\":\"question.answered\",\"questionId\":\"9\""), "told");
	ok(!driver_acp.reply(b.run, "9", text, strlen(text), &b.to_stdin), "once only");
	end(&b, 0, "\"status\":\"failed\"", "question");
}

static void nobody_replies(void)
{
	struct bed b;
	prompted(&b, SPEC(.permissions = PERMISSIONS_ASK));
	say(&b, FORM("\"x\":{\"type\":\"string\"}"));
	ok(driver_acp.reply(b.run, "9", NULL, 0, &b.to_stdin) &&
	                wrote(&b, "\"action\":\"cancel\"") && !wrote(&b, "content"),
	        "nobody is no empty answer");
	ok(told(&b, "\"type\":\"question.answered\",\"questionId\":\"9\""), "told");
	end(&b, 0, "\"status\":\"failed\"", "question");
}

static void test_questions(void)
{
	nobody_replies();
	struct bed b;
	begin(&b, SPEC(.permissions = PERMISSIONS_ASK));
	ok(wrote(&b, "\"elicitation\":{\"form\":{}}"), "somebody is there to be asked");
	end(&b, 0, "\"status\":\"failed\"", "not begun");
	replies(FORM("\"color\":{\"type\":\"string\",\"enum\":[\"red\"]}"), "red \"x\"",
	        "\"id\":9,\"result\":{\"action\":\"accept\",\"content\":{\"color\":\"red "
	        "\\\"x\\\"\"}}");
	replies(FORM("\"n\":{\"type\":\"integer\"}"), "12", "\"content\":{\"n\":12}");
	replies(FORM("\"n\":{\"type\":\"integer\"}"), "many", "\"action\":\"decline\"}");
	replies(FORM("\"n\":{\"type\":\"integer\"}"), "99999999999999999999",
	        "\"action\":\"decline\"}");
	replies(FORM("\"n\":{\"type\":\"number\"}"), "nan", "\"action\":\"decline\"}");
	replies(FORM("\"n\":{\"type\":\"number\"}"), "inf", "\"action\":\"decline\"}");
	replies(FORM("\"n\":{\"type\":\"number\"}"), "1.5", "\"content\":{\"n\":1.5}");
	replies(FORM("\"b\":{\"type\":\"boolean\"}"), "yes", "\"content\":{\"b\":true}");
	replies(FORM("\"b\":{\"type\":\"boolean\"}"), "maybe", "\"action\":\"decline\"}");
	prompted(&b, SPEC(.permissions = PERMISSIONS_AUTO));
	say(&b, FORM("\"n\":{\"type\":\"integer\"}"));
	ok(wrote(&b, "\"action\":\"decline\"") && told(&b, "agent.raw"), "nobody there: declined");
	end(&b, 0, "\"status\":\"failed\"", "declined");
	prompted(&b, SPEC(.permissions = PERMISSIONS_ASK));
	say(&b, FORM("\"a\":{\"type\":\"string\"},\"b\":{\"type\":\"string\"}"));
	ok(wrote(&b, "\"action\":\"decline\""), "two fields are no question");
	end(&b, 0, "\"status\":\"failed\"", "declined");
}

/* ---- what it tells ---- */

static void test_raw(void)
{
	struct bed b;
	prompted(&b, SPEC(.nmcp = 0));
	raw(&b, "not JSON");
	raw(&b, "[]");
	raw(&b, "{\"id\":99,\"result\":{}}");
	raw(&b, "{\"method\":\"_vendor/news\",\"params\":{}}");
	raw(&b, UPDATE("\"sessionUpdate\":\"a_new_kind\""));
	raw(&b, UPDATE("\"sessionUpdate\":\"tool_call\",\"title\":\"without an id\""));
	raw(&b, UPDATE("\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":"
	               "\"image\"}"));
	raw(&b, "{\"method\":\"session/update\",\"params\":{\"sessionId\":\"other\",\"update\":{"
	        "\"sessionUpdate\":\"plan\",\"entries\":[]}}}");
	raw(&b, TEXT("a\\u0000b"));
	raw(&b, "{\"id\":1,\"method\":\"fs/read_text_file\",\"params\":{\"path\":\"/etc/"
	        "shadow\"}}");
	ok(wrote(&b, "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32601"),
	        "a request that is not served is refused");
	raw(&b, "{\"id\":null,\"method\":\"terminal/create\"}");
	ok(wrote(&b, "\"id\":null,\"error\""), "whatever its id");
	raw(&b, "{\"id\":{\"a\":1},\"method\":\"terminal/create\"}");
	ok(!b.to_stdin.len, "if it can be one");
	static char big[10 << 20];
	memset(big, 'x', sizeof(big));
	say_bytes(&b, big, sizeof(big));
	ok(told(&b, "\"more\":true"), "a line of 10 MiB comes in pieces");
	buf_clear(&b.rec.out);
	driver_acp.line(b.run, "{\"met", 5, false, &b.to_stdin, &b.eof);
	ok(told(&b, "{\"type\":\"agent.raw\""), "a piece of a line, too");
	driver_acp.error_line(b.run, "no space", 8);
	end(&b, 1, "the agent exited with code 1: no space, without a result", "nothing of use");
}

static void test_tools(void)
{
	struct bed b;
	prompted(&b, SPEC(.nmcp = 0));
	say(&b, UPDATE("\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"c1\",\"title\":"
	               "\"Terminal\","
	               "\"kind\":\"execute\",\"status\":\"pending\",\"rawInput\":{}"));
	ok(!b.rec.out.len, "a call without its input is not told yet");
	say(&b, UPDATE("\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"c1\",\"rawInput\":"
	               "{\"command\":\"ls\"},\"name\":\"late\""));
	ok(!b.rec.out.len, "nor while it grows");
	say(&b, UPDATE("\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"c1\",\"status\":"
	               "\"in_progress\",\"content\":[{\"type\":\"content\",\"content\":{\"type\":"
	               "\"text\",\"text\":\"one\\n\"}}]"));
	ok(told(&b, "{\"type\":\"tool.call\",\"callId\":\"c1\",\"name\":\"Terminal\",\"kind\":"
	            "\"execute\",\"input\":{\"command\":\"ls\"},\"title\":\"ls\"}\n"
	            "{\"type\":\"tool.update\",\"callId\":\"c1\",\"output\":\"one\\n\"}\n"),
	        "but when it runs, with its output");
	say(&b, UPDATE("\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"c1\",\"status\":"
	               "\"in_progress\",\"content\":[{\"type\":\"content\",\"content\":{\"type\":"
	               "\"text\",\"text\":\"one\\ntwo\\n\"}}]"));
	ok(told(&b, "\"output\":\"two\\n\""), "what is new of it");
	say(&b, UPDATE("\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"c1\",\"status\":"
	               "\"completed\",\"rawOutput\":{\"output\":\"all\",\"metadata\":{\"exit\":3}"
	               "}"));
	ok(told(&b, "\"ok\":false,\"output\":\"all\",\"exitCode\":3"),
	        "a command that failed is no success, completed or not");
	raw(&b, UPDATE("\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"c1\",\"status\":"
	               "\"completed\""));
	say(&b, UPDATE("\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"c2\",\"title\":\"x\","
	               "\"kind\":\"switch_mode\",\"status\":\"pending\""));
	say(&b, TEXT("While it waits"));
	ok(told(&b, "\"callId\":\"c2\",\"name\":\"x\",\"kind\":\"other\""),
	        "a call is told before words");
	say(&b, UPDATE("\"sessionUpdate\":\"plan\",\"entries\":[{\"content\":\"a\",\"priority\":"
	               "\"high\",\"status\":\"in_progress\"}]"));
	ok(told(&b, "{\"type\":\"plan.updated\",\"entries\":[{\"text\":\"a\",\"status\":"
	            "\"in_progress\"}]}"),
	        "a plan");
	answer(&b, ENDED);
	ok(told(&b, "\"callId\":\"c2\",\"name\":\"x\",\"ok\":false"), "the open call is closed");
	end(&b, 0, "\"toolCalls\":2", "calls");
}

/* A file's change, as a diff. */
static void changed(const char *was, const char *is, const char *want)
{
	struct bed b;
	prompted(&b, SPEC(.nmcp = 0));
	auto_free char *line = xasprintf(
	        UPDATE("\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"c\",\"kind\":"
	               "\"edit\","
	               "\"status\":\"completed\",\"content\":[{\"type\":\"diff\",\"path\":"
	               "\"/workspace/a\",\"oldText\":%s,\"newText\":%s}]"),
	        was, is);
	say(&b, line);
	ok(told(&b, want), "%s", want);
	end(&b, 0, "\"toolCalls\":1", "a change");
}

static void test_diffs(void)
{
	changed("null", "\"x\\n\"",
	        "\"path\":\"a\",\"change\":\"add\",\"diff\":\"@@ -0,0 +1,1 @@\\n+x\\n\"");
	changed("\"1\\n2\\n3\\n4\\n5\\n6\\n7\\n8\\n9\\n\"",
	        "\"1\\n2\\n3\\n4\\nfive\\n6\\n7\\n8\\n9\\n\"",
	        "\"change\":\"edit\",\"diff\":\"@@ -2,7 +2,7 @@\\n 2\\n 3\\n 4\\n-5\\n+five\\n "
	        "6\\n 7\\n "
	        "8\\n\"");
	changed("\"a\\na\\n\"", "\"a\\n\"", "@@ -1,2 +1,1 @@\\n a\\n-a\\n\"");
	changed("\"a\"", "\"a\\n\"",
	        "@@ -1,1 +1,1 @@\\n-a\\n\\\\ No newline at end of file\\n+a\\n\"");
	changed("\"a\\n\"", "\"\"", "\"change\":\"edit\",\"diff\":\"@@ -1,1 +0,0 @@\\n-a\\n\"");
	struct bed b;
	prompted(&b, SPEC(.nmcp = 0));
	say(&b, UPDATE("\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"c\",\"kind\":"
	               "\"delete\","
	               "\"status\":\"completed\",\"locations\":[{\"path\":\"/workspace/b\"}]"));
	ok(told(&b, "\"path\":\"b\",\"change\":\"delete\"}"), "a change that is only named");
	end(&b, 0, "\"toolCalls\":1", "a change");
}

/* What it tells of calls and questions that it leaves open. */
static void test_held(void)
{
	struct bed b;
	prompted(&b, SPEC(.permissions = PERMISSIONS_ASK));
	auto_free char *text = record_long(2 << 20);
	size_t before = record_held();
	for (int i = 0; i < 40; i++) {
		auto_free char *call = xasprintf(
		        UPDATE("\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"c%d\",\"kind\":"
		               "\"edit\",\"status\":\"in_progress\",\"title\":\"%s\","
		               "\"locations\":[{\"path\":\"%s\"}],\"content\":[{\"type\":"
		               "\"diff\",\"path\":\"a\",\"newText\":\"%s\"}]"),
		        i, text, text, text);
		say(&b, call);
		auto_free char *question =
		        xasprintf("{\"id\":%d,\"method\":\"session/request_permission\","
		                  "\"params\":{\"toolCall\":{\"toolCallId\":\"c%d\"},\"options\":"
		                  "[{\"optionId\":\"%s\",\"kind\":\"allow_once\"}]}}",
		                i, i, text);
		say(&b, question);
		auto_free char *form = xasprintf(
		        "{\"id\":%d,\"method\":\"elicitation/create\",\"params\":{\"message\":"
		        "\"Which?\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{"
		        "\"%s\":{\"type\":\"string\"}}}}}",
		        100 + i, text);
		say(&b, form);
	}
	ok(record_held() < before + (64 << 20), "of 400 MiB little is held");
	say(&b, UPDATE("\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"c0\","
	               "\"status\":\"completed\""));
	ok(told(&b, "\"path\":\"a\",\"change\":\"add\",\"diff\""), "the first changes are");
	ok(record_held() < before + (62 << 20), "and what is told is let go");
	end(&b, 0, "\"toolCalls\":40", "large calls");
}

/* ---- what it is started with ---- */

static void test_command(void)
{
	struct driver_command c = {0};
	struct err e = {0};
	const struct driver_mcp bad = {.name = "a b", .url = "http://x"};
	must(driver_acp.command(
	             SPEC(.program = "/p", .args = LIST("--acp"), .model = "m", .model_flag = "-m",
	                     .system_prompt = "S", .instructions = "F", .resume = "s",
	                     .permissions = PERMISSIONS_ASK),
	             &c, &e) == 0,
	        "accepted");
	ok(strcmp(c.argv[1], "--acp") == 0 && strcmp(c.argv[3], "m") == 0 && !c.argv[4] &&
	                c.nfiles == 1 && strcmp(c.files[0].text, "S") == 0,
	        "arguments, the model, a file; the prompt is not in it");
	driver_command_done(&c);
	const struct driver_mcp two[] = {
	        {.name = "one", .command = LIST("node", "x $y"), .env = LIST("A=1=$2")},
	        {.name = "two", .url = "http://h/$3", .headers = LIST("K: $2")}};
	const struct driver_spec *flagged = SPEC(.program = "/p", .mcp = two, .nmcp = 2,
	        .mcp_flag = "--servers", .mcp_dollar = "\\$");
	must(driver_acp.command(flagged, &c, &e) == 0, "accepted");
	ok(strcmp(c.argv[1], "--servers") == 0 &&
	                strcmp(c.argv[2], "@/home/agent/.agentbox/mcp.json") == 0 &&
	                c.nfiles == 1 &&
	                strcmp(c.files[0].text,
	                        "{\"mcpServers\":{\"one\":{\"type\":\"local\",\"command\":\"node\","
	                        "\"args\":[\"x \\\\$y\"],\"env\":{\"A\":\"1=\\\\$2\"},\"tools\":"
	                        "[\"*\"]}}}") == 0,
	        "a program that the protocol does not take, by a flag: %s", c.files[0].text);
	driver_command_done(&c);
	struct bed b;
	begin(&b, flagged);
	answer(&b, INITIALIZED);
	ok(wrote(&b, "\"mcpServers\":[{\"type\":\"http\",\"name\":\"two\",\"url\":\"http://h/"
	             "\\\\$3\","
	             "\"headers\":[{\"name\":\"K\",\"value\":\"\\\\$2\"}]}]"),
	        "and not by the protocol, which has the other");
	end(&b, 1, "\"status\":\"failed\"", "which ends");
	const struct driver_spec *refused[] = {SPEC(.tools_allow = LIST("x")),
	        SPEC(.tools_allow = LIST(NULL)), /* none at all */
	        SPEC(.tools_deny = LIST("x")), SPEC(.max_turns = 3), SPEC(.model = "-x"),
	        SPEC(.mcp = &bad, .nmcp = 1), SPEC(.resume = "")};
	for (size_t i = 0; i < ARRAY_LEN(refused); i++)
		ok(driver_acp.command(refused[i], &c, &e) == -ENOEXEC && !c.argv, "refused: %s",
		        e.text);
}

int main(void)
{
	test_way();
	test_wrong();
	test_auth();
	test_old_session();
	test_stops();
	test_permissions();
	test_interrupt();
	test_questions();
	test_raw();
	test_tools();
	test_diffs();
	test_held();
	test_command();
	return done();
}
