#include "base/json.h"
#include "base/mem.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* struct json is cJSON under another name; the cast is confined to these two. */
static const cJSON *in(const struct json *j)
{
	return (const cJSON *)(const void *)j;
}

static const struct json *out(const cJSON *c)
{
	return (const struct json *)(const void *)c;
}

/* A tree takes eighty bytes for a value, of which two bytes of text can be one. */
enum { VALUES_MAX = 1 << 19 };

static bool too_wide(const char *p, size_t n)
{
	size_t values = 0;
	bool text = false;
	if (n < 2 * (size_t)VALUES_MAX)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (text && p[i] == '\\')
			i++;
		else if (p[i] == '"')
			text = !text;
		else if (!text)
			values += p[i] == ',' || p[i] == '[' || p[i] == '{';
	}
	return values > VALUES_MAX;
}

/* Is there a \u0000 that is an escape (an odd number of backslashes)? */
static bool escaped_nul(const char *p, size_t n)
{
	const char *end = p + n;
	for (const char *at = p; (at = memmem(at, (size_t)(end - at), "\\u0000", 6)); at++) {
		size_t slashes = 1;
		while (at - slashes >= p && *(at - slashes) == '\\')
			slashes++;
		if (slashes % 2 == 1)
			return true;
	}
	return false;
}

bool json_has_nul(const char *p, size_t n)
{
	return memchr(p, 0, n) || escaped_nul(p, n);
}

struct json *json_parse(const char *p, size_t n, struct err *e)
{
	if (too_wide(p, n)) {
		err_set(e, -E2BIG, "JSON of more than %d values", VALUES_MAX);
		return NULL;
	}
	const char *end = NULL;
	cJSON *c = cJSON_ParseWithLengthOpts(p, n, &end, false);
	if (!c) {
		err_set(e, -EINVAL, "invalid JSON at byte %zu",
		        end ? (size_t)(end - p) : (size_t)0);
		return NULL;
	}
	for (const char *q = end; q < p + n; q++)
		if (*q != ' ' && *q != '\t' && *q != '\r' && *q != '\n') {
			cJSON_Delete(c);
			err_set(e, -EINVAL, "text after the JSON value at byte %zu",
			        (size_t)(q - p));
			return NULL;
		}
	return (struct json *)(void *)c;
}

struct json *json_parse_members(const char *p, size_t n)
{
	auto_buf struct buf whole = BUF_INIT(n + 2);
	(void)buf_putc(&whole, '{'); /* fits */
	(void)buf_put(&whole, p, n);
	(void)buf_putc(&whole, '}');
	return json_parse(whole.p, whole.len, NULL);
}

void json_free(struct json *root)
{
	cJSON_Delete((cJSON *)(void *)root);
}

const struct json *json_get(const struct json *j, const char *key)
{
	return cJSON_IsObject(in(j)) ? out(cJSON_GetObjectItemCaseSensitive(in(j), key)) : NULL;
}

const struct json *json_path(const struct json *j, ...)
{
	va_list ap;
	va_start(ap, j);
	for (const char *key; j && (key = va_arg(ap, const char *));)
		j = json_get(j, key);
	va_end(ap);
	return j;
}

const char *json_text(const struct json *j)
{
	return j && cJSON_IsString(in(j)) ? in(j)->valuestring : NULL;
}

const char *json_str(const struct json *j, const char *key, const char *dflt)
{
	const char *s = json_text(json_get(j, key));
	return s ? s : dflt;
}

bool json_number(const struct json *j, double *ret)
{
	if (!j || !cJSON_IsNumber(in(j)) || !isfinite(in(j)->valuedouble))
		return false;
	*ret = in(j)->valuedouble;
	return true;
}

double json_num(const struct json *j, const char *key, double dflt)
{
	double v;
	return json_number(json_get(j, key), &v) ? v : dflt;
}

int64_t json_int(const struct json *j, const char *key, int64_t dflt)
{
	double v;
	/* 2^53: beyond it a JSON number is no longer an exact integer. */
	if (!json_number(json_get(j, key), &v) || fabs(v) > 9007199254740992.0)
		return dflt;
	return (int64_t)v;
}

bool json_is_bool(const struct json *j, bool *ret)
{
	if (!cJSON_IsBool(in(j)))
		return false;
	*ret = cJSON_IsTrue(in(j));
	return true;
}

bool json_bool(const struct json *j, const char *key, bool dflt)
{
	bool v;
	return json_is_bool(json_get(j, key), &v) ? v : dflt;
}

bool json_is_object(const struct json *j)
{
	return cJSON_IsObject(in(j));
}

bool json_is_array(const struct json *j)
{
	return cJSON_IsArray(in(j));
}

bool json_is_null(const struct json *j)
{
	return cJSON_IsNull(in(j));
}

const struct json *json_first(const struct json *j)
{
	return cJSON_IsObject(in(j)) || cJSON_IsArray(in(j)) ? out(in(j)->child) : NULL;
}

const struct json *json_next(const struct json *j)
{
	return out(in(j)->next);
}

const char *json_key(const struct json *j)
{
	return j ? in(j)->string : NULL;
}

int json_print(const struct json *j, struct buf *to)
{
	auto_free char *text = cJSON_PrintUnformatted(in(j));
	return text ? buf_puts(to, text) : -ENOMEM;
}

void jw_tree(struct jw *w, const char *key, const struct json *value)
{
	auto_free char *text = value ? cJSON_PrintUnformatted(in(value)) : NULL;
	if (text)
		jw_raw(w, key, text, strlen(text));
	else
		jw_null(w, key);
}
