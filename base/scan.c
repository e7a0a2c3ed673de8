#include "base/scan.h"

#include <string.h>

/* Each of these takes a place in text that ends at `end` and gives the place behind what it
 * recognises, or NULL. */

static const char *skip_space(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n'))
		p++;
	return p;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
	                              : -1;
}

static const char *skip_escape(const char *p, const char *end)
{
	if (p == end || !*p || !strchr("\"\\/bfnrtu", *p))
		return NULL;
	if (*p != 'u')
		return p + 1;
	if (end - p < 5)
		return NULL;
	for (int i = 1; i <= 4; i++)
		if (hex_digit(p[i]) < 0)
			return NULL;
	return p + 5;
}

static const char *skip_string(const char *p, const char *end)
{
	if (p == end || *p != '"')
		return NULL;
	for (p++; p && p < end;) {
		if (*p == '"')
			return p + 1;
		if ((unsigned char)*p < 0x20)
			return NULL;
		p = *p == '\\' ? skip_escape(p + 1, end) : p + 1;
	}
	return NULL;
}

static const char *skip_digits(const char *p, const char *end)
{
	const char *from = p;
	while (p < end && *p >= '0' && *p <= '9')
		p++;
	return p == from ? NULL : p;
}

static const char *skip_number(const char *p, const char *end)
{
	if (p < end && *p == '-')
		p++;
	bool zero = p < end && *p == '0';
	const char *from = p;
	p = skip_digits(p, end);
	if (!p || (zero && p > from + 1))
		return NULL;
	if (p < end && *p == '.')
		p = skip_digits(p + 1, end);
	if (p && p < end && (*p == 'e' || *p == 'E')) {
		p++;
		if (p < end && (*p == '+' || *p == '-'))
			p++;
		p = skip_digits(p, end);
	}
	return p;
}

static const char *skip_word(const char *p, const char *end, const char *word)
{
	size_t n = strlen(word);
	return (size_t)(end - p) >= n && memcmp(p, word, n) == 0 ? p + n : NULL;
}

static const char *skip_plain(const char *p, const char *end)
{
	switch (p < end ? *p : '\0') {
	case '"':
		return skip_string(p, end);
	case 't':
		return skip_word(p, end, "true");
	case 'f':
		return skip_word(p, end, "false");
	case 'n':
		return skip_word(p, end, "null");
	default:
		return skip_number(p, end);
	}
}

static const char *skip_name(const char *p, const char *end)
{
	p = skip_string(skip_space(p, end), end);
	if (p)
		p = skip_space(p, end);
	return p && p < end && *p == ':' ? p + 1 : NULL;
}

/* Any value.  What is open is in `closing`, so that the depth of the text is not that of calls. */
static const char *skip_value(const char *p, const char *end)
{
	char closing[SCAN_DEPTH];
	size_t depth = 0;
	for (;;) {
		p = skip_space(p, end);
		if (p < end && (*p == '[' || *p == '{')) {
			if (depth == SCAN_DEPTH)
				return NULL;
			closing[depth++] = *p == '[' ? ']' : '}';
			p = skip_space(p + 1, end);
			if (p == end || *p != closing[depth - 1]) { /* not empty */
				if (closing[depth - 1] == '}' && !(p = skip_name(p, end)))
					return NULL;
				continue;
			}
		} else if (!(p = skip_plain(p, end))) {
			return NULL;
		}
		/* Behind a value, or at the end of an empty one. */
		while (depth && (p = skip_space(p, end)) < end && *p == closing[depth - 1]) {
			p++;
			depth--;
		}
		if (!depth)
			return p;
		if (p == end || *p++ != ',')
			return NULL;
		if (closing[depth - 1] == '}' && !(p = skip_name(p, end)))
			return NULL;
	}
}

bool scan_value(struct span text, struct span *ret)
{
	if (!text.n)
		return false;
	const char *end = text.p + text.n, *from = skip_space(text.p, end);
	const char *to = skip_value(from, end);
	if (!to || skip_space(to, end) != end)
		return false;
	*ret = (struct span){from, (size_t)(to - from)};
	return true;
}

