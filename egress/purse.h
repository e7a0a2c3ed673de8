/*
 * purse.h - what a jail has used up, and whether it may go on.
 *
 * A jail spends from its own budget and from the accounts of its session, its
 * user and the secret that a request needs, which it shares with other jails.
 * What it spent is told to agentboxd in sums: what does not fit into the
 * control socket waits for the next tick.
 *
 * A budget is looked at before a request, and for bytes all along.  What is
 * under way when tokens or cost are used up runs to its end.
 */
#ifndef EGRESS_PURSE_H
#define EGRESS_PURSE_H

#include "proto/egress.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	/* Sums by secret; with more at once, which takes new policies while agentboxd does not
	 * listen, the last one takes in the rest. */
	PURSE_WAITING = POLICY_INJECTS + 1,
	/* Bytes alone are told of this often. */
	PURSE_BYTES_MS = 2000,
};

/* A budget that is used up. */
struct purse_met {
	enum budget_scope scope;
	enum budget_kind kind;
	uint64_t bound;
	char reason[128];
};

/* Embedded in its jail. */
struct purse {
	int control;           /* borrowed: the process's socket */
	struct ledger *ledger; /* borrowed: likewise */
	uint64_t jail;
	char session[ID_MAX], user[ACCOUNT_ID];
	struct budget narrow; /* of the run */
	struct spending spent;
	struct account *session_account, *user_account; /* references; NULL: none */
	char unpriced[MODEL_MAX];                       /* the model without a price met last */
	struct jail_usage waiting[PURSE_WAITING];
	uint32_t nwaiting;
	bool urgent; /* more than bytes waits */
	int64_t flushed_ms;
	struct jail_budget met;
	bool met_waiting;
	uint32_t told; /* bits: budgets that were told of */
};

/* The accounts become what the message says of them, where that is more. */
void purse_begin(struct purse *p, const struct egress_jail *m, const struct policy *policy,
        struct ledger *l, int control);
void purse_done(struct purse *p); /* tells the rest */

/* May a request be made with this secret ("": none)?  False: a budget is used up, which is told. */
bool purse_allows(
        struct purse *p, const struct policy *policy, const char *secret, struct purse_met *ret);
/* May bytes be moved? */
bool purse_may_move(struct purse *p, const struct policy *policy, const char *secret);

void purse_count_bytes(struct purse *p, const char *secret, uint64_t n);
/* A request has begun, or an answer of this model ("": not known) has come. */
void purse_spend(struct purse *p, const char *secret, const char *model,
        const struct tokens *tokens, const struct spending *spent);
void purse_tick(struct purse *p); /* sends what waits and is due */

#endif
