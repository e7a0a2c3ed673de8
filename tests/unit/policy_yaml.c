#include "policy/yaml.h"
#include "base/buf.h"
#include "base/mem.h"
#include "tests/t.h"

static struct yaml_doc *parse(const char *text, struct err *e)
{
	return yaml_parse("f", 1, text, strlen(text), e);
}

static void refused(const char *text, const char *message)
{
	struct err e = {0};
	struct yaml_doc *d = parse(text, &e);
	ok(!d && strncmp(e.text, message, strlen(message)) == 0, "refused: %s", message);
	if (d || strncmp(e.text, message, strlen(message)) != 0)
		printf("# got: %s\n", d ? "(accepted)" : e.text);
	yaml_doc_free(d);
}

static void tree(void)
{
	struct err e = {0};
	auto_yaml struct yaml_doc *d = parse("a: 1\nb:\n  - x\n  - 'null'\n  - \nc: {d: e}\n"
	                                     "t: |\n  one\n  two\n",
	        &e);
	must(d != NULL, "a small document parses: %s", e.text);
	const struct yaml_node *r = yaml_root(d), *b = yaml_get(r, "b");
	ok(r->kind == YAML_MAP && r->count == 4, "four entries");
	ok(b->kind == YAML_SEQ && b->count == 3 && b->key_line == 2 && b->line == 3, "lines");
	ok(!yaml_is_null(b->first->next), "'null' in quotes is a text");
	ok(yaml_is_null(b->last), "an entry without value is null");
	is_str(yaml_path(r, "c.d")->text, "e", "path");
	is_str(yaml_get(r, "t")->text, "one\ntwo\n", "block text");
	ok(yaml_path(r, "c.x") == NULL && yaml_path(r, "a.b") == NULL, "missing paths");
}

static void empty(void)
{
	struct err e = {0};
	static const char *const texts[] = {"", "\n\n", "# only\n", "---\n", "~\n"};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		auto_yaml struct yaml_doc *d = parse(texts[i], &e);
		ok(d && yaml_root(d)->kind == YAML_MAP && yaml_root(d)->count == 0,
		        "empty document %zu is an empty map", i);
	}
}

static void limits(void)
{
	struct err e = {0};
	auto_buf struct buf b = BUF_INIT(4 << 20);
	for (int i = 0; i < YAML_NODES_MAX + 1; i++)
		buf_puts(&b, "- a\n");
	refused(b.p, "f:20000: more than 20000 values");
	buf_clear(&b);
	for (int i = 0; i < YAML_KEYS_MAX + 1; i++)
		buf_printf(&b, "k%d: a\n", i);
	refused(b.p, "f:1025: more than 1024 keys");
	buf_clear(&b);
	for (int i = 0; i < 100000; i++)
		buf_putc(&b, '[');
	refused(b.p, "f:1: nested deeper than 24");
	auto_yaml struct yaml_doc *d =
	        yaml_parse("f", 1, "a: \"x\\0y\"\n", strlen("a: \"x\\0y\"\n"), &e);
	ok(!d && strstr(e.text, "NUL"), "an escaped NUL is refused");
}

int main(void)
{
	tree();
	empty();
	limits();
	refused("a: 1\na: 2\n", "f:2: key 'a' is given twice, first in line 1");
	refused("a: &x 1\n", "f:1: anchors");
	refused("a: &x [1]\n", "f:1: anchors");
	refused("a: *x\n", "f:1: aliases");
	refused("a: !!str 1\n", "f:1: tags");
	refused("a: !x {b: c}\n", "f:1: tags");
	refused("? {a: b}\n: c\n", "f:1: a key must be a text");
	refused("a: 1\n---\nb: 2\n", "f:2: a second document");
	refused("%YAML 1.1\n---\na: 1\n", "f:1: directives");
	refused("a: [1, 2\n", "f:2: did not find expected");
	refused("a: 'x\n", "f:2: found unexpected end of stream");
	refused("a: b: c\n", "f:1: mapping values are not allowed");
	refused("\tb: 1\n", "f:1: found character that cannot start any token");
	return done();
}
