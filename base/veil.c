#include "base/veil.h"
#include "base/base64.h"
#include "base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define PRIME (((uint64_t)1 << 61) - 1)

__extension__ typedef unsigned __int128 wide;

static uint64_t times(uint64_t a, uint64_t b)
{
	wide x = (wide)a * b;
	uint64_t r = (uint64_t)(x & PRIME) + (uint64_t)(x >> 61);
	return r >= PRIME ? r - PRIME : r;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
	uint64_t r = a + b;
	return r >= PRIME ? r - PRIME : r;
}

static uint64_t print_of(const struct veil *v, const char *p, size_t n)
{
	uint64_t h = 0;
	for (size_t i = 0; i < n; i++)
		h = plus(times(h, v->point), (unsigned char)p[i]);
	return h;
}

/* ---- making ---- */

static const char upper[] = "0123456789ABCDEF", lower[] = "0123456789abcdef";

int veil_begin(struct veil *v, struct err *e)
{
	memset(v, 0, sizeof(*v));
	uint64_t random[3];
	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return err_errno(e, "getrandom");
	memcpy(v->key, random, sizeof(v->key));
	v->point = (random[2] % (PRIME - 512)) + 256;
	return 0;
}

/* What is so short is found in what is none. */
static int add_form(struct veil *v, const char *p, size_t n)
{
	if (n < VEIL_LEAST || n > VEIL_WINDOW)
		return 0;
	const struct veil_form x = {.print = print_of(v, p, n), .n = (uint32_t)n};
	uint32_t at = 0;
	for (; at < v->nforms && v->forms[at].n >= x.n; at++)
		if (v->forms[at].n == x.n && v->forms[at].print == x.print)
			return 0;
	if (v->nforms == VEIL_FORMS)
		return -E2BIG;
	memmove(v->forms + at + 1, v->forms + at, (v->nforms - at) * sizeof(x));
	v->forms[at] = x;
	v->nforms++;
	return 0;
}

static int add_buf(struct veil *v, const struct buf *b)
{
	return b->failed ? b->failed : add_form(v, b->p ? b->p : "", b->len);
}

/* As programs write a JSON string: each escapes what it must, and some these, too. */
struct json_way {
	const char *also; /* as \u and digits, or behind a backslash where there are none */
	const char *digits;
};

static void json_char(struct buf *to, const struct json_way *w, char c)
{
	if (!strchr(w->also, c)) {
		if (c == '"' || c == '\\')
			(void)buf_putc(to, '\\');
		(void)buf_putc(to, c);
	} else if (w->digits) {
		(void)buf_printf(to, "\\u00%c%c", w->digits[c >> 4], w->digits[c & 15]);
	} else {
		(void)buf_printf(to, "\\%c", c);
	}
}

/* In a JSON string, and in one within one. */
static int add_json(struct veil *v, const char *p, size_t n, const struct json_way *w)
{
	static const struct json_way plain = {.also = ""};
	auto_buf struct buf once = BUF_INIT((size_t)6 * VEIL_MOST);
	auto_buf struct buf twice = BUF_INIT((size_t)12 * VEIL_MOST);
	for (size_t i = 0; i < n; i++)
		json_char(&once, w, p[i]);
	for (size_t i = 0; i < once.len; i++)
		json_char(&twice, &plain, once.p[i]);
	int r = add_buf(v, &once);
	return r < 0 ? r : add_buf(v, &twice);
}

static int add_jsons(struct veil *v, const char *p, size_t n)
{
	static const struct json_way ways[] = {
	        {"", NULL},          /* most */
	        {"/", NULL},         /* PHP */
	        {"&<>", lower},      /* Go, Rails */
	        {"\"&'+<>`", upper}, /* .NET */
	};
	int r = 0;
	for (size_t i = 0; i < ARRAY_LEN(ways) && r == 0; i++)
		r = add_json(v, p, n, &ways[i]);
	return r;
}

