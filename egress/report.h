/*
 * report.h - telling agentboxd what was refused and what went out.
 *
 * Each jail has a small table of what it was told about lately.  The first
 * refusal of a kind is sent at once; repeats within a second are counted and
 * sent as one.  What does not fit into the control socket stays in the table
 * until the next tick: nothing blocks, and bytes that went out are never lost
 * from the sums.  A jail that invents new refusals without end ends up in one
 * line that counts them.
 */
#ifndef EGRESS_REPORT_H
#define EGRESS_REPORT_H

#include "proto/egress.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	REPORT_SLOTS = 24, /* kinds remembered per jail; the last two are for all others */
	REPORT_WINDOW_MS = 1000,
	REPORT_BURST = 50, /* events a jail may send at once, and 20 a second after that */
	REPORT_PER_SECOND = 20,
};

struct report_slot {
	struct jail_egress m; /* as last sent or to be sent; times: waiting, 0: nothing to send */
	int64_t sent_ms;
};

/* Embedded in its jail; zero it, set `jail` and `control`. */
struct report {
	int control; /* borrowed: the process's socket */
	uint64_t jail;
	int64_t filled_ms;
	int64_t millitokens;
	struct report_slot slots[REPORT_SLOTS];
};

void report_init(struct report *r, int control, uint64_t jail);

/* What was refused, or went out.  Borrowed for the call; `host` is cut to its field. */
struct report_of {
	const char *host;
	unsigned port;
	enum egress_protocol protocol;
	enum egress_remedy remedy; /* of a refusal */
	const struct policy *policy;
	int rule;           /* of the policy's rules, the one that decided; -1: none */
	const char *inject; /* host of the entry of `inject` that decided; or NULL */
};
void report_denied(struct report *r, const struct report_of *what, const char *reason);
void report_allowed(struct report *r, const struct report_of *what, const char *reason,
        uint64_t bytes_in, uint64_t bytes_out);

/* Sends what waits and is due.  `last`: due or not, the jail is going away. */
void report_flush(struct report *r, bool last);

#endif
