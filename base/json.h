/*
 * json.h - reading JSON into a tree, and writing JSON as bytes.
 *
 * The tree is cJSON's, hidden here so that one file knows it.  Depth and the
 * number of values are limited; nothing after the document but white space is
 * accepted.  Accessors accept NULL and wrong types, and then give the default:
 * agents' output is data, not a contract.
 *
 * The writer appends to a buf, one encode per event, and keeps the commas.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json; /* a value in a tree; only the root is owned */

/* ---- reading ---- */

/* Returns owned, or NULL with *e: -EINVAL (byte offset of the fault), -E2BIG (too many values). */
struct json *json_parse(const char *p, size_t n, struct err *e);
/* A NUL in it, as a byte or an escape, would end a text early: what strangers send is looked at. */
bool json_has_nul(const char *p, size_t n);
/* The same of a fragment as jw_members takes it: the object that has these members. */
struct json *json_parse_members(const char *p, size_t n);
void json_free(struct json *root); /* NULL is fine */
static inline void auto_json_(struct json **j)
{
	json_free(*j);
}
#define auto_json __attribute__((cleanup(auto_json_)))

/* Case-sensitive member, or NULL. */
const struct json *json_get(const struct json *j, const char *key);
/* Path of members: json_path(j, "message", "usage", NULL). */
const struct json *json_path(const struct json *j, ...) __attribute__((sentinel));
const char *json_str(const struct json *j, const char *key, const char *dflt);
double json_num(const struct json *j, const char *key, double dflt);
int64_t json_int(const struct json *j, const char *key, int64_t dflt);
bool json_bool(const struct json *j, const char *key, bool dflt);
/* The value itself rather than a member. */
const char *json_text(const struct json *j); /* NULL unless a string */
bool json_number(const struct json *j, double *ret);
bool json_is_object(const struct json *j);
bool json_is_array(const struct json *j);
bool json_is_null(const struct json *j);
bool json_is_bool(const struct json *j, bool *ret);
/* Members or elements in order: for (it = json_first(a); it; it = json_next(it)). */
const struct json *json_first(const struct json *j);
const struct json *json_next(const struct json *j);
const char *json_key(const struct json *j); /* name of a member, or NULL */
/* Compact text of the value, appended. */
int json_print(const struct json *j, struct buf *to);

/* Can jw_bytes write it as it is: UTF-8 without NUL? */
bool json_writable(const char *p, size_t n);

/* ---- writing ---- */

struct jw {
	struct buf *to; /* borrowed: for the life of the writer */
	bool comma;     /* a comma is due before the next member */
};

#define JW_INIT(buffer)                                                                            \
	{                                                                                          \
		.to = (buffer), .comma = false                                                     \
	}

/* key may be NULL inside arrays and at the top. */
void jw_open(struct jw *w, const char *key, char bracket);     /* '{' or '[' */
void jw_close(struct jw *w, char bracket);                     /* '}' or ']' */
void jw_str(struct jw *w, const char *key, const char *value); /* NULL value: nothing written */
/* Any bytes: invalid UTF-8 becomes U+FFFD, NUL becomes \u0000. */
void jw_bytes(struct jw *w, const char *key, const char *p, size_t n);
void jw_int(struct jw *w, const char *key, int64_t value);
void jw_num(struct jw *w, const char *key, double value);
void jw_bool(struct jw *w, const char *key, bool value);
/* NULL-terminated texts as an array; NULL: nothing written. */
void jw_texts(struct jw *w, const char *key, char *const *list);
void jw_null(struct jw *w, const char *key);
void jw_tree(struct jw *w, const char *key, const struct json *value); /* NULL: null */
/* Bytes that are already JSON. */
void jw_raw(struct jw *w, const char *key, const char *p, size_t n);
/* A fragment of members without braces ("a":1,"b":2); empty is fine. */
void jw_members(struct jw *w, const char *p, size_t n);

#endif
