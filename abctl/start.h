/*
 * start.h - asks the daemon for a run.
 */
#ifndef ABCTL_START_H
#define ABCTL_START_H

#include "abctl/verb.h"
#include "base/err.h"
#include "base/json.h"

#include <stddef.h>
#include <stdint.h>

struct checkout;
struct start {
	const char *session; /* USER/GOAL */
	const char *harness, *prompt;
	size_t prompt_len;
	const char *key; /* idempotency key; NULL: one of its own */
	int64_t priority;
	const struct opt_list *params; /* "K=V"; NULL: none */
	const struct checkout *repo;   /* NULL: none */
};

/* 0, or EXIT_USAGE after having said what is wrong with it: NULL, or no USER/GOAL. */
MUST_USE int start_session_check(const char *session);

/* 0 and the answer (owned; its runId is one), or an exit code after having said why. */
MUST_USE int start_run(const struct cli *cli, const struct start *s, struct json **ret);

#endif
