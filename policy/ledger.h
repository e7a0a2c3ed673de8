/*
 * ledger.h - what was used up of budgets, and by whom.
 *
 * egress counts as things happen and refuses; agentboxd keeps the same accounts, so that an egress
 * that is started anew goes on where the last one was.  An account is of a session, or of a user
 * or a secret for one day (UTC); it is made when somebody asks for it.  Pure, but for memory.
 *
 * Amounts only grow, and whoever tells of an account that another knows too is believed where he
 * says more: told twice or late, nothing is counted twice.
 */
#ifndef POLICY_LEDGER_H
#define POLICY_LEDGER_H

#include "base/list.h"
#include "policy/policy.h"
#include "policy/prices.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	ACCOUNT_ID = 328, /* a tenant's user, the longest of them, with NUL */
	/* Accounts that nobody refers to are forgotten beyond this many, the longest unused first.
	 */
	LEDGER_IDLE = 4096,
};

struct spending {
	struct budget sum;
	uint64_t unpriced; /* tokens among them whose price is not known */
};

struct account {
	struct list link; /* in ledger.accounts, the last used at its end */
	uint32_t scope;   /* enum budget_scope */
	unsigned refs;
	char id[ACCOUNT_ID];
	int64_t day;
	struct spending spent; /* read it by account_spent */
};

struct ledger {
	struct list accounts;
	size_t idle;
};

/* Names of what a budget bounds, in the order of enum budget_kind. */
#define BUDGET_KINDS(X)                                                                            \
	X(REQUESTS, "requests", requests)                                                          \
	X(BYTES, "bytes", bytes)                                                                   \
	X(TOKENS, "tokens", tokens)                                                                \
	X(COST, "cost", cost_micro)
enum budget_kind {
#define BUDGET_KIND_ENUM(sym, name, field) BUDGET_##sym,
	BUDGET_KINDS(BUDGET_KIND_ENUM)
#undef BUDGET_KIND_ENUM
	        BUDGET_KINDS_COUNT
};
const char *budget_kind_name(uint32_t kind);
const char *budget_scope_name(uint32_t scope);
uint64_t budget_of(const struct budget *b, enum budget_kind kind);

/* The smaller of each; zero is no bound. */
struct budget budget_narrow(const struct budget *a, const struct budget *b);
/* What is left of each that is bound, and at least one: none would be no bound. */
struct budget budget_rest(const struct budget *bound, const struct spending *s);
/* The first that is used up, or -1.  Tokens without a price use up any cost. */
int budget_met(const struct budget *bound, const struct spending *s);
void spending_add(struct spending *to, const struct spending *more);
void spending_raise(struct spending *to, const struct spending *told); /* to the greater of each */

int64_t ledger_day(int64_t wall_ms);

/* ---- life ---- */
void ledger_init(struct ledger *l);
void ledger_done(struct ledger *l); /* no account is referred to any more */

/* ---- accounts ---- */
/* A reference, to be given back; `id` is cut to its field. */
struct account *ledger_account(struct ledger *l, enum budget_scope scope, const char *id);
void ledger_unref(struct ledger *l, struct account *a); /* NULL is fine */
/* What was spent so far: of today where it is by the day. */
struct spending *account_spent(struct account *a, int64_t today);

#endif
