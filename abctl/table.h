/*
 * table.h - lists of the API as aligned columns, and one object as a tree.
 */
#ifndef ABCTL_TABLE_H
#define ABCTL_TABLE_H

#include "base/buf.h"
#include "base/json.h"

#include <stddef.h>

enum cell_kind {
	CELL_TEXT,
	CELL_TIME,
	CELL_BYTES,
	CELL_MS,
	CELL_COUNT, /* of a list: its elements */
	CELL_SHORT  /* 12 characters */
};

/* A column: its heading, and the member of each object it shows ("exit.code" for a nested one). */
struct column {
	const char *heading, *member;
	enum cell_kind kind;
};

/* Appends the heading and a line for each object of `list`.  columns ends with a NULL heading.
 * Lines are cut to `width` columns, 0: not at all. */
void table_write(
        struct buf *to, const struct column *columns, const struct json *list, size_t width);

/* Appends an object as "key: value" lines, nested ones indented. */
void table_tree(struct buf *to, const struct json *value, unsigned depth);

#endif
