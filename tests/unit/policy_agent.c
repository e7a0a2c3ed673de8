#include "base/fd.h"
#include "base/mem.h"
#include "drivers/driver.h"
#include "policy/harness.h"
#include "tests/t.h"

#define DIGEST                                                                                     \
	"sha512-f4JWhzwYutJIHScC7/dYOPX6s28tt7ZADhsOi8zwOHq5fFPEuUeChh2NMfinSg0GrUckYxaeebC4h0"    \
	"DqiKzLcw=="

static const char good[] =
        "name: claude\n"
        "driver: claude\n"
        "description: Claude Code\n"
        "program: /opt/agent/bin/claude\n"
        "args: [--a, b]\n"
        "env: {BASE: \"http://anthropic.agentbox\", N: 1}\n"
        "probe: [/opt/agent/bin/claude, --version]\n"
        "version: 1.2.3\n"
        "npm: {package: \"@a/b\", integrity: " DIGEST ", take: {.: lib, x: bin/x}}\n"
        "unavailable: not there\n"
        "untried: all of it\n"
        "node: {version: 22.1.0, integrity: " DIGEST "}\n"
        "files: {.a/b.json: \"{}\", c: d}\n"
        "instructions: .a/AGENTS.md\n"
        "model_flag: --model\n"
        "acp: {mode: yolo, ask_mode: default, auth_method: key, "
        "failure_text: [\"Error: \"], usage_sums: true, mcp_flag: --servers, "
        "mcp_dollar: '$$', terminals: false}\n"
        "cannot: [mcp_stdio, mcp_http]\n"
        "inject: [anthropic.agentbox]\n"
        "installed_files: true\n";

static void refused(const char *text, const char *message)
{
	struct err e = {0};
	struct agent *a = agent_parse("agent.yaml", text, strlen(text), &e);
	ok(!a, "refused: %s", message);
	is_str(e.text, message, "says so");
	agent_free(a);
}

static struct agent *shipped(const char *name)
{
	struct err e = {0};
	size_t n = 0;
	auto_free char *text = NULL, *path = xasprintf("harnesses/agents/%s/agent.yaml", name);
	must(file_slurp(path, 1 << 20, &text, &n) == 0, "%s is there", path);
	struct agent *a = agent_parse(path, text, n, &e);
	must(a != NULL, "%s parses: %s", path, e.text);
	return a;
}

/* What only the agent.yaml of an agent can tell it, and what it would do untold. */
static void test_shipped(void)
{
	static const struct {
		const char *agent, *name, *value, *else_it;
	} told[] = {
	        {"gemini", "GEMINI_CLI_NO_RELAUNCH", "true", "has a parent that ignores SIGTERM"},
	        {"gemini", "GEMINI_CLI_TRUST_WORKSPACE", "true", "does not trust its workspace"},
	        {"qwen", "QWEN_CODE_LEGACY_MCP_BLOCKING", "1", "asks before its servers are there"},
	        {"copilot", "COPILOT_OFFLINE", "true", "wants a login"},
	        {"copilot", "COPILOT_AUTO_UPDATE", "false", "looks for updates"},
	        {"pi", "PI_OFFLINE", "1", "asks for the newest version"},
	        {"opencode", "OPENCODE_DISABLE_MODELS_FETCH", "1", "fetches a list of models"},
	        {"opencode", "OPENCODE_DISABLE_LSP_DOWNLOAD", "1", "downloads servers"},
	        {"amp", "AMP_SKIP_UPDATE_CHECK", "1", "looks for updates"},
	        {"cline", "CLINE_NO_AUTO_UPDATE", "1", "looks for updates"},
	};
	for (size_t i = 0; i < ARRAY_LEN(told); i++) {
		struct agent *a = shipped(told[i].agent);
		size_t k = 0;
		auto_free char *want = xasprintf("%s=%s", told[i].name, told[i].value);
		while (a->env && a->env[k] && strcmp(a->env[k], want) != 0)
			k++;
		ok(a->env && a->env[k], "%s is told %s: else it %s", told[i].agent, want,
		        told[i].else_it);
		agent_free(a);
	}
	struct agent *qwen = shipped("qwen"), *copilot = shipped("copilot"),
	             *gemini = shipped("gemini");
	is_str(qwen->mode, "yolo", "qwen: its own mode has a model judge calls");
	is_str(qwen->ask_mode, "default", "qwen: where a person is to");
	is_str(copilot->failure_text[0], "Error: ", "copilot tells API errors as text");
	ok(copilot->usage_sums, "copilot tells the sums of a session");
	is_str(copilot->mcp_flag, "--additional-mcp-config", "copilot: not by the protocol");
	is_str(copilot->mcp_dollar, "${AGENTBOX_NONE:-$}", "copilot puts variables there");
	is_str(gemini->mcp_dollar, "\\$", "so does gemini");
	agent_free(qwen);
	agent_free(copilot);
	agent_free(gemini);
}

