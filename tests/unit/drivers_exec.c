/* The exec driver: any command; text lines, and lines that are events of our own language. */
#include "drivers/driver.h"
#include "base/limits.h"
#include "tests/driver_record.h"
#include "tests/t.h"

struct talk {
	struct record rec;
	struct driver_run *run;
	struct buf to_stdin;
	bool eof;
};

static void talk_open(struct talk *t)
{
	*t = (struct talk){.to_stdin = BUF_INIT(1 << 20)};
	record_init(&t->rec);
	struct driver_spec spec = {.command = LIST("cat"), .prompt = "a\0b\n", .prompt_len = 4};
	t->run = driver_exec.open(&driver_exec, &spec, &t->rec.sink);
	must(driver_exec.start(t->run, &t->to_stdin, &t->eof) == 0, "starts");
}

static void say(struct talk *t, const char *line)
{
	driver_exec.line(t->run, line, strlen(line), true, &t->to_stdin, &t->eof);
}

static void talk_end(struct talk *t, struct driver_exit x)
{
	struct driver_outcome o = {0};
	driver_exec.end(t->run, &x, &o);
	must(o.final_text != NULL, "the outcome has a final text");
	record_outcome(&t->rec, &o);
	driver_outcome_done(&o);
	driver_exec.close(t->run);
	buf_done(&t->to_stdin);
}

/* What one line yields, ended with exit code 0. */
static void yields(const char *line, const char *want)
{
	struct talk t;
	talk_open(&t);
	say(&t, line);
	driver_exec.flush(t.run);
	t.rec.out.p[t.rec.out.len - 1] = '\0';
	is_str(t.rec.out.p, want, "%.60s", line);
	t.rec.out.p[t.rec.out.len - 1] = '\n';
	talk_end(&t, (struct driver_exit){.code = 0});
	record_done(&t.rec);
}

static void test_command(void)
{
	struct driver_command c = {0};
	struct err e = {0};
	struct driver_spec spec = {
	        .command = LIST("sh", "-c", "cat"), .prompt = "p", .prompt_len = 1};
	must(driver_exec.command(&spec, &c, &e) == 0, "accepted");
	ok(strcmp(c.argv[0], "sh") == 0 && strcmp(c.argv[2], "cat") == 0 && !c.argv[3] && !c.nfiles,
	        "the command as it stands, without the prompt");
	driver_command_done(&c);
	spec.tools_deny = LIST();
	ok(driver_exec.check(&spec, &e) == 0, "an empty list of denied tools says nothing");
	spec.tools_allow = LIST();
	ok(driver_exec.check(&spec, &e) == -ENOEXEC, "one of allowed tools says: none");
	spec.tools_allow = NULL;
	struct driver_mcp mcp = {.name = "x", .url = "http://x"};
	const struct {
		struct driver_spec spec;
		const char *word;
	} bad[] = {
	        {{.command = NULL}, "command"},
	        {{.command = LIST()}, "command"},
	        {{.command = LIST("")}, "command"},
	        {{.command = LIST("echo", "x {{prompt}}")}, "stdin"},
	        {{.command = LIST("x"), .tools_allow = LIST("Read")}, "(tools_allow)"},
	        {{.command = LIST("x"), .tools_deny = LIST("Read")}, "(tools_deny)"},
	        {{.command = LIST("x"), .mcp = &mcp, .nmcp = 1}, "(mcp_http)"},
	        {{.command = LIST("x"), .tools_allow = LIST()}, "(tools_allow)"},
	};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		ok(driver_exec.check(&bad[i].spec, &e) == -ENOEXEC && strstr(e.text, bad[i].word),
		        "refused: %s", e.text);
		ok(driver_exec.command(&bad[i].spec, &c, &e) == -ENOEXEC && !c.argv,
		        "and not started");
	}
}

