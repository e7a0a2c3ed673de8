#include "base/json.h"
#include "base/mem.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
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
	return cJSON_IsString(in(j)) ? in(j)->valuestring : NULL;
}

const char *json_str(const struct json *j, const char *key, const char *dflt)
{
	const char *s = json_text(json_get(j, key));
	return s ? s : dflt;
}

bool json_number(const struct json *j, double *ret)
{
	if (!cJSON_IsNumber(in(j)) || !isfinite(in(j)->valuedouble))
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

/* ---- writing ---- */

static void put_hex(struct buf *to, unsigned c)
{
	buf_printf(to, "\\u%04x", c);
}

/* Length of the valid UTF-8 sequence at p (1-4), or 0. */
static size_t utf8_len(const unsigned char *p, size_t n)
{
	if (p[0] < 0x80)
		return 1;
	size_t k = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
	if (p[0] < 0xc2 || p[0] > 0xf4 || k > n)
		return 0;
	for (size_t i = 1; i < k; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
	        (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0; /* overlong, surrogate, beyond U+10FFFF */
	return k;
}

static void put_escaped(struct buf *to, unsigned char c)
{
	static const char named[] = "\"\\\b\f\n\r\t", letter[] = "\"\\bfnrt";
	const char *at = c ? strchr(named, c) : NULL;
	if (at) {
		buf_putc(to, '\\');
		buf_putc(to, letter[at - named]);
	} else {
		put_hex(to, c);
	}
}

static void put_string(struct buf *to, const char *s, size_t n)
{
	const unsigned char *p = (const unsigned char *)s;
	buf_putc(to, '"');
	for (size_t i = 0; i < n;) {
		size_t run = i;
		while (run < n && p[run] >= 0x20 && p[run] < 0x7f && p[run] != '"' &&
		        p[run] != '\\')
			run++;
		buf_put(to, s + i, run - i);
		i = run;
		if (i == n)
			break;
		size_t k = utf8_len(p + i, n - i);
		if (k > 1) {
			buf_put(to, s + i, k);
		} else if (k == 0) {
			buf_puts(to, "\xef\xbf\xbd");
			k = 1;
		} else {
			put_escaped(to, p[i]);
		}
		i += k;
	}
	buf_putc(to, '"');
}

static void begin(struct jw *w, const char *key)
{
	if (w->comma)
		buf_putc(w->to, ',');
	w->comma = true;
	if (key) {
		put_string(w->to, key, strlen(key));
		buf_putc(w->to, ':');
	}
}

void jw_open(struct jw *w, const char *key, char bracket)
{
	begin(w, key);
	buf_putc(w->to, bracket);
	w->comma = false;
}

void jw_close(struct jw *w, char bracket)
{
	buf_putc(w->to, bracket);
	w->comma = true;
}

void jw_bytes(struct jw *w, const char *key, const char *p, size_t n)
{
	begin(w, key);
	put_string(w->to, p, n);
}

void jw_str(struct jw *w, const char *key, const char *value)
{
	if (value)
		jw_bytes(w, key, value, strlen(value));
}

void jw_int(struct jw *w, const char *key, int64_t value)
{
	begin(w, key);
	buf_printf(w->to, "%" PRId64, value);
}

void jw_num(struct jw *w, const char *key, double value)
{
	begin(w, key);
	if (!isfinite(value))
		buf_puts(w->to, "null");
	else
		buf_printf(w->to, "%.15g", value);
}

void jw_bool(struct jw *w, const char *key, bool value)
{
	begin(w, key);
	buf_puts(w->to, value ? "true" : "false");
}

void jw_null(struct jw *w, const char *key)
{
	begin(w, key);
	buf_puts(w->to, "null");
}

void jw_tree(struct jw *w, const char *key, const struct json *value)
{
	begin(w, key);
	if (!value || json_print(value, w->to) < 0)
		buf_puts(w->to, "null");
}

void jw_raw(struct jw *w, const char *key, const char *p, size_t n)
{
	begin(w, key);
	buf_put(w->to, p, n);
}

void jw_members(struct jw *w, const char *p, size_t n)
{
	if (n == 0)
		return;
	begin(w, NULL);
	buf_put(w->to, p, n);
}
