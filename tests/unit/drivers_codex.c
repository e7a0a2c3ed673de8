/*
 * Replays the recorded runs of tests/fixtures/codex through the driver (driver_replay.h);
 * then what the driver writes, and conversations that were never recorded.
 */
#include "drivers/driver.h"
#include "tests/driver_replay.h"
#include "tests/driver_talk.h"

/* ---- recorded ---- */

static void prepare(struct replay *p)
{
	static const char *const at_answer[] = {"\"id\":4,", NULL};
	/* It was stopped by the answer to a question: here it is being stopped when that comes. */
	static const char *const at_question[] = {"requestApproval", NULL};
	if (strncmp(p->name, "server-interrupt", 16) == 0)
		p->interrupt_before = at_answer;
	if (strcmp(p->name, "server-cancel") == 0)
		p->interrupt_before = at_question;
	for (size_t i = 0; i < p->in.n; i++)
		if (strcmp(json_str(json_get(p->in.at[i], "params"), "approvalPolicy", ""),
		            "untrusted") == 0)
			p->spec.permissions = PERMISSIONS_ASK;
}

static void test_recorded(void)
{
	replay_all(&driver_codex, "tests/fixtures/codex", "server-", 16, prepare);
}

/* ---- a conversation, line by line ---- */

static const char *const thread = "{\"id\":2,\"result\":{\"thread\":{\"id\":\"t-1\"}}}",
                         *const turn = "{\"id\":3,\"result\":{\"turn\":{\"id\":\"u-1\"}}}";

/* Up to the first turn that runs. */
static void begin_turn(struct talk *t, enum driver_permissions permissions)
{
	const struct driver_spec spec = {
	        .prompt = "Go.", .prompt_len = 3, .permissions = permissions};
	talk_begin(t, &driver_codex, &spec);
	say(t, "{\"id\":1,\"result\":{}}");
	say(t, thread);
	say(t, turn);
	buf_clear(&t->rec.out);
}

static void completed(struct talk *t, const char *id, const char *status)
{
	auto_free char *line = xasprintf(
	        "{\"method\":\"turn/completed\",\"params\":{\"threadId\":\"t-1\",\"turn\":{\"id\":"
	        "\"%s\",\"status\":\"%s\",\"error\":null}}}",
	        id, status);
	say(t, line);
}

static void has(const struct talk *t, const char *want, const char *what)
{
	if (!ok(t->rec.out.p && strstr(t->rec.out.p, want), "%s", what))
		printf("# %s\n", t->rec.out.p ? t->rec.out.p : "");
}

static void has_not(const struct talk *t, const char *text, const char *what)
{
	if (!ok(!t->rec.out.p || !strstr(t->rec.out.p, text), "%s", what))
		printf("# %s\n", t->rec.out.p);
}

static void finish(struct talk *t, int code, const char *want, const char *what)
{
	const struct driver_exit x = {.code = code};
	struct driver_outcome o = {0};
	driver_codex.end(t->run, &x, &o);
	record_outcome(&t->rec, &o);
	driver_outcome_done(&o);
	driver_codex.close(t->run);
	has(t, want, what);
	buf_done(&t->to_stdin);
	record_done(&t->rec);
}

static bool input(struct talk *t, const char *text)
{
	bool taken = driver_codex.input(t->run, text, strlen(text), &t->to_stdin);
	record_stdin(&t->rec, &t->to_stdin, false);
	return taken;
}

static void test_input(void)
{
	struct talk t;
	begin_turn(&t, PERMISSIONS_AUTO);
	ok(input(&t, "And this."), "a message while a turn runs");
	has(&t,
	        "\\\"method\\\":\\\"turn/"
	        "steer\\\",\\\"params\\\":{\\\"threadId\\\":\\\"t-1\\\",\\\"expectedTurnId\\\":"
	        "\\\"u-1\\\"",
	        "joins it");
	ok(input(&t, "Too late."), "and one");
	say(&t, "{\"id\":4,\"result\":{\"turnId\":\"u-1\"}}");
	completed(&t, "u-1", "completed");
	ok(!t.eof, "whose answer is awaited");
	say(&t, "{\"id\":5,\"error\":{\"code\":-32600,\"message\":\"no active turn\"}}");
	has(&t, "{\"stdin\":\"{\\\"id\\\":6,\\\"method\\\":\\\"turn/start\\\"",
	        "that was refused is a turn");
	has(&t, "\\\"text\\\":\\\"Too late.\\\"", "of its own");
	say(&t, "{\"id\":6,\"result\":{\"turn\":{\"id\":\"u-2\"}}}");
	ok(!t.eof, "which runs");
	completed(&t, "u-2", "completed");
	ok(t.eof && !input(&t, "Later."), "then stdin is closed");
	finish(&t, 0, "\"status\":\"succeeded\"", "the last turn counts");
}

