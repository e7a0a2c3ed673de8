#include "policy/harness_keys.h"
#include "base/mem.h"
#include "policy/harness_checks.h"
#include "policy/harness_mcp.h"
#include "policy/harness_pairs.h"
#include "policy/harness_params.h"
#include "policy/harness_steps.h"
#include "policy/limits_keys.h"
#include "policy/repo_url.h"

#include <string.h>

/* ---- forms ---- */

static bool form_tool(const char *text)
{
	size_t n = strlen(text);
	return n > 0 && n < 256 && form_line(text);
}

/* ---- tools ---- */

static const struct key tools_rows[] = {
        {.name = "allow",
                .type = KEY_LIST,
                .offset = HARNESS_AT(tools_allow),
                .form = form_tool,
                .want = "a tool's name or pattern",
                .dflt = "every tool",
                .doc = "Tools offered to the agent, in its own names; no other is offered.  Where "
                       "it cannot be told, a call of another ends the run."},
        {.name = "deny",
                .type = KEY_LIST,
                .offset = HARNESS_AT(tools_deny),
                .form = form_tool,
                .want = "a tool's name or pattern",
                .doc = "Tools refused: not offered, or, where the agent cannot be told, a call of "
                       "one ends the run."},
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

static bool is_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);
	return strncmp(path, dir, n) == 0 && path[n] == '/';
}

static int set_seed(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct harness *h = &((struct harness_build *)obj)->h;
	int r = pairs_parse(
	        k, n, &h->seed, &h->nseed, form_relative, "a relative path without '.' and '..'");
	if (r < 0)
		return r;
	yaml_each (it, n)
		yaml_each (other, n)
			if (is_below(other->key, it->key))
				return keys_error(k, other->key_line,
				        "'%s': '%.60s' cannot be below '%.60s', which is a file, "
				        "too",
				        n->key, other->key, it->key);
	return 0;
}

static int set_repo(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct harness *h = &((struct harness_build *)obj)->h;
	struct err why;
	int r = keys_kind(k, n, YAML_SCALAR);
	if (r < 0)
		return r;
	if (repo_text_check(n->text, "'repo'", &why) < 0)
		return keys_error(k, n->line, "%s", why.text);
	free(h->repo);
	h->repo = xstrdup(n->text);
	return 0;
}

static const struct key workspace_rows[] = {
        {.name = "snapshot",
                .type = KEY_TEXT,
                .offset = HARNESS_AT(snapshot),
                .form = form_name,
                .want = "a name",
                .doc = "Snapshot that the workspace of a new session starts from (`abctl "
                       "snapshot`)."},
        {.name = "template",
                .type = KEY_TEXT,
                .offset = HARNESS_AT(template_dir),
                .form = form_name,
                .want = "a name",
                .doc = "Directory of root's, in templates/ beside agentboxd.yaml, that is copied "
                       "into a new workspace, over what its snapshot has."},
        {.name = "templateDir", .alias_of = "template"},
        {.name = "seed",
                .type = KEY_OTHER,
                .set = set_seed,
                .want = "map of path to text",
                .doc = "Files written into a new workspace."},
        {.name = "seedFiles", .alias_of = "seed"},
        {.name = "repo",
                .type = KEY_OTHER,
                .set = set_repo,
                .want = "URL or URL#REF",
                .doc = "Repository that a new workspace is checked out from, where a run asks for "
                       "none; its changes become artifacts."},
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
                .doc = "Answers of the model; the run ends when the next one begins."},
        {.name = "timeoutMs",
                .type = KEY_MS,
                .offset = HARNESS_AT(timeout_ms),
                .min = 1,
                .max = UINT64_C(604800000),
                .dflt = "600000",
                .doc = "The run ends after this, whatever it does; with `retry`, each attempt."},
        {.name = "totalMs",
                .type = KEY_MS,
                .offset = HARNESS_AT(total_ms),
                .min = 1,
                .max = UINT64_C(604800000),
                .dflt = "none",
                .doc = "Of all attempts and the pauses between them, from the first one's start."},
        {.name = "queueMs",
                .type = KEY_MS,
                .offset = HARNESS_AT(queue_ms),
                .min = 1,
                .max = UINT64_C(604800000),
                .dflt = "runs.queue_timeout",
                .doc = "The longest wait for its session and a slot; then the run ends as "
                       "timeout."},
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
	struct harness *h = &((struct harness_build *)obj)->h;
	int r = keys_list(
	        k, n, form_relative, "a relative path without '.' and '..'", &h->read_only);
	if (r == 0 && n->count > HARNESS_READ_ONLY)
		r = keys_error(k, n->line, "'%s' has %zu entries, %d are possible", n->key,
		        n->count, HARNESS_READ_ONLY);
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
                .doc = "Files and directories of the workspace that its agent and its check cannot "
                       "write; at most 8.  They must be there when it starts."},
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

