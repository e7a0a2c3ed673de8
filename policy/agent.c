#include "base/mem.h"
#include "drivers/driver.h"
#include "policy/harness.h"
#include "policy/harness_keys.h"
#include "policy/harness_pairs.h"

#include <string.h>

/* harnesses/agents/NAME/agent.yaml: facts about a product, written with it. */

static int set_env(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct agent *a = obj;
	return pairs_list(k, n, "=", form_variable, "a variable's name", &a->env);
}

static int set_files(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct agent *a = obj;
	return pairs_parse(
	        k, n, &a->files, &a->nfiles, form_relative, "a relative path without '.' and '..'");
}

/* What its driver can and the product cannot. */
static int set_cannot(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct agent *a = obj;
	int r = keys_kind(k, n, YAML_SEQ);
	if (r < 0)
		return r;
	yaml_each (it, n) {
		r = keys_kind(k, it, YAML_SCALAR);
		if (r < 0)
			return r;
		int ability = ability_by_name(it->text);
		if (ability < 0)
			return keys_unknown(k, it->line, "ability", it->text, ability_names());
		a->cannot |= UINT32_C(1) << ability;
	}
	return 0;
}

static bool form_taken(const char *text)
{
	return strcmp(text, ".") == 0 || form_relative(text);
}

static int set_take(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	static const char want[] = "'.' or a relative path";
	struct agent *a = obj;
	int r = pairs_parse(k, n, &a->take, &a->ntake, form_taken, want);
	for (size_t i = 0; r == 0 && i < a->ntake; i++)
		if (!form_relative(a->take[i].value))
			r = keys_error(k, n->line, "'%s': '%.60s' is not a relative path",
			        a->take[i].name, a->take[i].value);
	return r;
}

static bool form_integrity(const char *text)
{
	return strncmp(text, "sha512-", 7) == 0 && strlen(text) == 95 && form_printable(text);
}

static bool form_spelling(const char *text)
{
	return text[0] && strlen(text) <= 32 && form_printable(text);
}

static bool form_word(const char *text)
{
	return text[0] && !strchr(text, ' ') && form_printable(text);
}

static const struct key node_rows[] = {
        {.name = "version",
                .type = KEY_TEXT,
                .offset = offsetof(struct agent, node),
                .required = true,
                .form = form_word,
                .want = "a version",
                .doc = "Version of Node."},
        {.name = "integrity",
                .type = KEY_TEXT,
                .offset = offsetof(struct agent, node_integrity),
                .required = true,
                .form = form_integrity,
                .want = "sha512- and 88 characters",
                .doc = "Digest of its archive."},
};
static const struct key_table node_keys = KEY_TABLE(node_rows);

static const struct key npm_rows[] = {
        {.name = "package",
                .type = KEY_TEXT,
                .offset = offsetof(struct agent, package),
                .required = true,
                .form = form_word,
                .want = "a package's name",
                .doc = "Package that `abctl agent install` fetches."},
        {.name = "integrity",
                .type = KEY_TEXT,
                .offset = offsetof(struct agent, integrity),
                .required = true,
                .form = form_integrity,
                .want = "sha512- and 88 characters",
                .doc = "Digest of its archive."},
        {.name = "take",
                .type = KEY_OTHER,
                .required = true,
                .set = set_take,
                .want = "map of path to path",
                .doc = "What of the package is installed, and as what; `.` is all of it."},
};
static const struct key_table npm_keys = KEY_TABLE(npm_rows);

static const struct key acp_rows[] = {
        {.name = "mode",
                .type = KEY_TEXT,
                .offset = offsetof(struct agent, mode),
                .form = form_word,
                .want = "a mode's id",
                .doc = "Mode that each session is set to."},
        {.name = "ask_mode",
                .type = KEY_TEXT,
                .offset = offsetof(struct agent, ask_mode),
                .form = form_word,
                .want = "a mode's id",
                .doc = "The same where the harness says permissions: ask or deny."},
        {.name = "auth_method",
                .type = KEY_TEXT,
                .offset = offsetof(struct agent, auth_method),
                .form = form_word,
                .want = "a method's id",
                .doc = "How it logs in, when it says that it must."},
        {.name = "failure_text",
                .type = KEY_LIST,
                .offset = offsetof(struct agent, failure_text),
                .doc = "Beginnings of a last text that tells a failure."},
        {.name = "usage_sums",
                .type = KEY_BOOL,
                .offset = offsetof(struct agent, usage_sums),
                .dflt = "false",
                .doc = "The tokens it tells are those of the whole session."},
        {.name = "mcp_flag",
                .type = KEY_TEXT,
                .offset = offsetof(struct agent, mcp_flag),
                .form = form_word,
                .want = "an argument",
                .doc = "Argument before @FILE, a JSON file of MCP servers that are programs; for "
                       "agents whose protocol takes servers at URLs only."},
        {.name = "mcp_dollar",
                .type = KEY_TEXT,
                .offset = offsetof(struct agent, mcp_dollar),
                .form = form_spelling,
                .want = "a text of at most 32 bytes",
                .doc = "What a $ in the environment and headers of MCP servers is written as, for "
                       "agents that put variables there; with mcp_flag, in all that is told of "
                       "them."},
        {.name = "files",
                .type = KEY_BOOL,
                .offset = offsetof(struct agent, acp_files),
                .dflt = "true",
                .doc = "It may have its files read and written by agentbox-acp."},
        {.name = "terminals",
                .type = KEY_BOOL,
                .offset = offsetof(struct agent, acp_terminals),
                .dflt = "true",
                .doc = "It may have its commands run by agentbox-acp."},
};
static const struct key_table acp_keys = KEY_TABLE(acp_rows);

