/*
 * The Claude driver line by line: questions and their answers, when stdin is
 * closed, how exits are judged, and lines that no agent should send.
 */
#include "drivers/driver.h"
#include "base/limits.h"
#include "tests/driver_record.h"
#include "tests/t.h"

#define DIR_CLAUDE "tests/fixtures/claude"

struct talk {
	struct record rec;
	struct driver_run *run;
	struct buf to_stdin;
	bool eof;
};

static void talk_open(struct talk *t, const struct driver_spec *spec)
{
	*t = (struct talk){.to_stdin = BUF_INIT(64 << 20)};
	record_init(&t->rec);
	t->run = driver_claude.open(&driver_claude, spec, &t->rec.sink);
	must(driver_claude.start(t->run, &t->to_stdin, &t->eof) == 0, "starts");
	buf_clear(&t->to_stdin);
}

static void say(struct talk *t, const char *line)
{
	driver_claude.line(t->run, line, strlen(line), true, &t->to_stdin, &t->eof);
}

static const char *said(const struct talk *t)
{
	return t->rec.out.p ? t->rec.out.p : "";
}

static const char *wrote(const struct talk *t)
{
	return t->to_stdin.len ? t->to_stdin.p : "";
}

/* Ends with exit code 0 and leaves the outcome in the record. */
static void talk_end(struct talk *t)
{
	struct driver_exit x = {.code = 0};
	struct driver_outcome o = {0};
	driver_claude.end(t->run, &x, &o);
	must(o.final_text != NULL, "the outcome has a final text");
	record_outcome(&t->rec, &o);
	driver_outcome_done(&o);
	driver_claude.close(t->run);
	t->run = NULL;
}

static void talk_done(struct talk *t)
{
	driver_claude.close(t->run);
	buf_done(&t->to_stdin);
	record_done(&t->rec);
}

#define RESULT_OK                                                                                  \
	"{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"done\","     \
	"\"num_turns\":1,\"session_id\":\"s-1\"}"

static void ask(struct talk *t, const char *id, const char *tool, const char *input)
{
	auto_free char *line = xasprintf(
	        "{\"type\":\"control_request\",\"request_id\":\"%s\",\"request\":{\"subtype\":"
	        "\"can_use_tool\",\"tool_name\":\"%s\",\"input\":%s,\"tool_use_id\":\"t-%s\"}}",
	        id, tool, input, id);
	buf_clear(&t->to_stdin);
	say(t, line);
}

static void test_rules_decide(void)
{
	struct talk t;
	talk_open(&t, &(struct driver_spec){.tools_allow = LIST("Bash(node:*)", "Write")});
	say(&t, "{\"type\":\"system\",\"subtype\":\"init\",\"cwd\":\"/"
	        "workspace\",\"session_id\":\"s\","
	        "\"tools\":[\"Bash\",\"Write\"]}");
	ask(&t, "1", "Bash", "{\"command\":\"node a.js\"}");
	ok(strstr(wrote(&t), "\"behavior\":\"allow\",\"updatedInput\":{\"command\":\"node a.js\"}"),
	        "what matches is allowed, with the same input");
	ask(&t, "2", "Bash", "{\"command\":\"node a.js; id\"}");
	ok(strstr(wrote(&t), "\"behavior\":\"deny\""), "what does not is denied");
	ask(&t, "3", "Read", "{\"file_path\":\"/etc/passwd\"}");
	ok(strstr(wrote(&t), "\"behavior\":\"deny\""), "a tool not listed is denied");
	ask(&t, "4", "Write", "{\"file_path\":\"/x\"}");
	ok(strstr(wrote(&t), "\"behavior\":\"allow\""), "a whole tool is allowed");
	ask(&t, "5", "Bash", "\"no object\"");
	ok(strstr(wrote(&t), "\"subtype\":\"error\"") && strstr(said(&t), "agent.raw"),
	        "a question that is none is refused and shown");
	ok(strstr(said(&t), "\"permissionId\":\"1\",\"callId\":\"t-1\",\"answer\":\"once\",\"by\":"
	                    "\"harness\""),
	        "the event says who decided");
	talk_done(&t);
}

