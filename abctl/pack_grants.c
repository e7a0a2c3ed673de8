#include "abctl/pack_grants.h"
#include "abctl/fail.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/wish.h"

#include <stdlib.h>
#include <string.h>

enum { GRANTS_MAX = 256, WORDS_MAX = 16 << 10 };

static size_t count(const struct pack_grants *g)
{
	size_t n = 0;
	while (g->list && g->list[n])
		n++;
	return n;
}

static bool granted(const struct pack_grants *g, const char *wish)
{
	for (char **x = g->list; *x; x++)
		if (wish_covered(wish, *x))
			return true;
	return false;
}

static bool wished(const struct pack_facts *f, const char *grant)
{
	for (size_t i = 0; i < f->nwishes; i++)
		if (wish_covered(f->wishes[i].wish, grant))
			return true;
	return false;
}

static int add(struct pack_grants *g, const char *text)
{
	size_t n = count(g);
	for (size_t i = 0; i < n; i++)
		if (strcmp(g->list[i], text) == 0)
			return 0;
	if (n == GRANTS_MAX)
		return fail_usage("more than %d grants", GRANTS_MAX);
	g->list[n] = xstrdup(text);
	return 0;
}

static int add_given(struct pack_grants *g, const char *text, const struct pack_facts *f)
{
	if (wished(f, text)) /* a URL may have a comma in it */
		return add(g, text);
	auto_free char *words = xstrdup(text);
	char *rest = words;
	for (char *word; (word = strsep(&rest, ","));) {
		if (!wished(f, word))
			return fail_usage("--grant %s: nothing in the pack asks for that", word);
		int code = add(g, word);
		if (code)
			return code;
	}
	return 0;
}

static bool asked_before(const struct pack_facts *f, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (strcmp(f->wishes[k].wish, f->wishes[i].wish) == 0)
			return true;
	return false;
}

static int refuse(const struct pack_grants *g, const struct pack_facts *f)
{
	auto_buf struct buf words = BUF_INIT(WORDS_MAX);
	fail_note("this pack wants, beyond its jail:");
	for (size_t i = 0; i < f->nwishes; i++) {
		const char *wish = f->wishes[i].wish;
		bool has = granted(g, wish);
		fail_note("  %s (%s)%s", wish, f->wishes[i].at, has ? ", granted" : "");
		if (!has && !asked_before(f, i))
			buf_printf(&words, "%s%s", words.len ? "," : "", wish);
	}
	return fail_usage("pack '%s' is not installed as it is: grant what it wants, if it is to "
	                  "have it: --grant '%s'",
	        f->name, words.failed ? "..." : words.p);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int pack_grants_make(const struct opt_list *given, const struct json *old,
        const struct pack_facts *f, struct pack_grants *g)
{
	g->list = xcalloc(GRANTS_MAX + 1, sizeof(*g->list));
	int code = 0;
	for (int i = 0; i < given->n && code == 0; i++)
		code = add_given(g, given->v[i], f);
	const struct json *before = json_get(old, "grants");
	for (const struct json *x = json_first(before); x && code == 0; x = json_next(x))
		if (json_text(x) && wished(f, json_text(x)))
			code = add(g, json_text(x));
	for (size_t i = 0; i < f->nwishes && code == 0; i++)
		if (!granted(g, f->wishes[i].wish))
			code = refuse(g, f);
	qsort(g->list, count(g), sizeof(*g->list), by_text);
	return code;
}

bool pack_grants_same(const struct pack_grants *g, const struct json *list)
{
	size_t i = 0, n = count(g);
	for (const struct json *x = json_first(list); x; x = json_next(x), i++)
		if (i >= n || !json_text(x) || strcmp(json_text(x), g->list[i]) != 0)
			return false;
	return i == n;
}

void pack_grants_done(struct pack_grants *g)
{
	for (char **x = g->list; x && *x; x++)
		free(*x);
	free(g->list);
}
