#include "supervisor/purses.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "supervisor/daemon.h"
#include "supervisor/store.h"

/* Days of users' and secrets' accounts that are kept. */
enum { KEEP_DAYS = 62 };

static int get(struct daemon *d, enum budget_scope scope, const char *id, int64_t day,
        struct spending *ret, struct err *e)
{
	return id[0] ? store_spent(d->store, scope, id, day, ret, e) : 0;
}

int purses_fill(struct daemon *d, const struct policy *p, const char *session, const char *user,
        struct jail_purse *ret, struct err *e)
{
	*ret = (struct jail_purse){.day = ledger_day(clock_wall_ms())};
	(void)str_copy(ret->user, sizeof(ret->user), user);
	int r = get(d, BUDGET_SESSION, session, 0, &ret->session, e);
	if (r == 0)
		r = get(d, BUDGET_USER, user, ret->day, &ret->user_day, e);
	for (uint32_t i = 0; r == 0 && i < p->ninject; i++)
		r = get(d, BUDGET_SECRET, p->inject[i].secret, ret->day, &ret->secrets[i], e);
	return r;
}

static void count(struct stats *s, const struct jail_used *x)
{
	s->metered_requests += x->new_spent.sum.requests;
	s->metered_input += x->new_tokens.input + x->new_tokens.stored;
	s->metered_output += x->new_tokens.output;
	s->metered_cached += x->new_tokens.cached;
	s->metered_cost_micro += x->new_spent.sum.cost_micro;
}

void purses_save(struct daemon *d, const struct jail_used *x)
{
	struct store_spent all[BUDGET_SCOPES];
	size_t n = 0;
	count(&d->stats, x);
	for (; n < x->naccounts && n < ARRAY_LEN(all); n++)
		all[n] = (struct store_spent){.scope = x->accounts[n].scope,
		        .id = x->accounts[n].id,
		        .day = x->accounts[n].day,
		        .spent = x->accounts[n].spent};
	if (n == 0)
		return;
	int64_t today = ledger_day(clock_wall_ms());
	if (d->spent_day != today)
		store_forget_spent(d->store, today - KEEP_DAYS);
	d->spent_day = today;
	store_spend(d->store, all, n);
}

struct budget purses_rest(
        const struct policy *p, const struct budget *own, const struct spending *spent)
{
	struct budget bound = budget_narrow(&p->budgets[BUDGET_RUN], own);
	return budget_rest(&bound, spent); /* all of it spent leaves the least there is */
}

void purses_usage(struct jw *w, const struct tokens *t, const struct spending *s)
{
	jw_int(w, "inputTokens", (int64_t)(t->input + t->cached + t->stored));
	jw_int(w, "outputTokens", (int64_t)t->output);
	jw_int(w, "cachedTokens", (int64_t)t->cached);
	if (s->unpriced == 0)
		jw_num(w, "costUsd", (double)s->sum.cost_micro / 1e6);
}