static void test_person_decides(void)
{
	struct talk t;
	talk_open(&t, &(struct driver_spec){.permissions = PERMISSIONS_ASK});
	ask(&t, "1", "Bash", "{\"command\":\"ls\"}");
	ok(strstr(said(&t), "permission.asked") && t.to_stdin.len == 0, "asked, not answered");
	ok(!driver_claude.answer(t.run, "nope", ANSWER_ONCE, &t.to_stdin),
	        "another id is no question");
	ok(driver_claude.answer(t.run, "1", ANSWER_DENY, &t.to_stdin) &&
	                strstr(wrote(&t), "\"behavior\":\"deny\""),
	        "denied");
	ok(!driver_claude.answer(t.run, "1", ANSWER_ONCE, &t.to_stdin), "answered once only");
	ask(&t, "2", "Bash", "{\"command\":\"ls\"}");
	ok(driver_claude.answer(t.run, "2", ANSWER_ALWAYS, &t.to_stdin), "always");
	ask(&t, "3", "Bash", "{\"command\":\"id\"}");
	ok(strstr(wrote(&t), "\"behavior\":\"allow\""), "the tool is not asked for again");
	ask(&t, "4", "Write", "{\"file_path\":\"x\"}");
	say(&t, "{\"type\":\"control_cancel_request\",\"request_id\":\"4\"}");
	ok(strstr(said(&t), "\"answer\":\"cancelled\""), "a withdrawn question is closed");
	ok(!driver_claude.answer(t.run, "4", ANSWER_ONCE, &t.to_stdin), "and cannot be answered");
	ask(&t, "4", "Write", "{\"file_path\":\"y\"}");
	ok(strstr(wrote(&t), "\"subtype\":\"error\"") &&
	                !driver_claude.answer(t.run, "4", ANSWER_ONCE, &t.to_stdin),
	        "its id is not for another question: a yes on its way would be to that");
	ask(&t, "5", "Write", "{\"file_path\":\"x\"}");
	ask(&t, "5", "Write", "{\"file_path\":\"y\"}");
	ok(strstr(wrote(&t), "\"subtype\":\"error\"") &&
	                driver_claude.answer(t.run, "5", ANSWER_ONCE, &t.to_stdin) &&
	                strstr(wrote(&t), "\"updatedInput\":{\"file_path\":\"x\"}") &&
	                !driver_claude.answer(t.run, "5", ANSWER_ONCE, &t.to_stdin),
	        "nor is one that is open for a second");
	ask(&t, "6", "Monitor", "{\"command\":\"ls\\nrm x\"}");
	ok(strstr(said(&t), "\"title\":\"ls...\",\"input\":{\"command\":\"ls\\nrm x\"}"),
	        "all that would run is in the question");
	for (int i = 0; i < 70; i++) {
		auto_free char *id = xasprintf("q%d", i);
		ask(&t, id, "Edit", "{}");
	}
	ok(strstr(wrote(&t), "too many questions"), "there is a limit to open questions");
	talk_done(&t);
	talk_open(&t, &(struct driver_spec){.permissions = PERMISSIONS_DENY});
	ask(&t, "1", "Bash", "{\"command\":\"ls\"}");
	ok(strstr(wrote(&t), "\"behavior\":\"deny\""), "permissions: deny asks nobody");
	talk_done(&t);
}

#define QUESTION(q)                                                                                \
	"{\"question\":\"" q "\",\"header\":\"h\",\"multiSelect\":false,\"options\":[{\"label\":"  \
	"\"Red\",\"description\":\"warm\"},{\"label\":\"Blue\",\"description\":\"\"}]}"

