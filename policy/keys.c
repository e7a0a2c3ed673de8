#include "policy/keys.h"
#include "base/mem.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { SUGGEST_MAX = 31, LIST_MAX = 1024 };

int keys_error(const struct keys_ctx *k, int line, const char *fmt, ...)
{
	char text[ERR_TEXT_MAX];
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return err_set(k->e, -EINVAL, "%s:%d: %s", k->file, line, text);
}

void keys_note(const struct keys_ctx *k, int line, const char *fmt, ...)
{
	if (!k->note)
		return;
	char text[ERR_TEXT_MAX];
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	k->note(k->note_ctx, k->file, line, text);
}

/* ---- suggestions ---- */

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static bool same_letter(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Edits (insert, remove, replace, swap of neighbours) from a to b, letter case aside. */
static size_t edits(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);
	size_t d[3][SUGGEST_MAX + 1];
	for (size_t j = 0; j <= m; j++)
		d[0][j] = j;
	for (size_t i = 1; i <= n; i++) {
		size_t *row = d[i % 3], *above = d[(i + 2) % 3], *above2 = d[(i + 1) % 3];
		row[0] = i;
		for (size_t j = 1; j <= m; j++) {
			row[j] = least(above[j - 1] + !same_letter(a[i - 1], b[j - 1]),
			        1 + least(above[j], row[j - 1]));
			if (i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) &&
			        same_letter(a[i - 2], b[j - 1]))
				row[j] = least(row[j], above2[j - 2] + 1);
		}
	}
	return d[n % 3][m];
}

/* Far enough to catch a slip, near enough not to guess: a third of the word, at least one. */
const char *keys_nearest(const char *text, const char *const *names)
{
	size_t n = strlen(text);
	if (n > SUGGEST_MAX)
		return NULL;
	size_t best = n / 3 + 2;
	const char *found = NULL;
	for (; *names; names++) {
		if (strlen(*names) > SUGGEST_MAX)
			continue;
		size_t cost = edits(text, *names);
		if (cost < best) {
			best = cost;
			found = *names;
		}
	}
	return found;
}

int keys_unknown(const struct keys_ctx *k, int line, const char *what, const char *text,
        const char *const *names)
{
	const char *near = keys_nearest(text, names);
	if (near)
		return keys_error(
		        k, line, "unknown %s '%.60s' (did you mean '%s'?)", what, text, near);
	char known[ERR_TEXT_MAX / 2] = "";
	for (size_t len = 0; *names && len + strlen(*names) + 3 < sizeof(known); names++)
		len += (size_t)snprintf(
		        known + len, sizeof(known) - len, "%s%s", len ? ", " : "", *names);
	return keys_error(k, line, "unknown %s '%.60s'; known: %s%s", what, text, known,
	        *names ? ", ..." : "");
}

/* ---- single values ---- */

/* What an error calls a value: by what its author has written. */
struct value_name {
	char text[96];
};

static struct value_name name_of(const struct yaml_node *n)
{
	struct value_name x;
	const char *key = n->key ? n->key : n->list;
	if (!key)
		(void)str_copy(x.text, sizeof(x.text), "the file");
	else
		(void)snprintf(
		        x.text, sizeof(x.text), "%s'%.60s'", n->key ? "" : "an entry of ", key);
	return x;
}

int keys_kind(const struct keys_ctx *k, const struct yaml_node *n, enum yaml_kind want)
{
	if (n->kind == want && !(want == YAML_SCALAR && yaml_is_null(n)))
		return 0;
	struct yaml_node wanted = {.kind = want};
	if (n->kind == YAML_SCALAR && yaml_is_null(n))
		return keys_error(k, n->key_line ? n->key_line : n->line,
		        "%s has no value: %s is expected", name_of(n).text,
		        yaml_kind_name(&wanted));
	return keys_error(k, n->line, "%s is %s: %s is expected", name_of(n).text,
	        yaml_kind_name(n), yaml_kind_name(&wanted));
}

static int fits_form(
        const struct keys_ctx *k, const struct yaml_node *n, form_fn *form, const char *want)
{
	if (!form || form(n->text))
		return 0;
	return keys_error(k, n->line, "%s: '%.80s' is not %s", name_of(n).text, n->text,
	        want ? want : "acceptable");
}

static int get_text(const struct keys_ctx *k, const struct key *row, const struct yaml_node *n)
{
	int r = keys_kind(k, n, YAML_SCALAR);
	return r < 0 ? r : fits_form(k, n, row->form, row->want);
}

