/*
 * Replays the recorded runs of qwen and amp, which speak as Claude does, through their drivers
 * (driver_replay.h); then command lines, and what was never recorded.
 */
#include "drivers/driver.h"
#include "tests/driver_lines.h"
#include "tests/driver_replay.h"

static void prepare(struct replay *p)
{
	static const char *const interrupted[] = {"\"subtype\":\"interrupt\"", NULL};
	if (strcmp(p->name, "perm-stdio-allow") == 0)
		p->spec.permissions = PERMISSIONS_ASK;
	if (strcmp(p->name, "stdin-interrupt") == 0)
		p->interrupt_before = interrupted;
}

static void test_recorded(void)
{
	static const char success[] = "\"subtype\":\"success\"";
	replay_all(&driver_qwen, "tests/fixtures/qwen", "!acp-", 33, prepare);
	replay_mutated(&driver_qwen, "tests/fixtures/qwen", "!acp-", prepare, success);
	replay_all(&driver_amp, "tests/fixtures/amp", "", 3, NULL);
}

static void test_commands(void)
{
	struct driver_spec plain = {.prompt = "--version", .prompt_len = 9};
	struct driver_spec all = {.program = "/x/agent",
	        .args = LIST("first.js"),
	        .model = "m/1",
	        .resume = "T-1-a",
	        .system_prompt = "Be brief.",
	        .tools_deny = LIST("bash", "web_fetch"),
	        .mcp = two_servers,
	        .nmcp = 2};
	writes(&driver_amp, &plain,
	        "/opt/agent/bin/amp --no-ide --no-color -x --stream-json --stream-json-input "
	        "--settings-file /home/agent/.agentbox/amp-settings.json | "
	        "AMP_SKIP_UPDATE_CHECK=1 | .config/amp/AGENTS.md:  | .agentbox/amp-settings.json: "
	        "{\"amp.dangerouslyAllowAll\":true,\"amp.updates.mode\":\"disabled\"} ");
	writes(&driver_amp, &all,
	        "/x/agent first.js threads continue T-1-a --no-ide --no-color -x --stream-json "
	        "--stream-json-input -m m/1 --settings-file "
	        "/home/agent/.agentbox/amp-settings.json | AMP_SKIP_UPDATE_CHECK=1 | "
	        ".config/amp/AGENTS.md: Be brief. | .agentbox/amp-settings.json: "
	        "{\"amp.dangerouslyAllowAll\":true,\"amp.updates.mode\":\"disabled\","
	        "\"amp.tools.disable\":[\"bash\",\"web_fetch\"],\"amp.mcpServers\":{\"local\":{"
	        "\"command\":\"node\",\"args\":[\"a.mjs\"],\"env\":{\"A\":\"1\"}},\"far\":{\"url\":"
	        "\"http://far.example/mcp\",\"headers\":{\"X-Key\":\"v\"}}}} ");
	writes(&driver_qwen, &plain,
	        "/opt/agent/bin/qwen --input-format stream-json -o stream-json --yolo | "
	        "QWEN_CODE_SUPPRESS_YOLO_WARNING=1 ");
	all.max_turns = 3;
	all.permissions = PERMISSIONS_ASK;
	writes(&driver_qwen, &all,
	        "/x/agent first.js --input-format stream-json -o stream-json -m m/1 "
	        "--append-system-prompt Be brief. --max-session-turns 3 --exclude-tools bash "
	        "--exclude-tools web_fetch --resume T-1-a --mcp-config {\"mcpServers\":{\"local\":{"
	        "\"command\":\"node\",\"args\":[\"a.mjs\"],\"env\":{\"A\":\"1\"}},\"far\":{"
	        "\"httpUrl\":\"http://far.example/mcp\",\"headers\":{\"X-Key\":\"v\"}}}} | "
	        "QWEN_CODE_SUPPRESS_YOLO_WARNING=1 ");
}

static void test_refused(void)
{
	const struct driver *const both[] = {&driver_qwen, &driver_amp};
	struct driver_mcp none = {.name = "x"};
	for (size_t i = 0; i < ARRAY_LEN(both); i++) {
		refused(both[i], &(struct driver_spec){.tools_allow = LIST()}, "tools.allow");
		refused(both[i], &(struct driver_spec){.tools_deny = LIST("a(b)")},
		        "(tool_patterns)");
		refused(both[i], &(struct driver_spec){.model = "-x"}, "-x");
		refused(both[i], &(struct driver_spec){.resume = "-x"}, "-x");
		refused(both[i], &(struct driver_spec){.mcp = &none, .nmcp = 1}, "either");
	}
	auto_free char *longer = xcalloc((100 << 10) + 2, 1);
	memset(longer, 'a', (100 << 10) + 1);
	refused(&driver_qwen, &(struct driver_spec){.system_prompt = longer}, "100 KiB");
	refused(&driver_amp, &(struct driver_spec){.permissions = PERMISSIONS_ASK}, "(ask)");
	refused(&driver_amp, &(struct driver_spec){.permissions = PERMISSIONS_DENY}, "(deny)");
	refused(&driver_amp, &(struct driver_spec){.max_turns = 2}, "maxTurns");
}

#define OK_RESULT                                                                                  \
	"{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"hi\","       \
	"\"session_id\":\"T-1\"}"
#define CALL                                                                                       \
	"{\"type\":\"assistant\",\"message\":{\"id\":\"m\",\"content\":[{\"type\":\"tool_use\","   \
	"\"id\":\"c\",\"name\":\"create_file\",\"input\":{\"path\":\"/workspace/a\"}}]}}"
#define ANSWER                                                                                     \
	"{\"type\":\"user\",\"message\":{\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":"  \
	"\"c\",\"content\":\"ok\"}]}}"

static void test_lines(void)
{
	const struct driver_exit zero = {0}, limit = {.code = 53}, one = {.code = 1};
	comes_of(&driver_amp, LIST(OK_RESULT), NULL, zero,
	        "{\"outcome\":{\"status\":\"succeeded\",\"finalText\":\"hi\",\"resume\":\"T-1\"");
	comes_of(&driver_amp, LIST(OK_RESULT), NULL, one,
	        "amp reported success and then exited with code 1");
	comes_of(&driver_amp, LIST(CALL, ANSWER), NULL, zero,
	        "{\"type\":\"file.changed\",\"path\":\"/workspace/a\",\"change\":\"edit\"}");
	comes_of(&driver_amp, LIST(CALL, ANSWER, ANSWER), NULL, zero, "{\"type\":\"agent.raw\"");
	comes_of(&driver_qwen, LIST(OK_RESULT), NULL, limit, "and then exited with code 53");
	comes_of(&driver_qwen, LIST("{\"type\":\"system\",\"subtype\":\"init\"}"),
	        "Warning: running headless with --yolo", limit,
	        "\"error\":\"qwen exited with code 53, without a result\",\"maxTurns\":true");
	comes_of(&driver_qwen, LIST(), "No saved session found with ID s.", one,
	        "\"resumeLost\":true");
	comes_of(&driver_qwen, LIST("{\"type\":\"system\",\"subtype\":\"retry\"}"), NULL, zero,
	        "asked for again\",\"code\":\"api_retry\",\"retryable\":true}");
	comes_of(&driver_claude, LIST("No API key found"), NULL, zero, "claude exited with code 0");
}

int main(void)
{
	test_recorded();
	test_commands();
	test_refused();
	test_lines();
	return done();
}