static void test_asks_a_person(void)
{
	struct talk t;
	talk_open(&t, &(struct driver_spec){.permissions = PERMISSIONS_ASK});
	ask(&t, "1", "AskUserQuestion", "{\"questions\":[" QUESTION("Which?") "]}");
	ok(strstr(said(&t), "question.asked\",\"questionId\":\"1\",\"text\":\"Which?\\nRed: warm\","
	                    "\"options\":[\"Red\",\"Blue\"]") &&
	                !strstr(said(&t), "permission.asked") && t.to_stdin.len == 0,
	        "a question, with what there is to choose: %s", said(&t));
	ok(!driver_claude.answer(t.run, "1", ANSWER_ONCE, &t.to_stdin), "it is no permission");
	ok(driver_claude.reply(t.run, "1", "Gr\"een", 6, &t.to_stdin) &&
	                strstr(wrote(&t), "\"behavior\":\"allow\",\"updatedInput\":{\"questions\":["
	                                  "{\"question\":\"Which?\"") &&
	                strstr(wrote(&t), ",\"answers\":{\"Which?\":\"Gr\\\"een\"}}"),
	        "any text answers it: %s", wrote(&t));
	ok(!driver_claude.reply(t.run, "1", "x", 1, &t.to_stdin), "once only");
	ask(&t, "2", "AskUserQuestion", "{\"questions\":[" QUESTION("A?") "," QUESTION("B?") "]}");
	ok(driver_claude.reply(t.run, "2.2", "Blue", 4, &t.to_stdin) && t.to_stdin.len == 0 &&
	                !driver_claude.reply(t.run, "2.2", "Red", 3, &t.to_stdin),
	        "of two the second");
	ok(driver_claude.reply(t.run, "2.1", "Red", 3, &t.to_stdin) &&
	                strstr(wrote(&t), "\"answers\":{\"A?\":\"Red\",\"B?\":\"Blue\"}"),
	        "with the first it is answered");
	ask(&t, "3", "AskUserQuestion", "{\"questions\":[" QUESTION("A?") "," QUESTION("B?") "]}");
	ok(driver_claude.reply(t.run, "3.1", NULL, 0, &t.to_stdin) &&
	                strstr(wrote(&t), "\"behavior\":\"deny\"") &&
	                strstr(said(&t),
	                        "question.answered\",\"questionId\":\"3.2\",\"text\":\"\""),
	        "nobody answers: none of them is open any more");
	ask(&t, "4", "AskUserQuestion", "{\"questions\":[" QUESTION("C?") "]}");
	say(&t, "{\"type\":\"control_cancel_request\",\"request_id\":\"4\"}");
	ok(strstr(said(&t), "question.answered\",\"questionId\":\"4\"") &&
	                !driver_claude.reply(t.run, "4", "x", 1, &t.to_stdin),
	        "a withdrawn one is closed");
	static const char *const bad[] = {"{}", "{\"questions\":[]}", "{\"questions\":[{}]}",
	        "{\"questions\":{\"question\":\"x\"}}",
	        "{\"questions\":[" QUESTION("a") "," QUESTION("b") "," QUESTION("c") "," QUESTION(
	                "d") "," QUESTION("e") "]}"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		auto_free char *id = xasprintf("b%zu", i);
		ask(&t, id, "AskUserQuestion", bad[i]);
		ok(strstr(wrote(&t), "\"subtype\":\"error\""), "refused: %.60s", bad[i]);
	}
	size_t before = record_held();
	for (int i = 0; i < 100; i++) {
		auto_free char *id = xasprintf("m%d", i);
		ask(&t, id, "AskUserQuestion", "{\"questions\":[" QUESTION("x") "]}");
	}
	ok(strstr(wrote(&t), "\"subtype\":\"error\"") && record_held() < before + (1 << 20),
	        "there is a limit to open ones");
	talk_done(&t);
	talk_open(&t, &(struct driver_spec){.permissions = PERMISSIONS_DENY});
	ask(&t, "1", "AskUserQuestion", "{\"questions\":[" QUESTION("Which?") "]}");
	ok(strstr(wrote(&t), "\"behavior\":\"deny\"") && !strstr(said(&t), "question.asked"),
	        "permissions: deny asks nobody");
	talk_done(&t);
}