static bool letter_or_digit(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* As programs write a part of a URL: what they leave as it is besides letters and digits. */
struct percent_way {
	const char *left, *digits;
	char space; /* instead of one; NUL: as others */
};

static int add_percent(struct veil *v, const char *p, size_t n, const struct percent_way *w)
{
	auto_buf struct buf b = BUF_INIT((size_t)3 * VEIL_MOST);
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)p[i];
		if (letter_or_digit(p[i]) || strchr(w->left, p[i]))
			(void)buf_putc(&b, p[i]);
		else if (c == ' ' && w->space)
			(void)buf_putc(&b, w->space);
		else
			(void)buf_printf(&b, "%%%c%c", w->digits[c >> 4], w->digits[c & 15]);
	}
	return add_buf(v, &b);
}

static int add_percents(struct veil *v, const char *p, size_t n)
{
	static const struct percent_way ways[] = {
	        {"-._~", upper, '\0'}, {"-._~", lower, '\0'}, {"-._~", upper, '+'},
	        {"-._~/", upper, '\0'},                /* Python */
	        {"-._~!*'()", upper, '\0'},            /* a component in JavaScript */
	        {"-._~!*'();/?:@&=+$,#", upper, '\0'}, /* a whole URL there */
	        {"-._*", upper, '+'},                  /* a form's field, and Java's */
	};
	int r = 0;
	for (size_t i = 0; i < ARRAY_LEN(ways) && r == 0; i++)
		r = add_percent(v, p, n, &ways[i]);
	return r;
}

static int add_hex(struct veil *v, const char *p, size_t n, const char *digits)
{
	auto_buf struct buf b = BUF_INIT((size_t)2 * VEIL_MOST);
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)p[i];
		(void)buf_putc(&b, digits[c >> 4]);
		(void)buf_putc(&b, digits[c & 15]);
	}
	return add_buf(v, &b);
}

/* Programs break base64 of more into lines. */
static int add_lines(struct veil *v, const char *p, size_t n, size_t width)
{
	int r = 0;
	for (size_t at = 0; n > width && at < n && r == 0; at += width)
		r = add_form(v, p + at, n - at < width ? n - at : width);
	return r;
}

static void to_url(char *p)
{
	for (; *p; p++)
		*p = *p == '+' ? '-' : *p == '/' ? '_' : *p;
}

/* Behind `before` other bytes, and with others behind it: the digits that are its alone. */
static int add_base64(struct veil *v, const char *p, size_t n, size_t before)
{
	auto_buf struct buf in = BUF_INIT(VEIL_MOST + 8);
	auto_buf struct buf out = BUF_INIT((size_t)2 * VEIL_MOST);
	for (size_t i = 0; i < before; i++)
		(void)buf_putc(&in, 0);
	(void)buf_put(&in, p, n);
	while (in.len % 3)
		(void)buf_putc(&in, 0);
	if (in.failed || base64_encode(in.p, in.len, &out) < 0)
		return -E2BIG;
	size_t from = (8 * before + 5) / 6, to = 8 * (before + n) / 6;
	int r = add_form(v, out.p + from, to - from);
	if (r == 0 && before == 0)
		r = add_lines(v, out.p, to, 76);
	if (r == 0 && before == 0)
		r = add_lines(v, out.p, to, 64);
	to_url(out.p);
	return r < 0 ? r : add_form(v, out.p + from, to - from);
}

int veil_add(struct veil *v, const char *value, size_t n, struct err *e)
{
	if (n < VEIL_LEAST || n > VEIL_MOST)
		return err_set(e, -ERANGE, "it has %zu bytes; %d to %d can be kept out of output",
		        n, VEIL_LEAST, VEIL_MOST);
	for (size_t i = 0; i < n; i++)
		if (value[i] < 0x20 || value[i] > 0x7e)
			return err_set(e, -EINVAL, "it is not printable ASCII");
	v->spaced |= memchr(value, ' ', n) != NULL;
	int r = add_form(v, value, n);
	r = r < 0 ? r : add_jsons(v, value, n);
	for (size_t before = 0; before < 3 && r == 0; before++)
		r = add_base64(v, value, n, before);
	r = r < 0 ? r : add_percents(v, value, n);
	r = r < 0 ? r : add_hex(v, value, n, upper);
	r = r < 0 ? r : add_hex(v, value, n, lower);
	return r < 0 ? err_set(e, r, "its forms are too many") : 0;
}

