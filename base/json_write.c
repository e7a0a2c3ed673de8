/* Apart from json.c because programs in jails link it, which have no cJSON. */
#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

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

bool json_writable(const char *p, size_t n)
{
	for (size_t i = 0, k; i < n; i += k) {
		k = p[i] ? utf8_len((const unsigned char *)p + i, n - i) : 0;
		if (!k)
			return false;
	}
	return true;
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

void jw_texts(struct jw *w, const char *key, char *const *list)
{
	if (!list)
		return;
	jw_open(w, key, '[');
	for (; *list; list++)
		jw_str(w, NULL, *list);
	jw_close(w, ']');
}

void jw_null(struct jw *w, const char *key)
{
	begin(w, key);
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
