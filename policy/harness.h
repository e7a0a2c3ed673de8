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

struct harness_pair {
	char *name, *value; /* owned */
};

struct harness_mcp {
	char *name;
	char **command; /* NULL-terminated, or NULL */
	char **env;	/* "K=V" */
	char *url;
	char **headers;
};

struct harness_rule { /* guardrail */
	char *deny; /* POSIX extended regular expression, checked at parse */
	bool in_text, in_artifacts;
};

enum harness_permissions { HARNESS_AUTO, HARNESS_ASK, HARNESS_DENY };
enum harness_reuse { HARNESS_REUSE_RUN, HARNESS_REUSE_SESSION };

/* All pointers owned; lists are NULL-terminated, NULL where the key is absent. */
struct harness {
	int refs;
	char *name, *file, *description, *backend, *model, *policy;
	char *system_prompt; /* trimmed body, may be "" */
	char **tools_allow;  /* NULL: absent; empty: nothing */
	char **tools_deny;
	struct harness_mcp *mcp;
	size_t nmcp;
	char *snapshot, *template_dir;
	struct harness_pair *seed; /* path -> text */
	size_t nseed;
	char **artifacts;
	struct limits narrow; /* narrow.limits and limits.{memory,pids,cpus,disk,inodes} */
	char **egress_only;   /* narrow.egress.only */
	uint32_t max_turns;
	uint64_t timeout_ms;  /* default 600000 */
	uint64_t output_bytes;
	double cost_usd;
	uint32_t max_attempts; /* default 1 */
	uint32_t retry_on;     /* bits of enum run_status names: failed 1, timeout 2, oom 4 */
	uint64_t backoff_ms;
	enum harness_permissions permissions;
	char **secrets;
	struct harness_pair *env; /* values given */
	size_t nenv;
	char **env_names;	  /* names taken from what the daemon exposes */
	char **verify;		  /* argv */
	bool verify_required;
	uint64_t verify_timeout_ms;
	struct harness_rule *guard_input, *guard_output;
	size_t nguard_input, nguard_output;
	enum harness_reuse reuse;
	char *image;
	char **command; /* backend exec */
};

/* A note that is not an error: an alias used, a key that means nothing here. */
typedef void harness_note_fn(void *ctx, const char *file, int line, const char *text);

/* Returns a new reference, or NULL with *e ("file:line: ...").  `file` is used for messages and
 * for the default name.  `note` may be NULL. */
struct harness *harness_parse(const char *file, const char *text, size_t n, harness_note_fn *note,
	void *ctx, struct err *e);
struct harness *harness_ref(struct harness *h);
void harness_unref(struct harness *h); /* NULL is fine */

/* ---- agents ---- */

struct agent {
	char *name, *driver, *description;
	char *program;	 /* path in the jail: /opt/agent/bin/claude, /bin/sh */
	char **args;	 /* extra argv */
	char **env;	 /* "K=V" */
	char **probe;	 /* argv printing the version */
	char *version;	 /* pinned */
	char *package, *integrity; /* npm */
	char **inject;	 /* names of inject hosts it needs */
	bool installed_files; /* needs /opt/agent */
};
struct agent *agent_parse(const char *file, const char *text, size_t n, struct err *e);
void agent_free(struct agent *a);

#endif