static const struct key agent_rows[] = {
        {.name = "name",
                .type = KEY_TEXT,
                .offset = offsetof(struct agent, name),
                .required = true,
                .form = form_name,
                .want = "a name",
                .doc = "Name of the agent."},
        {.name = "driver",
                .type = KEY_TEXT,
                .offset = offsetof(struct agent, driver),
                .required = true,
                .form = form_name,
                .want = "a driver's name",
                .doc = "Dialect it speaks."},
        {.name = "description",
                .type = KEY_TEXT,
                .offset = offsetof(struct agent, description),
                .form = form_line,
                .want = "one line of text",
                .doc = "One line for lists."},
        {.name = "program",
                .type = KEY_TEXT,
                .offset = offsetof(struct agent, program),
                .required = true,
                .form = form_path,
                .want = "an absolute path",
                .doc = "Program inside the jail."},
        {.name = "args",
                .type = KEY_LIST,
                .offset = offsetof(struct agent, args),
                .doc = "Arguments before the driver's."},
        {.name = "env",
                .type = KEY_OTHER,
                .set = set_env,
                .want = "map of texts",
                .doc = "Environment."},
        {.name = "probe",
                .type = KEY_LIST,
                .offset = offsetof(struct agent, probe),
                .doc = "Command that prints the version."},
        {.name = "version",
                .type = KEY_TEXT,
                .offset = offsetof(struct agent, version),
                .form = form_word,
                .want = "a version",
                .doc = "Version it was tested with."},
        {.name = "npm", .type = KEY_MAP, .sub = &npm_keys},
        {.name = "unavailable",
                .type = KEY_TEXT,
                .offset = offsetof(struct agent, unavailable),
                .form = form_line,
                .want = "one line of text",
                .doc = "Why it cannot be installed by `abctl agent install`."},
        {.name = "untried",
                .type = KEY_TEXT,
                .offset = offsetof(struct agent, untried),
                .form = form_line,
                .want = "one line of text",
                .doc = "What of it no test has seen, and why."},
        {.name = "node", .type = KEY_MAP, .sub = &node_keys},
        {.name = "files",
                .type = KEY_OTHER,
                .set = set_files,
                .want = "map of path to text",
                .doc = "Files written into the agent's home before each run."},
        {.name = "instructions",
                .type = KEY_TEXT,
                .offset = offsetof(struct agent, instructions),
                .form = form_relative,
                .want = "a relative path without '.' and '..'",
                .doc = "File below the home that gets the harness's body (driver exec)."},
        {.name = "model_flag",
                .type = KEY_TEXT,
                .offset = offsetof(struct agent, model_flag),
                .form = form_word,
                .want = "an argument",
                .doc = "Argument before the name of the model (driver exec)."},
        {.name = "acp", .type = KEY_MAP, .sub = &acp_keys},
        {.name = "cannot",
                .type = KEY_OTHER,
                .set = set_cannot,
                .want = "list of abilities",
                .doc = "What its driver can and it cannot, by the names of "
                       "`abctl agent capabilities`."},
        {.name = "inject",
                .type = KEY_LIST,
                .offset = offsetof(struct agent, inject),
                .form = form_host,
                .want = "a host name",
                .doc = "Injected hosts it needs of its policy."},
        {.name = "installed_files",
                .type = KEY_BOOL,
                .offset = offsetof(struct agent, installed_files),
                .dflt = "false",
                .doc = "Its files appear at /opt/agent."},
};
const struct key_table agent_keys = KEY_TABLE(agent_rows);

struct agent *agent_parse(const char *file, const char *text, size_t n, struct err *e)
{
	auto_yaml struct yaml_doc *doc = yaml_parse(file, 1, text, n, e);
	if (!doc)
		return NULL;
	const struct keys_ctx k = {.file = file, .e = e};
	struct agent *a = xnew(struct agent);
	a->acp_files = a->acp_terminals = true;
	if (keys_apply(&k, &agent_keys, yaml_root(doc), a) < 0) {
		agent_free(a);
		return NULL;
	}
	return a;
}

uint32_t agent_can(const struct agent *a, const struct driver *d)
{
	uint32_t told =
	        (a->model_flag ? CAN(MODEL) : 0) | (a->instructions ? CAN(SYSTEM_PROMPT) : 0);
	return d->can & ~(d->can_if_told & ~told) & ~a->cannot;
}

void agent_free(struct agent *a)
{
	if (!a)
		return;
	free(a->name);
	free(a->driver);
	free(a->description);
	free(a->program);
	list_free(a->args);
	list_free(a->env);
	list_free(a->probe);
	free(a->version);
	free(a->package);
	free(a->integrity);
	free(a->node);
	free(a->node_integrity);
	free(a->unavailable);
	free(a->untried);
	pairs_free(a->take, a->ntake);
	pairs_free(a->files, a->nfiles);
	free(a->instructions);
	free(a->model_flag);
	free(a->mode);
	free(a->ask_mode);
	free(a->auth_method);
	free(a->mcp_flag);
	free(a->mcp_dollar);
	list_free(a->failure_text);
	list_free(a->inject);
	free(a);
}
