/* Accounts: what is told twice counts once, days end, what nobody refers to is forgotten last-used
 * last. */
#include "policy/ledger.h"

#include "base/mem.h"
#include "tests/t.h"

static void bounds(void)
{
	const struct budget root = {.requests = 10, .tokens = 100},
	                    asked = {.requests = 20, .tokens = 50, .cost_micro = 7};
	struct budget r = budget_narrow(&root, &asked);
	ok(r.requests == 10 && r.tokens == 50 && r.cost_micro == 7 && r.bytes == 0,
	        "the smaller of each; none is no bound");
	struct spending s = {
	        .sum = {.requests = 9, .tokens = 49, .cost_micro = 6, .bytes = 1u << 30}};
	ok(budget_met(&r, &s) == -1, "less than each");
	s.sum.tokens = 50;
	ok(budget_met(&r, &s) == BUDGET_TOKENS, "as much as one");
	s.sum.tokens = 0;
	s.unpriced = 1;
	ok(budget_met(&r, &s) == BUDGET_COST, "a token without a price uses up any cost");
	r.cost_micro = 0;
	ok(budget_met(&r, &s) == -1, "where there is a bound on it");
	r = (struct budget){.requests = 10, .tokens = 49};
	s.sum = (struct budget){.requests = 4, .tokens = 49, .bytes = 5};
	r = budget_rest(&r, &s);
	ok(r.requests == 6 && r.tokens == 1 && r.bytes == 0 && r.cost_micro == 0,
	        "what is left, and never no bound for want of it");
	is_str(budget_kind_name(BUDGET_COST), "cost", "names");
	is_str(budget_scope_name(BUDGET_SECRET), "secret", "of scopes too");
}

static void sums(void)
{
	struct spending a = {.sum.tokens = 5, .unpriced = 1},
	                b = {.sum = {.tokens = 3, .bytes = 2}};
	spending_add(&a, &b);
	ok(a.sum.tokens == 8 && a.sum.bytes == 2 && a.unpriced == 1, "added");
	spending_raise(&a, &b);
	ok(a.sum.tokens == 8 && a.sum.bytes == 2, "told less: nothing changes");
	b.sum.tokens = 9;
	b.unpriced = 4;
	spending_raise(&a, &b);
	spending_raise(&a, &b);
	ok(a.sum.tokens == 9 && a.unpriced == 4, "told more, twice: counted once");
	b.sum.tokens = UINT64_MAX;
	spending_add(&a, &b);
	ok(a.sum.tokens == UINT64_MAX, "no sum begins again at 0");
}

static void days(struct ledger *l)
{
	struct account *u = ledger_account(l, BUDGET_USER, "ann");
	struct account *s = ledger_account(l, BUDGET_SESSION, "ann");
	ok(u != s && u == ledger_account(l, BUDGET_USER, "ann"),
	        "one account of a scope and a name");
	ledger_unref(l, u);
	account_spent(u, 100)->sum.tokens = 7;
	account_spent(s, 100)->sum.tokens = 7;
	ok(account_spent(u, 100)->sum.tokens == 7, "a user's, today");
	ok(account_spent(u, 101)->sum.tokens == 0, "and tomorrow");
	ok(account_spent(s, 101)->sum.tokens == 7, "a session's has no days");
	ledger_unref(l, u);
	ledger_unref(l, s);
	ok(ledger_account(l, BUDGET_SESSION, "ann") == s && s->spent.sum.tokens == 7,
	        "it is kept without a reference");
	ok(ledger_day(86400000ll * 3 - 1) == 2 && ledger_day(86400000ll * 3) == 3, "days of UTC");
}

static void idle(struct ledger *l, struct account *held)
{
	char name[32];
	account_spent(ledger_account(l, BUDGET_USER, "first"), 1)->sum.bytes = 1;
	ledger_unref(l, ledger_account(l, BUDGET_USER, "first"));
	struct account *first = ledger_account(l, BUDGET_USER, "first");
	ledger_unref(l, first);
	ledger_unref(l, first);
	for (int i = 0; i < LEDGER_IDLE + 10; i++) {
		snprintf(name, sizeof(name), "user-%d", i);
		ledger_unref(l, ledger_account(l, BUDGET_USER, name));
	}
	ok(l->idle == LEDGER_IDLE, "no more than %d without a reference", LEDGER_IDLE);
	ok(account_spent(ledger_account(l, BUDGET_USER, "first"), 1)->sum.bytes == 0,
	        "the longest unused are forgotten");
	ok(ledger_account(l, BUDGET_SESSION, "ann") == held, "one that is referred to is not");
}

int main(void)
{
	struct ledger l;
	ledger_init(&l);
	bounds();
	sums();
	days(&l);
	idle(&l, ledger_account(&l, BUDGET_SESSION, "ann"));
	ledger_done(&l);
	return done();
}
