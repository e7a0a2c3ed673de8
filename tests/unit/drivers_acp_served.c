/* What the driver makes of what agentbox-acp did for the agent: files that were written, terminals.
 */
#include "tests/acp_bed.h"

#define WROTE(path, change)                                                                        \
	"{\"method\":\"_agentbox/wrote\",\"params\":{\"path\":\"" path "\",\"change\":\"" change   \
	"\"}}"
#define OF_TERMINAL(more)                                                                          \
	"{\"method\":\"_agentbox/terminal\",\"params\":{\"terminalId\":\"t1\"," more "}}"

static void test_written(void)
{
	struct bed b;
	prompted(&b, SPEC(.acp_files = true));
	say(&b, WROTE("/workspace/a", "add"));
	ok(told(&b, "\"path\":\"a\",\"change\":\"add\""), "a file that no call is open for");
	say(&b, UPDATE("\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"c1\",\"kind\":\"edit\","
	               "\"status\":\"in_progress\",\"rawInput\":{\"a\":1}"));
	say(&b, WROTE("/workspace/b", "edit"));
	say(&b, WROTE("/workspace/b", "edit"));
	say(&b, WROTE("/workspace/c", "add"));
	ok(!told(&b, "file.changed"), "one is held back while a call is open");
	say(&b, UPDATE("\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"c1\",\"status\":"
	               "\"completed\",\"content\":[{\"type\":\"diff\",\"path\":\"/workspace/b\","
	               "\"oldText\":\"x\",\"newText\":\"y\"}]"));
	ok(told(&b, "\"path\":\"b\",\"change\":\"edit\",\"diff\""), "which tells it with a diff");
	ok(told(&b, "\"path\":\"c\",\"change\":\"add\""), "what it does not tell is told then");
	const char *first = strstr(b.rec.out.p, "\"path\":\"b\"");
	ok(first && !strstr(first + 1, "\"path\":\"b\""), "and nothing twice");
	say(&b, UPDATE("\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"c2\",\"status\":"
	               "\"pending\""));
	for (int i = 0; i < 200; i++) {
		auto_free char *line = xasprintf("{\"method\":\"_agentbox/wrote\",\"params\":{"
		                                 "\"path\":\"/%d\",\"change\":\"add\"}}",
		        i);
		say(&b, line);
	}
	answer(&b, ENDED);
	ok(told(&b, "\"path\":\"/199\""), "those that wait at the end of the turn");
	end(&b, 0, "\"status\":\"succeeded\"", "files");
}

static void test_terminals(void)
{
	struct bed b;
	prompted(&b, SPEC(.acp_terminals = true));
	say(&b, OF_TERMINAL("\"output\":\"early \""));
	ok(!told(&b, "tool.update"), "output that no call has named");
	say(&b, UPDATE("\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"c1\",\"kind\":\"execute\","
	               "\"status\":\"in_progress\",\"rawInput\":{\"command\":\"x\"},\"content\":[{"
	               "\"type\":\"terminal\",\"terminalId\":\"t1\"}]"));
	ok(told(&b, "tool.update\",\"callId\":\"c1\",\"output\":\"early \""), "is told with it");
	say(&b, OF_TERMINAL("\"output\":\"late\""));
	ok(told(&b, "\"output\":\"late\""), "and more as it comes");
	say(&b, OF_TERMINAL("\"exitCode\":3,\"signal\":null"));
	say(&b, UPDATE("\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"c1\",\"status\":"
	               "\"completed\""));
	ok(told(&b, "\"ok\":false,\"output\":\"early late\",\"exitCode\":3"),
	        "how it ended counts");
	say(&b, UPDATE("\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"c2\",\"status\":"
	               "\"pending\","
	               "\"content\":[{\"type\":\"terminal\",\"terminalId\":\"t1\"}]"));
	say(&b, OF_TERMINAL("\"exitCode\":null,\"signal\":\"SIGKILL\""));
	say(&b, UPDATE("\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"c2\",\"status\":"
	               "\"completed\""));
	ok(told(&b, "\"ok\":false,\"output\":\"\",\"exitCode\":-1"), "a signal is no success");
	size_t before = record_held();
	for (int i = 0; i < 400; i++) {
		auto_free char *text = xcalloc(60001, 1);
		memset(text, 'x', 60000);
		auto_free char *line =
		        xasprintf("{\"method\":\"_agentbox/terminal\",\"params\":{\"terminalId\":"
		                  "\"u%d\",\"output\":\"%s\"}}",
		                i, text);
		say(&b, line);
	}
	ok(record_held() < before + (16 << 20), "of terminals without a call little is held");
	static const char *const bad[] = {"{\"method\":\"_agentbox/wrote\",\"params\":{}}",
	        "{\"method\":\"_agentbox/wrote\",\"params\":{\"path\":\"\"}}",
	        "{\"method\":\"_agentbox/terminal\"}", "{\"method\":\"_agentbox/other\"}"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		raw(&b, bad[i]);
	answer(&b, ENDED);
	end(&b, 0, "\"status\":\"succeeded\"", "terminals");
}

static void test_served(void)
{
	struct driver_command c = {0};
	struct err e = {0};
	must(driver_acp.command(SPEC(.program = "/p"), &c, &e) == 0 && !c.below_acp && !c.env,
	        "served nothing");
	driver_command_done(&c);
	must(driver_acp.command(SPEC(.program = "/p", .acp_terminals = true), &c, &e) == 0 &&
	                c.below_acp && strcmp(c.env[0], "AGENTBOX_ACP=terminals") == 0,
	        "served terminals");
	driver_command_done(&c);
	struct bed b;
	begin(&b, SPEC(.acp_files = true));
	ok(wrote(&b, "\"fs\":{\"readTextFile\":true,\"writeTextFile\":true},\"terminal\":false"),
	        "what is served is offered, and no more");
	end(&b, 0, "\"status\":\"failed\"", "served");
}

int main(void)
{
	test_written();
	test_terminals();
	test_served();
	return done();
}
