/*
 * plan.h - what a run of a harness comes down to: which driver, command line,
 * environment, policy and limits.  Everything that can be refused is refused
 * here, before a jail is made.
 */
#ifndef SUPERVISOR_PLAN_H
#define SUPERVISOR_PLAN_H

#include "base/err.h"
#include "drivers/driver.h"
#include "policy/harness.h"
#include "policy/policy.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct daemon;

struct plan_input {
	const char *prompt; /* parameters filled in */
	size_t prompt_len;
	const char *system_prompt;
	const char *resume; /* NULL: a new conversation */
};

struct plan {
	const struct driver *driver;   /* static */
	struct driver_command command; /* owned */
	struct driver_run *run;        /* owned */
	char **env;                    /* owned: the whole environment */
	char *backend, *version;       /* owned; version may be NULL */
	char policy[NAME_MAX_LEN];
	uint32_t policy_index;
	uint64_t policy_generation;
	uint32_t layers_wanted; /* bits the policy requires or warns about */
	struct limits limits;   /* in force: the policy's, narrowed */
	struct limits narrow;   /* asked of agentboxd */
	struct budget budget;   /* likewise: of the run, narrower than the policy's */
	bool is_volatile;       /* nothing of a former run may be there */
	bool agent_files;       /* the agent's files at /opt/agent */
	uint64_t timeout_ms;
	uint64_t output_bytes; /* 0: no limit */
};

/* 0; -ENOENT, -ENOEXEC, -ENOPKG: what cannot be honoured, and why. */
MUST_USE int plan_check(struct daemon *d, struct harness *h, struct err *e);
/* The sink must live as long as the plan. */
MUST_USE int plan_make(struct daemon *d, struct harness *h, const struct plan_input *in,
        struct event_sink *sink, struct plan *ret, struct err *e);
void plan_done(struct plan *p); /* zeroed is fine */

/* text with each {{name}} of a known name replaced (owned); others stay as they are.  NULL: longer
 * than LIMIT_PROMPT. */
char *plan_fill(const char *text, size_t n, const char *const *names, const char *const *values,
        size_t nparams, size_t *ret_len);

#endif
