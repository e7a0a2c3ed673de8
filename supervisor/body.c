#include "supervisor/body.h"

#include "base/mem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PATH_MAX_TEXT = 128 };

struct json *body_parse(const char *p, size_t n, struct err *e)
{
	if (n == 0) {
		err_set(e, -EINVAL, "the body is empty; a JSON object is expected");
		return NULL;
	}
	if (json_has_nul(p, n)) {
		err_set(e, -EINVAL, "the body contains a NUL character");
		return NULL;
	}
	auto_json struct json *j = json_parse(p, n, e);
	if (j && !json_is_object(j)) {
		err_set(e, -EINVAL, "the body must be a JSON object");
		return NULL;
	}
	return take(j);
}

static bool has_type(const struct json *v, enum body_type t)
{
	bool b;
	double d;
	switch (t) {
	case BODY_STRING:
		return json_text(v);
	case BODY_INTEGER:
		return json_number(v, &d) && fabs(d) <= 9007199254740992.0 &&
		       d == (double)(int64_t)d;
	case BODY_NUMBER:
		return json_number(v, &d);
	case BODY_BOOL:
		return json_is_bool(v, &b);
	case BODY_OBJECT:
		return json_is_object(v);
	case BODY_ARRAY:
		return json_is_array(v);
	}
	return false;
}

static const char *type_name(enum body_type t)
{
	static const char *const names[] = {
	        [BODY_STRING] = "a string",
	        [BODY_INTEGER] = "an integer",
	        [BODY_NUMBER] = "a number",
	        [BODY_BOOL] = "true or false",
	        [BODY_OBJECT] = "an object",
	        [BODY_ARRAY] = "an array",
	};
	return names[t];
}

static void join(char to[PATH_MAX_TEXT], const char *path, const char *name)
{
	snprintf(to, PATH_MAX_TEXT, "%s%s%.64s", path, path[0] ? "." : "", name);
}

static const struct body_key *key_of(const char *name, const struct body_key *keys, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(keys[i].name, name) == 0)
			return &keys[i];
	return NULL;
}

static int unknown(const char *at, const struct body_key *keys, size_t n, struct err *e)
{
	char names[160] = "";
	for (size_t i = 0; i < n; i++) {
		size_t used = strlen(names);
		snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "", keys[i].name);
	}
	return err_set(e, -EINVAL, "%s: unknown field (known: %s)", at, names);
}

int body_check(const struct json *object, const char *path, const struct body_key *keys,
        size_t nkeys, struct err *e)
{
	char at[PATH_MAX_TEXT];
	for (const struct json *v = json_first(object); v; v = json_next(v)) {
		join(at, path, json_key(v));
		const struct body_key *k = key_of(json_key(v), keys, nkeys);
		if (!k)
			return unknown(at, keys, nkeys, e);
		if (json_get(object, k->name) != v)
			return err_set(e, -EINVAL, "%s: given twice", at);
		/* null is as good as absent: many clients write it so. */
		if (!has_type(v, k->type) && !(json_is_null(v) && !k->required))
			return err_set(e, -EINVAL, "%s: must be %s", at, type_name(k->type));
	}
	for (size_t i = 0; i < nkeys; i++) {
		join(at, path, keys[i].name);
		if (keys[i].required && !json_get(object, keys[i].name))
			return err_set(e, -EINVAL, "%s: missing (%s)", at, type_name(keys[i].type));
	}
	return 0;
}

const char **body_strings(const struct json *array, const char *path, size_t max, struct err *e)
{
	size_t n = 0;
	for (const struct json *v = json_first(array); v; v = json_next(v)) {
		if (!json_text(v)) {
			err_set(e, -EINVAL, "%s[%zu]: must be a string", path, n);
			return NULL;
		}
		if (++n > max) {
			err_set(e, -E2BIG, "%s: at most %zu are possible", path, max);
			return NULL;
		}
	}
	const char **list = xcalloc(n + 1, sizeof(*list));
	n = 0;
	for (const struct json *v = json_first(array); v; v = json_next(v))
		list[n++] = json_text(v);
	return list;
}
