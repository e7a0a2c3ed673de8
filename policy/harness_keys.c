#include "policy/harness_keys.h"
#include "base/mem.h"
#include "policy/harness_checks.h"
#include "policy/harness_mcp.h"
#include "policy/harness_pairs.h"
#include "policy/limits_keys.h"

#include <string.h>

/* ---- forms ---- */

static bool form_tool(const char *text)
{
	size_t n = strlen(text);
	return n > 0 && n < 256 && form_line(text);
}

static bool form_text(const char *text)
{
	return text[0] && form_line(text);
}

/* ---- tools ---- */

static const struct key tools_rows[] = {
        {.name = "allow",
                .type = KEY_LIST,
                .offset = HARNESS_AT(tools_allow),
                .form = form_tool,
                .want = "a tool's name or pattern",
                .dflt = "every tool",
                .doc = "Tools offered to the agent, in its own names; no other is offered."},
        {.name = "deny",
                .type = KEY_LIST,
                .offset = HARNESS_AT(tools_deny),
                .form = form_tool,
                .want = "a tool's name or pattern",
                .doc = "Tools refused."},
        {.name = "mcp",
                .type = KEY_OTHER,
                .set = harness_set_mcp,
                .sub = &harness_mcp_keys,
                .want = "map of servers",
                .doc = "Model context servers by name."},
        {.name = "mcpServers", .alias_of = "mcp"},
};
static const struct key_table tools_keys = KEY_TABLE(tools_rows);

/* ---- workspace and artifacts ---- */

static int set_seed(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct harness *h = &((struct harness_build *)obj)->h;
	return pairs_parse(
	        k, n, &h->seed, &h->nseed, form_relative, "a relative path without '.' and '..'");
}

static const struct key workspace_rows[] = {
        {.name = "snapshot",
                .type = KEY_TEXT,
                .offset = HARNESS_AT(snapshot),
                .form = form_name,
                .want = "a name",
                .doc = "Snapshot the workspace starts from."},
        {.name = "template",
                .type = KEY_TEXT,
                .offset = HARNESS_AT(template_dir),
                .form = form_text,
                .want = "a path",
                .doc = "Directory copied into a new workspace."},
        {.name = "templateDir", .alias_of = "template"},
        {.name = "seed",
                .type = KEY_OTHER,
                .set = set_seed,
                .want = "map of path to text",
                .doc = "Files written into a new workspace."},
        {.name = "seedFiles", .alias_of = "seed"},
};
static const struct key_table workspace_keys = KEY_TABLE(workspace_rows);

static const struct key glob_list = {.name = "artifacts",
        .type = KEY_LIST,
        .offset = HARNESS_AT(artifacts),
        .form = form_glob,
        .want = "a relative path or glob"};

static int set_artifacts(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	if (n->kind != YAML_MAP)
		return keys_set(k, &glob_list, n, obj);
	if (n->count != 1 || strcmp(n->first->key, "globs") != 0)
		return keys_error(
		        k, n->line, "'artifacts' is a list of globs, or has one key: globs");
	return keys_set(k, &glob_list, n->first, obj);
}

/* ---- limits ---- */

static int set_quota_excludes(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	(void)obj;
	int r = keys_kind(k, n, YAML_SEQ);
	if (r == 0 && n->count)
		keys_note(k, n->key_line,
		        "'workspaceQuotaExcludes' excludes nothing: limits.disk counts the whole "
		        "workspace");
	return r;
}

#define BYTES(key, field, least, text)                                                             \
	{                                                                                          \
		.name = (key), .type = KEY_BYTES, .offset = HARNESS_AT(field), .min = (least),     \
		.doc = (text)                                                                      \
	}