static void test_interrupt(void)
{
	struct talk t;
	talk_begin(&t, &driver_codex, &(struct driver_spec){.prompt = "Go.", .prompt_len = 3});
	say(&t, thread);
	ok(driver_codex.interrupt(t.run, &t.to_stdin) && !t.to_stdin.len,
	        "an interrupt before the turn runs");
	say(&t, turn);
	has(&t, "turn/interrupt", "is said when it does");
	ok(!driver_codex.interrupt(t.run, &t.to_stdin), "once");
	ok(!input(&t, "x"), "nothing is added");
	say(&t, "{\"id\":9,\"method\":\"item/fileChange/"
	        "requestApproval\",\"params\":{\"itemId\":\"i\"}}");
	has(&t, "\\\"decision\\\":\\\"cancel\\\"", "what it asks now is cancelled");
	completed(&t, "u-1", "interrupted");
	ok(t.eof, "the end");
	finish(&t, 0, "\"error\":\"interrupted\"", "interrupted");
	talk_begin(&t, &driver_codex, &(struct driver_spec){.prompt = "Go.", .prompt_len = 3});
	driver_codex.interrupt(t.run, &t.to_stdin);
	say(&t, thread);
	ok(t.eof, "before the conversation is there: no turn at all");
	finish(&t, 0, "\"status\":\"failed\"", "is no success");
}

static const char *const mcp_call =
        "{\"method\":\"item/started\",\"params\":{\"threadId\":\"t-1\",\"item\":{\"type\":"
        "\"mcpToolCall\",\"id\":\"c1\",\"server\":\"s\",\"tool\":\"echo\",\"arguments\":{\"a\":1}}}"
        "}";
static const char *const mcp_question =
        "{\"method\":\"mcpServer/elicitation/request\",\"id\":7,\"params\":{\"threadId\":\"t-1\","
        "\"serverName\":\"s\",\"_meta\":{\"codex_approval_kind\":\"mcp_tool_call\",\"tool_name\":"
        "\"echo\"},\"message\":\"Allow?\"}}";
static const char *const command =
        "{\"id\":\"q\",\"method\":\"item/commandExecution/requestApproval\",\"params\":{\"itemId\":"
        "\"i\",\"availableDecisions\":[\"accept\",\"acceptForSession\"]}}";

static void answer(struct talk *t, const char *id, enum driver_answer a, bool want)
{
	ok(driver_codex.answer(t->run, id, a, &t->to_stdin) == want, "answer to %s", id);
	record_stdin(&t->rec, &t->to_stdin, false);
}

static void test_ask(void)
{
	struct talk t;
	begin_turn(&t, PERMISSIONS_ASK);
	say(&t, mcp_call);
	say(&t, mcp_question);
	has(&t,
	        "\"permission.asked\",\"permissionId\":\"7\",\"callId\":\"c1\",\"name\":\"mcp__s__"
	        "echo\"",
	        "a tool of a server is asked for");
	answer(&t, "7", ANSWER_ONCE, true);
	answer(&t, "7", ANSWER_ONCE, false);
	has(&t, "{\\\"id\\\":7,\\\"result\\\":{\\\"action\\\":\\\"accept\\\",\\\"content\\\":{}}}",
	        "and allowed in its own words");
	say(&t, command);
	say(&t, command);
	has(&t, "{\\\"id\\\":\\\"q\\\",\\\"error\\\"",
	        "a second question of the same id is refused");
	answer(&t, "q", ANSWER_ALWAYS, true);
	has(&t, "\\\"decision\\\":\\\"acceptForSession\\\"", "always: Codex is told");
	buf_clear(&t.rec.out);
	say(&t, command);
	has_not(&t, "permission", "an id that had its answer is not for another question");
	say(&t, "{\"id\":\"q2\",\"method\":\"item/commandExecution/requestApproval\",\"params\":"
	        "{\"itemId\":\"j\",\"command\":\"ls\\nrm x\",\"cwd\":\"/workspace\"}}");
	has(&t, "\"title\":\"ls...\",\"input\":{\"command\":\"ls\\nrm x\",\"cwd\":\"/workspace\"}",
	        "all that would run is in the question");
	has(&t, "\"answer\":\"always\",\"by\":\"harness\"", "and not asked again about this tool");
	say(&t, "{\"id\":8,\"method\":\"item/fileChange/"
	        "requestApproval\",\"params\":{\"itemId\":\"p\"}}");
	has_not(&t, "\"permissionId\":\"8\",\"callId\":\"p\",\"answer\"",
	        "another tool is another question");
	say(&t, "{\"method\":\"serverRequest/"
	        "resolved\",\"params\":{\"threadId\":\"t-1\",\"requestId\":8}}");
	has(&t, "\"answer\":\"cancelled\",\"by\":\"agent\"", "that Codex may withdraw");
	say(&t, "{\"id\":9,\"method\":\"item/tool/requestUserInput\",\"params\":{}}");
	has(&t, "{\\\"id\\\":9,\\\"error\\\":{\\\"code\\\":-32601",
	        "what is not understood is refused");
	finish(&t, 0, "\"status\":\"failed\"", "the turn was cut");
}