bool veil_ok(const struct veil *v)
{
	bool ok = v->nforms <= VEIL_FORMS;
	for (uint32_t i = 0; ok && i < v->nforms; i++)
		ok = v->forms[i].n >= VEIL_LEAST && v->forms[i].n <= VEIL_WINDOW &&
		     (i == 0 || v->forms[i].n <= v->forms[i - 1].n);
	return ok;
}

/* ---- looking ---- */

static bool has_print(const struct veil_form *f, size_t nforms, uint64_t h)
{
	for (size_t i = 0; i < nforms; i++)
		if (f[i].print == h)
			return true;
	return false;
}

/* Of a word: the fingerprint of what is before each byte, and before its end.  That of any window
 * is a difference of two. */
enum { BLOCK = 1024 };
struct sums {
	uint64_t all[BLOCK + VEIL_WINDOW + 1];
	size_t n; /* bytes */
};

static uint64_t power(uint64_t x, size_t n)
{
	uint64_t r = 1;
	for (; n; n >>= 1, x = times(x, x))
		if (n & 1)
			r = times(r, x);
	return r;
}

/* Makes them asterisks: were they something else? */
static bool cover(char *p, size_t n)
{
	bool other = false;
	for (size_t i = 0; i < n; i++) {
		other |= p[i] != '*';
		p[i] = '*';
	}
	return other;
}

/* All forms of one length that begin in the block at `p`. */
static size_t look(const struct veil *v, const struct veil_form *f, size_t nforms,
        const struct sums *s, char *p)
{
	const size_t window = f->n;
	const uint64_t out = power(v->point, window); /* what is before a window counts behind it */
	size_t found = 0;
	for (size_t i = 0; i < BLOCK && i + window <= s->n; i++) {
		uint64_t h = plus(s->all[i + window], PRIME - times(s->all[i], out));
		if (has_print(f, nforms, h)) {
			found += cover(p + i, window);
			i += window - 1;
		}
	}
	return found;
}

static size_t look_for_all(const struct veil *v, const struct sums *s, char *p)
{
	size_t found = 0;
	for (uint32_t i = 0, k; i < v->nforms; i = k) {
		for (k = i + 1; k < v->nforms && v->forms[k].n == v->forms[i].n;)
			k++;
		if (v->forms[i].n <= s->n)
			found += look(v, v->forms + i, k - i, s, p);
	}
	return found;
}

/* The sums are of what was there, also where a part of it was covered since. */
static size_t look_at_word(const struct veil *v, char *p, size_t n)
{
	struct sums s;
	size_t found = 0;
	s.n = 0;
	s.all[0] = 0;
	for (size_t at = 0; at < n; at += BLOCK) {
		size_t most = BLOCK + v->forms[0].n, want = n - at < most ? n - at : most;
		for (; s.n < want; s.n++)
			s.all[s.n + 1] =
			        plus(times(s.all[s.n], v->point), (unsigned char)p[at + s.n]);
		found += look_for_all(v, &s, p + at);
		if (s.n > BLOCK) {
			s.n -= BLOCK;
			memmove(s.all, s.all + BLOCK, (s.n + 1) * sizeof(s.all[0]));
		}
	}
	return found;
}

/* Values are printable ASCII, and so is each form of them. */
static bool could_be_of_one(const struct veil *v, unsigned char c)
{
	return (c > ' ' && c < 0x7f) || (c == ' ' && v->spaced);
}