/* ---- git ---- */

static bool form_git(const char *text)
{
	return text[0] && strlen(text) < 256 && form_line(text) && !strpbrk(text, "<>\t");
}

static const struct key git_rows[] = {
        {.name = "name",
                .type = KEY_TEXT,
                .offset = HARNESS_AT(git_name),
                .form = form_git,
                .want = "a name without < and >",
                .dflt = "agentbox",
                .doc = "Who commits in the jail, as GIT_AUTHOR_NAME and GIT_COMMITTER_NAME."},
        {.name = "email",
                .type = KEY_TEXT,
                .offset = HARNESS_AT(git_email),
                .form = form_git,
                .want = "an address without < and >",
                .dflt = "agentbox@localhost",
                .doc = "The same of the address."},
        {.name = "timeoutMs",
                .type = KEY_MS,
                .offset = HARNESS_AT(git_timeout_ms),
                .min = 1,
                .max = UINT64_C(3600000),
                .dflt = "120000",
                .doc = "How long it may take to say what has become of a checkout."},
};
static const struct key_table git_keys = KEY_TABLE(git_rows);

/* ---- warm ---- */

static const struct key warm_rows[] = {
        {.name = "idleMs",
                .type = KEY_MS,
                .offset = HARNESS_AT(warm_idle_ms),
                .min = 1000,
                .max = UINT64_C(3600000),
                .required = true,
                .doc = "How long the agent of a run that succeeded waits for the next run of its "
                       "session."},
        {.name = "memory",
                .type = KEY_BYTES,
                .offset = HARNESS_AT(warm_memory),
                .min = 1 << 20,
                .dflt = "1G",
                .doc = "What its jail may hold of memory while it waits; it ends beyond."},
        {.name = "ahead",
                .type = KEY_U32,
                .offset = HARNESS_AT(warm_ahead),
                .max = 64,
                .dflt = "0",
                .doc = "Agents that are started before anybody asks, each for the first run of a "
                       "new session."},
};
static const struct key_table warm_keys = KEY_TABLE(warm_rows);

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

static const char *const resume_words[] = {"auto", "native", "transcript", "none", NULL};

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
                .form = form_name,
                .want = "an agent's name or exec",
                .doc = "Agent that does the work, or `exec` for a command.  Required, but for a "
                       "pipeline."},
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
        {.name = "git", .type = KEY_MAP, .sub = &git_keys},
        {.name = "warm", .type = KEY_MAP, .sub = &warm_keys},
        {.name = "retry", .type = KEY_MAP, .sub = &harness_retry_keys},
        {.name = "permissions",
                .type = KEY_OTHER,
                .set = set_permissions,
                .sub = &permission_keys,
                .want = "auto, ask, deny, or a map",
                .dflt = "auto",
                .doc = "What happens when the agent asks before acting: nothing asks, a person is "
                       "asked, or it is denied."},
        {.name = "resume",
                .type = KEY_ENUM,
                .offset = HARNESS_AT(resume),
                .names = resume_words,
                .dflt = "auto",
                .doc = "What the agent knows of the session's earlier runs: its own conversation "
                       "and, "
                       "as text, what others did since; its own alone; everything as text; "
                       "nothing."},
        {.name = "secrets",
                .type = KEY_LIST,
                .offset = HARNESS_AT(secrets),
                .form = form_variable,
                .want = "a name such as API_KEY",
                .doc = "Of the secrets that the policy injects outside only these are used for "
                       "it; of those that it gives to jails these are variables of the agent.  "
                       "An empty list: none; without it all that are injected, and none else."},
        {.name = "webhooks",
                .type = KEY_LIST,
                .offset = HARNESS_AT(webhooks),
                .form = form_name,
                .want = "a webhook's name",
                .doc = "Webhooks of agentboxd.yaml that are to be told of its runs."},
        {.name = "env",
                .type = KEY_OTHER,
                .set = set_env,
                .want = "map of texts, or list of names",
                .doc = "Environment of the agent; a list names variables of the daemon."},
        {.name = "params",
                .type = KEY_OTHER,
                .set = harness_set_params,
                .sub = &harness_param_keys,
                .want = "map of parameters",
                .dflt = "any that a text has",
                .doc = "What a run may be given by name, for {{NAME}} in the texts; others are "
                       "refused."},
        {.name = "verify", .type = KEY_MAP, .sub = &harness_verify_keys},
        {.name = "guardrails", .type = KEY_MAP, .sub = &harness_guardrail_keys},
        {.name = "pipeline",
                .type = KEY_OTHER,
                .set = harness_set_pipeline,
                .sub = &harness_step_keys,
                .want = "list of steps",
                .doc = "Harnesses that are run one after the other in the run's session, instead "
                       "of a backend; the first that does not succeed is the last.  Beside it "
                       "there are `name`, `description`, `params` and `webhooks` alone."},
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
