/*
 * keys.h - what a YAML map may hold, as a table; and the one loop that reads
 * by it.
 *
 * A row is a name, a type, where the value goes, its bounds, its default and
 * its one-line description.  The same rows parse a file, refuse what is not in
 * them ("unknown key 'memroy' (did you mean 'memory'?)"), and print the tables
 * of the manual.  Every message begins "file:line: ".
 *
 * Texts and lists that a row allocates belong to the object they go into.
 */
#ifndef POLICY_KEYS_H
#define POLICY_KEYS_H

#include "base/buf.h"
#include "base/err.h"
#include "policy/forms.h"
#include "policy/units.h"
#include "policy/yaml.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum key_type {
	KEY_TEXT,  /* char *: owned by the object */
	KEY_FIXED, /* char[size] inside the object */
	KEY_BOOL,  /* bool */
	KEY_FLAG,  /* `bit` of a uint32_t */
	KEY_U32,   /* uint32_t: a plain number */
	KEY_MS,    /* uint64_t: a plain number of milliseconds */
	KEY_TIME,  /* uint64_t, milliseconds: 500ms 30s 10m 1h */
	KEY_COUNT, /* uint64_t: 512, 200k */
	KEY_BYTES, /* uint64_t: 512M, 2G */
	KEY_CPUS,  /* uint64_t, thousandths: 1.5 */
	KEY_REAL,  /* double */
	KEY_ENUM,  /* uint32_t: index in `names` */
	KEY_LIST,  /* char **: owned, NULL-terminated */
	KEY_MAP,   /* `sub` applied to the same object, moved by `offset` */
	KEY_OTHER, /* `set` decides; `sub`, if any, describes its entries for the manual */
};

struct keys_ctx {
	const char *file;
	struct err *e;
	/* A remark that is no error; may be NULL. */
	void (*note)(void *ctx, const char *file, int line, const char *text);
	void *note_ctx;
};

struct key_table;
typedef int key_set_fn(const struct keys_ctx *k, const struct yaml_node *n, void *obj);

struct key {
	const char *name;
	enum key_type type;
	uint32_t bit;
	size_t offset, size;
	uint64_t min, max; /* numbers; max 0: no upper bound.  Lists: entries */
	bool required;
	bool none;                /* a limit: the word `none` stands for 0, no limit */
	form_fn *form;            /* texts and entries of lists */
	const char *want;         /* what `form` wants: "an absolute path" */
	const char *const *names; /* KEY_ENUM; NULL-terminated */
	const struct key_table *sub;
	key_set_fn *set;
	const char *alias_of; /* another row of this table: an older name of it */
	const char *dflt;     /* for the manual; NULL: none */
	const char *doc;
};

struct key_table {
	const struct key *keys;
	size_t n;
};
#define KEY_TABLE(rows)                                                                            \
	{                                                                                          \
		.keys = (rows), .n = sizeof(rows) / sizeof((rows)[0])                              \
	}

/* Applies every entry of `map` to obj.  0, or -EINVAL with e set; obj may then be half filled. */
MUST_USE int keys_apply(const struct keys_ctx *k, const struct key_table *t,
        const struct yaml_node *map, void *obj);
/* One entry by a row that is not in the map's table (entries of free-form maps). */
MUST_USE int keys_set(
        const struct keys_ctx *k, const struct key *row, const struct yaml_node *n, void *obj);

/* Returns -EINVAL with "file:line: ..." set. */
int keys_error(const struct keys_ctx *k, int line, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
void keys_note(const struct keys_ctx *k, int line, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
/* The one of the NULL-terminated `names` that may have been meant, or NULL. */
const char *keys_nearest(const char *text, const char *const *names);
/* "unknown WHAT 'text' (did you mean 'near'?)", the nearest of the NULL-terminated `names`. */
int keys_unknown(const struct keys_ctx *k, int line, const char *what, const char *text,
        const char *const *names);
/* The value must be of this kind: else an error that names the key. */
MUST_USE int keys_kind(const struct keys_ctx *k, const struct yaml_node *n, enum yaml_kind want);

/* The number that a text is by the row's type and bounds (`none` is the caller's affair).  0, or
 * -EINVAL with *e: "'512MB' is not a size ..." or "4K is too small, the least is 1M". */
MUST_USE int keys_number(const struct key *row, const char *text, uint64_t *ret, struct err *e);
/* A list of at most `max` entries. */
MUST_USE int keys_counted(const struct keys_ctx *k, const struct yaml_node *n, size_t max);

/* A number of this type as a file would say it. */
void keys_number_text(enum key_type type, uint64_t value, char out[UNITS_TEXT_MAX]);

/* A list of texts as an owned, NULL-terminated array. */
MUST_USE int keys_list(const struct keys_ctx *k, const struct yaml_node *seq, form_fn *form,
        const char *want, char ***ret);
void list_free(char **list); /* NULL is fine */

/* The table of the manual, dotted names; Markdown, or mdoc list items. */
void keys_print(const struct key_table *t, const char *prefix, bool mdoc, struct buf *to);

#endif
