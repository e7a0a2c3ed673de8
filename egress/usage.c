#include "egress/usage.h"
#include "base/clock.h"
#include "base/mem.h"

#include <errno.h>
#include <string.h>

static const struct rule_usage *same(const struct usage *u, const char *rule)
{
	for (uint32_t i = 0; i < u->n; i++)
		if (strcmp(u->of[i].rule, rule) == 0)
			return &u->of[i];
	return NULL;
}

void usage_follow(struct usage *u, const struct policy *p)
{
	struct usage next = {.of = xcalloc(p->nrules + 1, sizeof(*next.of)), .n = p->nrules};
	for (uint32_t i = 0; i < p->nrules; i++) {
		char rule[RULE_TEXT_MAX];
		rule_text(&p->rules[i], rule);
		const struct rule_usage *had = same(u, rule);
		if (had)
			next.of[i] = *had;
		memcpy(next.of[i].rule, rule, sizeof(rule));
	}
	free(u->of);
	*u = next;
}

void usage_done(struct usage *u)
{
	free(u->of);
	*u = (struct usage){0};
}

static void refill(struct rule_usage *r, uint64_t rate)
{
	int64_t now = clock_mono_ms(), most = (int64_t)(rate / (1000 / USAGE_WAIT_MS)) + 1;
	int64_t passed = r->filled_ms ? now - r->filled_ms : USAGE_WAIT_MS;
	if (passed > USAGE_WAIT_MS)
		passed = USAGE_WAIT_MS;
	if (passed <= 0)
		return;
	r->allowance += (int64_t)(rate * (uint64_t)passed / 1000);
	if (r->allowance > most)
		r->allowance = most;
	r->filled_ms = now;
}

ssize_t usage_allow(struct usage *u, const struct policy *p, int rule, size_t want)
{
	const struct policy_rule *says = &p->rules[rule];
	struct rule_usage *r = &u->of[rule];
	if (says->bytes && r->bytes >= says->bytes)
		return -EDQUOT;
	if (says->bytes && want > says->bytes - r->bytes)
		want = says->bytes - r->bytes;
	if (says->rate_bps) {
		refill(r, says->rate_bps);
		if (r->allowance <= 0)
			return 0;
		if (want > (size_t)r->allowance)
			want = (size_t)r->allowance;
	}
	return (ssize_t)want;
}

void usage_count(struct usage *u, int rule, uint64_t bytes)
{
	u->of[rule].bytes += bytes;
	u->of[rule].allowance -= (int64_t)bytes;
}
