/*
 * body.h - reading request bodies strictly: one JSON object with exactly the
 * members that are known, of the right types, and errors that name the path of
 * the bad member ("session.userId: must be a string").
 */
#ifndef SUPERVISOR_BODY_H
#define SUPERVISOR_BODY_H

#include "base/err.h"
#include "base/json.h"

#include <stddef.h>

enum body_type { BODY_STRING, BODY_INTEGER, BODY_NUMBER, BODY_BOOL, BODY_OBJECT, BODY_ARRAY };

struct body_key {
	const char *name;
	enum body_type type;
	bool required;
};

/* Returns owned: an object, or NULL with *e.  NUL characters are refused (raw and escaped): no
 * text of ours can hold one, and cutting it silently would change its meaning. */
struct json *body_parse(const char *p, size_t n, struct err *e);

/* `path` is the object's own ("" at the top), for messages. */
MUST_USE int body_check(const struct json *object, const char *path, const struct body_key *keys,
        size_t nkeys, struct err *e);

/* An array of strings as a NULL-terminated list of borrowed texts (the list is owned); NULL with
 * *e when an element is none, or there are more than max. */
const char **body_strings(const struct json *array, const char *path, size_t max, struct err *e);

#endif
