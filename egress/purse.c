#include "egress/purse.h"

#include "base/clock.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

static int64_t today(void)
{
	return ledger_day(clock_wall_ms());
}

static struct account *open_account(
        struct ledger *l, enum budget_scope scope, const char *id, const struct spending *told)
{
	if (!id[0])
		return NULL;
	struct account *a = ledger_account(l, scope, id);
	spending_raise(account_spent(a, today()), told);
	return a;
}

void purse_begin(struct purse *p, const struct egress_jail *m, const struct policy *policy,
        struct ledger *l, int control)
{
	static const struct spending nothing;
	const struct jail_purse *from = &m->purse;
	bool same_day = from->day == today();
	*p = (struct purse){.control = control, .ledger = l, .jail = m->jail, .narrow = from->run};
	memcpy(p->session, m->session, sizeof(p->session));
	memcpy(p->user, from->user, sizeof(p->user));
	p->spent = m->spent;
	p->session_account = open_account(l, BUDGET_SESSION, p->session, &from->session);
	p->user_account =
	        open_account(l, BUDGET_USER, p->user, same_day ? &from->user_day : &nothing);
	for (uint32_t i = 0; same_day && i < policy->ninject; i++)
		ledger_unref(l, open_account(l, BUDGET_SECRET, policy->inject[i].secret,
		                        &from->secrets[i]));
}

static void flush(struct purse *p)
{
	uint32_t done = 0;
	while (done < p->nwaiting &&
	        msg_send(p->control, &p->waiting[done], sizeof(p->waiting[0]), NULL, 0) == 0)
		done++;
	p->nwaiting -= done;
	memmove(p->waiting, p->waiting + done, p->nwaiting * sizeof(p->waiting[0]));
	p->urgent = p->urgent && p->nwaiting;
	p->flushed_ms = clock_mono_ms();
	/* After them: who hears that a budget is met has been told of what used it up. */
	if (p->met_waiting && p->nwaiting == 0)
		p->met_waiting = msg_send(p->control, &p->met, sizeof(p->met), NULL, 0) < 0;
}

void purse_done(struct purse *p)
{
	flush(p);
	if (p->session_account)
		ledger_unref(p->ledger, p->session_account);
	if (p->user_account)
		ledger_unref(p->ledger, p->user_account);
}

/* ---- looking ---- */

static struct spending *spent_of(struct account *a)
{
	return a ? account_spent(a, today()) : NULL;
}

static void amount(uint64_t value, enum budget_kind kind, char to[32])
{
	if (kind == BUDGET_COST)
		snprintf(to, 32, "%.9g USD", (double)value / 1e6);
	else
		snprintf(to, 32, "%llu %s", (unsigned long long)value, budget_kind_name(kind));
}

static void explain(const struct purse *p, const struct spending *spent, struct purse_met *m)
{
	char text[32];
	amount(m->bound, m->kind, text);
	if (m->kind == BUDGET_COST && spent->sum.cost_micro < m->bound)
		snprintf(m->reason, sizeof(m->reason),
		        "budget: the price of %.40s is not known (prices: in agentboxd.yaml)",
		        p->unpriced[0] ? p->unpriced : "a model used");
	else
		snprintf(m->reason, sizeof(m->reason), "budget: %s of this %s are used up", text,
		        budget_scope_name(m->scope));
}

/* One question about all budgets. */
struct look {
	struct purse *purse;
	bool bytes_only;
	struct purse_met *met;
};

static bool is_met(const struct look *l, enum budget_scope scope, struct budget bound,
        const struct spending *spent)
{
	if (l->bytes_only)
		bound = (struct budget){.bytes = bound.bytes};
	int kind = spent ? budget_met(&bound, spent) : -1;
	if (kind < 0)
		return false;
	*l->met = (struct purse_met){.scope = scope,
	        .kind = (enum budget_kind)kind,
	        .bound = budget_of(&bound, (enum budget_kind)kind)};
	explain(l->purse, spent, l->met);
	return true;
}