static const struct key harness_limit_rows[] = {
        {.name = "maxTurns",
                .type = KEY_U32,
                .offset = HARNESS_AT(max_turns),
                .min = 1,
                .doc = "Turns of the agent."},
        {.name = "timeoutMs",
                .type = KEY_MS,
                .offset = HARNESS_AT(timeout_ms),
                .min = 1,
                .max = UINT64_C(604800000),
                .dflt = "600000",
                .doc = "The run ends after this, whatever it does."},
        BYTES("memory", narrow.memory_bytes, LIMITS_MEMORY_LEAST,
                "As in the policy, to tighten it."),
        {.name = "pids",
                .type = KEY_COUNT,
                .offset = HARNESS_AT(narrow.pids),
                .min = LIMITS_PIDS_LEAST,
                .max = LIMITS_PIDS_MOST,
                .doc = "As in the policy, to tighten it."},
        {.name = "cpus",
                .type = KEY_CPUS,
                .offset = HARNESS_AT(narrow.cpu_milli),
                .min = LIMITS_CPUS_LEAST,
                .max = LIMITS_CPUS_MOST,
                .doc = "As in the policy, to tighten it."},
        BYTES("disk", narrow.disk_bytes, LIMITS_DISK_LEAST, "As in the policy, to tighten it."),
        {.name = "maxWorkspaceBytes", .alias_of = "disk"},
        {.name = "inodes",
                .type = KEY_COUNT,
                .offset = HARNESS_AT(narrow.inodes),
                .min = LIMITS_INODES_LEAST,
                .doc = "As in the policy, to tighten it."},
        BYTES("outputBytes", output_bytes, LIMITS_OUTPUT_LEAST,
                "Bytes of output, both streams together."),
        {.name = "costUsd",
                .type = KEY_REAL,
                .offset = HARNESS_AT(cost_usd),
                .doc = "US dollars of the model's tokens, as metered outside the jail and by the "
                       "price table."},
        {.name = "workspaceQuotaExcludes",
                .type = KEY_OTHER,
                .set = set_quota_excludes,
                .want = "list of names",
                .doc = "Accepted; excludes nothing."},
};
static const struct key_table harness_limit_keys = KEY_TABLE(harness_limit_rows);

static int set_read_only(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	(void)obj;
	char **paths = NULL;
	int r = keys_list(k, n, form_relative, "a relative path", &paths);
	list_free(paths);
	return r;
}

static const struct key egress_rows[] = {
        {.name = "only",
                .type = KEY_LIST,
                .offset = HARNESS_AT(egress_only),
                .form = form_host,
                .want = "a host name",
                .doc = "Of the policy's hosts only these; an empty list: nothing goes out."},
};
static const struct key_table egress_keys = KEY_TABLE(egress_rows);

static const struct key narrow_rows[] = {
        {.name = "limits",
                .type = KEY_MAP,
                .offset = offsetof(struct harness_build, also),
                .dflt = "the policy's",
                .sub = &narrow_limits_keys},
        {.name = "egress", .type = KEY_MAP, .sub = &egress_keys},
        {.name = "readOnly",
                .type = KEY_OTHER,
                .set = set_read_only,
                .want = "list of paths",
                .doc = "Parts of the workspace that cannot be written."},
};
static const struct key_table narrow_keys = KEY_TABLE(narrow_rows);

/* ---- environment, sandbox, driver ---- */

static int set_env(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct harness *h = &((struct harness_build *)obj)->h;
	if (n->kind == YAML_SEQ)
		return keys_list(k, n, form_variable, "a variable's name", &h->env_names);
	return pairs_parse(k, n, &h->env, &h->nenv, form_variable, "a variable's name");
}

static const char *const reuse_words[] = {"run", "session", NULL};
static const char *const user_words[] = {"agent", "root", NULL};
static const struct key sandbox_rows[] = {
        {.name = "user",
                .type = KEY_ENUM,
                .offset = HARNESS_AT(user),
                .names = user_words,
                .dflt = "agent",
                .doc = "root: uid 0 of the jail, which may install packages where the policy says "
                       "`inner_root: packages`."},
        {.name = "reuse",
                .type = KEY_ENUM,
                .offset = HARNESS_AT(reuse),
                .names = reuse_words,
                .dflt = "run",
                .doc = "A jail for each run, or one kept for the session."},
        {.name = "image",
                .type = KEY_TEXT,
                .offset = HARNESS_AT(image),
                .form = form_name,
                .want = "a name",
                .doc = "Image of the jail."},
};
static const struct key_table sandbox_keys = KEY_TABLE(sandbox_rows);