size_t veil_text(const struct veil *v, char *p, size_t n)
{
	size_t found = 0;
	for (size_t at = 0; v && v->nforms && at < n; at++) {
		size_t from = at;
		while (at < n && could_be_of_one(v, (unsigned char)p[at]))
			at++;
		if (at - from >= v->forms[v->nforms - 1].n)
			found += look_at_word(v, p + from, at - from);
	}
	return found;
}

size_t veil_json(const struct veil *v, char *p, size_t n)
{
	size_t found = 0;
	char *end = p + n, *at = p;
	while (v && v->nforms && (at = memchr(at, '"', (size_t)(end - at)))) {
		char *from = ++at;
		while (at < end && *at != '"')
			at += *at == '\\' && at + 1 < end ? 2 : 1;
		found += veil_text(v, from, (size_t)(at - from));
		at += at < end;
	}
	return found;
}

/* ---- pieces ---- */

size_t veil_passable(const struct veil *v, const char *p, size_t n)
{
	size_t most = v && v->nforms ? v->forms[0].n - 1 : 0, k = 0;
	while (k < most && k < n && could_be_of_one(v, (unsigned char)p[n - 1 - k]))
		k++;
	return n - k;
}

char *veil_pass(const struct veil *v, struct veil_stream *s, char *p, size_t n, size_t *ret_n)
{
	*ret_n = n;
	if (!v || !v->nforms)
		return p;
	buf_consume(&s->all, s->passed);
	s->passed = 0;
	if (buf_put(&s->all, p, n) < 0)
		abort(); /* a longer piece than we said */
	(void)veil_text(v, s->all.p, s->all.len);
	*ret_n = s->passed = veil_passable(v, s->all.p, s->all.len);
	return s->all.p;
}

char *veil_rest(struct veil_stream *s, size_t *ret_n)
{
	buf_consume(&s->all, s->passed);
	*ret_n = s->passed = s->all.len;
	return s->all.p;
}

const char *veil_waits(const struct veil_stream *s, size_t *ret_n)
{
	*ret_n = s->all.len - s->passed;
	return s->all.p ? s->all.p + s->passed : NULL;
}

void veil_stream_done(struct veil_stream *s)
{
	if (s->all.p)
		explicit_bzero(s->all.p, s->all.room);
	buf_done(&s->all);
	s->passed = 0;
}

/* ---- what waits on a disk ---- */

static uint64_t turned(uint64_t x, unsigned by)
{
	return x << by | x >> (64 - by);
}

static void mix(uint64_t v[4], unsigned rounds)
{
	while (rounds--) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = turned(v[1], 13) ^ v[0];
		v[3] = turned(v[3], 16) ^ v[2];
		v[0] = turned(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = turned(v[1], 17) ^ v[2];
		v[3] = turned(v[3], 21) ^ v[0];
		v[2] = turned(v[2], 32);
	}
}

/* SipHash-2-4 of two words. */
static uint64_t keyed(const uint64_t key[2], uint64_t a, uint64_t b)
{
	uint64_t v[4] = {key[0] ^ 0x736f6d6570736575U, key[1] ^ 0x646f72616e646f6dU,
	        key[0] ^ 0x6c7967656e657261U, key[1] ^ 0x7465646279746573U};
	const uint64_t words[] = {a, b, (uint64_t)16 << 56};
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		v[3] ^= words[i];
		mix(v, 2);
		v[0] ^= words[i];
	}
	v[2] ^= 0xff;
	mix(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

void veil_crypt(const struct veil *v, uint64_t number, char *p, size_t n)
{
	for (size_t at = 0; at < n; at += sizeof(uint64_t)) {
		uint64_t pad = keyed(v->key, number, at);
		size_t k = n - at < sizeof(pad) ? n - at : sizeof(pad);
		for (size_t i = 0; i < k; i++)
			p[at + i] = (char)(p[at + i] ^ (char)(pad >> (8 * i)));
	}
}
