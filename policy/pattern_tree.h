/*
 * pattern_tree.h - a pattern as a tree: what pattern.c makes its program of.
 *
 * Inside policy/pattern*.c only.  Plain data of a fixed size, without pointers to be freed.
 */
#ifndef POLICY_PATTERN_TREE_H
#define POLICY_PATTERN_TREE_H

#include "base/err.h"
#include "policy/pattern.h"

#include <stdbool.h>
#include <stdint.h>

enum pattern_kind {
	NODE_EMPTY,
	NODE_SET,
	NODE_CAT,
	NODE_ALT,
	NODE_REPEAT,
	NODE_BOL,
	NODE_EOL,
	NODE_WORD,
	NODE_NOT_WORD
};

struct byte_set {
	uint8_t bits[32];
};
bool byte_set_has(const struct byte_set *s, unsigned char c);
bool byte_is_word(unsigned char c); /* as \w has it */

struct pattern_node {
	enum pattern_kind kind;
	int a, b;        /* CAT, ALT: both; REPEAT: a */
	int least, most; /* REPEAT; most -1: without end */
	struct byte_set set;
};

enum { PATTERN_NODES = 2 * PATTERN_TEXT_MAX + 8 };

struct pattern_tree {
	const char *p; /* what is still to be read */
	bool fold;     /* (?i) */
	int depth, n;
	struct pattern_node nodes[PATTERN_NODES];
	struct err *e; /* borrowed: for the call */
};

/* Its root, or -EINVAL, -E2BIG. */
MUST_USE int pattern_parse(struct pattern_tree *x, const char *text, struct err *e);

#endif
