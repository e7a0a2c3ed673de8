#include "supervisor/file_list.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
	ENTRY_BYTES = 2048, /* of one in JSON: a name of 255 bytes, each an escape */
	HEAD_BYTES = 32 << 10,
};

struct entry {
	char *name; /* owned */
	uint32_t mode;
	uint64_t bytes;
	int64_t changed_ms;
};

struct file_list {
	char *cursor; /* owned, or NULL */
	unsigned limit, n;
	uint64_t unnamed;      /* whose names are no text that JSON could have */
	struct entry *entries; /* owned: room for one more than limit; by name */
};

struct file_list *file_list_new(unsigned limit, const char *cursor)
{
	struct file_list *l = xnew(struct file_list);
	l->limit = limit;
	l->cursor = cursor ? xstrdup(cursor) : NULL;
	l->entries = xcalloc((size_t)limit + 1, sizeof(*l->entries));
	return l;
}

void file_list_free(struct file_list *l)
{
	if (!l)
		return;
	for (unsigned i = 0; i < l->n; i++)
		free(l->entries[i].name);
	free(l->entries);
	free(l->cursor);
	free(l);
}

/* Where a name belongs among those that are kept. */
static unsigned place_of(const struct file_list *l, const char *name)
{
	unsigned from = 0, to = l->n;
	while (from < to) {
		unsigned middle = (from + to) / 2;
		if (strcmp(l->entries[middle].name, name) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

void file_list_add(
        struct file_list *l, const char *name, uint32_t mode, uint64_t bytes, int64_t changed_ms)
{
	if (!json_writable(name, strlen(name))) {
		l->unnamed++;
		return;
	}
	unsigned at = place_of(l, name);
	if (at > l->limit || (l->cursor && strcmp(name, l->cursor) <= 0))
		return;
	if (l->n > l->limit)
		free(l->entries[--l->n].name);
	memmove(l->entries + at + 1, l->entries + at, (l->n - at) * sizeof(*l->entries));
	l->entries[at] = (struct entry){xstrdup(name), mode, bytes, changed_ms};
	l->n++;
}

static const char *type_of(uint32_t mode)
{
	if (S_ISREG(mode))
		return "file";
	if (S_ISDIR(mode))
		return "directory";
	return S_ISLNK(mode) ? "link" : "other";
}

static void put_entry(struct jw *w, const struct entry *x)
{
	char mode[8], when[CLOCK_TEXT_MAX];
	(void)snprintf(mode, sizeof(mode), "%04o", x->mode & 07777);
	clock_rfc3339(x->changed_ms, when);
	jw_open(w, NULL, '{');
	jw_str(w, "name", x->name);
	jw_str(w, "type", type_of(x->mode));
	if (S_ISREG(x->mode))
		jw_int(w, "bytes", (int64_t)x->bytes);
	jw_str(w, "mode", mode);
	jw_str(w, "changedAt", when);
	jw_close(w, '}');
}

void file_list_json(const struct file_list *l, const char *path, bool truncated, struct buf *ret)
{
	*ret = (struct buf)BUF_INIT(HEAD_BYTES + (size_t)l->limit * ENTRY_BYTES);
	struct jw w = JW_INIT(ret);
	jw_open(&w, NULL, '{');
	jw_str(&w, "path", path);
	jw_open(&w, "entries", '[');
	for (unsigned i = 0; i < l->n && i < l->limit; i++)
		put_entry(&w, &l->entries[i]);
	jw_close(&w, ']');
	if (l->unnamed)
		jw_int(&w, "unnamed", (int64_t)l->unnamed);
	if (truncated)
		jw_bool(&w, "truncated", true);
	if (l->n > l->limit)
		jw_str(&w, "cursor", l->entries[l->limit - 1].name);
	jw_close(&w, '}');
}