static int get_bool(const struct keys_ctx *k, const struct yaml_node *n, bool *ret)
{
	int r = keys_kind(k, n, YAML_SCALAR);
	if (r < 0)
		return r;
	if (!n->quoted && strcmp(n->text, "true") == 0)
		*ret = true;
	else if (!n->quoted && strcmp(n->text, "false") == 0)
		*ret = false;
	else
		return keys_error(k, n->line, "%s: '%.40s' is neither true nor false",
		        name_of(n).text, n->text);
	return 0;
}

/* How each kind of number is read and what an error calls it. */
static const struct {
	int (*parse)(const char *text, uint64_t *ret);
	const char *want;
} numbers[] = {
        [KEY_U32] = {units_plain, "a number"},
        [KEY_MS] = {units_plain, "a number of milliseconds"},
        [KEY_TIME] = {units_time_ms, "a time with its unit (500ms, 30s, 10m, 1h)"},
        [KEY_COUNT] = {units_count, "a count (512, 200k, 1M)"},
        [KEY_BYTES] = {units_bytes, "a size: bytes, or with K, M, G or T (512M, 2G)"},
        [KEY_CPUS] = {units_milli, "a number of cpus (2, 1.5)"},
};

void keys_number_text(enum key_type type, uint64_t value, char out[UNITS_TEXT_MAX])
{
	if (type == KEY_BYTES)
		units_print_bytes(value, out);
	else if (type == KEY_CPUS)
		units_print_milli(value, out);
	else if (type == KEY_TIME)
		units_print_time_ms(value, out);
	else
		(void)snprintf(out, UNITS_TEXT_MAX, "%llu", (unsigned long long)value);
}

int keys_number(const struct key *row, const char *text, uint64_t *ret, struct err *e)
{
	uint64_t value = 0;
	int r = numbers[row->type].parse(text, &value);
	if (r == -ERANGE)
		return err_set(e, -EINVAL, "'%.40s' is too large", text);
	if (r < 0)
		return err_set(e, -EINVAL, "'%.40s' is not %s", text, numbers[row->type].want);
	char bound[UNITS_TEXT_MAX];
	if (value < row->min) {
		keys_number_text(row->type, row->min, bound);
		return err_set(e, -EINVAL, "%.40s is too small, the least is %s", text, bound);
	}
	if (row->max && value > row->max) {
		keys_number_text(row->type, row->max, bound);
		return err_set(e, -EINVAL, "%.40s is too large, the most is %s", text, bound);
	}
	*ret = value;
	return 0;
}

static int get_number(
        const struct keys_ctx *k, const struct key *row, const struct yaml_node *n, uint64_t *ret)
{
	int r = keys_kind(k, n, YAML_SCALAR);
	if (r < 0)
		return r;
	if (row->none && strcmp(n->text, "none") == 0) {
		*ret = 0;
		return 0;
	}
	struct err e = {0};
	if (keys_number(row, n->text, ret, &e) < 0)
		return keys_error(k, n->line, "%s: %s%s", name_of(n).text, e.text,
		        row->none ? " (or none)" : "");
	return 0;
}

static int get_enum(
        const struct keys_ctx *k, const struct key *row, const struct yaml_node *n, uint32_t *ret)
{
	int r = keys_kind(k, n, YAML_SCALAR);
	if (r < 0)
		return r;
	for (uint32_t i = 0; row->names[i]; i++)
		if (strcmp(row->names[i], n->text) == 0) {
			*ret = i;
			return 0;
		}
	char what[128];
	(void)snprintf(what, sizeof(what), "value of %s", name_of(n).text);
	return keys_unknown(k, n->line, what, n->text, row->names);
}

static int get_real(const struct keys_ctx *k, const struct yaml_node *n, double *ret)
{
	int r = keys_kind(k, n, YAML_SCALAR);
	if (r < 0)
		return r;
	if (units_real(n->text, ret) < 0)
		return keys_error(
		        k, n->line, "%s: '%.40s' is not a number", name_of(n).text, n->text);
	return 0;
}

int keys_counted(const struct keys_ctx *k, const struct yaml_node *n, size_t max)
{
	int r = keys_kind(k, n, YAML_SEQ);
	if (r == 0 && n->count > max)
		return keys_error(k, n->line, "%s has %zu entries, %zu are possible",
		        name_of(n).text, n->count, max);
	return r;
}

