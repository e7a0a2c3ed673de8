#include "egress/charge.h"

#include "base/mem.h"

#include <string.h>

bool charge_begin(struct charge *c, struct purse *p, const struct policy *policy,
        const struct policy_inject *in, const struct http_head *h, struct purse_met *ret)
{
	static const struct tokens none;
	const struct spending one = {.sum.requests = 1};
	memset(c, 0, sizeof(*c));
	if (!purse_allows(p, policy, in->secret, ret))
		return false;
	c->open = true;
	c->asks = http_is(h->method, "POST");
	(void)str_copy(c->secret, sizeof(c->secret), in->secret);
	meter_model_of_path(h->target.p, h->target.n, c->path_model);
	meter_begin(&c->asked, METER_JSON);
	/* At its beginning, so that many at once are not one. */
	purse_spend(p, c->secret, "", &none, &one);
	return true;
}

void charge_asked(struct charge *c, const char *p, size_t n)
{
	if (!c->open)
		return;
	c->asked_bytes += n;
	if (!c->asked.model[0])
		meter_feed(&c->asked, p, n);
}

void charge_head(struct charge *c, int status, const struct http_field *fields, size_t n)
{
	struct http_text type = {0}, coding = {0};
	for (size_t i = 0; i < n; i++) {
		if (http_is(fields[i].name, "content-type"))
			type = fields[i].value;
		else if (http_is(fields[i].name, "content-encoding"))
			coding = fields[i].value;
	}
	c->status = status;
	c->coded = coding.n && !http_is(coding, "identity");
	meter_begin(&c->answer, c->coded ? METER_NONE : meter_form(type.p, type.n));
}

void charge_answered(struct charge *c, const char *p, size_t n)
{
	if (!c->open)
		return;
	c->answer_bytes += n;
	meter_feed(&c->answer, p, n);
}

static uint64_t tokens_in(uint64_t bytes)
{
	uint64_t n = bytes / METER_TEXT_BYTES + 1;
	return n < TOKENS_MAX ? n : TOKENS_MAX;
}

/* What the answer told; where it did not, by what went to and fro. */
static struct tokens count(const struct charge *c, bool whole)
{
	struct tokens t = {0};
	bool cut_early = c->status == 0 && !whole && c->asked_bytes;
	if (!c->asks || (c->status / 100 != 2 && !cut_early))
		return t;
	if (c->answer.rpc && !c->answer.told)
		return t;
	t = meter_tokens(&c->answer, whole);
	if (c->coded)
		t.output = tokens_in(c->answer_bytes);
	if (!c->answer.told && (!whole || t.output))
		t.input = tokens_in(c->asked_bytes);
	return t;
}

static const char *model_of(const struct charge *c)
{
	if (c->answer.model[0])
		return c->answer.model;
	return c->asked.model[0] ? c->asked.model : c->path_model;
}

void charge_settle(struct charge *c, struct purse *p, const struct price_list *l, bool whole)
{
	if (!c->open)
		return;
	c->open = false;
	const struct tokens t = count(c, whole);
	const char *model = model_of(c);
	const struct price *price = price_find(l->prices, l->n, model);
	struct spending s = {.sum.tokens = tokens_sum(&t)};
	if (s.sum.tokens == 0)
		return;
	if (price)
		s.sum.cost_micro = price_of(price, &t);
	else
		s.unpriced = s.sum.tokens;
	purse_spend(p, c->secret, model, &t, &s);
}
