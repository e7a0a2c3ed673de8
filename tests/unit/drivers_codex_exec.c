/*
 * Replays the recorded runs of tests/fixtures/codex-exec through the driver (driver_replay.h);
 * then command lines, and lines that were never recorded.
 */
#include "drivers/driver.h"
#include "tests/driver_replay.h"

struct fed {
	struct record rec;
	struct driver_run *run;
	struct buf to_stdin;
	bool eof;
};

static void begin(struct fed *p)
{
	*p = (struct fed){.to_stdin = BUF_INIT(1 << 20)};
	record_init(&p->rec);
	const struct driver_spec spec = {.prompt = "Go.", .prompt_len = 3};
	p->run = driver_codex_exec.open(&driver_codex_exec, &spec, &p->rec.sink);
	must(driver_codex_exec.start(p->run, &p->to_stdin, &p->eof) == 0, "starts");
	record_stdin(&p->rec, &p->to_stdin, p->eof);
}

static void finish(struct fed *p, int code)
{
	const struct driver_exit x = {.code = code};
	struct driver_outcome o = {0};
	driver_codex_exec.end(p->run, &x, &o);
	record_outcome(&p->rec, &o);
	driver_outcome_done(&o);
	driver_codex_exec.close(p->run);
}

static void test_recorded(void)
{
	replay_all(&driver_codex_exec, "tests/fixtures/codex-exec", "", 34, NULL);
}

static void test_command(void)
{
	struct driver_command c = {0};
	struct err e = {0};
	struct driver_spec spec = {.program = "/opt/agent/bin/codex",
	        .args = LIST("--x", "-y"),
	        .model = "gpt-5.5",
	        .model_flag = "-m",
	        .instructions = ".codex/AGENTS.md",
	        .system_prompt = "Be brief.",
	        .prompt = "--version",
	        .prompt_len = 9,
	        .resume = "01a2-b"};
	must(driver_codex_exec.command(&spec, &c, &e) == 0, "accepted");
	static const char *const want[] = {"/opt/agent/bin/codex", "exec", "resume", "01a2-b",
	        "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox",
	        "--x", "-y", "-m", "gpt-5.5", "-"};
	size_t n = 0;
	while (c.argv[n] && n < ARRAY_LEN(want) && strcmp(c.argv[n], want[n]) == 0)
		n++;
	ok(n == ARRAY_LEN(want) && !c.argv[n], "the command line; the prompt is not in it");
	ok(c.nfiles == 1 && strcmp(c.files[0].text, "Be brief.") == 0,
	        "the system prompt is a file");
	driver_command_done(&c);
	struct driver_spec bad[] = {spec, spec, spec, spec, spec, spec};
	struct driver_mcp mcp = {.name = "x", .url = "http://x"};
	static const char *const words[] = {"id of a thread", "'-m' is no model", "(tools_allow)",
	        "(max_turns)", "(deny)", "(mcp_http)"};
	bad[0].resume = "--last";
	bad[1].model = "-m";
	bad[2].tools_allow = LIST("shell");
	bad[3].max_turns = 2;
	bad[4].permissions = PERMISSIONS_DENY;
	bad[5].mcp = &mcp;
	bad[5].nmcp = 1;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ok(driver_codex_exec.command(&bad[i], &c, &e) == -ENOEXEC && !c.argv &&
		                strstr(e.text, words[i]),
		        "refused: %s", e.text);
}

/* What one line yields. */
static void yields(const char *line, const char *want)
{
	struct fed p;
	begin(&p);
	buf_clear(&p.rec.out);
	driver_codex_exec.line(p.run, line, strlen(line), true, &p.to_stdin, &p.eof);
	ok(p.rec.out.p && strncmp(p.rec.out.p, want, strlen(want)) == 0, "%.70s", line);
	finish(&p, 0);
	buf_done(&p.to_stdin);
	record_done(&p.rec);
}

static void test_lines(void)
{
	yields("not JSON", "{\"type\":\"agent.raw\"");
	yields("{\"type\":\"item.completed\",\"item\":{\"id\":\"i\",\"type\":\"gizmo\"}}",
	        "{\"type\":\"agent.raw\"");
	yields("{\"type\":\"item.updated\",\"item\":{}}", "{\"type\":\"agent.raw\"");
	yields("{\"type\":\"thread.started\",\"thread_id\":\"--config\"}",
	        "{\"type\":\"agent.raw\"");
	yields("{\"type\":\"item.started\",\"item\":{\"type\":\"command_execution\"}}",
	        "{\"type\":\"agent.raw\"");
	yields("{\"type\":\"item.completed\",\"item\":{\"id\":\"i\",\"type\":\"command_execution\","
	       "\"command\":\"ls\",\"aggregated_output\":\"x\",\"exit_code\":0,\"status\":"
	       "\"completed\"}}",
	        "{\"type\":\"tool.call\",\"callId\":\"i\",\"name\":\"shell\",\"kind\":\"execute\","
	        "\"input\":{\"command\":\"ls\"},\"title\":\"ls\"}\n"
	        "{\"type\":\"tool.result\",\"callId\":\"i\",\"name\":\"shell\",\"ok\":true,"
	        "\"output\":\"x\",\"exitCode\":0}\n");
}

/* Its last word, and how the process ended. */
static void outcome(const char *line, int code, const char *want)
{
	struct fed p;
	begin(&p);
	driver_codex_exec.line(p.run, line, strlen(line), true, &p.to_stdin, &p.eof);
	finish(&p, code);
	if (!ok(strstr(p.rec.out.p, want) != NULL, "%.40s, exit code %d: %s", line, code, want))
		printf("# %s\n", p.rec.out.p);
	buf_done(&p.to_stdin);
	record_done(&p.rec);
}

static void test_ends(void)
{
	static const char done_line[] = "{\"type\":\"turn.completed\"}";
	outcome(done_line, 0, "\"status\":\"succeeded\"");
	outcome(done_line, 143, "\"status\":\"succeeded\"");
	outcome(done_line, 2, "codex completed its turn and then exited with code 2");
	outcome("{\"type\":\"turn.started\"}", 0, "codex exited with code 0, without a result");
	outcome("{\"type\":\"error\",\"message\":\"why\"}", 1, "\"error\":\"why\"");
}

int main(void)
{
	test_recorded();
	test_command();
	test_lines();
	test_ends();
	return done();
}
