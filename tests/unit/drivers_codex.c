/*
 * Replays the recorded runs of tests/fixtures/codex through the driver and compares
 * with <case>.events (GOLDEN_WRITE=1 writes them: then review them against the
 * recording); then command lines, and lines that were never recorded.
 */
#include "drivers/driver.h"
#include "tests/driver_golden.h"

#define DIR_CODEX "tests/fixtures/codex/"

struct replay {
	struct record rec;
	struct driver_run *run;
	struct buf to_stdin;
	bool eof;
};

static void begin(struct replay *p, const char *resume)
{
	*p = (struct replay){.to_stdin = BUF_INIT(1 << 20)};
	record_init(&p->rec);
	const struct driver_spec spec = {.prompt = "Go.", .prompt_len = 3, .resume = resume};
	p->run = driver_codex.open(&spec, &p->rec.sink);
	must(driver_codex.start(p->run, &p->to_stdin, &p->eof) == 0, "starts");
	record_stdin(&p->rec, &p->to_stdin, p->eof);
}

static void finish(struct replay *p, int code)
{
	const struct driver_exit x = {.code = code};
	struct driver_outcome o = {0};
	driver_codex.end(p->run, &x, &o);
	record_outcome(&p->rec, &o);
	driver_outcome_done(&o);
	driver_codex.close(p->run);
}

static void feed(struct replay *p, const char *name, const char *ext)
{
	auto_free char *path = xasprintf(DIR_CODEX "%s%s", name, ext);
	size_t n = 0;
	auto_free char *text = read_file(path, &n);
	for (char *at = text, *end = text + n; text && at < end;) {
		char *nl = memchr(at, '\n', (size_t)(end - at));
		must(nl, "%s ends with a line", path);
		if (strcmp(ext, ".stderr") == 0)
			driver_codex.error_line(p->run, at, (size_t)(nl - at));
		else
			driver_codex.line(
			        p->run, at, (size_t)(nl - at), true, &p->to_stdin, &p->eof);
		at = nl + 1;
	}
}

static void test_recorded(void)
{
	static const struct {
		const char *name;
		int code;
		const char *resume;
	} all[] = {
	        {"write", 0, NULL},
	        {"tool", 0, NULL},
	        {"tool-fail", 0, NULL},
	        {"edit", 0, NULL},
	        {"two-tools", 0, NULL},
	        {"mcp", 0, NULL},
	        {"unknown-tool", 0, NULL},
	        {"err401", 1, NULL},
	        {"err429-once", 0, NULL},
	        {"err500", 1, NULL},
	        {"overloaded", 1, NULL},
	        {"disconnect", 0, NULL},
	        {"resume.2", 0, "01a228d1-e4c6-7c42-9e2e-41022d774ad7"},
	        {"resume-missing", 1, "99999999-2222-4333-8444-555555555555"},
	        {"sigterm-tool", 143, NULL},
	};
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		struct replay p;
		begin(&p, all[i].resume);
		feed(&p, all[i].name, ".jsonl");
		feed(&p, all[i].name, ".stderr");
		finish(&p, all[i].code);
		auto_free char *golden = xasprintf(DIR_CODEX "%s.events", all[i].name);
		golden_compare(&p.rec, golden, all[i].name);
		buf_done(&p.to_stdin);
		record_done(&p.rec);
	}
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
	must(driver_codex.command(&spec, &c, &e) == 0, "accepted");
	static const char *const want[] = {"/opt/agent/bin/codex", "exec", "resume", "01a2-b",
	        "--json", "--x", "-y", "-m", "gpt-5.5", "-"};
	size_t n = 0;
	while (c.argv[n] && n < ARRAY_LEN(want) && strcmp(c.argv[n], want[n]) == 0)
		n++;
	ok(n == ARRAY_LEN(want) && !c.argv[n], "the command line; the prompt is not in it");
	ok(c.nfiles == 1 && strcmp(c.files[0].text, "Be brief.") == 0,
	        "the system prompt is a file");
	driver_command_done(&c);
	struct driver_spec bad[] = {spec, spec, spec, spec, spec, spec};
	struct driver_mcp mcp = {.name = "x", .url = "http://x"};
	static const char *const words[] = {"id of a thread", "cannot be told '-m'", "no tools",
	        "maxTurns", "permissions", "MCP"};
	bad[0].resume = "--last";
	bad[1].model = "-m";
	bad[2].tools_allow = LIST("shell");
	bad[3].max_turns = 2;
	bad[4].permissions = PERMISSIONS_DENY;
	bad[5].mcp = &mcp;
	bad[5].nmcp = 1;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ok(driver_codex.command(&bad[i], &c, &e) == -ENOEXEC && !c.argv &&
		                strstr(e.text, words[i]),
		        "refused: %s", e.text);
}

/* What one line yields. */
static void yields(const char *line, const char *want)
{
	struct replay p;
	begin(&p, NULL);
	buf_clear(&p.rec.out);
	driver_codex.line(p.run, line, strlen(line), true, &p.to_stdin, &p.eof);
	ok(p.rec.out.p && strncmp(p.rec.out.p, want, strlen(want)) == 0, "%.70s", line);
	finish(&p, 0);
	buf_done(&p.to_stdin);
	record_done(&p.rec);
}

static void test_lines(void)
{
	yields("not JSON", "{\"type\":\"agent.raw\"");
	yields("{\"type\":\"item.completed\",\"item\":{\"id\":\"i\",\"type\":\"web_search\"}}",
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
	struct replay p;
	begin(&p, NULL);
	driver_codex.line(p.run, line, strlen(line), true, &p.to_stdin, &p.eof);
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
