/*
 * yaml.h - a YAML text as a tree of nodes with line numbers.
 *
 * The one user of libyaml.  Less than YAML on purpose: one document, no
 * anchors, aliases, tags or merge keys, keys are plain texts and unique in
 * their map, and depth, width and number of nodes are limited.  What a text
 * means (number, size, list of names) is decided by who reads it (keys.h), so
 * there is no "norway is false" here.
 *
 * Nodes and texts belong to the document and go with it.
 */
#ifndef POLICY_YAML_H
#define POLICY_YAML_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum {
	YAML_DEPTH_MAX = 24,    /* the deepest file of ours has 6 */
	YAML_NODES_MAX = 20000, /* a megabyte of two-word entries is beyond any sense */
	YAML_KEYS_MAX = 1024,   /* of one map: finding duplicates compares each with each */
};

enum yaml_kind { YAML_SCALAR, YAML_SEQ, YAML_MAP };

struct yaml_node {
	enum yaml_kind kind;
	int line;         /* where the value begins, from 1 */
	int key_line;     /* of an entry of a map */
	const char *key;  /* of an entry of a map, else NULL */
	const char *list; /* of an entry of a list: the key that list stands under, or NULL */
	const char *text; /* SCALAR; has no NUL inside */
	size_t len;       /* of text */
	bool quoted;      /* SCALAR in quotes or a block: always a text */
	size_t count;     /* children */
	struct yaml_node *first, *last, *next;
};

struct yaml_doc; /* opaque */

/* Returns owned, or NULL with *e set ("file:line: ...").  `file` is copied for messages;
 * `first_line` is the number of the text's first line in that file.  An empty document is an
 * empty map. */
struct yaml_doc *yaml_parse(
        const char *file, int first_line, const char *text, size_t n, struct err *e);
void yaml_doc_free(struct yaml_doc *d); /* NULL is fine; yaml_free is a symbol of libyaml */
static inline void auto_yaml_(struct yaml_doc **d)
{
	yaml_doc_free(*d);
}
#define auto_yaml __attribute__((cleanup(auto_yaml_)))

const struct yaml_node *yaml_root(const struct yaml_doc *d);
const char *yaml_file(const struct yaml_doc *d);

/* Entry of a map, or NULL (also for NULL and for what is no map). */
const struct yaml_node *yaml_get(const struct yaml_node *map, const char *key);
/* yaml_path(root, "egress.inject"): entry of an entry, or NULL. */
const struct yaml_node *yaml_path(const struct yaml_node *root, const char *dotted);
/* The empty scalar, ~ and null: a key without a value. */
bool yaml_is_null(const struct yaml_node *n);
const char *yaml_kind_name(const struct yaml_node *n); /* "a text", "a list", "a map" */

#define yaml_each(it, parent) for (const struct yaml_node *it = (parent)->first; it; it = it->next)

#endif
