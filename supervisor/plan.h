/*
 * plan.h - what a run of a harness comes down to: which driver, command line,
 * environment, policy and limits.  Everything that can be refused is refused
 * here, before a jail is made.
 */
#ifndef SUPERVISOR_PLAN_H
#define SUPERVISOR_PLAN_H

#include "base/digest.h"
#include "base/err.h"
#include "drivers/driver.h"
#include "policy/harness.h"
#include "policy/outlets.h"
#include "proto/jail.h"
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
	const char *live;   /* of the agent that waits for this run, or NULL */
	bool commits;       /* it works in a checkout: git is told who it is */
};

struct plan {
	const struct driver *driver;   /* static */
	struct driver_command command; /* owned */
	struct driver_run *run;        /* owned */
	uint32_t enforced;       /* what the agent cannot and is done here: bits of enum ability */
	char **env;              /* owned: the whole environment */
	char **verify_env;       /* owned: of the check; NULL: there is none */
	char *backend, *version; /* owned; version may be NULL */
	char policy[NAME_MAX_LEN];
	uint32_t policy_index;
	uint64_t policy_generation;
	uint32_t layers_wanted;  /* bits the policy requires or warns about */
	struct limits limits;    /* in force: the policy's, narrowed */
	struct limits narrow;    /* asked of agentboxd */
	struct outlets outlets;  /* likewise: what goes out */
	struct jail_keeps keeps; /* likewise: what it cannot write */
	struct budget budget;    /* likewise: of the run, narrower than the policy's */
	bool is_volatile;        /* nothing of a former run may be there */
	bool agent_files;        /* the agent's files at /opt/agent */
	uint32_t exec_flags;     /* JAIL_MAKE_ROOT, _ACP, _SECRETS: how it is started */
	uint64_t timeout_ms;
	uint64_t output_bytes; /* 0: no limit */
	bool warm;             /* its agent is to stay */
	char key[DIGEST_TEXT]; /* "", or what two runs must have in common to share an agent */
};

/* 0 and the limits in force; -ENOENT, -ENOEXEC, -ENOPKG: what cannot be honoured, and why. */
MUST_USE int plan_check(struct daemon *d, struct harness *h, struct limits *ret, struct err *e);
/* The sink must live as long as the plan. */
MUST_USE int plan_make(struct daemon *d, struct harness *h, const struct plan_input *in,
        struct event_sink *sink, struct plan *ret, struct err *e);
void plan_done(struct plan *p); /* zeroed is fine */
/* plan.key alone. */
MUST_USE int plan_key(struct daemon *d, struct harness *h, const struct plan_input *in,
        char ret[DIGEST_TEXT], struct err *e);

#endif
