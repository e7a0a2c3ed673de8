/*
 * Replays the recorded runs of opencode, gemini and copilot through their drivers
 * (driver_replay.h); then command lines, and lines that were never recorded.
 */
#include "drivers/driver.h"
#include "tests/driver_lines.h"
#include "tests/driver_replay.h"

/* ---- recorded ---- */

static void test_recorded(void)
{
	static const struct {
		const struct driver *driver;
		const char *dir, *final_word;
		size_t cases;
	} agents[] = {
	        {&driver_opencode, "tests/fixtures/opencode", "\"reason\":\"stop\"", 33},
	        {&driver_gemini, "tests/fixtures/gemini", "\"status\":\"success\",\"stats\"", 30},
	        {&driver_copilot, "tests/fixtures/copilot", "\"exitCode\":0,\"usage\"", 35},
	};
	for (size_t i = 0; i < ARRAY_LEN(agents); i++) {
		replay_all(agents[i].driver, agents[i].dir, "!acp-", agents[i].cases, NULL);
		replay_mutated(
		        agents[i].driver, agents[i].dir, "!acp-", NULL, agents[i].final_word);
	}
}

/* ---- command lines ---- */

#define QUIET                                                                                      \
	"\"general\":{\"enableAutoUpdate\":false},\"privacy\":{\"usageStatisticsEnabled\":"        \
	"false},\"telemetry\":{\"enabled\":false},\"security\":{\"auth\":{\"selectedType\":"       \
	"\"gemini-api-key\"}}"

