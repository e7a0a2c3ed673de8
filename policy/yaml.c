#include "policy/yaml.h"
#include "base/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

/*
 * Events of libyaml drive a stack of open collections.  The document API of
 * libyaml is not used: it resolves aliases and gives no hold to stop at a depth.
 */

enum { ARENA_BLOCK = 16 << 10 };

struct block {
	struct block *next;
	size_t used, size;
	max_align_t bytes[];
};

struct yaml_doc {
	struct block *blocks; /* owned */
	char *file;           /* owned */
	struct yaml_node *root;
	size_t nodes;
};

struct build {
	struct yaml_doc *doc;
	struct err *e;
	const char *text; /* borrowed: for yaml_parse */
	size_t text_len;
	int first_line;
	struct yaml_node *open[YAML_DEPTH_MAX];
	int depth;
	const char *key; /* of the open map, read and waiting for its value */
	int key_line;
	bool ended;
};

static void *arena(struct yaml_doc *d, size_t n)
{
	n = (n + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
	struct block *b = d->blocks;
	if (!b || b->size - b->used < n) {
		size_t size = n > ARENA_BLOCK ? n : ARENA_BLOCK;
		b = xcalloc(1, sizeof(*b) + size);
		b->size = size;
		b->next = d->blocks;
		d->blocks = b;
	}
	void *p = (char *)b->bytes + b->used;
	b->used += n;
	return p;
}

static const char *arena_text(struct yaml_doc *d, const void *p, size_t n)
{
	char *text = arena(d, n + 1);
	memcpy(text, p, n);
	text[n] = '\0';
	return text;
}

static int line_of(const struct build *b, const yaml_mark_t *mark)
{
	return b->first_line + (mark->line > INT32_MAX / 2 ? INT32_MAX / 2 : (int)mark->line);
}

static int __attribute__((format(printf, 3, 4)))
fail(struct build *b, int line, const char *fmt, ...)
{
	char text[ERR_TEXT_MAX];
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return err_set(b->e, -EINVAL, "%s:%d: %s", b->doc->file, line, text);
}

static struct yaml_node *node_new(struct build *b, enum yaml_kind kind, int line)
{
	if (++b->doc->nodes > YAML_NODES_MAX) {
		(void)fail(b, line, "more than %d values in one file", YAML_NODES_MAX);
		return NULL;
	}
	struct yaml_node *n = arena(b->doc, sizeof(*n));
	n->kind = kind;
	n->line = line;
	return n;
}

/* Puts a finished value where it belongs: under its key, at the end of a list, or on top. */
static int attach(struct build *b, struct yaml_node *n)
{
	if (b->depth == 0) {
		b->doc->root = n;
		return 0;
	}
	struct yaml_node *in = b->open[b->depth - 1];
	if (in->kind == YAML_MAP) {
		n->key = b->key;
		n->key_line = b->key_line;
		b->key = NULL;
	} else {
		n->list = in->key ? in->key : in->list;
	}
	if (in->last)
		in->last->next = n;
	else
		in->first = n;
	in->last = n;
	in->count++;
	return 0;
}

static bool wants_key(const struct build *b)
{
	return b->depth > 0 && b->open[b->depth - 1]->kind == YAML_MAP && !b->key;
}

static int take_key(struct build *b, const yaml_event_t *ev, int line)
{
	const struct yaml_node *map = b->open[b->depth - 1];
	if (map->count >= YAML_KEYS_MAX)
		return fail(b, line, "more than %d keys in one map", YAML_KEYS_MAX);
	const char *key = arena_text(b->doc, ev->data.scalar.value, ev->data.scalar.length);
	const struct yaml_node *twin = yaml_get(map, key);
	if (twin)
		return fail(b, line, "key '%.60s' is given twice, first in line %d", key,
		        twin->key_line);
	b->key = key;
	b->key_line = line;
	return 0;
}

static int on_scalar(struct build *b, const yaml_event_t *ev)
{
	int line = line_of(b, &ev->start_mark);
	if (ev->data.scalar.anchor)
		return fail(b, line, "anchors (&%.40s) are not accepted", ev->data.scalar.anchor);
	if (ev->data.scalar.tag)
		return fail(b, line, "tags (%.40s) are not accepted", ev->data.scalar.tag);
	if (memchr(ev->data.scalar.value, '\0', ev->data.scalar.length))
		return fail(b, line, "a NUL character is not accepted");
	if (wants_key(b))
		return take_key(b, ev, line);
	struct yaml_node *n = node_new(b, YAML_SCALAR, line);
	if (!n)
		return -EINVAL;
	n->text = arena_text(b->doc, ev->data.scalar.value, ev->data.scalar.length);
	n->len = ev->data.scalar.length;
	n->quoted = ev->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
	return attach(b, n);
}

static int on_open(struct build *b, const yaml_event_t *ev, enum yaml_kind kind)
{
	int line = line_of(b, &ev->start_mark);
	const yaml_char_t *anchor =
	        kind == YAML_SEQ ? ev->data.sequence_start.anchor : ev->data.mapping_start.anchor;
	const yaml_char_t *tag =
	        kind == YAML_SEQ ? ev->data.sequence_start.tag : ev->data.mapping_start.tag;
	if (anchor)
		return fail(b, line, "anchors (&%.40s) are not accepted", anchor);
	if (tag)
		return fail(b, line, "tags (%.40s) are not accepted", tag);
	if (wants_key(b))
		return fail(b, line, "a key must be a text");
	if (b->depth == YAML_DEPTH_MAX)
		return fail(b, line, "nested deeper than %d", YAML_DEPTH_MAX);
	struct yaml_node *n = node_new(b, kind, line);
	if (!n || attach(b, n) < 0)
		return -EINVAL;
	b->open[b->depth++] = n;
	return 0;
}

static int on_event(struct build *b, const yaml_event_t *ev)
{
	int line = line_of(b, &ev->start_mark);
	switch (ev->type) {
	case YAML_SCALAR_EVENT:
		return on_scalar(b, ev);
	case YAML_SEQUENCE_START_EVENT:
		return on_open(b, ev, YAML_SEQ);
	case YAML_MAPPING_START_EVENT:
		return on_open(b, ev, YAML_MAP);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		b->depth--;
		return 0;
	case YAML_ALIAS_EVENT:
		return fail(b, line,
		        "aliases (*%.40s) are not accepted; a text that begins with * needs quotes",
		        ev->data.alias.anchor);
	case YAML_DOCUMENT_START_EVENT:
		if (b->doc->root)
			return fail(b, line, "a second document begins here; one is accepted");
		if (ev->data.document_start.version_directive ||
		        ev->data.document_start.tag_directives.start !=
		                ev->data.document_start.tag_directives.end)
			return fail(b, line, "directives (%%YAML, %%TAG) are not accepted");
		return 0;
	case YAML_STREAM_END_EVENT:
		b->ended = true;
		return 0;
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_DOCUMENT_END_EVENT:
		return 0;
	}
	return 0;
}

static int syntax_error(struct build *b, const yaml_parser_t *p)
{
	/* The reader works ahead of the parser: its errors have an offset instead of a mark. */
	if (p->error == YAML_READER_ERROR) {
		int at = b->first_line;
		for (size_t i = 0; i < p->problem_offset && i < b->text_len; i++)
			at += b->text[i] == '\n';
		return fail(b, at, "%s (byte %zu)", p->problem ? p->problem : "unreadable",
		        p->problem_offset);
	}
	if (p->error == YAML_MEMORY_ERROR)
		return err_set(b->e, -ENOMEM, "%s: out of memory", b->doc->file);
	int line = line_of(b, &p->problem_mark);
	if (p->context && p->context_mark.line != p->problem_mark.line)
		return fail(b, line, "%s (%s that began in line %d)",
		        p->problem ? p->problem : "syntax error", p->context,
		        line_of(b, &p->context_mark));
	return fail(b, line, "%s", p->problem ? p->problem : "syntax error");
}

static int run(struct build *b, yaml_parser_t *p)
{
	while (!b->ended) {
		yaml_event_t ev;
		if (!yaml_parser_parse(p, &ev))
			return syntax_error(b, p);
		int r = on_event(b, &ev);
		yaml_event_delete(&ev);
		if (r < 0)
			return r;
	}
	return 0;
}

/* A key that waits for its value is written as `key:` and then has the null scalar: libyaml
 * makes that scalar, so nothing is left over here.  Only the missing document needs a root. */
static void finish(struct build *b)
{
	struct yaml_node *root = b->doc->root;
	if (root && !yaml_is_null(root))
		return;
	b->doc->root = arena(b->doc, sizeof(*root));
	b->doc->root->kind = YAML_MAP;
	b->doc->root->line = b->first_line;
}

struct yaml_doc *yaml_parse(
        const char *file, int first_line, const char *text, size_t n, struct err *e)
{
	auto_yaml struct yaml_doc *d = xnew(struct yaml_doc);
	d->file = xstrdup(file);
	struct build b = {.doc = d, .e = e, .text = text, .text_len = n, .first_line = first_line};
	yaml_parser_t p;
	if (!yaml_parser_initialize(&p)) {
		(void)err_set(e, -ENOMEM, "%s: out of memory", file);
		return NULL;
	}
	yaml_parser_set_encoding(&p, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&p, (const unsigned char *)text, n);
	int r = run(&b, &p);
	yaml_parser_delete(&p);
	if (r < 0)
		return NULL;
	finish(&b);
	return take(d);
}

void yaml_doc_free(struct yaml_doc *d)
{
	if (!d)
		return;
	for (struct block *b = d->blocks, *next; b; b = next) {
		next = b->next;
		free(b);
	}
	free(d->file);
	free(d);
}

const struct yaml_node *yaml_root(const struct yaml_doc *d)
{
	return d->root;
}

const char *yaml_file(const struct yaml_doc *d)
{
	return d->file;
}

const struct yaml_node *yaml_get(const struct yaml_node *map, const char *key)
{
	if (!map || map->kind != YAML_MAP)
		return NULL;
	yaml_each (n, map)
		if (strcmp(n->key, key) == 0)
			return n;
	return NULL;
}

const struct yaml_node *yaml_path(const struct yaml_node *root, const char *dotted)
{
	char part[64];
	while (root && *dotted) {
		size_t n = strcspn(dotted, ".");
		if (n >= sizeof(part))
			return NULL;
		memcpy(part, dotted, n);
		part[n] = '\0';
		root = yaml_get(root, part);
		dotted += n + (dotted[n] == '.');
	}
	return root;
}

bool yaml_is_null(const struct yaml_node *n)
{
	return n->kind == YAML_SCALAR && !n->quoted &&
	       (n->len == 0 || strcmp(n->text, "~") == 0 || strcmp(n->text, "null") == 0);
}

const char *yaml_kind_name(const struct yaml_node *n)
{
	switch (n->kind) {
	case YAML_SEQ:
		return "a list";
	case YAML_MAP:
		return "a map";
	case YAML_SCALAR:
		break;
	}
	return "a text";
}
