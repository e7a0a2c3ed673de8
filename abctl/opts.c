#include "abctl/opts.h"
#include "base/mem.h"

#include <stdint.h>
#include <string.h>

enum { WORD_MAX = 32, CANDIDATES_MAX = 64 };

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Edit distance with neighbours swapped counted as one; words over WORD_MAX are never near. */
static size_t distance(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);
	if (n > WORD_MAX || m > WORD_MAX)
		return SIZE_MAX;
	size_t row[3][WORD_MAX + 1];
	for (size_t j = 0; j <= m; j++)
		row[0][j] = j;
	for (size_t i = 1; i <= n; i++) {
		size_t *now = row[i % 3], *last = row[(i - 1) % 3], *before = row[(i + 1) % 3];
		now[0] = i;
		for (size_t j = 1; j <= m; j++) {
			size_t d = last[j - 1] + (a[i - 1] != b[j - 1]);
			d = least(d, least(last[j], now[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d = least(d, before[j - 2] + 1);
			now[j] = d;
		}
	}
	return row[n % 3][m];
}

const char *opts_nearest(const char *word, const char *const *candidates)
{
	const char *best = NULL;
	size_t best_d = strlen(word) / 3 + 1; /* one slip in three letters is a slip */
	for (; *candidates; candidates++) {
		size_t d = distance(word, *candidates);
		if (d > best_d || d >= strlen(*candidates))
			continue;
		best = *candidates;
		if (d == 0)
			break;
		best_d = d - 1; /* only a nearer one replaces it */
	}
	return best;
}

struct parse {
	const struct opt *const *tables;
	void *const *dests;
	int argc;
	char **argv;
	int at; /* next argument */
	struct err *e;
	const struct opt *seen[CANDIDATES_MAX]; /* those with one value */
	size_t nseen;
};

static const struct opt *find(struct parse *p, const char *name, size_t n, char letter, void **dest)
{
	for (size_t t = 0; p->tables[t]; t++)
		for (const struct opt *o = p->tables[t]; o->name; o++)
			if (letter ? o->letter == letter
			           : strlen(o->name) == n && memcmp(o->name, name, n) == 0) {
				*dest = (char *)p->dests[t] + o->at;
				return o;
			}
	return NULL;
}

static int unknown(struct parse *p, const char *arg, size_t n)
{
	const char *names[CANDIDATES_MAX + 1];
	size_t k = 0;
	for (size_t t = 0; p->tables[t]; t++)
		for (const struct opt *o = p->tables[t]; o->name && k < CANDIDATES_MAX - 1; o++)
			names[k++] = o->name;
	names[k++] = "help";
	names[k] = NULL;
	auto_free char *word = xstrndup(arg, n);
	const char *near = word[0] == '-' && word[1] == '-' ? opts_nearest(word + 2, names) : NULL;
	if (near)
		return err_set(
		        p->e, -EINVAL, "unknown option '%.64s' (did you mean '--%s'?)", word, near);
	return err_set(p->e, -EINVAL, "unknown option '%.64s' (see --help)", word);
}

static int number(struct parse *p, const struct opt *o, const char *value, int64_t *ret)
{
	int64_t v = 0;
	const char *s = value;
	for (; *s >= '0' && *s <= '9' && v < INT64_MAX / 100; s++)
		v = v * 10 + (*s - '0');
	if (s == value || *s)
		return err_set(
		        p->e, -EINVAL, "option '--%s' takes a number, not '%.64s'", o->name, value);
	*ret = v;
	return 0;
}

/* Of two values one would be used, and nobody told which. */
static int once(struct parse *p, const struct opt *o)
{
	for (size_t i = 0; i < p->nseen; i++)
		if (p->seen[i] == o)
			return err_set(p->e, -EINVAL, "option '--%s' is given twice", o->name);
	if (p->nseen < CANDIDATES_MAX)
		p->seen[p->nseen++] = o;
	return 0;
}

/* `value` is what was glued to the option, or NULL. */
static int store(struct parse *p, const struct opt *o, void *dest, const char *value)
{
	if (o->kind == OPT_FLAG) {
		if (value)
			return err_set(p->e, -EINVAL, "option '--%s' takes no value", o->name);
		*(bool *)dest = true;
		return 0;
	}
	if (!value) {
		if (p->at >= p->argc)
			return err_set(p->e, -EINVAL, "option '--%s' needs %s", o->name, o->arg);
		value = p->argv[p->at++];
	}
	int r = o->kind == OPT_LIST ? 0 : once(p, o);
	if (r < 0)
		return r;
	if (o->kind == OPT_NUMBER)
		return number(p, o, value, dest);
	if (o->kind == OPT_TEXT) {
		*(const char **)dest = value;
		return 0;
	}
	struct opt_list *list = dest;
	if (list->n == OPT_LIST_MAX)
		return err_set(p->e, -E2BIG, "option '--%s' given more than %d times", o->name,
		        OPT_LIST_MAX);
	list->v[list->n++] = value;
	return 0;
}

static int take_long(struct parse *p, const char *arg)
{
	size_t n = strcspn(arg + 2, "=");
	void *dest = NULL;
	const struct opt *o = find(p, arg + 2, n, 0, &dest);
	if (!o)
		return unknown(p, arg, n + 2);
	return store(p, o, dest, arg[2 + n] == '=' ? arg + 3 + n : NULL);
}

static int take_short(struct parse *p, const char *arg)
{
	for (const char *c = arg + 1; *c; c++) {
		void *dest = NULL;
		const struct opt *o = find(p, NULL, 0, *c, &dest);
		if (!o)
			return unknown(p, arg, strlen(arg));
		if (o->kind != OPT_FLAG)
			return store(p, o, dest, c[1] ? c + 1 : NULL);
		int r = store(p, o, dest, NULL);
		if (r < 0)
			return r;
	}
	return 0;
}

static bool is_help(const char *arg)
{
	return strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0;
}

int opts_parse(const struct opt *const *tables, void *const *dests, bool stop, int argc,
        char **argv, struct opt_result *ret, struct err *e)
{
	struct parse p = {.tables = tables, .dests = dests, .argc = argc, .argv = argv, .e = e};
	struct opt_result res = {0};
	bool over = false;
	while (p.at < argc) {
		char *arg = argv[p.at++];
		if (over || arg[0] != '-' || !arg[1]) {
			argv[res.argc++] = arg;
			over = over || stop;
			continue;
		}
		if (strcmp(arg, "--") == 0) {
			over = true;
			continue;
		}
		if (is_help(arg)) {
			res.help = true;
			break;
		}
		int r = arg[1] == '-' ? take_long(&p, arg) : take_short(&p, arg);
		if (r < 0)
			return r;
	}
	*ret = res;
	return 0;
}