/* An agent that agent.yaml describes. */
static void test_agent(void)
{
	struct driver_command c = {0};
	struct err e = {0};
	const struct driver_spec all = {.program = "/opt/agent/bin/x",
	        .args = LIST("run", "-y"),
	        .model = "m1",
	        .model_flag = "--model",
	        .system_prompt = "Be brief.",
	        .instructions = ".x/AGENTS.md"};
	must(driver_exec.command(&all, &c, &e) == 0, "accepted");
	ok(strcmp(c.argv[0], "/opt/agent/bin/x") == 0 && strcmp(c.argv[1], "run") == 0 &&
	                strcmp(c.argv[2], "-y") == 0 && strcmp(c.argv[3], "--model") == 0 &&
	                strcmp(c.argv[4], "m1") == 0 && !c.argv[5],
	        "program, arguments, model");
	ok(c.nfiles == 1 && strcmp(c.files[0].path, ".x/AGENTS.md") == 0 &&
	                strcmp(c.files[0].text, "Be brief.") == 0,
	        "the system prompt is a file");
	driver_command_done(&c);
	struct driver_spec none = all;
	none.model = none.system_prompt = NULL;
	must(driver_exec.command(&none, &c, &e) == 0, "without a model and a system prompt");
	ok(!c.argv[3] && c.nfiles == 1 && !*c.files[0].text, "that of an earlier run is gone");
	driver_command_done(&c);
	struct driver_spec bad[] = {all, all, all, all, all};
	static const char *const words[] = {
	        "(model)", "(system_prompt)", "(deny)", "(max_turns)", "(tools_allow)"};
	bad[0].model_flag = NULL;
	bad[1].instructions = NULL;
	bad[2].permissions = PERMISSIONS_DENY;
	bad[3].max_turns = 3;
	bad[4].tools_allow = LIST("Read");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ok(driver_exec.check(&bad[i], &e) == -ENOEXEC && strstr(e.text, words[i]),
		        "refused: %s", e.text);
}

static void test_text(void)
{
	struct talk t;
	talk_open(&t);
	ok(t.eof && t.to_stdin.len == 4 && memcmp(t.to_stdin.p, "a\0b\n", 4) == 0,
	        "the prompt is on stdin, byte for byte, then the end");
	say(&t, "Hello,");
	say(&t, "");
	say(&t, "world.");
	ok(!driver_exec.interrupt, "a signal is the only interrupt");
	driver_exec.error_line(t.run, "a warning", 9);
	talk_end(&t, (struct driver_exit){.code = 0});
	is_str(t.rec.out.p,
	        "{\"type\":\"agent.message\",\"text\":\"Hello,\\n\\nworld.\\n\",\"delta\":true}\n"
	        "{\"type\":\"agent.raw\",\"line\":\"a warning\",\"stream\":\"stderr\"}\n"
	        "{\"outcome\":{\"status\":\"succeeded\",\"finalText\":\"Hello,\\n\\nworld.\","
	        "\"inputTokens\":0,\"outputTokens\":0,\"cachedTokens\":0,\"turns\":0,\"toolCalls\":"
	        "0}}\n",
	        "lines of text");
	record_done(&t.rec);
}