static void test_deny(void)
{
	struct talk t;
	begin_turn(&t, PERMISSIONS_DENY);
	say(&t, command);
	has(&t, "\"answer\":\"deny\",\"by\":\"harness\"", "permissions: deny");
	has(&t, "\\\"decision\\\":\\\"decline\\\"", "declines");
	say(&t, mcp_question);
	has(&t, "\\\"action\\\":\\\"decline\\\"", "tools of servers, too");
	finish(&t, 0, "\"status\":\"failed\"", "cut");
	begin_turn(&t, PERMISSIONS_AUTO);
	say(&t, command);
	has(&t, "\\\"decision\\\":\\\"accept\\\"", "permissions: auto accepts");
	finish(&t, 0, "\"status\":\"failed\"", "cut");
}

#define NOTE(method, rest)                                                                         \
	"{\"method\":\"" method "\",\"params\":{\"threadId\":\"t-1\",\"turnId\":\"u-1\"" rest "}}"
#define ITEM(what, rest) NOTE("item/" what, ",\"item\":{" rest "}")

static void yields(const char *line, const char *want)
{
	struct talk t;
	begin_turn(&t, PERMISSIONS_AUTO);
	say(&t, line);
	if (want)
		has(&t, want, line);
	else
		ok(t.rec.out.len == 0, "nothing: %.60s", line);
	finish(&t, 0, "\"status\":\"failed\"", "cut");
}

static void test_lines(void)
{
	static const char raw[] = "{\"type\":\"agent.raw\"";
	yields("not JSON", raw);
	yields("{\"id\":99,\"result\":{}}", raw);
	yields(NOTE("new/thing", ""), raw);
	yields(ITEM("completed", "\"type\":\"gizmo\",\"id\":\"g\""), raw);
	yields("{\"method\":\"turn/completed\",\"params\":{\"threadId\":\"t-2\",\"turn\":{\"id\":"
	       "\"u-1\",\"status\":\"completed\"}}}",
	        raw);
	yields(NOTE("turn/plan/updated",
	               ",\"plan\":[{\"step\":\"a\",\"status\":\"inProgress\"},{\"step\":\"b\","
	               "\"status\":\"pending\"}]"),
	        "{\"type\":\"plan.updated\",\"entries\":[{\"text\":\"a\",\"status\":\"in_"
	        "progress\"},"
	        "{\"text\":\"b\",\"status\":\"pending\"}]}");
	yields(NOTE("item/commandExecution/outputDelta", ",\"itemId\":\"c\",\"delta\":\"x\""),
	        "{\"type\":\"tool.update\",\"callId\":\"c\",\"output\":\"x\"}");
	yields(NOTE("mcpServer/startupStatus/updated",
	               ",\"name\":\"s\",\"status\":\"failed\",\"error\":\"no such file\""),
	        "MCP server s did not start (no such file): its tools are missing");
	yields(NOTE("mcpServer/startupStatus/updated", ",\"name\":\"s\",\"status\":\"ready\""),
	        NULL);
	yields(NOTE("turn/diff/updated", ",\"diff\":\"x\""), NULL);
	yields(NOTE("item/reasoning/summaryPartAdded", ",\"itemId\":\"r\",\"summaryIndex\":1"),
	        "\"text\":\"\\n\\n\",\"delta\":true");
	yields(ITEM("completed", "\"type\":\"reasoning\",\"id\":\"r\",\"summary\":[\"a\",\"b\"],"
	                         "\"content\":[]"),
	        "{\"type\":\"agent.thinking\",\"text\":\"a\\n\\nb\",\"delta\":false");
	yields(ITEM("completed",
	               "\"type\":\"fileChange\",\"id\":\"f\",\"status\":\"completed\",\"changes\":["
	               "{"
	               "\"path\":\"/workspace/a\",\"kind\":{\"type\":\"update\",\"move_path\":"
	               "\"/workspace/b\"},\"diff\":\"\"},{\"path\":\"/workspace/c\",\"kind\":{"
	               "\"type\":\"delete\"},\"diff\":\"x\\ny\"}]"),
	        "{\"type\":\"file.changed\",\"path\":\"a\",\"change\":\"delete\"}\n"
	        "{\"type\":\"file.changed\",\"path\":\"b\",\"change\":\"add\"}\n"
	        "{\"type\":\"file.changed\",\"path\":\"c\",\"change\":\"delete\",\"diff\":\"@@ "
	        "-1,2 "
	        "+0,0 @@\\n-x\\n-y\\n\"}");
	yields(ITEM("completed", "\"type\":\"webSearch\",\"id\":\"w\",\"query\":\"q\""),
	        "\"name\":\"web_search\",\"ok\":true");
}

