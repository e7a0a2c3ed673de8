#include "base/mem.h"
#include "drivers/acp.h"
#include "drivers/emit.h"

#include <string.h>

/*
 * The agent tells a changed file as two texts: what it was and what it is.  The
 * event has a unified diff.  One hunk from the first line that differs to the
 * last one is enough: edits of agents are small, and whoever wants a smaller
 * diff has the files.
 */

enum { CONTEXT = 3 };

static size_t bytes_of(const char *s)
{
	return s ? strlen(s) + 1 : 0;
}

void acp_diff_keep(struct driver_run *r, struct acp_call *c, const struct json *block)
{
	const char *path = json_str(block, "path", NULL), *is = json_str(block, "newText", NULL);
	const char *was = json_str(block, "oldText", NULL);
	const char *kind = json_str(json_get(block, "_meta"), "kind", "");
	if (!path || !is)
		return;
	if (was && !*was) /* some give "" for a file that is new */
		was = NULL;
	size_t i = 0;
	while (i < c->ndiffs && strcmp(c->diffs[i].path, path) != 0)
		i++;
	bool more = i == c->ndiffs;
	size_t old = more ? 0 : bytes_of(c->diffs[i].was) + bytes_of(c->diffs[i].is);
	size_t new = (more ? bytes_of(path) : 0) + bytes_of(was) + bytes_of(is);
	if (i == ACP_DIFFS_MAX || r->diff_bytes - old + new > ACP_DIFF_BYTES)
		return;
	c->diff_bytes += new - old;
	r->diff_bytes += new - old;
	if (more) {
		c->diffs = xrealloc(c->diffs, c->ndiffs + 1, sizeof(*c->diffs));
		c->diffs[c->ndiffs++] = (struct acp_diff){.path = xstrdup(path)};
	}
	struct acp_diff *d = &c->diffs[i];
	free(d->was);
	free(d->is);
	d->was = was ? xstrdup(was) : NULL;
	d->is = xstrdup(is);
	d->deleted = strcmp(kind, "delete") == 0;
}

void acp_diffs_done(struct driver_run *r, struct acp_call *c)
{
	r->diff_bytes -= c->diff_bytes;
	for (size_t i = 0; i < c->ndiffs; i++) {
		free(c->diffs[i].path);
		free(c->diffs[i].was);
		free(c->diffs[i].is);
	}
	free(c->diffs);
}

/* ---- lines ---- */

struct text {
	const char **at; /* owned: where each line begins, and the end */
	size_t n;
};

static struct text lines_of(const char *s)
{
	struct text t = {.at = xcalloc(1, sizeof(*t.at))};
	size_t room = 1;
	for (const char *p = s; *p;) {
		if (t.n + 2 > room) {
			room *= 2;
			t.at = xrealloc(t.at, room, sizeof(*t.at));
		}
		t.at[t.n++] = p;
		const char *nl = strchr(p, '\n');
		p = nl ? nl + 1 : p + strlen(p);
		t.at[t.n] = p;
	}
	return t;
}

static bool same_line(const struct text *a, size_t i, const struct text *b, size_t k)
{
	size_t n = (size_t)(a->at[i + 1] - a->at[i]);
	return n == (size_t)(b->at[k + 1] - b->at[k]) && memcmp(a->at[i], b->at[k], n) == 0;
}

static void put_lines(struct buf *to, char mark, const struct text *t, size_t from, size_t n)
{
	for (size_t i = from; i < from + n; i++) {
		size_t len = (size_t)(t->at[i + 1] - t->at[i]);
		buf_putc(to, mark);
		buf_put(to, t->at[i], len);
		if (t->at[i][len - 1] != '\n')
			buf_puts(to, "\n\\ No newline at end of file\n");
	}
}

/* Of an empty range a diff names the line before it. */
static size_t first_line(size_t from, size_t n)
{
	return n ? from + 1 : from;
}

static void put_hunk(struct buf *to, const struct text *a, const struct text *b)
{
	size_t head = 0, tail = 0, least = a->n < b->n ? a->n : b->n;
	while (head < least && same_line(a, head, b, head))
		head++;
	while (tail < least - head && same_line(a, a->n - tail - 1, b, b->n - tail - 1))
		tail++;
	if (head == a->n && head == b->n)
		return;
	size_t before = head < CONTEXT ? head : CONTEXT, after = tail < CONTEXT ? tail : CONTEXT;
	size_t gone = a->n - head - tail, come = b->n - head - tail, from = head - before;
	size_t na = before + gone + after, nb = before + come + after;
	buf_printf(to, "@@ -%zu,%zu +%zu,%zu @@\n", first_line(from, na), na, first_line(from, nb),
	        nb);
	put_lines(to, ' ', a, from, before);
	put_lines(to, '-', a, head, gone);
	put_lines(to, '+', b, head, come);
	put_lines(to, ' ', a, a->n - tail, after);
}

/* ---- events ---- */

static void emit_change(
        struct driver_run *r, const char *path, const char *change, const char *was, const char *is)
{
	auto_buf struct buf diff = EMIT_BUF, b = EMIT_BUF;
	acp_written_told(r, path);
	struct text x = lines_of(was ? was : ""), y = lines_of(is ? is : "");
	put_hunk(&diff, &x, &y);
	free(x.at);
	free(y.at);
	struct jw w = JW_INIT(&b);
	jw_str(&w, "path", emit_path(path));
	jw_str(&w, "change", change);
	if (diff.len && !diff.failed)
		jw_bytes(&w, "diff", diff.p, diff.len);
	(void)emit_members(r->sink, EVENT_FILE_CHANGED, &b); /* the result itself is told anyway */
}

void acp_diffs_emit(struct driver_run *r, const struct acp_call *c)
{
	bool deletes = c->kind && strcmp(c->kind, "delete") == 0;
	for (size_t i = 0; i < c->ndiffs; i++) {
		const struct acp_diff *d = &c->diffs[i];
		const char *change = d->deleted || deletes ? "delete" : d->was ? "edit" : "add";
		emit_change(r, d->path, change, d->was, d->is);
	}
	/* No text was told: the place is all there is. */
	bool edits = c->kind && strcmp(c->kind, "edit") == 0;
	if (!c->ndiffs && c->where && (edits || deletes))
		emit_change(r, c->where, deletes ? "delete" : "edit", NULL, NULL);
}
