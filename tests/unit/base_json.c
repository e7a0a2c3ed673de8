#include "base/json.h"
#include "base/mem.h"
#include "tests/t.h"

static void reading(void)
{
	static const char text[] =
	        "{\"a\":{\"b\":[1,2.5,\"x\",null,true]},\"s\":\"\\u00e9\",\"n\":-7}";
	struct err e;
	auto_json struct json *j = json_parse(text, sizeof(text) - 1, &e);
	must(j, "a document is read");
	is_str(json_str(j, "s", ""), "\xc3\xa9", "an escaped character");
	ok(json_int(j, "n", 0) == -7, "an integer");
	ok(json_int(j, "s", 42) == 42 && json_int(NULL, "x", 3) == 3,
	        "wrong types give the default");
	const struct json *b = json_path(j, "a", "b", NULL);
	must(json_is_array(b), "a path of members");
	int n = 0;
	for (const struct json *it = json_first(b); it; it = json_next(it))
		n++;
	ok(n == 5, "elements in order");
	auto_buf struct buf out = BUF_INIT(1000);
	json_print(b, &out);
	is_str(out.p, "[1,2.5,\"x\",null,true]", "printed compactly");
}

static void refusing(void)
{
	static const char *const bad[] = {"", "{", "{\"a\":}", "[1,]", "{} x", "nul", "\"\x01"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err e = {0};
		struct json *j = json_parse(bad[i], strlen(bad[i]), &e);
		ok(!j && e.code == -EINVAL && strstr(e.text, "byte"), "refused: %s (%s)", bad[i],
		        e.text);
		json_free(j);
	}
	size_t n = 1000000;
	char *deep = malloc(n);
	memset(deep, '[', n);
	struct err e;
	ok(!json_parse(deep, n, &e), "a million brackets are refused, not recursed into");
	free(deep);
	enum { WIDE = 16 << 20 };
	auto_free char *wide = malloc(WIDE);
	memset(wide, ',', WIDE);
	for (size_t i = 1; i < WIDE; i += 2)
		wide[i] = '0';
	wide[0] = '[';
	wide[WIDE - 1] = ']';
	wide[WIDE - 2] = '0';
	wide[WIDE - 3] = ' ';
	ok(!json_parse(wide, WIDE, &e) && e.code == -E2BIG, "eight million values: %s", e.text);
	wide[0] = wide[WIDE - 1] = '"';
	wide[100] = '\\';
	wide[101] = '"';
	auto_json struct json *long_text = json_parse(wide, WIDE, &e);
	ok(json_text(long_text), "one text with as many commas is read");
}

static void writing(void)
{
	auto_buf struct buf out = BUF_INIT(1000);
	struct jw w = JW_INIT(&out);
	jw_open(&w, NULL, '{');
	jw_str(&w, "a", "q\"\\\n\t\x01");
	jw_str(&w, "absent", NULL);
	jw_bytes(&w, "b", "x\0y\xff\xc3\xa9\xed\xa0\x80", 9);
	jw_open(&w, "l", '[');
	jw_int(&w, NULL, INT64_MIN);
	jw_num(&w, NULL, 0.1);
	jw_bool(&w, NULL, false);
	jw_null(&w, NULL);
	jw_close(&w, ']');
	jw_members(&w, "\"m\":1", 5);
	jw_members(&w, "", 0);
	jw_close(&w, '}');
	is_str(out.p,
	        "{\"a\":\"q\\\"\\\\\\n\\t\\u0001\",\"b\":\"x\\u0000y\xef\xbf\xbd\xc3\xa9"
	        "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\",\"l\":[-9223372036854775808,0.1,false,null]"
	        ","
	        "\"m\":1}",
	        "commas, escapes, NUL and invalid UTF-8");
	struct err e;
	auto_json struct json *back = json_parse(out.p, out.len, &e);
	ok(back != NULL, "what is written can be read");
}

static void members(void)
{
	static const char text[] = "\"a\":1,\"b\":[2]more";
	auto_json struct json *j = json_parse_members(text, sizeof(text) - 5);
	ok(json_int(j, "a", 0) == 1 && json_is_array(json_get(j, "b")), "members without braces");
	auto_json struct json *none = json_parse_members("", 0);
	ok(json_is_object(none) && !json_first(none), "none");
	ok(!json_key(json_first(none)), "what is not there has no name");
	ok(!json_parse_members("}{", 2), "what is more than an object");
}

int main(void)
{
	members();
	reading();
	refusing();
	writing();
	return done();
}