/* The input is held until the answer repeats it. */
static void test_large_questions(void)
{
	struct talk t;
	talk_open(&t, &(struct driver_spec){.permissions = PERMISSIONS_ASK});
	auto_free char *text = record_long(10 << 20);
	auto_free char *input = xasprintf("{\"command\":\"%s\"}", text);
	size_t before = record_held();
	for (int i = 0; i < 10; i++) {
		auto_free char *id = xasprintf("q%d", i);
		ask(&t, id, "Bash", input);
	}
	ok(strstr(wrote(&t), "too many questions"), "large questions are fewer");
	ok(strstr(said(&t), "\"title\":\"") && strstr(said(&t), "\"inputBytes\":10485774,"),
	        "of what is too large to read it is told how much it is");
	ok(record_held() < before + (64 << 20), "a hundred MiB of them are not held");
	buf_clear(&t.to_stdin);
	ok(driver_claude.answer(t.run, "q0", ANSWER_ONCE, &t.to_stdin) && t.to_stdin.len > 10 << 20,
	        "the first ones are");
	ask(&t, "again", "Bash", input);
	ok(!t.to_stdin.len, "and an answer makes room");
	talk_done(&t);
}

static void test_offer(void)
{
	struct talk t;
	talk_open(&t, &(struct driver_spec){.tools_allow = LIST("Read", "Task")});
	say(&t, "{\"type\":\"system\",\"subtype\":\"init\",\"tools\":[\"Read\",\"Agent\",\"mcp__a__"
	        "b\"]}");
	ok(t.to_stdin.len == 0 && t.rec.events == 0, "what was allowed may be offered");
	say(&t, "{\"type\":\"system\",\"subtype\":\"init\",\"tools\":[\"Read\",\"Bash\"]}");
	ok(strstr(wrote(&t), "interrupt") && strstr(said(&t), "tool_not_allowed"),
	        "a tool too many stops the run");
	say(&t, RESULT_OK);
	talk_end(&t);
	ok(strstr(said(&t), "\"status\":\"failed\"") && strstr(said(&t), "offers the tool Bash"),
	        "which then failed, whatever its result says");
	talk_done(&t);
}

static void test_closing(void)
{
	struct talk t;
	talk_open(&t, &(struct driver_spec){.permissions = PERMISSIONS_ASK});
	ok(driver_claude.input(t.run, "more \"x\"", 8, &t.to_stdin) &&
	                strstr(wrote(&t), "more \\\"x\\\""),
	        "another message while it runs");
	say(&t, "{\"type\":\"system\",\"subtype\":\"background_tasks_changed\",\"tasks\":[{\"task_"
	        "type\":"
	        "\"local_agent\"}]}");
	say(&t, RESULT_OK);
	ok(!t.eof, "stdin stays open while a subagent may still ask");
	say(&t, "{\"type\":\"system\",\"subtype\":\"background_tasks_changed\",\"tasks\":[]}");
	say(&t, RESULT_OK);
	ok(t.eof, "and is closed after the last turn");
	ok(!driver_claude.interrupt(t.run, &t.to_stdin), "then nothing can be said any more");
	ok(!driver_claude.input(t.run, "x", 1, &t.to_stdin), "no message either");
	talk_end(&t);
	ok(strstr(said(&t), "\"status\":\"succeeded\",\"finalText\":\"done\",\"resume\":\"s-1\""),
	        "the outcome");
	talk_done(&t);
	talk_open(&t, &(struct driver_spec){.prompt = "x", .prompt_len = 1});
	say(&t, "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"queued_turn_"
	        "count\":1}");
	ok(!t.eof, "a message that waits keeps stdin open");
	talk_done(&t);
	talk_open(&t, &(struct driver_spec){.permissions = PERMISSIONS_ASK});
	say(&t, "{\"type\":\"system\",\"subtype\":\"background_tasks_changed\",\"tasks\":[{\"task_"
	        "type\":\"local_agent\"}]}");
	say(&t, RESULT_OK);
	ok(!t.eof, "so does a subagent alone, which may ask");
	say(&t, "{\"type\":\"system\",\"subtype\":\"background_tasks_changed\",\"tasks\":[]}");
	say(&t, RESULT_OK);
	ok(t.eof, "until it has ended");
	talk_end(&t);
	talk_done(&t);
}

