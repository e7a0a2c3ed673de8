#include "base/neutral.h"

#include <stdint.h>
#include <string.h>

/* Decodes one character: its length (1-4), or 0 where the bytes are not UTF-8. */
static size_t decode(const char *s, size_t n, uint32_t *ret)
{
	const unsigned char *p = (const unsigned char *)s;
	if (p[0] < 0x80) {
		*ret = p[0];
		return 1;
	}
	size_t k = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
	if (p[0] < 0xc2 || p[0] > 0xf4 || k > n)
		return 0;
	uint32_t c = p[0] & (0x7fu >> k);
	for (size_t i = 1; i < k; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3fu);
	}
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	if (c < smallest[k] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	*ret = c;
	return k;
}

struct range {
	uint32_t from, to;
};

static bool within(uint32_t c, const struct range *r, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (c >= r[i].from && c <= r[i].to)
			return true;
	return false;
}

#define WITHIN(c, ranges) within(c, ranges, sizeof(ranges) / sizeof((ranges)[0]))

/* Steers the terminal or the reader's eye. */
static bool steers(uint32_t c)
{
	static const struct range bad[] = {
	        {0x80, 0x9f},                       /* C1: 9b is CSI on terminals in 8-bit mode */
	        {0xad, 0xad},                       /* soft hyphen */
	        {0x61c, 0x61c},                     /* Arabic letter mark */
	        {0x180e, 0x180e}, {0x200b, 0x200c}, /* zero width; 200d joins emoji and stays */
	        {0x200e, 0x200f},                   /* direction marks */
	        {0x2028, 0x202e},                   /* line separators, embeddings, overrides */
	        {0x2060, 0x206f},                   /* word joiner, isolates */
	        {0xfeff, 0xfeff}, {0xfff9, 0xfffb},
	        {0xe0000, 0xe007f}, /* tags: text that no one sees */
	};
	return WITHIN(c, bad);
}

static size_t columns(uint32_t c)
{
	static const struct range none[] = {
	        {0x300, 0x36f},
	        {0x483, 0x489},
	        {0x591, 0x5bd},
	        {0x610, 0x61a},
	        {0x64b, 0x65f},
	        {0x93c, 0x93c},
	        {0x941, 0x948},
	        {0xe34, 0xe3a},
	        {0xe47, 0xe4e},
	        {0x1ab0, 0x1aff},
	        {0x1dc0, 0x1dff},
	        {0x200d, 0x200d},
	        {0x20d0, 0x20ff},
	        {0xfe00, 0xfe0f},
	        {0xfe20, 0xfe2f},
	        {0xe0100, 0xe01ef},
	};
	static const struct range wide[] = {
	        {0x1100, 0x115f},
	        {0x231a, 0x231b},
	        {0x23e9, 0x23ec},
	        {0x2705, 0x2705},
	        {0x274c, 0x274c},
	        {0x2753, 0x2755},
	        {0x2e80, 0x303e},
	        {0x3041, 0x33ff},
	        {0x3400, 0x4dbf},
	        {0x4e00, 0x9fff},
	        {0xa000, 0xa4cf},
	        {0xac00, 0xd7a3},
	        {0xf900, 0xfaff},
	        {0xfe30, 0xfe4f},
	        {0xff00, 0xff60},
	        {0xffe0, 0xffe6},
	        {0x1f300, 0x1f64f},
	        {0x1f680, 0x1f6ff},
	        {0x1f900, 0x1f9ff},
	        {0x1fa70, 0x1faff},
	        {0x20000, 0x3fffd},
	};
	if (c < 0x300)
		return c >= 0x20 && c != 0x7f;
	return WITHIN(c, none) ? 0 : WITHIN(c, wide) ? 2 : 1;
}

static void put(struct buf *to, const char *s, size_t n, bool line)
{
	for (size_t i = 0; i < n;) {
		uint32_t c = 0;
		size_t k = decode(s + i, n - i, &c);
		bool space = c == '\n' || c == '\t';
		if (k == 0) {
			buf_puts(to, "\xef\xbf\xbd");
			k = 1;
		} else if (c == '\r' && i + 1 < n && s[i + 1] == '\n') {
			/* CRLF is a line end like any other */
		} else if (space && line) {
			buf_putc(to, ' ');
		} else if ((c < 0x20 && !space) || c == 0x7f) {
			buf_putc(to, '^');
			buf_putc(to, (char)(c ^ 0x40));
		} else if (steers(c)) {
			buf_printf(to, "<U+%04X>", (unsigned)c);
		} else {
			buf_put(to, s + i, k);
		}
		i += k;
	}
}

void neutral_text(struct buf *to, const char *s, size_t n)
{
	put(to, s, n, false);
}

void neutral_line(struct buf *to, const char *s, size_t n)
{
	put(to, s, n, true);
}

bool neutral_word(struct buf *to, const char *s)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	                            "_-+./:@%,";
	size_t n = strlen(s);
	auto_buf struct buf shown = BUF_INIT(8 * n + 1);
	neutral_line(&shown, s, n);
	if (!n || shown.failed || shown.len != n || memcmp(shown.p, s, n) != 0)
		return false;
	if (*s == '-')
		buf_puts(to, "-- ");
	if (!s[strspn(s, plain)])
		return buf_puts(to, s) == 0;
	buf_putc(to, '\'');
	for (; *s; s++)
		if (*s == '\'')
			buf_puts(to, "'\\''");
		else
			buf_putc(to, *s);
	return buf_putc(to, '\'') == 0;
}

size_t neutral_fit(const char *s, size_t n, size_t cols)
{
	size_t i = 0;
	while (i < n) {
		uint32_t c = 0xfffd;
		size_t k = decode(s + i, n - i, &c);
		size_t w = columns(c);
		if (w > cols)
			break;
		cols -= w;
		i += k ? k : 1;
	}
	return i;
}

size_t neutral_width(const char *s, size_t n)
{
	size_t w = 0;
	for (size_t i = 0; i < n;) {
		uint32_t c = 0xfffd;
		size_t k = decode(s + i, n - i, &c);
		w += columns(c);
		i += k ? k : 1;
	}
	return w;
}

bool neutral_is_text(const char *s, size_t n)
{
	for (size_t i = 0; i < n;) {
		uint32_t c = 0;
		size_t k = decode(s + i, n - i, &c);
		if (k == 0 || c == 0)
			return false;
		i += k;
	}
	return true;
}
