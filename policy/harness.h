/*
 * harness.h - a harness: one task type, from a Markdown file (YAML front
 * matter, then the system prompt); and an agent: facts about a product from
 * harnesses/agents/NAME/agent.yaml.
 *
 * Parsing is strict: unknown keys, duplicate keys and wrong types are errors
 * with file:line and a suggestion.  Names of the original are accepted as
 * aliases.  A harness is immutable once parsed and reference-counted: a run
 * keeps the version it started with.
 */
#ifndef POLICY_HARNESS_H
#define POLICY_HARNESS_H

#include "base/buf.h"
#include "base/err.h"
#include "policy/policy.h"

#include <stdbool.h>
#include <stdint.h>

struct driver;

struct harness_pair {
	char *name, *value; /* owned */
};

struct harness_mcp {
	char *name;
	int line;
	char **command; /* NULL-terminated, or NULL */
	char **env;     /* "K=V" */
	char *url;
	char **headers;
};

struct harness_param {
	char *name, *dflt, *pattern, *description; /* owned; all but the name may be NULL */
	char **choices;                            /* owned; NULL: any */
	bool required;
};

enum { HARNESS_READ_ONLY = 8 /* paths */ };

/* What stands for the backend of a harness that is a pipeline. */
#define HARNESS_PIPELINE "pipeline"
struct harness_step {
	char *harness, *prompt; /* owned */
	bool approve;
	uint64_t timeout_ms; /* with `approve` */
	int line;
};

struct harness_rule { /* guardrail */
	char *deny;   /* of pattern.h, checked at parse */
	bool in_text, in_artifacts;
};

enum harness_permissions { HARNESS_AUTO, HARNESS_ASK, HARNESS_DENY };
/* What is answered when nobody does. */
enum harness_ask_default { HARNESS_ASK_DENY, HARNESS_ASK_ONCE };
/* What an agent is told of the session's earlier runs: its own conversation and what came since;
 * only the former; all of it as text; nothing. */
enum harness_resume {
	HARNESS_RESUME_AUTO,
	HARNESS_RESUME_NATIVE,
	HARNESS_RESUME_TRANSCRIPT,
	HARNESS_RESUME_NONE
};
enum harness_reuse { HARNESS_REUSE_RUN, HARNESS_REUSE_SESSION };
enum harness_user { HARNESS_USER_AGENT, HARNESS_USER_ROOT };

/* What parses and this version does not execute: a run of such a harness is refused rather than
 * run without what its author relies on.  symbol, key, other place of it or NULL, what is missing
 */
/* clang-format off */
#define HARNESS_LATERS(X)                                                                          \
	X(REUSE,      "sandbox.reuse",        NULL, "each run has its own jail; see 'warm'")       \
	X(IMAGE,      "sandbox.image",        NULL, "the policy decides on the image")             \
	X(PROVIDER,   "driverOptions.provider", NULL, "the agent's configuration decides")
/* clang-format on */

enum harness_later {
#define HARNESS_LATER_ENUM(sym, key, other, why) HARNESS_LATER_##sym,
	HARNESS_LATERS(HARNESS_LATER_ENUM)
#undef HARNESS_LATER_ENUM
	        HARNESS_LATER_COUNT
};

/* Where it asks something of its agent, 0: it does not. */
struct harness_lines {
	int permissions, model, tools_allow, tools_deny, max_turns, warm;
	int policy, secrets, env, webhooks, template, snapshot, repo, user;
};

