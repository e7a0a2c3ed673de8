#include "base/mem.h"
#include "policy/harness.h"
#include "tests/t.h"

#define DIGEST                                                                                     \
	"sha512-f4JWhzwYutJIHScC7/dYOPX6s28tt7ZADhsOi8zwOHq5fFPEuUeChh2NMfinSg0GrUckYxaeebC4h0"    \
	"DqiKzLcw=="

static const char good[] = "name: claude\n"
                           "driver: claude\n"
                           "description: Claude Code\n"
                           "program: /opt/agent/bin/claude\n"
                           "args: [--a, b]\n"
                           "env: {BASE: \"http://anthropic.agentbox\", N: 1}\n"
                           "probe: [/opt/agent/bin/claude, --version]\n"
                           "version: 1.2.3\n"
                           "npm: {package: \"@a/b\", integrity: " DIGEST "}\n"
                           "node: {version: 22.1.0, integrity: " DIGEST "}\n"
                           "files: {.a/b.json: \"{}\", c: d}\n"
                           "instructions: .a/AGENTS.md\n"
                           "model_flag: --model\n"
                           "acp: {mode: yolo, ask_mode: default, auth_method: key, "
                           "failure_text: [\"Error: \"], usage_sums: true}\n"
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

int main(void)
{
	struct err e = {0};
	struct agent *a = agent_parse("agent.yaml", good, strlen(good), &e);
	must(a != NULL, "parses: %s", e.text);
	is_str(a->program, "/opt/agent/bin/claude", "program");
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
	ok(a->installed_files, "installed_files");
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
	        "agent.yaml:4: 'entry': 'NotAHost' is not a host name");
	refused("name: x\ndriver: y\nprogram: /x\nfiles: {../a: b}\n",
	        "agent.yaml:4: 'files': '../a' is not a relative path without '.' and '..'");
	refused("name: x\ndriver: y\nprogram: /x\ninstructions: /etc/x\n",
	        "agent.yaml:4: 'instructions': '/etc/x' is not a relative path without '.' and "
	        "'..'");
	refused("name: x\ndriver: y\nprogram: /x\nnode: {version: 22.1.0}\n",
	        "agent.yaml:4: 'integrity' is missing");
	return done();
}