int keys_list(const struct keys_ctx *k, const struct yaml_node *seq, form_fn *form,
        const char *want, char ***ret)
{
	int r = keys_kind(k, seq, YAML_SEQ);
	if (r < 0)
		return r;
	if (seq->count > LIST_MAX)
		return keys_error(
		        k, seq->line, "%s has more than %d entries", name_of(seq).text, LIST_MAX);
	yaml_each (n, seq) {
		r = keys_kind(k, n, YAML_SCALAR);
		if (r == 0)
			r = fits_form(k, n, form, want);
		if (r < 0)
			return r;
	}
	char **list = xcalloc(seq->count + 1, sizeof(*list));
	size_t i = 0;
	yaml_each (n, seq)
		list[i++] = xstrdup(n->text);
	*ret = list;
	return 0;
}

void list_free(char **list)
{
	if (!list)
		return;
	for (char **p = list; *p; p++)
		free(*p);
	free(list);
}

/* ---- rows ---- */

static int set_text(
        const struct keys_ctx *k, const struct key *row, const struct yaml_node *n, char *at)
{
	int r = get_text(k, row, n);
	if (r < 0)
		return r;
	if (row->type == KEY_TEXT) {
		char **owned = (char **)(void *)at;
		free(*owned);
		*owned = xstrdup(n->text);
		return 0;
	}
	if (!str_copy(at, row->size, n->text))
		return keys_error(k, n->line, "%s is longer than %zu characters", name_of(n).text,
		        row->size - 1);
	return 0;
}

static int set_list(
        const struct keys_ctx *k, const struct key *row, const struct yaml_node *n, char *at)
{
	char **list = NULL;
	int r = keys_list(k, n, row->form, row->want, &list);
	if (r < 0)
		return r;
	char ***owned = (char ***)(void *)at;
	list_free(*owned);
	*owned = list;
	if (n->count < row->min)
		return keys_error(k, n->line, "%s is empty", name_of(n).text);
	return 0;
}

static int set_bool(
        const struct keys_ctx *k, const struct key *row, const struct yaml_node *n, char *at)
{
	bool value = false;
	int r = get_bool(k, n, &value);
	if (r < 0)
		return r;
	if (row->type == KEY_BOOL) {
		*(bool *)(void *)at = value;
		return 0;
	}
	uint32_t *bits = (uint32_t *)(void *)at;
	*bits = value ? *bits | row->bit : *bits & ~row->bit;
	return 0;
}

static int set_u32(
        const struct keys_ctx *k, const struct key *row, const struct yaml_node *n, char *at)
{
	uint64_t value = 0;
	int r = get_number(k, row, n, &value);
	if (r < 0)
		return r;
	if (value > UINT32_MAX)
		return keys_error(k, n->line, "%s: '%.40s' is too large", name_of(n).text, n->text);
	*(uint32_t *)(void *)at = (uint32_t)value;
	return 0;
}

int keys_set(const struct keys_ctx *k, const struct key *row, const struct yaml_node *n, void *obj)
{
	char *at = (char *)obj + row->offset;
	switch (row->type) {
	case KEY_TEXT:
	case KEY_FIXED:
		return set_text(k, row, n, at);
	case KEY_BOOL:
	case KEY_FLAG:
		return set_bool(k, row, n, at);
	case KEY_U32:
		return set_u32(k, row, n, at);
	case KEY_MS:
	case KEY_TIME:
	case KEY_COUNT:
	case KEY_BYTES:
	case KEY_CPUS:
		return get_number(k, row, n, (uint64_t *)(void *)at);
	case KEY_REAL:
		return get_real(k, n, (double *)(void *)at);
	case KEY_ENUM:
		return get_enum(k, row, n, (uint32_t *)(void *)at);
	case KEY_LIST:
		return set_list(k, row, n, at);
	case KEY_MAP:
		return keys_apply(k, row->sub, n, at);
	case KEY_OTHER:
		return row->set(k, n, obj);
	}
	return -EINVAL;
}

static const struct key *find(const struct key_table *t, const char *name)
{
	for (size_t i = 0; i < t->n; i++)
		if (strcmp(t->keys[i].name, name) == 0)
			return &t->keys[i];
	return NULL;
}

