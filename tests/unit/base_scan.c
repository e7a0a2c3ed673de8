/* scan.h: values found in JSON text. */
#include "base/json.h"
#include "base/mem.h"
#include "base/scan.h"
#include "tests/t.h"

static struct span text_of(const char *s)
{
	return (struct span){s, strlen(s)};
}

/* The value as it stands there; owned. */
static char *got(struct span s)
{
	return xstrndup(s.p, s.n);
}

static void test_syntax(void)
{
	static const char *const good[] = {"{}", " [] ", "\"\"", "0", "-1.5e+3", "true", "null",
	        "{\"a\":[1,{\"b\":\"\\u00e4\\n\"}],\"c\":{}}", "[[],[[]],{}]", "\t[1 , 2]\r\n"};
	static const char *const bad[] = {"", " ", "{", "}", "[1,]", "{\"a\"}", "{\"a\":}", "{a:1}",
	        "[1 2]", "01", "1.", "1e", "-", "tru", "\"\\x\"", "\"\\u12g4\"", "\"open",
	        "\"a\nb\"", "{}{}", "[1]x", "{\"a\":1,}", "[}", "{]", "\"\\u123\"",
	        "{\"a\":1 \"b\":2}"};
	struct span v;
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		ok(scan_value(text_of(good[i]), &v), "a value: %s", good[i]);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ok(!scan_value(text_of(bad[i]), &v), "none: %s", bad[i]);
	auto_buf struct buf deep = BUF_INIT(4096);
	for (int i = 0; i < SCAN_DEPTH; i++)
		buf_putc(&deep, '[');
	for (int i = 0; i < SCAN_DEPTH; i++)
		buf_putc(&deep, ']');
	ok(scan_value((struct span){deep.p, deep.len}, &v), "the deepest");
	auto_free char *deeper = xasprintf("[%s]", deep.p);
	ok(!scan_value(text_of(deeper), &v), "one more is too deep");
}

static void test_finding(void)
{
	struct span v, m, at = {0};
	must(scan_value(text_of(" {\"a\" : {\"b\":1}, \"b\":[ \"x\" ,2, [3] ], \"b\":4, \"\":5} "),
	             &v),
	        "an object");
	ok(scan_member(v, "a", &m), "a member");
	auto_free char *a = got(m);
	is_str(a, "{\"b\":1}", "is its text");
	must(scan_member(v, "b", &m) && *m.p == '[', "of two the first, and none of a member's");
	const char *const want[] = {"\"x\"", "2", "[3]"};
	size_t n = 0;
	while (scan_next(m, &at) && n < 3) {
		auto_free char *one = got(at);
		is_str(one, want[n], "element %zu", n);
		n++;
	}
	ok(n == 3, "and no more");
	ok(scan_member(v, "", &m) && *m.p == '5', "a name may be empty");
	ok(!scan_member(v, "c", &m), "what is not there");
	ok(!scan_member(m, "a", &m), "a number has no members");
	at = (struct span){0};
	ok(!scan_next(v, &at), "an object has no elements");
	must(scan_value(text_of("[ ]"), &v), "an empty array");
	ok(!scan_next(v, &at), "has none either");
	must(scan_value(text_of("{ }"), &v) && !scan_member(v, "a", &m), "nor an empty object");
}

static void test_texts(void)
{
	static const struct {
		const char *json, *want;
	} rows[] = {
	        {"\"\"", ""},
	        {"\"a\\\"\\\\\\/\\b\\f\\n\\r\\tz\"", "a\"\\/\b\f\n\r\tz"},
	        {"\"\\u0041\\u00e4\\u20ac\"", "A\xc3\xa4\xe2\x82\xac"},
	        {"\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80"},
	        {"\"\\ud83dx\"", "\xef\xbf\xbdx"},
	        {"\"\\ude00\"", "\xef\xbf\xbd"},
	        {"\"\\ud83d\\u0041\"", "\xef\xbf\xbd"
	                               "A"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_buf struct buf b = BUF_INIT(64);
		struct span v;
		ok(scan_value(text_of(rows[i].json), &v) && scan_text(v, &b), "%s", rows[i].json);
		is_str(b.p, rows[i].want, "means that");
	}
	auto_buf struct buf small = BUF_INIT(3);
	ok(!scan_text(text_of("\"four\""), &small), "more than the buffer may hold");
	ok(!scan_text(text_of("12"), &small), "a number is no text");
	auto_buf struct buf nul = BUF_INIT(8);
	ok(scan_text(text_of("\"a\\u0000b\""), &nul) && nul.len == 3, "NUL is a byte");
}

static void test_numbers(void)
{
	uint64_t n = 0;
	ok(scan_number(text_of("0"), &n) && n == 0, "0");
	ok(scan_number(text_of("18446744073709551615"), &n) && n == UINT64_MAX, "the largest");
	ok(!scan_number(text_of("18446744073709551616"), &n), "one more");
	ok(!scan_number(text_of("-1"), &n) && !scan_number(text_of("1.0"), &n) &&
	                !scan_number(text_of("\"1\""), &n),
	        "what is no count");
}

int main(void)
{
	test_syntax();
	test_finding();
	test_texts();
	test_numbers();
	return done();
}