bool scan_member(struct span object, const char *name, struct span *ret)
{
	const char *p = object.p, *end = object.p + object.n;
	size_t len = strlen(name);
	if (!object.n || *p != '{')
		return false;
	for (;;) {
		const char *key = skip_space(p + 1, end);
		const char *key_end = skip_string(key, end);
		if (!key_end) /* an empty object */
			return false;
		const char *value = skip_space(skip_name(key, end), end);
		const char *after = skip_value(value, end);
		if ((size_t)(key_end - key) == len + 2 && memcmp(key + 1, name, len) == 0) {
			*ret = (struct span){value, (size_t)(after - value)};
			return true;
		}
		p = skip_space(after, end);
		if (*p != ',')
			return false;
	}
}

bool scan_next(struct span array, struct span *at)
{
	const char *end = array.p + array.n;
	if (!array.n || *array.p != '[')
		return false;
	const char *p = at->p ? skip_space(at->p + at->n, end) : array.p;
	if (at->p && *p != ',')
		return false;
	p = skip_space(p + 1, end);
	const char *after = skip_value(p, end);
	if (!after) /* an empty array */
		return false;
	*at = (struct span){p, (size_t)(after - p)};
	return true;
}

/* ---- strings ---- */

static unsigned unit(const char *p)
{
	unsigned u = 0;
	for (int i = 0; i < 4; i++)
		u = u << 4 | (unsigned)hex_digit(p[i]);
	return u;
}

static void put_utf8(struct buf *to, unsigned c)
{
	if (c < 0x80) {
		buf_putc(to, (char)c);
	} else if (c < 0x800) {
		buf_putc(to, (char)(0xc0 | c >> 6));
		buf_putc(to, (char)(0x80 | (c & 0x3f)));
	} else {
		if (c < 0x10000) {
			buf_putc(to, (char)(0xe0 | c >> 12));
		} else {
			buf_putc(to, (char)(0xf0 | c >> 18));
			buf_putc(to, (char)(0x80 | (c >> 12 & 0x3f)));
		}
		buf_putc(to, (char)(0x80 | (c >> 6 & 0x3f)));
		buf_putc(to, (char)(0x80 | (c & 0x3f)));
	}
}

/* `p` is behind the u of an escape; the place behind it, or behind the pair that it begins. */
static const char *put_unit(struct buf *to, const char *p, const char *end)
{
	unsigned c = unit(p);
	p += 4;
	if (c >= 0xd800 && c < 0xdc00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u') {
		unsigned low = unit(p + 2);
		if (low >= 0xdc00 && low < 0xe000) {
			put_utf8(to, 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00));
			return p + 6;
		}
	}
	put_utf8(to, c >= 0xd800 && c < 0xe000 ? 0xfffd : c);
	return p;
}

bool scan_text(struct span value, struct buf *to)
{
	static const char letter[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
	if (value.n < 2 || *value.p != '"')
		return false;
	const char *p = value.p + 1, *end = value.p + value.n - 1;
	while (p < end) {
		const char *slash = memchr(p, '\\', (size_t)(end - p));
		const char *run = slash ? slash : end;
		buf_put(to, p, (size_t)(run - p));
		p = run;
		if (!slash)
			break;
		if (p[1] == 'u') {
			p = put_unit(to, p + 2, end);
		} else {
			buf_putc(to, means[strchr(letter, p[1]) - letter]);
			p += 2;
		}
	}
	return buf_puts(to, "") == 0; /* also the empty one is there */
}

bool scan_number(struct span value, uint64_t *ret)
{
	uint64_t n = 0;
	for (size_t i = 0; i < value.n; i++) {
		unsigned digit = (unsigned)value.p[i] - '0';
		if (digit > 9 || n > (UINT64_MAX - digit) / 10)
			return false;
		n = n * 10 + digit;
	}
	if (value.n)
		*ret = n;
	return value.n > 0;
}

bool scan_members_text(const char *members, size_t n, const char *name, struct buf *to)
{
	auto_buf struct buf whole = BUF_INIT(n + 2);
	struct span object, value;
	(void)buf_putc(&whole, '{'); /* fits */
	(void)buf_put(&whole, members, n);
	(void)buf_putc(&whole, '}');
	return scan_value((struct span){whole.p, whole.len}, &object) &&
	       scan_member(object, name, &value) && scan_text(value, to);
}