static int set_sandbox(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	if (n->kind == YAML_MAP)
		return keys_apply(k, &sandbox_keys, n, obj);
	int r = keys_kind(k, n, YAML_SCALAR);
	if (r < 0)
		return r;
	static const char *const words[] = {"local", "container", NULL};
	if (strcmp(n->text, words[0]) != 0 && strcmp(n->text, words[1]) != 0)
		return keys_unknown(k, n->line, "value of 'sandbox'", n->text, words);
	keys_note(k, n->line, "'sandbox: %s' means the jail of the policy, as everything does",
	        n->text);
	return 0;
}

static int set_driver_command(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct harness_build *b = obj;
	b->driver_command_line = n->key_line;
	if (n->kind == YAML_SEQ)
		return keys_list(k, n, NULL, NULL, &b->driver_command);
	int r = keys_kind(k, n, YAML_SCALAR);
	if (r < 0)
		return r;
	b->driver_command = xcalloc(2, sizeof(*b->driver_command));
	b->driver_command[0] = xstrdup(n->text);
	return 0;
}

static int set_sandbox_mode(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	(void)obj;
	static const char *const words[] = {
	        "workspace-write", "danger-full-access", "read-only", NULL};
	uint32_t index = 0;
	const struct key row = {.name = n->key, .type = KEY_ENUM, .names = words};
	int r = keys_set(k, &row, n, &index);
	if (r < 0)
		return r;
	/* The first two are what a jail is.  Ignoring the third would widen. */
	if (index == 2)
		return keys_error(k, n->line,
		        "'sandboxMode: read-only' cannot be honoured: the workspace is writable");
	keys_note(k, n->line, "'sandboxMode: %s' is what the jail gives", n->text);
	return 0;
}

static int set_provider(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	(void)obj;
	return keys_kind(k, n, YAML_SCALAR);
}

static const struct key driver_rows[] = {
        {.name = "command",
                .type = KEY_OTHER,
                .set = set_driver_command,
                .want = "text or list",
                .doc = "As `command`, for backend exec."},
        {.name = "sandboxMode",
                .type = KEY_OTHER,
                .set = set_sandbox_mode,
                .want = "workspace-write, danger-full-access",
                .doc = "Accepted; the jail decides."},
        {.name = "provider",
                .type = KEY_OTHER,
                .set = set_provider,
                .want = "text",
                .doc = "Provider of a backend that has several."},
};
static const struct key_table driver_keys = KEY_TABLE(driver_rows);

/* ---- permissions ---- */

static const char *const permission_words[] = {"auto", "ask", "deny", NULL};
static const char *const ask_default_words[] = {"deny", "once", NULL};

static const struct key permission_rows[] = {
        {.name = "mode",
                .type = KEY_ENUM,
                .offset = HARNESS_AT(permissions),
                .names = permission_words,
                .required = true,
                .doc = "As `permissions` with one word."},
        {.name = "timeoutMs",
                .type = KEY_MS,
                .offset = HARNESS_AT(ask_timeout_ms),
                .min = 1,
                .max = UINT64_C(604800000),
                .dflt = "300000",
                .doc = "With `ask`: how long each question waits for a person."},
        {.name = "default",
                .type = KEY_ENUM,
                .offset = HARNESS_AT(ask_default),
                .names = ask_default_words,
                .dflt = "deny",
                .doc = "With `ask`: the answer when nobody gave one."},
};
static const struct key_table permission_keys = KEY_TABLE(permission_rows);