/* Text that came in pieces counts when its end never does. */
static void test_pieces(void)
{
	struct talk t;
	begin_turn(&t, PERMISSIONS_AUTO);
	say(&t, NOTE("item/agentMessage/delta", ",\"itemId\":\"m\",\"delta\":\"Half \""));
	say(&t, NOTE("item/agentMessage/delta", ",\"itemId\":\"m\",\"delta\":\"a\""));
	finish(&t, 0, "\"finalText\":\"Half a\"", "the pieces of a message that was cut");
}

#define USAGE(turn, total, last)                                                                   \
	"{\"method\":\"thread/tokenUsage/updated\",\"params\":{\"threadId\":\"t-1\",\"turnId\":"   \
	"\"" turn "\",\"tokenUsage\":{\"total\":{\"inputTokens\":" total                           \
	",\"outputTokens\":" total "},\"last\":{\"inputTokens\":" last ",\"outputTokens\":" last   \
	"}}}}"

static void test_usage(void)
{
	struct talk t;
	const struct driver_spec spec = {.prompt = "Go.", .prompt_len = 3, .resume = "t-1"};
	talk_begin(&t, &driver_codex, &spec);
	has(&t,
	        "thread/"
	        "resume\\\",\\\"params\\\":{\\\"threadId\\\":\\\"t-1\\\",\\\"excludeTurns\\\":true",
	        "goes on");
	say(&t, thread);
	say(&t, turn);
	say(&t, USAGE("u-1", "130", "30"));
	say(&t, USAGE("u-1", "150", "20"));
	say(&t, "{\"method\":\"thread/tokenUsage/"
	        "updated\",\"params\":{\"threadId\":\"t-9\",\"turnId\":"
	        "\"x\",\"tokenUsage\":{\"total\":{},\"last\":{\"inputTokens\":7,\"outputTokens\":1}"
	        "}}}");
	completed(&t, "u-1", "completed");
	has(&t,
	        "{\"type\":\"usage\",\"inputTokens\":57,\"outputTokens\":51,\"cachedTokens\":0,"
	        "\"turns\":3}",
	        "what was used before does not count; what a subagent uses does");
	finish(&t, 0, "\"turns\":3", "in the outcome, too");
	talk_begin(&t, &driver_codex, &spec);
	say(&t, thread);
	say(&t, USAGE("u-0", "100", "40"));
	say(&t, turn);
	say(&t, USAGE("u-1", "150", "20"));
	finish(&t, 0, "\"inputTokens\":50",
	        "what an earlier turn is told to have used is before it");
	begin_turn(&t, PERMISSIONS_AUTO);
	say(&t, USAGE("u-1", "1e300", "-5"));
	say(&t, USAGE("u-1", "3", "99999999999999999"));
	finish(&t, 0, "\"inputTokens\":3", "impossible numbers do no harm");
}