/* Lines of one read are one event: a line of two bytes must not cost a line of the log. */
static void test_gathered(void)
{
	struct talk t;
	talk_open(&t);
	say(&t, "a");
	say(&t, "b");
	driver_exec.flush(t.run);
	driver_exec.flush(t.run);
	say(&t, "c");
	say(&t, "{\"type\":\"agent.message\",\"text\":\"d\",\"delta\":true}");
	say(&t, "e");
	driver_exec.error_line(t.run, "f", 1);
	say(&t, "g");
	driver_exec.line(t.run, "h", 1, false, &t.to_stdin, &t.eof);
	say(&t, "i");
	talk_end(&t, (struct driver_exit){.code = 0});
	is_str(t.rec.out.p,
	        "{\"type\":\"agent.message\",\"text\":\"a\\nb\\n\",\"delta\":true}\n"
	        "{\"type\":\"agent.message\",\"text\":\"c\\n\",\"delta\":true}\n"
	        "{\"type\":\"agent.message\",\"text\":\"d\",\"delta\":true}\n"
	        "{\"type\":\"agent.message\",\"text\":\"e\\n\",\"delta\":true}\n"
	        "{\"type\":\"agent.raw\",\"line\":\"f\",\"stream\":\"stderr\"}\n"
	        "{\"type\":\"agent.message\",\"text\":\"g\\n\",\"delta\":true}\n"
	        "{\"type\":\"agent.raw\",\"line\":\"h\",\"more\":true}\n"
	        "{\"type\":\"agent.message\",\"text\":\"i\\n\",\"delta\":true}\n"
	        "{\"outcome\":{\"status\":\"succeeded\",\"finalText\":\"a\\nb\\nc\\nde\\ng\\nhi\","
	        "\"inputTokens\":0,\"outputTokens\":0,\"cachedTokens\":0,\"turns\":0,\"toolCalls\":"
	        "0}}\n",
	        "lines are gathered, and keep their place among other events");
	record_done(&t.rec);
	talk_open(&t);
	t.rec.events = 0;
	for (int i = 0; i < 100000; i++)
		say(&t, "y");
	driver_exec.flush(t.run);
	ok(t.rec.events >= 6 && t.rec.events <= 7 && t.rec.out.len < 350000,
	        "200 KB of short lines: %d events of %zu bytes", t.rec.events, t.rec.out.len);
	talk_end(&t, (struct driver_exit){.code = 0});
	record_done(&t.rec);
}

static void test_events(void)
{
	yields("{\"type\":\"agent.message\",\"text\":\"hi\",\"delta\":false,\"seq\":7,\"run\":"
	       "\"x\"}",
	        "{\"type\":\"agent.message\",\"text\":\"hi\",\"delta\":false}");
	yields("{\"callId\":\"1\",\"name\":\"T\",\"input\":{\"a\":[1]},\"type\":\"tool.call\"}",
	        "{\"type\":\"tool.call\",\"callId\":\"1\",\"name\":\"T\",\"input\":{\"a\":[1]}}");
	yields("{\"type\":\"plan.updated\",\"entries\":[{\"text\":\"a\",\"status\":\"pending\"}]}",
	        "{\"type\":\"plan.updated\",\"entries\":[{\"text\":\"a\",\"status\":\"pending\"}]"
	        "}");
	yields("{\"type\":\"file.changed\",\"path\":\"a\",\"change\":\"add\"}",
	        "{\"type\":\"file.changed\",\"path\":\"a\",\"change\":\"add\"}");
}

static void test_not_events(void)
{
	static const char *const lines[] = {"{\"type\":\"run.done\",\"result\":{}}",
	        "{\"type\":\"egress.denied\",\"host\":\"x\"}",
	        "{\"type\":\"permission.answered\",\"answer\":\"once\"}",
	        "{\"type\":\"verify.done\",\"passed\":true}", "{\"type\":\"log.gap\"}",
	        "{\"type\":\"agent.raw\",\"line\":\"x\"}", "{\"type\":\"agent.message\"}",
	        "{\"type\":\"agent.message\",\"text\":7}",
	        "{\"type\":\"agent.message\",\"text\":\"x\",\"delta\":\"yes\"}",
	        "{\"type\":\"tool.call\",\"callId\":\"\",\"name\":\"x\"}",
	        "{\"type\":\"tool.result\",\"callId\":\"1\"}",
	        "{\"type\":\"plan.updated\",\"entries\":[{\"text\":\"a\"}]}",
	        "{\"type\":\"plan.updated\",\"entries\":{}}",
	        "{\"type\":\"usage\",\"inputTokens\":1.5,\"outputTokens\":1}",
	        "{\"type\":\"usage\",\"inputTokens\":1e300,\"outputTokens\":1}", "{\"type\":7}",
	        "{\"type\":\"unknown\"}", "{\"type\":\"error\"", "[1]", "{}",
	        " {\"type\":\"error\"}"};
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		auto_buf struct buf want = BUF_INIT(1 << 16), text = BUF_INIT(1 << 16);
		buf_printf(&text, "%s\n", lines[i]);
		struct jw w = JW_INIT(&want);
		jw_open(&w, NULL, '{');
		jw_str(&w, "type", "agent.message");
		jw_str(&w, "text", text.p);
		jw_bool(&w, "delta", true);
		jw_close(&w, '}');
		yields(lines[i], want.p);
	}
}