int main(void)
{
	struct err e = {0};
	struct agent *a = agent_parse("agent.yaml", good, strlen(good), &e);
	must(a != NULL, "parses: %s", e.text);
	is_str(a->program, "/opt/agent/bin/claude", "program");
	ok(a->ntake == 2, "takes two things of its package");
	is_str(a->take[0].name, ".", "all of it");
	is_str(a->take[1].value, "bin/x", "and what becomes of the other");
	is_str(a->unavailable, "not there", "why it cannot be installed");
	is_str(a->untried, "all of it", "what was not tried");
	is_str(a->env[0], "BASE=http://anthropic.agentbox", "env");
	is_str(a->env[1], "N=1", "env, a number");
	ok(a->args[2] == NULL && a->probe[2] == NULL && a->inject[1] == NULL, "lists end");
	is_str(a->package, "@a/b", "package");
	is_str(a->node, "22.1.0", "node");
	ok(a->nfiles == 2 && strcmp(a->files[0].name, ".a/b.json") == 0 &&
	                strcmp(a->files[0].value, "{}") == 0,
	        "files");
	is_str(a->instructions, ".a/AGENTS.md", "instructions");
	is_str(a->model_flag, "--model", "model_flag");
	is_str(a->mode, "yolo", "acp.mode");
	is_str(a->ask_mode, "default", "acp.ask_mode");
	is_str(a->auth_method, "key", "acp.auth_method");
	is_str(a->failure_text[0], "Error: ", "acp.failure_text");
	ok(a->usage_sums, "acp.usage_sums");
	is_str(a->mcp_flag, "--servers", "acp.mcp_flag");
	is_str(a->mcp_dollar, "$$", "acp.mcp_dollar");
	ok(a->acp_files && !a->acp_terminals, "acp.files by default, acp.terminals");
	ok(a->installed_files, "installed_files");
	ok(a->cannot == (CAN(MCP_STDIO) | CAN(MCP_HTTP)), "cannot");
	const struct driver dialect = {.can = CAN(MCP_HTTP) | CAN(MODEL) | CAN(SYSTEM_PROMPT),
	        .can_if_told = CAN(MODEL) | CAN(SYSTEM_PROMPT)};
	ok(agent_can(a, &dialect) == (CAN(MODEL) | CAN(SYSTEM_PROMPT)), "what it can, told how");
	const struct agent untold = {0};
	ok(agent_can(&untold, &dialect) == CAN(MCP_HTTP), "and what it is not told how to do");
	agent_free(a);
	agent_free(NULL);
	refused("name: x\ndriver: y\n", "agent.yaml:1: 'program' is missing");
	refused("name: x\ndriver: y\nprogram: bin/x\n",
	        "agent.yaml:3: 'program': 'bin/x' is not an absolute path");
	refused("name: x\ndriver: y\nprogram: /x\nnmp: {}\n",
	        "agent.yaml:4: unknown key 'nmp' (did you mean 'npm'?)");
	refused("name: x\ndriver: y\nprogram: /x\nnpm: {package: a, integrity: sha1-abc}\n",
	        "agent.yaml:4: 'integrity': 'sha1-abc' is not sha512- and 88 characters");
	refused("name: x\ndriver: y\nprogram: /x\ninject: [NotAHost]\n",
	        "agent.yaml:4: an entry of 'inject': 'NotAHost' is not a host name");
	refused("name: x\ndriver: y\nprogram: /x\nfiles: {../a: b}\n",
	        "agent.yaml:4: 'files': '../a' is not a relative path without '.' and '..'");
	refused("name: x\ndriver: y\nprogram: /x\ninstructions: /etc/x\n",
	        "agent.yaml:4: 'instructions': '/etc/x' is not a relative path without '.' and "
	        "'..'");
	refused("name: x\ndriver: y\nprogram: /x\nnode: {version: 22.1.0}\n",
	        "agent.yaml:4: 'integrity' is missing");
	refused("name: x\ndriver: y\nprogram: /x\ncannot:\n  - resume\n  - mcp_stdin\n",
	        "agent.yaml:6: unknown ability 'mcp_stdin' (did you mean 'mcp_stdio'?)");
	refused("name: x\ndriver: y\nprogram: /x\ncannot: resume\n",
	        "agent.yaml:4: 'cannot' is a text: a list is expected");
	test_shipped();
	return done();
}
