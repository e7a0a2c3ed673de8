/*
 * egress_totals.h - what a run sent out and was refused, by host: member
 * "egress" of its result.
 *
 * Bounded: EGRESS_HOSTS_KEPT hosts are told apart, the EGRESS_HOSTS_SHOWN of them
 * that moved most are written; the sums are of all.
 */
#ifndef SUPERVISOR_EGRESS_TOTALS_H
#define SUPERVISOR_EGRESS_TOTALS_H

#include "base/json.h"
#include "proto/jail.h"

enum { EGRESS_HOSTS_KEPT = 256, EGRESS_HOSTS_SHOWN = 32 };

struct egress_host {
	char *host; /* owned */
	unsigned port;
	uint64_t requests, denied, bytes_in, bytes_out;
};

/* Zeroed to begin with. */
struct egress_totals {
	uint64_t denied, allowed, bytes_in, bytes_out;
	struct egress_host *hosts; /* owned */
	size_t nhosts;
};

void egress_totals_done(struct egress_totals *t);
void egress_totals_add(struct egress_totals *t, const struct jail_egress *x);
/* The same from its event, as an earlier supervisor wrote it. */
void egress_totals_add_event(struct egress_totals *t, const struct json *event);
void egress_totals_write(struct egress_totals *t, struct jw *w);

#endif