static int unknown_key(
        const struct keys_ctx *k, const struct key_table *t, const struct yaml_node *n)
{
	auto_free const char **names = xcalloc(t->n + 1, sizeof(*names));
	size_t at = 0;
	for (size_t i = 0; i < t->n; i++)
		if (!t->keys[i].alias_of)
			names[at++] = t->keys[i].name;
	return keys_unknown(k, n->key_line, "key", n->key, names);
}

static int apply_one(const struct keys_ctx *k, const struct key_table *t,
        const struct yaml_node *map, const struct yaml_node *n, void *obj)
{
	const struct key *row = find(t, n->key);
	if (!row)
		return unknown_key(k, t, n);
	if (row->alias_of) {
		const struct yaml_node *both = yaml_get(map, row->alias_of);
		if (both)
			return keys_error(k, n->key_line, "'%s' and '%s' (line %d) are one key",
			        n->key, row->alias_of, both->key_line);
		keys_note(k, n->key_line, "'%s' is called '%s' here", n->key, row->alias_of);
		row = find(t, row->alias_of);
	}
	return keys_set(k, row, n, obj);
}

int keys_apply(
        const struct keys_ctx *k, const struct key_table *t, const struct yaml_node *map, void *obj)
{
	int r = keys_kind(k, map, YAML_MAP);
	if (r < 0)
		return r;
	yaml_each (n, map) {
		r = apply_one(k, t, map, n, obj);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < t->n; i++)
		if (t->keys[i].required && !yaml_get(map, t->keys[i].name))
			return keys_error(k, map->line, "'%s' is missing", t->keys[i].name);
	return 0;
}

/* ---- the manual ---- */

static const char *type_text(const struct key *row)
{
	static const char *const texts[] = {
	        [KEY_TEXT] = "text",
	        [KEY_FIXED] = "text",
	        [KEY_BOOL] = "true, false",
	        [KEY_FLAG] = "true, false",
	        [KEY_U32] = "number",
	        [KEY_MS] = "milliseconds",
	        [KEY_TIME] = "time (30s, 10m)",
	        [KEY_COUNT] = "count (512, 200k)",
	        [KEY_BYTES] = "size (512M, 2G)",
	        [KEY_CPUS] = "cpus (2, 1.5)",
	        [KEY_REAL] = "number",
	        [KEY_ENUM] = "",
	        [KEY_LIST] = "list of texts",
	        [KEY_MAP] = "map",
	        [KEY_OTHER] = "",
	};
	return texts[row->type];
}

static void print_type(const struct key *row, struct buf *to)
{
	if (row->type == KEY_ENUM) {
		for (size_t i = 0; row->names[i]; i++)
			buf_printf(to, "%s%s", i ? ", " : "", row->names[i]);
		return;
	}
	buf_puts(to, row->want && *row->want ? row->want : type_text(row));
	if (row->none)
		buf_puts(to, " or none");
}

static void print_row(
        const struct key *row, const char *name, const char *dflt, bool mdoc, struct buf *to)
{
	if (mdoc) {
		buf_printf(to, ".It Cm %s\n%s\n.Pq ", name, row->doc);
		print_type(row, to);
		if (dflt)
			buf_printf(to, "; default: %s", dflt);
		buf_puts(to, "\n");
		return;
	}
	buf_printf(to, "| `%s` | ", name);
	print_type(row, to);
	buf_printf(to, " | %s | %s |\n", dflt ? dflt : "", row->doc);
}

/* A map with a default of its own (narrow.limits: the policy's) has it for all below it. */
static void print_rows(
        const struct key_table *t, const char *prefix, const char *dflt, bool mdoc, struct buf *to)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct key *row = &t->keys[i];
		if (row->alias_of)
			continue;
		auto_free char *name = xasprintf("%s%s", prefix, row->name);
		if (row->doc)
			print_row(row, name, dflt ? dflt : row->dflt, mdoc, to);
		if (row->sub) {
			bool entries = row->type == KEY_OTHER;
			auto_free char *below = xasprintf("%s%s", name, entries ? "[]." : ".");
			const char *theirs = dflt ? dflt : entries ? NULL : row->dflt;
			print_rows(row->sub, below, theirs, mdoc, to);
		}
	}
}

void keys_print(const struct key_table *t, const char *prefix, bool mdoc, struct buf *to)
{
	buf_puts(to, mdoc ? ".Bl -tag -width Ds\n"
	                  : "| key | value | default | meaning |\n|---|---|---|---|\n");
	print_rows(t, prefix, NULL, mdoc, to);
	if (mdoc)
		buf_puts(to, ".El\n");
}