/* All pointers owned; lists are NULL-terminated, NULL where the key is absent. */
struct harness {
	int refs;
	char *name, *file, *description, *backend, *model,
	        *policy;     /* policy: NULL means the configuration's default_policy */
	char *source;        /* the file's text, from which it can be parsed again */
	char *system_prompt; /* trimmed body, may be "" */
	char **tools_allow;  /* NULL: absent; empty: nothing */
	char **tools_deny;
	struct harness_mcp *mcp;
	size_t nmcp;
	char *snapshot, *template_dir;
	char *repo;                 /* URL[#REF] that new workspaces are checked out from */
	char *git_name, *git_email; /* who commits */
	uint64_t git_timeout_ms;    /* default 120000: for what has become of a checkout */
	struct harness_pair *seed;  /* path -> text */
	size_t nseed;
	char **artifacts;
	struct limits narrow; /* narrow.limits and limits.{memory,pids,cpus,disk,inodes} */
	char **egress_only;   /* narrow.egress.only; NULL: all hosts of the policy */
	char **read_only;     /* narrow.readOnly: paths in the workspace, or NULL */
	uint32_t max_turns;
	uint64_t timeout_ms; /* of an attempt; default 600000 */
	uint64_t total_ms;   /* of all attempts and the pauses between them; 0: any */
	uint64_t queue_ms;   /* longest wait for a slot; 0: any */
	uint64_t output_bytes;
	double cost_usd;
	uint32_t max_attempts; /* default 1 */
	uint32_t retry_on;     /* bits of enum run_status names: failed 1, timeout 2, oom 4 */
	uint64_t backoff_ms;
	enum harness_permissions permissions;
	uint64_t ask_timeout_ms; /* default 300000 */
	enum harness_ask_default ask_default;
	enum harness_resume resume;
	char **secrets;           /* NULL: all that the policy injects */
	char **webhooks;          /* of root's, that it wants told of its runs */
	struct harness_pair *env; /* values given */
	size_t nenv;
	char **env_names; /* of the daemon's variables; root lists them in expose_env */
	char **verify;    /* argv */
	bool verify_required;
	uint64_t verify_timeout_ms;
	struct harness_rule *guard_input, *guard_output;
	size_t nguard_input, nguard_output;
	struct harness_param *params;
	size_t nparams;
	struct harness_step *steps; /* a pipeline; then it has no backend */
	size_t nsteps;
	enum harness_reuse reuse;
	enum harness_user user;
	uint64_t warm_idle_ms; /* 0: its agents end with their runs */
	uint64_t warm_memory;  /* default 1 GiB */
	uint32_t warm_ahead;   /* agents that are started before anybody asks */
	char *image;
	char **command; /* backend exec */
	struct harness_lines lines;
	int later_line[HARNESS_LATER_COUNT]; /* where such a key is, 0: not used */
};

/* A note that is not an error: an alias used, a key that means nothing here. */
typedef void harness_note_fn(void *ctx, const char *file, int line, const char *text);

/* Returns a new reference, or NULL with *e ("file:line: ...").  `file` is used for messages and
 * for the default name; below "packs/PACK/" the name is PACK.NAME.  `note` may be NULL. */
struct harness *harness_parse(const char *file, const char *text, size_t n, harness_note_fn *note,
        void *ctx, struct err *e);
struct harness *harness_ref(struct harness *h);
void harness_unref(struct harness *h); /* NULL is fine */

/* 0, or -ENOEXEC with such keys and their lines in *e, as many as fit; `note` (may be NULL) gets
 * each. */
MUST_USE int harness_unsupported(
        const struct harness *h, harness_note_fn *note, void *ctx, struct err *e);

/* ---- agents ---- */

struct agent {
	char *name, *driver, *description;
	char *program;             /* path in the jail: /opt/agent/bin/claude, /bin/sh */
	char **args;               /* extra argv */
	char **env;                /* "K=V" */
	char **probe;              /* argv printing the version */
	char *version;             /* pinned */
	char *package, *integrity; /* npm */
	struct harness_pair *take; /* path in the package -> path below /opt/agent */
	size_t ntake;
	char *unavailable, *untried; /* why it cannot be installed; what was never tried; or NULL */
	char *node, *node_integrity; /* version of the Node that comes with it, or NULL */
	struct harness_pair *files;  /* path below the home -> text */
	size_t nfiles;
	char *instructions; /* path below the home of the system prompt, or NULL */
	char *model_flag;   /* argument before the model's name, or NULL */
	/* driver acp */
	char *mode, *ask_mode, *auth_method; /* or NULL */
	char **failure_text;
	bool usage_sums;
	char *mcp_flag, *mcp_dollar;   /* or NULL */
	uint32_t cannot;               /* bits of enum ability */
	bool acp_files, acp_terminals; /* fs/ and terminal/ are served */
	char **inject;                 /* names of inject hosts it needs */
	bool installed_files;          /* needs /opt/agent */
};
struct agent *agent_parse(const char *file, const char *text, size_t n, struct err *e);
void agent_free(struct agent *a);
/* What it can, driven by this: bits of enum ability (drivers/ability.h). */
uint32_t agent_can(const struct agent *a, const struct driver *d);

#endif