#define RESULT_USED(total)                                                                         \
	"{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"num_turns\":1,"         \
	"\"total_cost_usd\":" total ",\"usage\":{\"input_tokens\":10,\"output_tokens\":3,"         \
	"\"cache_read_input_tokens\":5,\"cache_creation_input_tokens\":2}}"

/* Of one that does not tell each model's own. */
static void test_usage(void)
{
	struct talk t;
	talk_open(&t, &(struct driver_spec){.prompt = "x", .prompt_len = 1});
	say(&t, RESULT_USED("0.25"));
	ok(strstr(said(&t), "{\"type\":\"usage\",\"inputTokens\":17,\"outputTokens\":3,"
	                    "\"cachedTokens\":5,\"costUsd\":0.25,"),
	        "what was cached is beside the input, and counted in: %s", said(&t));
	buf_clear(&t.rec.out);
	say(&t, RESULT_USED("0.75"));
	ok(strstr(said(&t), "{\"type\":\"usage\",\"inputTokens\":34,\"outputTokens\":6,"
	                    "\"cachedTokens\":10,\"costUsd\":0.75,"),
	        "tokens are the turn's, the cost is the process's: %s", said(&t));
	talk_end(&t);
	talk_done(&t);
	talk_open(&t, &(struct driver_spec){.prompt = "x", .prompt_len = 1, .resume = "s-1"});
	say(&t, RESULT_USED("9.5"));
	ok(strstr(said(&t), "\"inputTokens\":17") && !strstr(said(&t), "9.5"),
	        "what a conversation has cost before is not known: %s", said(&t));
	talk_end(&t);
	talk_done(&t);
}

static void test_exit(void)
{
	static const struct {
		struct driver_exit x;
		bool result;
		const char *want;
	} cases[] = {
	        {{.code = 0}, true, "\"status\":\"succeeded\""},
	        {{.code = 143}, true, "\"status\":\"succeeded\""},
	        {{.code = -1, .sig = 9}, true, "\"status\":\"succeeded\""},
	        {{.code = 1}, true, "reported success and then exited with code 1"},
	        {{.code = 0}, false, "claude exited with code 0, without a result"},
	        {{.code = -1, .sig = 9}, false,
	                "was killed by signal 9 (SIGKILL): last words, without"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct talk t;
		talk_open(&t, &(struct driver_spec){.prompt = "x", .prompt_len = 1});
		say(&t, "{\"type\":\"assistant\",\"message\":{\"id\":\"m\",\"content\":[{\"type\":"
		        "\"tool_use\","
		        "\"id\":\"c\",\"name\":\"Bash\",\"input\":{}}]}}");
		if (cases[i].result)
			say(&t, RESULT_OK);
		if (cases[i].x.sig)
			driver_claude.error_line(t.run, "last words \r", 12);
		struct driver_outcome o = {0};
		driver_claude.end(t.run, &cases[i].x, &o);
		record_outcome(&t.rec, &o);
		ok(strstr(said(&t), cases[i].want), "%s", cases[i].want);
		ok(strstr(said(&t), "\"callId\":\"c\",\"name\":\"Bash\",\"ok\":false"),
		        "its open call was closed");
		driver_outcome_done(&o);
		talk_done(&t);
	}
}

/* ---- lines that no agent should send ---- */

static void feed(struct talk *t, const char *p, size_t n, bool whole)
{
	driver_claude.line(t->run, p, n, whole, &t->to_stdin, &t->eof);
}

static void test_hostile(void)
{
	static const char *const lines[] = {"{", "[]", "null", "\"x\"", "nonsense", "{\"type\":7}",
	        "{\"type\":\"assistant\"}", "{\"type\":\"assistant\",\"message\":{\"content\":7}}",
	        "{\"type\":\"assistant\",\"message\":{\"content\":[7,null,{\"type\":\"text\"}]}}",
	        "{\"type\":\"user\",\"message\":{\"content\":[{\"type\":\"tool_result\"}]}}",
	        "{\"type\":\"user\",\"message\":{\"content\":[]}}",
	        "{\"type\":\"control_request\"}",
	        "{\"type\":\"control_request\",\"request_id\":\"\"}", "{\"type\":\"system\"}",
	        "{\"type\":\"stream_event\"}", "{\"type\":\"something.new\",\"x\":1}",
	        "{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"hologram\"}]}}"};
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		struct talk t;
		talk_open(&t, &(struct driver_spec){.prompt = "x", .prompt_len = 1});
		say(&t, lines[i]);
		ok(strstr(said(&t), "{\"type\":\"agent.raw\",\"line\":"), "raw: %s", lines[i]);
		talk_end(&t);
		talk_done(&t);
	}
}

