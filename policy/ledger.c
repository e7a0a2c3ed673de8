#include "policy/ledger.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { DAY_MS = 24 * 60 * 60 * 1000 };

static const struct {
	const char *name;
	size_t offset;
} kinds[] = {
#define KIND_ROW(sym, name, field) {name, offsetof(struct budget, field)},
        BUDGET_KINDS(KIND_ROW)
#undef KIND_ROW
};
_Static_assert(sizeof(struct budget) == BUDGET_KINDS_COUNT * sizeof(uint64_t),
        "a bound without its row would not be held");

const char *budget_kind_name(uint32_t kind)
{
	return kind < BUDGET_KINDS_COUNT ? kinds[kind].name : "unknown";
}

const char *budget_scope_name(uint32_t scope)
{
	static const char *const names[] = {[BUDGET_RUN] = "run",
	        [BUDGET_SESSION] = "session",
	        [BUDGET_USER] = "user",
	        [BUDGET_SECRET] = "secret"};
	return scope < BUDGET_SCOPES ? names[scope] : "unknown";
}

uint64_t budget_of(const struct budget *b, enum budget_kind kind)
{
	uint64_t value;
	memcpy(&value, (const char *)b + kinds[kind].offset, sizeof(value));
	return value;
}

static void set(struct budget *b, enum budget_kind kind, uint64_t value)
{
	memcpy((char *)b + kinds[kind].offset, &value, sizeof(value));
}

struct budget budget_narrow(const struct budget *a, const struct budget *b)
{
	struct budget r;
	for (int i = 0; i < BUDGET_KINDS_COUNT; i++) {
		uint64_t x = budget_of(a, i), y = budget_of(b, i);
		set(&r, i, x && (!y || x < y) ? x : y);
	}
	return r;
}

struct budget budget_rest(const struct budget *bound, const struct spending *s)
{
	struct budget r;
	for (int i = 0; i < BUDGET_KINDS_COUNT; i++) {
		uint64_t most = budget_of(bound, i), used = budget_of(&s->sum, i);
		set(&r, i, most > used ? most - used : most ? 1 : 0);
	}
	return r;
}

int budget_met(const struct budget *bound, const struct spending *s)
{
	for (int i = 0; i < BUDGET_KINDS_COUNT; i++) {
		uint64_t most = budget_of(bound, i);
		if (most && (budget_of(&s->sum, i) >= most || (i == BUDGET_COST && s->unpriced)))
			return i;
	}
	return -1;
}

static uint64_t sum(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

void spending_add(struct spending *to, const struct spending *more)
{
	for (int i = 0; i < BUDGET_KINDS_COUNT; i++)
		set(&to->sum, i, sum(budget_of(&to->sum, i), budget_of(&more->sum, i)));
	to->unpriced = sum(to->unpriced, more->unpriced);
}

void spending_raise(struct spending *to, const struct spending *told)
{
	for (int i = 0; i < BUDGET_KINDS_COUNT; i++)
		if (budget_of(&told->sum, i) > budget_of(&to->sum, i))
			set(&to->sum, i, budget_of(&told->sum, i));
	if (told->unpriced > to->unpriced)
		to->unpriced = told->unpriced;
}

int64_t ledger_day(int64_t wall_ms)
{
	return wall_ms / DAY_MS;
}

/* ---- accounts ---- */

void ledger_init(struct ledger *l)
{
	list_init(&l->accounts);
	l->idle = 0;
}

static void forget(struct account *a)
{
	list_remove(&a->link);
	free(a);
}

void ledger_done(struct ledger *l)
{
	list_for_each (a, &l->accounts, struct account, link)
		forget(a);
	l->idle = 0;
}

static struct account *find(struct ledger *l, uint32_t scope, const char *id)
{
	list_for_each (a, &l->accounts, struct account, link) {
		if (a->scope == scope && strcmp(a->id, id) == 0)
			return a;
	}
	return NULL;
}

struct account *ledger_account(struct ledger *l, enum budget_scope scope, const char *id)
{
	char name[ACCOUNT_ID];
	(void)str_copy(name, sizeof(name), id);
	struct account *a = find(l, scope, name);
	if (a) {
		l->idle -= a->refs == 0;
		list_remove(&a->link);
	} else {
		a = xnew(struct account);
		a->scope = scope;
		memcpy(a->id, name, sizeof(name));
	}
	a->refs++;
	list_append(&l->accounts, &a->link);
	return a;
}

static void forget_oldest(struct ledger *l)
{
	list_for_each (a, &l->accounts, struct account, link) {
		if (a->refs == 0) {
			forget(a);
			l->idle--;
			return;
		}
	}
}

void ledger_unref(struct ledger *l, struct account *a)
{
	if (!a || --a->refs > 0)
		return;
	if (++l->idle > LEDGER_IDLE)
		forget_oldest(l);
}

struct spending *account_spent(struct account *a, int64_t today)
{
	bool daily = a->scope == BUDGET_USER || a->scope == BUDGET_SECRET;
	if (daily && a->day != today)
		a->spent = (struct spending){0};
	a->day = today;
	return &a->spent;
}
