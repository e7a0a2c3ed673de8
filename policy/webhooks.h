/*
 * webhooks.h - whom root wants told of runs: agentboxd.yaml's `webhooks` and `hooks`,
 * compiled.
 *
 * Pure.  Root says where it goes, what is told, of whose runs, and which secret signs it; a
 * harness may only name one of them.  egress sends (egress/hooks.h), agentboxd runs
 * commands (jail/hook_commands.c), the supervisor keeps account of what was delivered
 * (supervisor/webhooks.h).
 */
#ifndef POLICY_WEBHOOKS_H
#define POLICY_WEBHOOKS_H

#include "base/err.h"
#include "base/id.h"
#include "policy/forms.h"
#include "policy/rules.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What can be told.  What comes by the hundred (pieces of a message, thoughts, output) is for
 * those who follow a run. */
#define WEBHOOK_EVENTS(X)                                                                          \
	X(RUN_QUEUED, "run.queued")                                                                \
	X(RUN_STARTED, "run.started")                                                              \
	X(RUN_DONE, "run.done")                                                                    \
	X(PERMISSION_ASKED, "permission.asked")                                                    \
	X(PERMISSION_ANSWERED, "permission.answered")                                              \
	X(QUESTION_ASKED, "question.asked")                                                        \
	X(QUESTION_ANSWERED, "question.answered")                                                  \
	X(USER_MESSAGE, "user.message")                                                            \
	X(TOOL_CALL, "tool.call")                                                                  \
	X(TOOL_RESULT, "tool.result")                                                              \
	X(FILE_CHANGED, "file.changed")                                                            \
	X(PLAN_UPDATED, "plan.updated")                                                            \
	X(LIMIT_HIT, "limit.hit")                                                                  \
	X(EGRESS_DENIED, "egress.denied")                                                          \
	X(ERROR, "error")

enum webhook_event {
#define WEBHOOK_EVENT_ENUM(sym, name) WEBHOOK_##sym,
	WEBHOOK_EVENTS(WEBHOOK_EVENT_ENUM)
#undef WEBHOOK_EVENT_ENUM
	        WEBHOOK_EVENT_COUNT
};

enum {
	POLICY_WEBHOOKS = 16,
	WEBHOOK_GLOBS = 8,
	WEBHOOK_TIMEOUT_MAX_MS = 60000,
	WEBHOOK_DEFAULT = 1 << WEBHOOK_RUN_STARTED | 1 << WEBHOOK_RUN_DONE |
	                  1 << WEBHOOK_PERMISSION_ASKED | 1 << WEBHOOK_QUESTION_ASKED,
};

/* One that is called, or a command that is run: then `nargs` is not 0, and there is no URL and no
 * secret. */
struct webhook {
	char name[NAME_MAX_LEN];
	char url[POLICY_PATH_MAX];
	char secret[NAME_MAX_LEN];     /* that signs */
	char command[POLICY_PATH_MAX]; /* arguments, each with NUL */
	uint32_t events;               /* bits of enum webhook_event */
	uint32_t named_only;           /* 1: only runs whose harness names it */
	uint32_t nharnesses, nusers, ncidrs, nargs;
	char harnesses[WEBHOOK_GLOBS][NAME_MAX_LEN]; /* globs; none: every one */
	char users[WEBHOOK_GLOBS][NAME_MAX_LEN];
	struct cidr cidrs[RULE_CIDRS]; /* that are not public and that it may be at */
	uint64_t timeout_ms;           /* of one attempt */
	uint64_t first_ms, most_ms;    /* between attempts */
	uint64_t keep_ms;              /* an event that old is given up */
};

/* NULL-terminated. */
extern const char *const webhook_event_names[WEBHOOK_EVENT_COUNT + 1];
/* Bit of the event, or 0 where no webhook is ever told of it. */
uint32_t webhook_event_bit(const char *name, size_t n);

/* Index in all[n], or -ENOENT. */
int webhook_find(const struct webhook *all, size_t n, const char *name);
/* Does it want to be told of runs of that harness and user?  `names` are those that the harness
 * names; NULL-terminated, or NULL. */
bool webhook_takes(
        const struct webhook *w, const char *harness, const char *user, char *const *names);

/* Of some user's runs of that harness, if it names it. */
bool webhook_takes_harness(const struct webhook *w, const char *harness);

/* What keeps an URL with these networks from being called, or NULL. */
const char *webhook_url_refusal(const struct webhook *w);

/* How long attempts, pauses and what waits may take. */
bool webhook_times_fine(const struct webhook *w);

/* Everything a reader relies on.  `before` are those in front of it. */
MUST_USE int webhook_check(
        const struct webhook *w, const struct webhook *before, size_t n, struct err *e);

/* ---- the same on both sides: how long until the next attempt ---- */

/* After `failures` attempts (1: the first has failed); `random` is any number, for the jitter: the
 * pause is between half of it and all of it, and never shorter than `asked_ms` (of Retry-After; at
 * most an hour counts). */
int64_t webhook_pause_ms(
        const struct webhook *w, unsigned failures, uint32_t random, int64_t asked_ms);

#endif