static bool any_met(const struct look *l, const struct policy *policy, const char *secret)
{
	struct purse *p = l->purse;
	const struct budget *b = policy->budgets;
	if (is_met(l, BUDGET_RUN, budget_narrow(&b[BUDGET_RUN], &p->narrow), &p->spent) ||
	        is_met(l, BUDGET_SESSION, b[BUDGET_SESSION], spent_of(p->session_account)) ||
	        is_met(l, BUDGET_USER, b[BUDGET_USER], spent_of(p->user_account)))
		return true;
	if (!secret[0])
		return false;
	struct account *a = ledger_account(p->ledger, BUDGET_SECRET, secret);
	bool met = is_met(l, BUDGET_SECRET, b[BUDGET_SECRET], spent_of(a));
	ledger_unref(p->ledger, a);
	return met;
}

static void tell_met(struct purse *p, const struct purse_met *m)
{
	uint32_t bit = 1u << (m->scope * BUDGET_KINDS_COUNT + m->kind);
	if ((p->told & bit) || p->met_waiting)
		return;
	p->told |= bit;
	p->met = (struct jail_budget){.head.type = EGRESS_BUDGET,
	        .jail = p->jail,
	        .scope = m->scope,
	        .kind = m->kind,
	        .bound = m->bound};
	memcpy(p->met.reason, m->reason, sizeof(m->reason));
	p->met_waiting = true;
	flush(p);
}

static bool allows(struct purse *p, const struct policy *policy, const char *secret,
        bool bytes_only, struct purse_met *ret)
{
	const struct look l = {.purse = p, .bytes_only = bytes_only, .met = ret};
	if (!any_met(&l, policy, secret))
		return true;
	tell_met(p, ret);
	return false;
}

bool purse_allows(
        struct purse *p, const struct policy *policy, const char *secret, struct purse_met *ret)
{
	return allows(p, policy, secret, false, ret);
}

bool purse_may_move(struct purse *p, const struct policy *policy, const char *secret)
{
	struct purse_met met = {0};
	return allows(p, policy, secret, true, &met);
}

/* ---- counting ---- */

static void add_to(struct account *a, const struct spending *s)
{
	if (a)
		spending_add(account_spent(a, today()), s);
}

static void add_all(struct purse *p, const char *secret, const struct spending *s)
{
	spending_add(&p->spent, s);
	add_to(p->session_account, s);
	add_to(p->user_account, s);
	if (secret[0]) {
		struct account *a = ledger_account(p->ledger, BUDGET_SECRET, secret);
		add_to(a, s);
		ledger_unref(p->ledger, a);
	}
}

static struct jail_usage *sum_for(struct purse *p, const char *secret)
{
	for (uint32_t i = 0; i < p->nwaiting; i++)
		if (strcmp(p->waiting[i].secret, secret) == 0)
			return &p->waiting[i];
	if (p->nwaiting == PURSE_WAITING)
		return &p->waiting[PURSE_WAITING - 1];
	struct jail_usage *u = &p->waiting[p->nwaiting++];
	*u = (struct jail_usage){.head.type = EGRESS_USAGE, .jail = p->jail};
	memcpy(u->session, p->session, sizeof(u->session));
	memcpy(u->user, p->user, sizeof(u->user));
	(void)str_copy(u->secret, sizeof(u->secret), secret);
	return u;
}

void purse_count_bytes(struct purse *p, const char *secret, uint64_t n)
{
	const struct spending s = {.sum.bytes = n};
	add_all(p, secret, &s);
	spending_add(&sum_for(p, secret)->spent, &s);
}

void purse_spend(struct purse *p, const char *secret, const char *model,
        const struct tokens *tokens, const struct spending *spent)
{
	add_all(p, secret, spent);
	if (spent->unpriced)
		(void)str_copy(p->unpriced, sizeof(p->unpriced), model);
	struct jail_usage *u = sum_for(p, secret);
	tokens_add(&u->tokens, tokens);
	spending_add(&u->spent, spent);
	p->urgent = true;
	flush(p);
}

void purse_tick(struct purse *p)
{
	bool bytes = p->nwaiting && clock_mono_ms() - p->flushed_ms >= PURSE_BYTES_MS;
	if (p->urgent || p->met_waiting || bytes)
		flush(p);
}
