#include "base/mem.h"
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

static bool form_integrity(const char *text)
{
	return strncmp(text, "sha512-", 7) == 0 && strlen(text) == 95 && form_printable(text);
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
                .doc = "Package that install.sh fetches."},
        {.name = "integrity",
                .type = KEY_TEXT,
                .offset = offsetof(struct agent, integrity),
                .required = true,
                .form = form_integrity,
                .want = "sha512- and 88 characters",
                .doc = "Digest of its archive."},
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
	if (keys_apply(&k, &agent_keys, yaml_root(doc), a) < 0) {
		agent_free(a);
		return NULL;
	}
	return a;
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
	pairs_free(a->files, a->nfiles);
	free(a->instructions);
	free(a->model_flag);
	free(a->mode);
	free(a->ask_mode);
	free(a->auth_method);
	list_free(a->failure_text);
	list_free(a->inject);
	free(a);
}