static void test_outcome(void)
{
	struct talk t;
	talk_open(&t);
	say(&t, "{\"type\":\"tool.call\",\"callId\":\"1\",\"name\":\"T\"}");
	say(&t, "{\"type\":\"tool.call\",\"callId\":\"2\",\"name\":\"U\"}");
	say(&t, "{\"type\":\"tool.result\",\"callId\":\"1\",\"ok\":true,\"exitCode\":0}");
	say(&t, "{\"type\":\"agent.message\",\"text\":\"all\",\"delta\":false}");
	say(&t, "{\"type\":\"usage\",\"inputTokens\":5,\"outputTokens\":6,\"costUsd\":0.5,"
	        "\"turns\":2}");
	say(&t, "{\"type\":\"error\",\"message\":\"again\",\"retryable\":true}");
	talk_end(&t, (struct driver_exit){.code = 0});
	ok(strstr(t.rec.out.p,
	           "{\"type\":\"tool.result\",\"callId\":\"2\",\"name\":\"U\",\"ok\":false"),
	        "a call without a result gets one");
	ok(strstr(t.rec.out.p,
	           "{\"outcome\":{\"status\":\"succeeded\",\"finalText\":\"all\",\"inputTokens\":5,"
	           "\"outputTokens\":6,\"cachedTokens\":0,\"costUsd\":0.5,\"turns\":2,"
	           "\"toolCalls\":2}}"),
	        "the outcome has what the events said");
	record_done(&t.rec);
	talk_open(&t);
	driver_exec.error_line(t.run, "no such model", 13);
	talk_end(&t, (struct driver_exit){.code = 3});
	ok(strstr(t.rec.out.p, "\"status\":\"failed\"") &&
	                strstr(t.rec.out.p,
	                        "\"error\":\"the command exited with code 3: no such model\""),
	        "why it failed");
	record_done(&t.rec);
	talk_open(&t);
	say(&t, "{\"type\":\"error\",\"message\":\"quota\"}");
	talk_end(&t, (struct driver_exit){.code = 1});
	ok(strstr(t.rec.out.p, "\"error\":\"quota\""), "its own word for it");
	record_done(&t.rec);
	talk_open(&t);
	talk_end(&t, (struct driver_exit){.code = -1, .sig = 9});
	ok(strstr(t.rec.out.p, "was killed by signal 9 (SIGKILL)"), "killed");
	record_done(&t.rec);
}

static void test_bytes(void)
{
	struct talk t;
	talk_open(&t);
	driver_exec.line(t.run, "a\0b\xff", 4, true, &t.to_stdin, &t.eof);
	driver_exec.flush(t.run);
	ok(strstr(t.rec.out.p, "a\\u0000b\xef\xbf\xbd\\n"), "NUL and invalid UTF-8");
	driver_exec.line(t.run, "{\"type\":\"error\",", 16, false, &t.to_stdin, &t.eof);
	ok(strstr(t.rec.out.p, "\"more\":true"), "a piece of a line that is too long");
	size_t n = LIMIT_LINE;
	auto_free char *big = xcalloc(n, 1);
	memset(big, '\xff', n);
	t.rec.events = 0;
	driver_exec.line(t.run, big, n, true, &t.to_stdin, &t.eof);
	driver_exec.flush(t.run);
	ok(t.rec.events >= (int)(n / LIMIT_RAW_PIECE), "more than an event can hold: %d raw pieces",
	        t.rec.events);
	talk_end(&t, (struct driver_exit){.code = 0});
	record_done(&t.rec);
}

int main(void)
{
	test_command();
	test_agent();
	test_text();
	test_gathered();
	test_events();
	test_not_events();
	test_outcome();
	test_bytes();
	return done();
}
