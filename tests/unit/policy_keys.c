#include "policy/keys.h"
#include "base/mem.h"
#include "tests/t.h"

struct thing {
	char *text;
	char fixed[8];
	bool yes;
	uint32_t bits, small, word;
	uint64_t bytes, when;
	double real;
	char **list;
};

static const char *const words[] = {"red", "green", NULL};
static const struct key inner_rows[] = {
        {.name = "when",
                .type = KEY_TIME,
                .offset = offsetof(struct thing, when),
                .dflt = "1s",
                .doc = "Time."},
};
static const struct key_table inner = KEY_TABLE(inner_rows);
#define AT(f) .offset = offsetof(struct thing, f)
static const struct key rows[] = {
        {.name = "text",
                .type = KEY_TEXT,
                AT(text),
                .form = form_name,
                .want = "a name",
                .doc = "Text."},
        {.name = "older", .alias_of = "text"},
        {.name = "fixed", .type = KEY_FIXED, AT(fixed), .size = 8, .doc = "Fixed."},
        {.name = "yes", .type = KEY_BOOL, AT(yes), .dflt = "false", .doc = "Truth."},
        {.name = "flag", .type = KEY_FLAG, AT(bits), .bit = 4, .doc = "Flag."},
        {.name = "small", .type = KEY_U32, AT(small), .min = 2, .max = 9, .doc = "Small."},
        {.name = "bytes", .type = KEY_BYTES, AT(bytes), .none = true, .min = 1024, .doc = "Bytes."},
        {.name = "word", .type = KEY_ENUM, AT(word), .names = words, .doc = "Colour."},
        {.name = "real", .type = KEY_REAL, AT(real), .doc = "Real."},
        {.name = "list", .type = KEY_LIST, AT(list), .min = 1, .doc = "List."},
        {.name = "inner", .type = KEY_MAP, .sub = &inner},
};
static const struct key_table table = KEY_TABLE(rows);

static int noted;
static void note(void *ctx, const char *file, int line, const char *text)
{
	(void)ctx;
	(void)file;
	noted += line == 1 && strcmp(text, "'older' is called 'text' here") == 0;
}

static int apply(const char *text, struct thing *t, struct err *e)
{
	auto_yaml struct yaml_doc *d = yaml_parse("f", 1, text, strlen(text), e);
	must(d != NULL, "YAML: %s", e->text);
	const struct keys_ctx k = {.file = "f", .e = e, .note = note};
	return keys_apply(&k, &table, yaml_root(d), t);
}

static void thing_done(struct thing *t)
{
	free(t->text);
	list_free(t->list);
}

static void refused(const char *text, const char *message)
{
	struct thing t = {0};
	struct err e = {0};
	ok(apply(text, &t, &e) == -EINVAL, "refused: %s", text);
	is_str(e.text, message, "with its line and reason");
	thing_done(&t);
}

static void good(void)
{
	struct thing t = {.bits = 8, .bytes = 7};
	struct err e = {0};
	must(apply("older: abc\nfixed: seven77\nyes: true\nflag: true\nsmall: 9\nbytes: none\n"
	           "word: green\nreal: 0.5\nlist: [a, 'true', 3]\ninner: {when: 2s}\n",
	             &t, &e) == 0,
	        "all kinds: %s", e.text);
	is_str(t.text, "abc", "an older name");
	ok(noted == 1, "is noted");
	is_str(t.fixed, "seven77", "a fixed text");
	ok(t.yes && t.bits == 12 && t.small == 9 && t.bytes == 0 && t.word == 1, "values");
	ok(t.real > 0.49 && t.real < 0.51 && t.when == 2000, "more values");
	is_str(t.list[2], "3", "a list of texts");
	ok(t.list[3] == NULL, "ends");
	thing_done(&t);
}

static void manual(void)
{
	auto_buf struct buf b = BUF_INIT(65536);
	keys_print(&table, "", false, &b);
	ok(strstr(b.p, "| `inner.when` | time (30s, 10m) | 1s | Time. |\n") != NULL, "nested row");
	ok(strstr(b.p, "| `word` | red, green |  | Colour. |\n") != NULL, "words");
	ok(strstr(b.p, "older") == NULL, "older names are not advertised");
	buf_clear(&b);
	keys_print(&table, "", true, &b);
	ok(strstr(b.p, ".It Cm yes\nTruth.\n.Pq true, false; default: false\n") != NULL, "mdoc");
}

int main(void)
{
	good();
	manual();
	refused("wrod: red\n", "f:1: unknown key 'wrod' (did you mean 'word'?)");
	refused("WORD: red\n", "f:1: unknown key 'WORD' (did you mean 'word'?)");
	refused("xyzzy: red\n", "f:1: unknown key 'xyzzy'; known: text, fixed, yes, flag, small, "
	                        "bytes, word, real, "
	                        "list, inner");
	refused("text: A\n", "f:1: 'text': 'A' is not a name");
	refused("text: a\nolder: b\n", "f:2: 'older' and 'text' (line 1) are one key");
	refused("fixed: eight888\n", "f:1: 'fixed' is longer than 7 characters");
	refused("yes: 'true'\n", "f:1: 'yes': 'true' is neither true nor false");
	refused("small: 1\n", "f:1: 'small': 1 is too small, the least is 2");
	refused("small: 99999999999\n", "f:1: 'small': 99999999999 is too large, the most is 9");
	refused("bytes: 1\n", "f:1: 'bytes': 1 is too small, the least is 1K (or none)");
	refused("small: none\n", "f:1: 'small': 'none' is not a number");
	refused("word: gren\n", "f:1: unknown value of 'word' 'gren' (did you mean 'green'?)");
	refused("real: -1\n", "f:1: 'real': '-1' is not a number");
	refused("list: []\n", "f:1: 'list' is empty");
	refused("list: [[a]]\n", "f:1: an entry of 'list' is a list: a text is expected");
	refused("list: [a, ~]\n", "f:1: an entry of 'list' has no value: a text is expected");
	refused("inner: x\n", "f:1: 'inner' is a text: a map is expected");
	refused("inner:\n  when: 5\n",
	        "f:2: 'when': '5' is not a time with its unit (500ms, 30s, 10m, 1h)");
	return done();
}