static void test_commands(void)
{
	struct driver_spec plain = {.prompt = "--version", .prompt_len = 9};
	struct driver_spec all = {.program = "/x/agent",
	        .args = LIST("first.js"),
	        .model = "m/1",
	        .resume = "ses_1-a",
	        .system_prompt = "Be brief.",
	        .permissions = PERMISSIONS_DENY,
	        .tools_deny = LIST("bash", "web_fetch"),
	        .mcp = two_servers,
	        .nmcp = 2};
	writes(&driver_opencode, &plain, "/opt/agent/bin/opencode run --format json --auto ");
	writes(&driver_opencode, &all,
	        "/x/agent first.js run --format json -m m/1 --session ses_1-a | "
	        "OPENCODE_CONFIG_CONTENT={\"instructions\":[\"/home/agent/.agentbox/"
	        "system-prompt.md\"],\"tools\":{\"bash\":false,\"web_fetch\":false},\"mcp\":{"
	        "\"local\":{\"type\":\"local\",\"command\":[\"node\",\"a.mjs\"],"
	        "\"environment\":{\"A\":\"1\"},\"enabled\":true},\"far\":{\"type\":\"remote\","
	        "\"url\":\"http://far.example/mcp\",\"headers\":{\"X-Key\":\"v\"},\"enabled\":"
	        "true}}} | .agentbox/system-prompt.md: Be brief. ");
	writes(&driver_gemini, &plain,
	        "/opt/agent/bin/gemini -o stream-json --skip-trust --yolo | "
	        "GEMINI_CLI_NO_RELAUNCH=true | .gemini/GEMINI.md:  | .gemini/settings.json: "
	        "{" QUIET "} ");
	all.max_turns = 3;
	writes(&driver_gemini, &all,
	        "/x/agent first.js -o stream-json --skip-trust -m m/1 --resume ses_1-a | "
	        "GEMINI_CLI_NO_RELAUNCH=true | .gemini/GEMINI.md: Be brief. | "
	        ".gemini/settings.json: {" QUIET ",\"model\":{\"maxSessionTurns\":3},\"tools\":{"
	        "\"exclude\":[\"bash\",\"web_fetch\"]},\"mcpServers\":{\"local\":{\"command\":"
	        "\"node\",\"args\":[\"a.mjs\"],\"env\":{\"A\":\"1\"},\"trust\":true},\"far\":{"
	        "\"httpUrl\":\"http://far.example/mcp\",\"headers\":{\"X-Key\":\"v\"},"
	        "\"trust\":true}}} ");
	all.max_turns = 0;
	all.tools_allow = LIST("view");
	struct driver_mcp odd[] = {
	        {.name = "near", .command = LIST("n", "$1"), .env = LIST("A=$B")},
	        {.name = "far", .url = "http://h/", .headers = LIST("K: ${B}")}};
	const struct driver_spec odd_ones = {.mcp = odd, .nmcp = ARRAY_LEN(odd)};
	auto_free char *settings = written(&driver_gemini, &odd_ones);
	ok(strstr(settings, "\"args\":[\"${AGENTBOX_NONE:-$}1\"],\"env\":{\"A\":"
	                    "\"${AGENTBOX_NONE:-\\\\$}B\"}") &&
	                strstr(settings, "\"headers\":{\"K\":\"${AGENTBOX_NONE:-\\\\$}{B}\"}"),
	        "gemini puts variables there, in some twice: %s", settings);
	auto_free char *arguments = written(&driver_copilot, &odd_ones);
	ok(strstr(arguments, "\"args\":[\"${AGENTBOX_NONE:-$}1\"],\"env\":{\"A\":\"${AGENTBOX_NONE:"
	                     "-$}B\"}") &&
	                strstr(arguments, "\"headers\":{\"K\":\"${AGENTBOX_NONE:-$}{B}\"}"),
	        "so does copilot: %s", arguments);
	struct driver_mcp placed = {
	        .name = "x", .command = LIST("n"), .env = LIST("A={env:B} {file:c}")};
	writes(&driver_opencode, &(struct driver_spec){.mcp = &placed, .nmcp = 1},
	        "/opt/agent/bin/opencode run --format json --auto | "
	        "OPENCODE_CONFIG_CONTENT={\"mcp\":{\"x\":{"
	        "\"type\":\"local\",\"command\":[\"n\"],\"environment\":{\"A\":\"\\u007benv:B} "
	        "\\u007bfile:c}\"},\"enabled\":true}}} ");
	writes(&driver_copilot, &plain,
	        "/opt/agent/bin/copilot --output-format json --no-auto-update "
	        "--disable-builtin-mcps --allow-all-tools | COPILOT_AUTO_UPDATE=false | "
	        ".copilot/copilot-instructions.md:  ");
	writes(&driver_copilot, &all,
	        "/x/agent first.js --output-format json --no-auto-update --disable-builtin-mcps "
	        "--available-tools view --excluded-tools bash --excluded-tools web_fetch "
	        "--resume=ses_1-a --additional-mcp-config {\"mcpServers\":{\"local\":{\"type\":"
	        "\"local\",\"command\":\"node\",\"args\":[\"a.mjs\"],\"env\":{\"A\":\"1\"},"
	        "\"tools\":[\"*\"]},\"far\":{\"type\":\"http\",\"url\":"
	        "\"http://far.example/mcp\",\"headers\":{\"X-Key\":\"v\"},\"tools\":[\"*\"]}}} | "
	        "COPILOT_MODEL=m/1 | COPILOT_AUTO_UPDATE=false | "
	        ".copilot/copilot-instructions.md: Be brief. ");
}

static void test_refused(void)
{
	const struct driver *const all[] = {&driver_opencode, &driver_gemini, &driver_copilot};
	struct driver_mcp none = {.name = "x"};
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		refused(all[i], &(struct driver_spec){.permissions = PERMISSIONS_ASK}, "(ask)");
		refused(all[i], &(struct driver_spec){.model = "--evil"}, "--evil");
		refused(all[i], &(struct driver_spec){.resume = "--evil"}, "--evil");
		refused(all[i], &(struct driver_spec){.resume = "a/../b"}, "session id");
		refused(all[i], &(struct driver_spec){.tools_deny = LIST("bash(rm:*)")},
		        "(tool_patterns)");
		refused(all[i], &(struct driver_spec){.tools_deny = LIST("--evil")}, "--evil");
		refused(all[i], &(struct driver_spec){.tools_allow = LIST()}, "tools.allow");
		refused(all[i], &(struct driver_spec){.mcp = &none, .nmcp = 1}, "either");
		if (all[i] != &driver_gemini)
			refused(all[i], &(struct driver_spec){.max_turns = 1}, "maxTurns");
	}
}

