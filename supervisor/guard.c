#include "supervisor/guard.h"

#include "base/mem.h"
#include "policy/harness.h"
#include "policy/pattern.h"

#include <assert.h>
#include <stdio.h>

struct guard {
	struct patterns *patterns; /* owned */
	size_t *numbers;           /* owned: of each pattern, in its list of rules */
	const char *list;          /* static */
	int found;
	char rule[32];
};

static bool takes(const struct harness_rule *rule, enum guard_at at)
{
	return at == GUARD_INPUT || (at == GUARD_TEXT ? rule->in_text : rule->in_artifacts);
}

bool guard_any(const struct harness *h, enum guard_at at)
{
	bool input = at == GUARD_INPUT;
	const struct harness_rule *rules = input ? h->guard_input : h->guard_output;
	size_t n = input ? h->nguard_input : h->nguard_output;
	for (size_t i = 0; i < n; i++)
		if (takes(&rules[i], at))
			return true;
	return false;
}

struct guard *guard_new(const struct harness *h, enum guard_at at)
{
	bool input = at == GUARD_INPUT;
	const struct harness_rule *rules = input ? h->guard_input : h->guard_output;
	size_t nrules = input ? h->nguard_input : h->nguard_output, n = 0;
	const char **texts = xcalloc(nrules + 1, sizeof(*texts));
	size_t *numbers = xcalloc(nrules + 1, sizeof(*numbers));
	for (size_t i = 0; i < nrules; i++)
		if (takes(&rules[i], at)) {
			numbers[n] = i;
			texts[n++] = rules[i].deny;
		}
	struct guard *g = NULL;
	if (n) {
		struct err e;
		g = xnew(struct guard);
		g->patterns = patterns_new(texts, n, &e);
		assert(g->patterns); /* harness_parse has made it of the same texts */
		g->numbers = take(numbers);
		g->list = input ? "input" : "output";
		guard_begin(g);
	}
	free(texts);
	free(numbers);
	return g;
}

void guard_free(struct guard *g)
{
	if (!g)
		return;
	patterns_free(g->patterns);
	free(g->numbers);
	free(g);
}

void guard_begin(struct guard *g)
{
	patterns_begin(g->patterns);
	g->found = PATTERN_NONE;
}

static bool denied(struct guard *g, int found)
{
	g->found = found;
	return found != PATTERN_NONE;
}

bool guard_feed(struct guard *g, const char *p, size_t n)
{
	return denied(g, patterns_feed(g->patterns, p, n));
}

bool guard_end(struct guard *g)
{
	return denied(g, patterns_end(g->patterns));
}

bool guard_denies(struct guard *g, const char *p, size_t n)
{
	return g && denied(g, patterns_find(g->patterns, p, n));
}

const char *guard_rule(struct guard *g)
{
	if (g->found < 0)
		return "cost";
	(void)snprintf(g->rule, sizeof(g->rule), "%s[%zu]", g->list, g->numbers[g->found]);
	return g->rule;
}
