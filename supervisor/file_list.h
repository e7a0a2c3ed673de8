/*
 * file_list.h - a directory of a workspace as a page of JSON, by name.
 *
 * A worker tells all names of a directory in the order of the disk; the first of those behind the
 * cursor are kept and no more, so that its memory is that of one page.  Pure.
 */
#ifndef SUPERVISOR_FILE_LIST_H
#define SUPERVISOR_FILE_LIST_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct file_list;

/* cursor: the name after which to go on, or NULL.  Returns owned. */
struct file_list *file_list_new(unsigned limit, const char *cursor);
void file_list_free(struct file_list *l); /* NULL is fine */

/* One of the directory; mode: st_mode. */
void file_list_add(
        struct file_list *l, const char *name, uint32_t mode, uint64_t bytes, int64_t changed_ms);
/* {"path","entries":[...],"cursor"?,...}; into an empty buf, whose limit is set. */
void file_list_json(const struct file_list *l, const char *path, bool truncated, struct buf *ret);

#endif
