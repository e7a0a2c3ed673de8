/* Secrets in what programs print: each form, wherever it is cut, and nothing else. */
#include "base/veil.h"

#include "base/base64.h"
#include "base/clock.h"
#include "base/mem.h"
#include "tests/t.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUE "s3cr3t/\"q\\uote\"+k3y_0123456789"

static struct veil veil_for(const char *value)
{
	struct veil v;
	struct err e;
	must(veil_begin(&v, &e) == 0, "a veil");
	must(veil_add(&v, value, strlen(value), &e) == 0, "a value");
	must(veil_ok(&v), "in its bounds");
	return v;
}

/* Is nothing left of `gone` in the text, and all of it beside? */
static void hides(const struct veil *v, const char *before, const char *form, const char *behind,
        const char *what)
{
	auto_free char *text = xasprintf("%s%s%s", before, form, behind);
	size_t n = strlen(text), k = strlen(form);
	size_t found = veil_text(v, text, n);
	bool stars = true;
	for (size_t i = 0; i < k; i++)
		stars = stars && text[strlen(before) + i] == '*';
	ok(found == 1 && stars && strncmp(text, before, strlen(before)) == 0 &&
	                strcmp(text + strlen(before) + k, behind) == 0,
	        "%s", what);
}

static char *base64_of(const char *p, size_t n)
{
	struct buf b = BUF_INIT(1 << 16);
	must(base64_encode(p, n, &b) == 0, "base64");
	return buf_take(&b);
}