/* ---- lines that were never recorded ---- */

#define STEP(reason) "{\"type\":\"step_finish\",\"part\":{\"reason\":\"" reason "\",\"tokens\":{}}}"
#define ERROR_LINE   "{\"type\":\"error\",\"error\":{\"name\":\"E\",\"data\":{\"message\":\"why\"}}}"
#define GEMINI_OK    "{\"type\":\"result\",\"status\":\"success\"}"

static void test_ends(void)
{
	const struct driver_exit zero = {0}, one = {.code = 1}, term = {.code = 143},
	                         sig = {.code = -1, .sig = SIGTERM};
	/* opencode has no last line but its exit code */
	comes_of(&driver_opencode, LIST(STEP("stop")), NULL, zero, "\"status\":\"succeeded\"");
	comes_of(&driver_opencode, LIST(STEP("stop")), NULL, one, "and then exited with code 1");
	comes_of(&driver_opencode, LIST(STEP("stop")), NULL, term, "and then exited with code 143");
	comes_of(&driver_opencode, LIST(STEP("stop")), NULL, sig, "and then was killed");
	comes_of(&driver_opencode, LIST(STEP("tool-calls")), NULL, zero, "without a result");
	comes_of(&driver_opencode, LIST(STEP("length")), NULL, zero, "model stopped: length");
	comes_of(&driver_opencode, LIST(STEP("stop"), "{\"type\":\"step_start\"}"), NULL, zero,
	        "without a result");
	comes_of(&driver_opencode, LIST(STEP("stop"), ERROR_LINE), NULL, zero, "\"error\":\"why\"");
	comes_of(&driver_opencode, LIST(ERROR_LINE, STEP("stop")), NULL, zero, "succeeded");
	comes_of(&driver_opencode, LIST(), "\033[91m\033[1mError: \033[0mSession not found", one,
	        "code 1: Error: Session not found, without a result\",\"resumeLost\":true");
	/* gemini's exit code is what the API answered, cut to a byte */
	comes_of(&driver_gemini, LIST(GEMINI_OK), NULL, zero, "succeeded");
	comes_of(&driver_gemini, LIST(GEMINI_OK), NULL, term, "succeeded");
	comes_of(&driver_gemini, LIST(GEMINI_OK), NULL, (struct driver_exit){.code = 53},
	        "and then exited with code 53");
	comes_of(&driver_gemini, LIST("{\"type\":\"result\",\"status\":\"error\"}"), NULL, zero,
	        "\"status\":\"failed\",\"finalText\":\"\",\"error\":\"failed\"");
	comes_of(&driver_gemini, LIST("{\"type\":\"init\"}"), "YOLO mode is enabled. All.", zero,
	        "gemini exited with code 0, without a result");
	comes_of(&driver_gemini,
	        LIST("{\"type\":\"error\",\"message\":\"Loop detected\"}", GEMINI_OK), NULL, zero,
	        "\"Loop detected\",\"retryable\":true}");
	/* copilot calls a run that was cut short 0 */
	comes_of(&driver_copilot, LIST("{\"type\":\"result\",\"exitCode\":0}"), NULL, zero,
	        "succeeded");
	comes_of(&driver_copilot,
	        LIST("{\"type\":\"abort\",\"data\":{}}", "{\"type\":\"result\",\"exitCode\":0}"),
	        NULL, zero,
	        "\"status\":\"failed\",\"finalText\":\"\",\"error\":\"interrupted (?)\"");
	comes_of(&driver_copilot, LIST("{\"type\":\"result\",\"exitCode\":7}"), NULL, zero,
	        "\"copilot says that it failed (7)\"");
	comes_of(&driver_copilot, LIST("{\"type\":\"result\",\"exitCode\":0}"), NULL, one,
	        "and then exited with code 1");
	comes_of(&driver_copilot,
	        LIST("{\"type\":\"session.mcp_server_status_changed\",\"data\":{\"serverName\":"
	             "\"s\",\"status\":\"failed\"}}"),
	        NULL, zero, "\"MCP server s did not start (failed)");
}

