/*
 * attempts.h - what the attempts of a run before the present one have used:
 * added up as they end, told in run.retry, read from there by the next supervisor.
 */
#ifndef SUPERVISOR_ATTEMPTS_H
#define SUPERVISOR_ATTEMPTS_H

#include "drivers/driver.h"
#include "policy/ledger.h"
#include "proto/jail.h"

struct json;
struct jw;

/* Zeroed: there were none. */
struct attempts {
	unsigned failed;           /* that count for retry.maxAttempts */
	struct driver_usage usage; /* as drivers told it */
	int64_t tool_calls;
	struct jail_resources used;
	struct tokens tokens; /* as egress metered it: */
	struct spending spent;
};

/* o NULL: it never came to an outcome.  tokens and spent: of all of them so far. */
void attempts_add(struct attempts *a, const struct driver_outcome *o,
        const struct jail_resources *used, const struct tokens *tokens,
        const struct spending *spent);
/* With those of the present one. */
struct driver_usage attempts_usage(const struct attempts *a, const struct driver_usage *now);
struct jail_resources attempts_used(const struct attempts *a, const struct jail_resources *now);

void attempts_write(const struct attempts *a, struct jw *w); /* the member soFar */
/* Of a run.retry; what is not there counts as nothing. */
void attempts_read(struct attempts *ret, const struct json *event);

#endif
