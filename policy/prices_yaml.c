#include "policy/prices_yaml.h"
#include "base/mem.h"
#include "policy/builtin.h"

#include <string.h>

/* Of these, and what the file does not say. */
struct entry {
	double input, output, cached, stored;
};

#define PRICE_ROW(key, must, text)                                                                 \
	{                                                                                          \
		.name = #key, .type = KEY_REAL, .offset = offsetof(struct entry, key),             \
		.required = (must), .doc = (text)                                                  \
	}
static const struct key price_rows[] = {
        PRICE_ROW(input, true, "US dollars for a million tokens read anew."),
        PRICE_ROW(output, true, "Of those written, reasoning included."),
        PRICE_ROW(cached, false, "Of those read from a cache; not given: as input."),
        PRICE_ROW(stored, false, "Of those read anew and put into a cache; not given: as input."),
};
const struct key_table price_keys = KEY_TABLE(price_rows);

static bool micro(double dollars, uint64_t *ret)
{
	if (dollars < 0 || dollars * 1e6 > (double)PRICE_MAX)
		return false;
	*ret = (uint64_t)(dollars * 1e6 + 0.5);
	return true;
}

static int add(const struct keys_ctx *k, const struct yaml_node *n, struct daemon_config *to)
{
	if (to->nprices == POLICY_PRICES)
		return keys_error(k, n->line, "%d prices are possible, built-in ones included",
		        POLICY_PRICES);
	struct price *p = &to->prices[to->nprices];
	if (!n->key[0] || !form_printable(n->key) || !str_copy(p->model, sizeof(p->model), n->key))
		return keys_error(k, n->key_line, "'%.60s' is not a model's name or glob", n->key);
	struct entry e = {.cached = -1, .stored = -1};
	int r = keys_apply(k, &price_keys, n, &e);
	if (r < 0)
		return r;
	if (!yaml_get(n, "cached"))
		e.cached = e.input;
	if (!yaml_get(n, "stored"))
		e.stored = e.input;
	if (!micro(e.input, &p->input) || !micro(e.output, &p->output) ||
	        !micro(e.cached, &p->cached) || !micro(e.stored, &p->stored))
		return keys_error(k, n->line,
		        "'%s': a price is 0 to %d dollars for a million tokens", n->key,
		        (int)(PRICE_MAX / 1000000));
	to->nprices++;
	return 0;
}

int prices_add(const struct keys_ctx *k, const struct yaml_node *map, struct daemon_config *to)
{
	int r = keys_kind(k, map, YAML_MAP);
	yaml_each (it, map) {
		if (r == 0)
			r = keys_kind(k, it, YAML_MAP);
		if (r == 0)
			r = add(k, it, to);
	}
	return r;
}

int prices_builtin(struct daemon_config *to, struct err *e)
{
	const struct builtin *b = builtin_prices();
	const struct keys_ctx k = {.file = "built-in/prices.yaml", .e = e};
	auto_yaml struct yaml_doc *d =
	        yaml_parse(k.file, 1, b->text, (size_t)(b->end - b->text), e);
	return d ? prices_add(&k, yaml_root(d), to) : e->code;
}
