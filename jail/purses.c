#include "jail/purses.h"
#include "base/clock.h"

#include <string.h>

static int64_t today(void)
{
	return ledger_day(clock_wall_ms());
}

static void raise_account(
        struct ledger *l, enum budget_scope scope, const char *id, const struct spending *told)
{
	if (!id[0])
		return;
	struct account *a = ledger_account(l, scope, id);
	spending_raise(account_spent(a, today()), told);
	ledger_unref(l, a);
}

void purses_told(struct ledger *l, const struct jail_purse *told, const char *session,
        const struct policy *policy)
{
	raise_account(l, BUDGET_SESSION, session, &told->session);
	if (told->day != today())
		return;
	raise_account(l, BUDGET_USER, told->user, &told->user_day);
	for (uint32_t i = 0; i < policy->ninject; i++)
		raise_account(l, BUDGET_SECRET, policy->inject[i].secret, &told->secrets[i]);
}

static void get(struct ledger *l, enum budget_scope scope, const char *id, struct spending *ret)
{
	if (!id[0])
		return;
	struct account *a = ledger_account(l, scope, id);
	*ret = *account_spent(a, today());
	ledger_unref(l, a);
}

void purses_fill(
        struct ledger *l, const struct jail *j, const struct policy *policy, struct egress_jail *to)
{
	struct jail_purse *p = &to->purse;
	memcpy(to->session, j->session, sizeof(to->session));
	memcpy(p->user, j->user, sizeof(p->user));
	p->run = j->budget;
	p->day = today();
	to->spent = j->spent;
	get(l, BUDGET_SESSION, j->session, &p->session);
	get(l, BUDGET_USER, j->user, &p->user_day);
	for (uint32_t i = 0; policy && i < policy->ninject; i++)
		get(l, BUDGET_SECRET, policy->inject[i].secret, &p->secrets[i]);
}

bool purses_usage_ok(const struct jail_usage *m, size_t n)
{
	return n == sizeof(*m) && msg_text_ok(m->session, sizeof(m->session)) &&
	       msg_text_ok(m->user, sizeof(m->user)) && msg_text_ok(m->secret, sizeof(m->secret));
}

bool purses_budget_ok(const struct jail_budget *m, size_t n)
{
	return n == sizeof(*m) && m->scope < BUDGET_SCOPES && m->kind < BUDGET_KINDS_COUNT &&
	       msg_text_ok(m->reason, sizeof(m->reason));
}

static void add(struct ledger *l, enum budget_scope scope, const char *id,
        const struct spending *more, struct jail_used *ret)
{
	if (!id[0])
		return;
	struct account *a = ledger_account(l, scope, id);
	struct spending *s = account_spent(a, today());
	spending_add(s, more);
	struct jail_account *to = &ret->accounts[ret->naccounts++];
	to->scope = scope;
	to->day = scope == BUDGET_SESSION ? 0 : a->day;
	to->spent = *s;
	memcpy(to->id, a->id, sizeof(to->id));
	ledger_unref(l, a);
}

bool purses_used(const struct jail *j, struct jail_used *ret)
{
	static const struct spending nothing;
	*ret = (struct jail_used){
	        .head.type = JAIL_USED, .jail = j->id, .tokens = j->tokens, .spent = j->spent};
	return memcmp(&j->spent, &nothing, sizeof(nothing)) != 0;
}

void purses_take(
        struct ledger *l, struct jail *j, const struct jail_usage *m, struct jail_used *ret)
{
	*ret = (struct jail_used){.head.type = JAIL_USED};
	if (j) {
		tokens_add(&j->tokens, &m->tokens);
		spending_add(&j->spent, &m->spent);
		(void)purses_used(j, ret);
	}
	ret->new_tokens = m->tokens;
	ret->new_spent = m->spent;
	add(l, BUDGET_SESSION, m->session, &m->spent, ret);
	add(l, BUDGET_USER, m->user, &m->spent, ret);
	add(l, BUDGET_SECRET, m->secret, &m->spent, ret);
}