static void test_forms(void)
{
	const struct veil v = veil_for(VALUE);
	static const struct {
		const char *form, *what;
	} all[] = {
	        {VALUE, "as it is"},
	        {"s3cr3t/\\\"q\\\\uote\\\"+k3y_0123456789", "in JSON"},
	        {"s3cr3t/\\\\\\\"q\\\\\\\\uote\\\\\\\"+k3y_0123456789", "in JSON in JSON"},
	        {"s3cr3t%2F%22q%5Cuote%22%2Bk3y_0123456789", "in a URL"},
	        {"s3cr3t%2f%22q%5cuote%22%2bk3y_0123456789", "in a URL, lower case"},
	        {"s3cr3t/%22q%5Cuote%22%2Bk3y_0123456789", "in a URL whose slashes stay"},
	        {"s3cr3t/%22q%5Cuote%22+k3y_0123456789", "in a URL as a whole"},
	        {"s3cr3t\\/\\\"q\\\\uote\\\"+k3y_0123456789", "in JSON with slashes behind others"},
	        {"s3cr3t/\\u0022q\\\\uote\\u0022\\u002Bk3y_0123456789", "in JSON of many numbers"},
	        {"7333637233742F2271 is none", "part of the hexadecimal form is none"},
	};
	for (size_t i = 0; i + 1 < ARRAY_LEN(all); i++)
		hides(&v, "x=", all[i].form, " y", all[i].what);
	auto_free char *part = xstrdup(all[ARRAY_LEN(all) - 1].form);
	ok(veil_text(&v, part, strlen(part)) == 0, "%s", all[ARRAY_LEN(all) - 1].what);
	char hex[2 * sizeof(VALUE)];
	for (size_t i = 0; i < sizeof(VALUE) - 1; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", (unsigned char)VALUE[i]);
	hides(&v, "0x", hex, ";", "hexadecimal");
}

static void test_ways(void)
{
	const struct veil v = veil_for("a&b<c>d'e!f(g)h*i~j k");
	static const struct {
		const char *form, *what;
	} all[] = {
	        {"a\\u0026b\\u003cc\\u003ed'e!f(g)h*i~j k", "in JSON that is for web pages"},
	        {"a\\\\u0026b\\\\u003cc\\\\u003ed'e!f(g)h*i~j k", "and in JSON once more"},
	        {"a\\u0026b\\u003Cc\\u003Ed\\u0027e!f(g)h*i~j k", "with large digits, and quotes"},
	        {"a%26b%3Cc%3Ed'e!f(g)h*i~j%20k", "in a URL, marks as they are"},
	        {"a&b%3Cc%3Ed'e!f(g)h*i~j%20k", "and what parts a URL, too"},
	        {"a%26b%3Cc%3Ed%27e%21f%28g%29h*i%7Ej+k", "in a form"},
	        {"a%26b%3Cc%3Ed%27e%21f%28g%29h%2Ai~j+k", "in a query"},
	};
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		hides(&v, "x=", all[i].form, " y", all[i].what);
}

/* Words that are longer than what is looked at in one go. */
static void test_blocks(void)
{
	const struct veil v = veil_for(VALUE);
	enum { ROOM = 3200 };
	size_t missed = 0;
	for (size_t at = 900; at < 2200; at++) {
		char text[ROOM + 1];
		memset(text, 'x', ROOM);
		text[ROOM] = '\0';
		memcpy(text + at, VALUE, strlen(VALUE));
		missed += veil_text(&v, text, ROOM) != 1 || strspn(text, "x") != at ||
		          strspn(text + at, "*") != strlen(VALUE);
	}
	ok(missed == 0, "wherever it is in a long word");
	char two[] = "s3cr3t/\"q\\uote\"+k3y_012345678s3cr3t/\"q\\uote\"+k3y_0123456789";
	ok(veil_text(&v, two, strlen(two)) == 1 && !strstr(two, "3456789"),
	        "behind another that is cut");
}

/* All that can be given at once. */
static void test_most(void)
{
	struct veil v;
	struct err e;
	must(veil_begin(&v, &e) == 0, "a veil");
	int r = 0;
	for (unsigned k = 0; k < 4; k++) {
		char value[VEIL_MOST];
		for (size_t i = 0; i < sizeof(value); i++)
			value[i] = (char)(' ' + (i * 7 + (size_t)k * i * i + k) % 95);
		r = r < 0 ? r : veil_add(&v, value, sizeof(value), &e);
	}
	ok(r == 0 && veil_ok(&v), "four of the longest values fit, whatever is in them");
}

/* Whatever is encoded with it: no digit that says something of it alone is left. */
static void test_base64(void)
{
	const struct veil v = veil_for(VALUE);
	static const char *const fronts[] = {"", "a", "ab", "abc", "KEY=", "-----"};
	bool all = true;
	for (size_t i = 0; i < ARRAY_LEN(fronts); i++) {
		auto_free char *with = xasprintf("%s%s\nmore", fronts[i], VALUE);
		auto_free char *text = base64_of(with, strlen(with));
		size_t found = veil_text(&v, text, strlen(text));
		size_t stars = 0;
		for (const char *p = text; *p; p++)
			stars += *p == '*';
		all = all && found == 1 && stars >= strlen(VALUE) * 8 / 6 - 2;
	}
	ok(all, "base64 behind whatever");
	char longer[201];
	memset(longer, 0, sizeof(longer));
	for (size_t i = 0; i < 200; i++)
		longer[i] = (char)('!' + i * 7 % 90);
	const struct veil w = veil_for(longer);
	auto_free char *text = base64_of(longer, 200);
	for (size_t width = 64; width <= 76; width += 12) {
		struct buf lines = BUF_INIT(4096);
		for (size_t at = 0; at < strlen(text); at += width)
			(void)buf_printf(&lines, "%.*s\n", (int)width, text + at);
		(void)veil_text(&w, lines.p, lines.len);
		size_t left = 0;
		for (size_t i = 0; i < lines.len; i++)
			left += lines.p[i] != '*' && lines.p[i] != '\n' && lines.p[i] != '=';
		ok(left <= 2, "base64 in lines");
		buf_done(&lines);
	}
}

static char *passed(const struct veil *v, const char *text, size_t step, size_t *most)
{
	struct veil_stream s = VEIL_STREAM_INIT;
	struct buf got = BUF_INIT(1 << 20);
	size_t n = strlen(text), k;
	for (size_t at = 0; at < n; at += step) {
		char piece[4096];
		size_t size = step < n - at ? step : n - at;
		memcpy(piece, text + at, size);
		const char *p = veil_pass(v, &s, piece, size, &k);
		if (buf_put(&got, p, k) < 0)
			abort();
		(void)veil_waits(&s, &k);
		*most = k > *most ? k : *most;
	}
	const char *rest = veil_rest(&s, &k);
	if (k && buf_put(&got, rest, k) < 0)
		abort();
	veil_stream_done(&s);
	return buf_take(&got);
}

static void test_pieces(void)
{
	static const char value[] = "sk-abc_DEF.123";
	const struct veil v = veil_for(value);
	static const struct {
		const char *text, *want;
	} all[] = {
	        {"nothing in it", "nothing in it"},
	        {"sk-abc_DEF.123", "**************"},
	        {"a sk-abc_DEF.123 b\nsk-abc_DEF.123", "a ************** b\n**************"},
	        {"sk-ask-abc_DEsk-abc_DEF.123sk-abc_DEF.12",
	                "sk-ask-abc_DE**************sk-abc_DEF.12"},
	        {"sk-abc_DEF.12\n3", "sk-abc_DEF.12\n3"},
	        {"", ""},
	};
	bool right = true;
	size_t most = 0;
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		for (size_t step = 1; step < 20; step++) {
			auto_free char *got = passed(&v, all[i].text, step, &most);
			right = right && strcmp(got ? got : "", all[i].want) == 0;
		}
	ok(right, "in pieces of any size");
	ok(most > 0 && most < VEIL_WINDOW, "what waits is bounded");
	ok(veil_passable(&v, "two words", 9) == 4 && veil_passable(&v, "a line\n", 7) == 7,
	        "lines do not wait");
	size_t n;
	char own[] = "sk-abc_DEF.123";
	struct veil_stream s = VEIL_STREAM_INIT;
	ok(veil_pass(NULL, &s, own, 14, &n) == own && n == 14, "without a veil all passes");
}

static void test_json(void)
{
	const struct veil v = veil_for("12345678");
	char text[] = "\"n\":12345678,\"t\":\"a\\\"12345678\",\"u\":\"1234\",\"v\":\"5678\"";
	ok(veil_json(&v, text, strlen(text)) == 1 &&
	                strcmp(text, "\"n\":12345678,\"t\":\"a\\\"********\",\"u\":\"1234\",\"v\":"
	                             "\"5678\"") == 0,
	        "strings of JSON alone");
	char cut[] = "\"12345678\\";
	ok(veil_json(&v, cut, strlen(cut)) == 1, "a text that is none is looked at to its end");
}

static void test_refused(void)
{
	struct veil v;
	struct err e;
	must(veil_begin(&v, &e) == 0, "a veil");
	char big[VEIL_MOST + 2];
	memset(big, 'x', sizeof(big));
	ok(veil_add(&v, "1234567", 7, &e) == -ERANGE, "too short");
	ok(veil_add(&v, big, VEIL_MOST + 1, &e) == -ERANGE, "too long");
	ok(veil_add(&v, big, VEIL_MOST, &e) == 0, "the longest");
	ok(veil_add(&v, "caf\xc3\xa9 au lait", 13, &e) == -EINVAL, "no ASCII");
	int rc = 0, n = 0;
	for (; n < 100 && rc == 0; n++) {
		char value[32];
		(void)snprintf(value, sizeof(value), "value number %d", n);
		rc = veil_add(&v, value, strlen(value), &e);
	}
	ok(rc == -E2BIG && n > 8 && veil_ok(&v), "many values, but not any number");
	v.forms[1].n = VEIL_WINDOW + 1;
	ok(!veil_ok(&v), "what does not add up is seen");
}

static void test_crypt(void)
{
	const struct veil v = veil_for("sk-abc_DEF.123");
	char text[40] = "the beginning of a value, 38 bytes....", twice[40], other[40];
	char plain[40];
	memcpy(plain, text, sizeof(text));
	veil_crypt(&v, 7, text, sizeof(text));
	memcpy(twice, text, sizeof(text));
	memcpy(other, plain, sizeof(text));
	veil_crypt(&v, 8, other, sizeof(other));
	ok(memcmp(text, plain, sizeof(text)) != 0 && memcmp(text, other, sizeof(text)) != 0,
	        "what waits cannot be read");
	veil_crypt(&v, 7, twice, sizeof(twice));
	ok(memcmp(twice, plain, sizeof(plain)) == 0, "but by who has the veil");
}

/* A line of a megabyte, and four values of 100 bytes. */
static void test_speed(void)
{
	struct veil v;
	struct err e;
	must(veil_begin(&v, &e) == 0, "a veil");
	for (int i = 0; i < 4; i++) {
		char value[101];
		for (size_t k = 0; k < 100; k++)
			value[k] = (char)('!' + (k * 7 + (size_t)i) % 90);
		must(veil_add(&v, value, 100, &e) == 0, "a value");
	}
	size_t n = 1 << 20;
	auto_free char *text = xcalloc(1, n);
	memset(text, 'x', n);
	int64_t begun = clock_mono_us();
	ok(veil_text(&v, text, n) == 0, "a megabyte of something else");
	printf("# a megabyte and four values: %lld us\n", (long long)(clock_mono_us() - begun));
}

int main(void)
{
	test_forms();
	test_ways();
	test_blocks();
	test_most();
	test_base64();
	test_pieces();
	test_json();
	test_refused();
	test_crypt();
	test_speed();
	return done();
}