/* A line that is not understood, whole or in part, is passed on. */
static void test_raw(void)
{
	static const struct {
		const struct driver *driver;
		const char *line;
	} lines[] = {
	        {&driver_opencode, "no JSON"},
	        {&driver_opencode, "[]"},
	        {&driver_opencode, "{\"type\":\"gizmo\"}"},
	        {&driver_opencode, "{\"type\":\"text\",\"part\":{}}"},
	        {&driver_opencode, "{\"type\":\"text\",\"part\":{\"text\":\"a\\u0000b\"}}"},
	        {&driver_opencode, "{\"type\":\"step_finish\"}"},
	        {&driver_opencode, "{\"type\":\"error\"}"},
	        {&driver_opencode, "{\"type\":\"tool_use\",\"part\":{\"tool\":\"bash\",\"state\":{"
	                           "\"status\":\"completed\"}}}"},
	        {&driver_opencode, "{\"type\":\"tool_use\",\"part\":{\"callID\":\"c\",\"tool\":"
	                           "\"bash\",\"state\":{\"status\":\"running\"}}}"},
	        {&driver_gemini, "{\"type\":\"gizmo\"}"},
	        {&driver_gemini, "{\"type\":\"message\",\"role\":\"system\"}"},
	        {&driver_gemini, "{\"type\":\"tool_use\",\"tool_name\":\"x\"}"},
	        {&driver_gemini, "{\"type\":\"tool_result\",\"tool_id\":\"x\"}"},
	        {&driver_copilot, "{\"type\":\"assistant.message\"}"},
	        {&driver_copilot, "{\"type\":\"assistant.gizmo\",\"data\":{}}"},
	        {&driver_copilot, "{\"type\":\"session.info\",\"data\":{\"infoType\":\"new\"}}"},
	        {&driver_copilot, "{\"type\":\"tool.execution_complete\",\"data\":{}}"},
	        {&driver_copilot, "{\"type\":\"tool.shell_output\",\"data\":{\"toolCallId\":\"x\","
	                          "\"text\":\"y\"}}"},
	};
	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		comes_of(lines[i].driver, LIST(lines[i].line), NULL, (struct driver_exit){0},
		        "{\"type\":\"agent.raw\"");
}

/* Of a line beyond what fits, pieces come. */
static void test_pieces(void)
{
	const struct driver *const all[] = {&driver_opencode, &driver_gemini, &driver_copilot};
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		struct record rec;
		auto_buf struct buf to_stdin = BUF_INIT(1 << 20);
		bool eof = false;
		record_init(&rec);
		const struct driver_spec spec = {.prompt = "Go.", .prompt_len = 3};
		struct driver_run *r = all[i]->open(all[i], &spec, &rec.sink);
		all[i]->line(r, GEMINI_OK, sizeof(GEMINI_OK) - 1, false, &to_stdin, &eof);
		ok(strstr(rec.out.p, "\"agent.raw\"") && strstr(rec.out.p, "\"more\":true}"),
		        "%s: a piece of a line is no line", all[i]->name);
		all[i]->close(r);
		record_done(&rec);
	}
}

int main(void)
{
	test_recorded();
	test_commands();
	test_refused();
	test_ends();
	test_raw();
	test_pieces();
	return done();
}