static void test_ends(void)
{
	struct talk t;
	begin_turn(&t, PERMISSIONS_AUTO);
	completed(&t, "u-1", "completed");
	say(&t, turn);
	finish(&t, 143, "\"status\":\"succeeded\"",
	        "killed after its last word; its answer came late");
	begin_turn(&t, PERMISSIONS_AUTO);
	completed(&t, "u-1", "completed");
	finish(&t, 2, "codex completed its turn and then exited with code 2",
	        "its own word counts");
	begin_turn(&t, PERMISSIONS_AUTO);
	completed(&t, "u-1", "interrupted");
	has(&t, "\"code\":\"interrupted\",\"retryable\":false", "interrupted by nobody here");
	finish(&t, 0, "\"status\":\"failed\"", "is a failure");
	begin_turn(&t, PERMISSIONS_AUTO);
	say(&t, NOTE("error", ",\"error\":{\"message\":\"why\"},\"willRetry\":false"));
	finish(&t, 0, "\"error\":\"why\"", "the last error is the reason");
	talk_begin(&t, &driver_codex,
	        &(struct driver_spec){.prompt = "Go.", .prompt_len = 3, .resume = "t-1"});
	say(&t, "{\"id\":2,\"error\":{\"message\":\"no rollout found for thread id t-1\"}}");
	ok(t.eof, "a conversation that is gone ends it");
	finish(&t, 0, "\"resumeLost\":true", "and is said");
	talk_begin(&t, &driver_codex, &(struct driver_spec){.prompt = "Go.", .prompt_len = 3});
	say(&t, "{\"id\":2,\"result\":{\"thread\":{\"id\":\"--config\"}}}");
	ok(t.eof, "no id");
	finish(&t, 0, "\"status\":\"failed\"", "no conversation");
}

/* ---- before the start ---- */

static void test_command(void)
{
	struct driver_command c = {0};
	struct err e = {0};
	struct driver_mcp mcp[] = {
	        {.name = "near", .command = LIST("node", "x y"), .env = LIST("A=1=2")},
	        {.name = "far", .url = "http://far.example/mcp", .headers = LIST("X-Key: v")}};
	struct driver_spec spec = {.program = "/opt/agent/bin/codex",
	        .args = LIST("-c", "y=1"),
	        .model = "gpt-5.5",
	        .system_prompt = "Be brief.",
	        .prompt = "--version",
	        .prompt_len = 9,
	        .mcp = mcp,
	        .nmcp = 2};
	must(driver_codex.command(&spec, &c, &e) == 0, "accepted");
	ok(strcmp(c.argv[0], spec.program) == 0 && strcmp(c.argv[1], "app-server") == 0 &&
	                strcmp(c.argv[2], "-c") == 0 && strcmp(c.argv[3], "y=1") == 0 && !c.argv[4],
	        "the command line: what the run is about is not in it");
	driver_command_done(&c);
	struct talk t;
	talk_begin(&t, &driver_codex, &spec);
	has(&t,
	        "\\\"model\\\":\\\"gpt-5.5\\\",\\\"developerInstructions\\\":\\\"Be "
	        "brief.\\\",\\\"config\\\":{"
	        "\\\"mcp_servers\\\":{\\\"near\\\":{\\\"command\\\":\\\"node\\\",\\\"args\\\":["
	        "\\\"x y\\\"],\\\"env\\\":{\\\"A\\\":"
	        "\\\"1=2\\\"}},\\\"far\\\":{\\\"url\\\":\\\"http://far.example/"
	        "mcp\\\",\\\"http_headers\\\":{\\\"X-Key\\\":\\\"v\\\"}}}}",
	        "model, instructions and servers of the thread");
	finish(&t, 1, "codex exited with code 1, without a result", "nothing came of it");
	struct driver_spec bad[] = {spec, spec, spec, spec, spec};
	static const char *const words[] = {
	        "id of a thread", "no model", "(tools_allow)", "(max_turns)", "needs either"};
	bad[0].resume = "--last";
	bad[1].model = "";
	bad[2].tools_allow = LIST("shell");
	bad[3].max_turns = 2;
	mcp[1].url = NULL;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ok(driver_codex.command(&bad[i], &c, &e) == -ENOEXEC && !c.argv &&
		                strstr(e.text, words[i]),
		        "refused: %s", e.text);
}

/* A failure that says no more than that. */
static void test_bare_failure(void)
{
	struct talk t;
	begin_turn(&t, PERMISSIONS_AUTO);
	say(&t, "{\"method\":\"turn/"
	        "completed\",\"params\":{\"threadId\":\"t-1\",\"turn\":{\"id\":\"u-1\","
	        "\"status\":\"failed\",\"error\":{\"codexErrorInfo\":{}}}}}");
	has(&t, "\"the turn failed\",\"code\":\"turn_failed\"",
	        "an error without a word of its own");
	finish(&t, 0, "\"error\":\"the turn failed\"", "is a failure");
}

int main(void)
{
	test_recorded();
	test_input();
	test_interrupt();
	test_ask();
	test_deny();
	test_lines();
	test_pieces();
	test_usage();
	test_ends();
	test_bare_failure();
	test_command();
	return done();
}
