/*
 * fits.h - does an agent do what a harness asks of it?
 *
 * Asked by harness lint, by the lists of the daemon and by each run, with one
 * wording.  What the agent cannot and the supervisor enforces by itself is taken
 * out of what the driver is told.
 */
#ifndef POLICY_FITS_H
#define POLICY_FITS_H

#include "drivers/driver.h"
#include "policy/harness.h"

struct fit {
	const struct driver *driver; /* static */
	uint32_t can;                /* what the agent can: bits of enum ability */
	uint32_t enforced;           /* asked for beyond that: for the supervisor */
	/* What the driver is told, without what belongs to one run (prompt, resume, system_prompt
	 * with its parameters).  Borrowed: as long as harness and agent. */
	struct driver_spec spec;
	struct driver_mcp *mcp; /* owned: spec.mcp */
};
void fit_done(struct fit *f); /* zeroed is fine */

/* The line of the harness that asks for it. */
int fits_line(const struct harness *h, enum ability a);

/* 0, or -ENOEXEC with file, line, what cannot be done by which agent, and what can be done instead:
 * `others` are the agents there are. */
MUST_USE int fits(const struct harness *h, const struct agent *a, const struct agent *const *others,
        size_t nothers, struct fit *ret, struct err *e);

#endif