static void test_bytes(void)
{
	struct talk t;
	talk_open(&t, &(struct driver_spec){.prompt = "a\0b\xff", .prompt_len = 4});
	feed(&t, "", 0, true);
	ok(t.rec.events == 0, "an empty line is nothing");
	feed(&t,
	        "a\0b\xff"
	        "c",
	        5, true);
	ok(strstr(said(&t), "\"line\":\"a\\u0000b\xef\xbf\xbd"
	                    "c\""),
	        "NUL and invalid UTF-8 are shown");
	say(&t, "{\"type\":\"assistant\",\"message\":{\"id\":\"m\",\"content\":[{\"type\":\"text\","
	        "\"text\":"
	        "\"before\\u0000after\"}]}}");
	ok(strstr(said(&t), "agent.message") && strstr(said(&t), "before\\\\u0000after"),
	        "a NUL inside a string: the event, and the line whole");
	feed(&t, "{\"type\":\"assist", 15, false);
	ok(strstr(said(&t), "\"line\":\"{\\\"type\\\":\\\"assist\",\"more\":true"),
	        "a piece of a line that is too long");
	talk_end(&t);
	talk_done(&t);
}

static void test_huge(void)
{
	struct talk t;
	talk_open(&t, &(struct driver_spec){.prompt = "x", .prompt_len = 1});
	size_t n = 10 << 20;
	auto_buf struct buf line = BUF_INIT(LIMIT_LINE);
	buf_puts(&line,
	        "{\"type\":\"assistant\",\"message\":{\"id\":\"m\",\"content\":[{\"type\":\"text\","
	        "\"text\":\"");
	must(buf_reserve(&line, n) == 0, "room");
	memset(line.p + line.len, '\xff', n);
	line.len += n;
	buf_puts(&line, "\"}]}}");
	feed(&t, line.p, line.len, true);
	ok(strstr(said(&t), "agent.raw") && !strstr(said(&t), "agent.message"),
	        "a text that no event can hold is passed on raw");
	ok(t.rec.events == (int)(line.len / LIMIT_RAW_PIECE + 1), "in %d pieces", t.rec.events);
	memset(line.p, '[', line.len);
	feed(&t, line.p, line.len, true);
	talk_end(&t);
	ok(strstr(said(&t), "\"outcome\""), "deep nesting ends nothing");
	talk_done(&t);
}

/* Every recorded line cut at every length: whatever comes, it ends with an outcome. */
static void test_cut(const char *name)
{
	auto_free char *path = xasprintf(DIR_CLAUDE "/%s.jsonl", name);
	size_t n = 0;
	auto_free char *text = read_file(path, &n);
	must(text, "%s opens", path);
	struct talk t;
	talk_open(&t, &(struct driver_spec){.permissions = PERMISSIONS_ASK});
	for (char *at = text; *at;) {
		size_t len = strcspn(at, "\n");
		for (size_t k = 0; k < len; k += 1 + k / 64) {
			feed(&t, at, k, true);
			buf_clear(&t.to_stdin);
			buf_clear(&t.rec.out);
		}
		feed(&t, at, len, true);
		at += len + (at[len] != '\0');
	}
	talk_end(&t);
	ok(strstr(said(&t), "\"finalText\""), "%s: survives lines cut short", name);
	talk_done(&t);
}

int main(void)
{
	test_rules_decide();
	test_person_decides();
	test_asks_a_person();
	test_large_questions();
	test_offer();
	test_closing();
	test_usage();
	test_exit();
	test_hostile();
	test_bytes();
	test_huge();
	test_cut("tool-partial");
	test_cut("perm-stdio-allow");
	test_cut("subagent-late");
	return done();
}