static int set_permissions(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	const struct harness *h = &((struct harness_build *)obj)->h;
	if (n->kind != YAML_MAP) {
		struct key word = permission_rows[0];
		word.name = n->key;
		return keys_set(k, &word, n, obj);
	}
	int r = keys_apply(k, &permission_keys, n, obj);
	if (r == 0 && h->permissions != HARNESS_ASK && n->count > 1)
		return keys_error(
		        k, n->line, "'permissions.timeoutMs' and 'default' belong to the mode ask");
	return r;
}

/* ---- the file ---- */

static const struct key harness_rows[] = {
        {.name = "name",
                .type = KEY_TEXT,
                .offset = HARNESS_AT(name),
                .form = form_name,
                .want = "a name (a-z, 0-9, '.', '_', '-')",
                .dflt = "file name",
                .doc = "Name of the task type."},
        {.name = "backend",
                .type = KEY_TEXT,
                .offset = HARNESS_AT(backend),
                .required = true,
                .form = form_name,
                .want = "an agent's name or exec",
                .doc = "Agent that does the work, or `exec` for a command."},
        {.name = "description",
                .type = KEY_TEXT,
                .offset = HARNESS_AT(description),
                .form = form_line,
                .want = "one line of text",
                .doc = "One line for lists."},
        {.name = "model",
                .type = KEY_TEXT,
                .offset = HARNESS_AT(model),
                .form = form_reference,
                .want = "a model's name",
                .dflt = "the agent's",
                .doc = "Model, in the agent's own names."},
        {.name = "policy",
                .type = KEY_TEXT,
                .offset = HARNESS_AT(policy),
                .form = form_name,
                .want = "a policy's name",
                .dflt = "the daemon's default_policy",
                .doc = "Policy of root's."},
        {.name = "narrow", .type = KEY_MAP, .sub = &narrow_keys},
        {.name = "tools", .type = KEY_MAP, .sub = &tools_keys},
        {.name = "workspace", .type = KEY_MAP, .sub = &workspace_keys},
        {.name = "artifacts",
                .type = KEY_OTHER,
                .set = set_artifacts,
                .want = "list of globs",
                .dflt = "none",
                .doc = "Files collected after the run: `*`, `**`, `?`."},
        {.name = "limits", .type = KEY_MAP, .sub = &harness_limit_keys},
        {.name = "retry", .type = KEY_MAP, .sub = &harness_retry_keys},
        {.name = "permissions",
                .type = KEY_OTHER,
                .set = set_permissions,
                .sub = &permission_keys,
                .want = "auto, ask, deny, or a map",
                .dflt = "auto",
                .doc = "What happens when the agent asks before acting: nothing asks, a person is "
                       "asked, or it is denied."},
        {.name = "secrets",
                .type = KEY_LIST,
                .offset = HARNESS_AT(secrets),
                .form = form_variable,
                .want = "a name such as API_KEY",
                .doc = "Secrets by name."},
        {.name = "env",
                .type = KEY_OTHER,
                .set = set_env,
                .want = "map of texts, or list of names",
                .doc = "Environment of the agent; a list names variables of the daemon."},
        {.name = "verify", .type = KEY_MAP, .sub = &harness_verify_keys},
        {.name = "guardrails", .type = KEY_MAP, .sub = &harness_guardrail_keys},
        {.name = "pipeline",
                .type = KEY_OTHER,
                .set = harness_set_pipeline,
                .sub = &harness_step_keys,
                .want = "list of steps",
                .doc = "Harnesses run one after the other."},
        {.name = "sandbox",
                .type = KEY_OTHER,
                .set = set_sandbox,
                .sub = &sandbox_keys,
                .want = "map, local, container",
                .doc = "How the jail is kept."},
        {.name = "driverOptions", .type = KEY_MAP, .sub = &driver_keys},
        {.name = "command",
                .type = KEY_LIST,
                .offset = HARNESS_AT(command),
                .min = 1,
                .doc = "Backend exec: the argv.  The prompt goes to its standard input."},
};
const struct key_table harness_keys = KEY_TABLE(harness_rows);
