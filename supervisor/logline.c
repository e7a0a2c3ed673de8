#include "supervisor/logline.h"

#include "base/fd.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"

#include <string.h>

enum {
	INDEX_STEP = 64 << 10, /* a seek scans at most this much */
	SCAN_CHUNK = 256 << 10,
	ROOM_KEPT = 256 << 10, /* of the buffer for lines to be written */
};

/* ---- lines ---- */

static const char *after(const char *p, const char *end, const char *text)
{
	size_t n = strlen(text);
	return p && (size_t)(end - p) >= n && memcmp(p, text, n) == 0 ? p + n : NULL;
}

/* Up to the next quote: ids, times and types contain none. */
static const char *word(const char *p, const char *end, const char **ret, size_t *ret_len)
{
	const char *q = p ? memchr(p, '"', (size_t)(end - p)) : NULL;
	if (!q)
		return NULL;
	*ret = p;
	*ret_len = (size_t)(q - p);
	return q + 1;
}

bool logline_head(const char *line, size_t n, struct logline_head *ret)
{
	const char *end = line + n, *skipped;
	size_t len;
	const char *p = after(line, end, "{\"seq\":");
	uint64_t seq = 0;
	while (p && p < end && *p >= '0' && *p <= '9' && seq < UINT64_MAX / 16)
		seq = seq * 10 + (uint64_t)(*p++ - '0');
	p = word(after(p, end, ",\"ts\":\""), end, &ret->ts, &ret->ts_len);
	p = word(after(p, end, ",\"session\":\""), end, &skipped, &len);
	p = word(after(p, end, ",\"run\":\""), end, &ret->run, &ret->run_len);
	p = word(after(p, end, ",\"type\":\""), end, &ret->type, &ret->type_len);
	if (!p || seq == 0)
		return false;
	ret->seq = seq;
	return true;
}

static const char *stamp(struct logline_writer *out)
{
	int64_t now = clock_wall_ms();
	if (now != out->stamp_ms) {
		out->stamp_ms = now;
		clock_rfc3339(now, out->stamp);
	}
	return out->stamp;
}

/* For every line of every agent: printf would be a seventh of its whole way. */
int logline_encode(struct logline_writer *out, uint64_t seq, const char *session, const char *run,
        enum event_type t, const char *members, size_t n)
{
	struct buf *b = &out->line;
	if (b->room > ROOM_KEPT)
		buf_done(b); /* one long line, and the next are short */
	buf_clear(b);
	struct jw w = JW_INIT(b);
	buf_putc(b, '{');
	jw_int(&w, "seq", (int64_t)seq);
	buf_puts(b, ",\"ts\":\"");
	buf_puts(b, stamp(out));
	buf_puts(b, "\",\"session\":\"");
	buf_puts(b, session);
	buf_puts(b, "\",\"run\":\"");
	buf_puts(b, run);
	buf_puts(b, "\",\"type\":\"");
	buf_puts(b, event_name(t));
	buf_putc(b, '"');
	if (n) {
		buf_putc(b, ',');
		buf_put(b, members, n);
	}
	buf_puts(b, "}\n");
	return b->failed;
}

/* ---- the index ---- */

void logline_index_add(struct logline_index *x, uint64_t seq, uint64_t offset)
{
	if (x->n && offset - x->marks[x->n - 1].offset < INDEX_STEP)
		return;
	if (x->n == x->room) {
		x->room = x->room ? 2 * x->room : 8;
		x->marks = xrealloc(x->marks, x->room, sizeof(*x->marks));
	}
	x->marks[x->n++] = (struct logline_mark){seq, offset};
}

uint64_t logline_index_find(const struct logline_index *x, uint64_t seq)
{
	size_t lo = 0, hi = x->n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (x->marks[mid].seq <= seq)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? x->marks[lo - 1].offset : 0;
}

uint64_t logline_index_below(const struct logline_index *x, uint64_t offset)
{
	size_t n = x->n;
	while (n && x->marks[n - 1].offset > offset)
		n--;
	return n ? x->marks[n - 1].offset : 0;
}

void logline_index_done(struct logline_index *x)
{
	free(x->marks);
	*x = (struct logline_index){0};
}

/* ---- files ---- */

/* NULs there: what was taken out of the file (eventlog_cut).  No line begins with one. */
static size_t hole(const struct buf *b, size_t from)
{
	size_t at = from;
	while (at < b->len && b->p[at] == '\0')
		at++;
	return at - from;
}

int logline_each(int fd, uint64_t offset, uint64_t end, logline_fn *line, void *ctx)
{
	auto_buf struct buf b = BUF_INIT(LIMIT_EVENT + SCAN_CHUNK);
	uint64_t at = offset; /* file position of b.p */
	size_t searched = 0;
	for (;;) {
		size_t gap = hole(&b, 0);
		if (gap) {
			buf_consume(&b, gap);
			at += gap;
			searched = 0;
		}
		char *nl = b.len > searched ? memchr(b.p + searched, '\n', b.len - searched) : NULL;
		if (nl) {
			size_t n = (size_t)(nl - b.p);
			if (!line(ctx, b.p, n, at))
				return 0;
			/* One line of a chunk at a time would move the rest each time: find all
			 * lines of the chunk first. */
			size_t from = n + 1 + hole(&b, n + 1);
			while ((nl = memchr(b.p + from, '\n', b.len - from)) != NULL) {
				n = (size_t)(nl - b.p) - from;
				if (!line(ctx, b.p + from, n, at + from))
					return 0;
				from += n + 1;
				from += hole(&b, from);
			}
			buf_consume(&b, from);
			at += from;
		}
		searched = b.len;
		uint64_t pos = at + b.len;
		if (pos >= end)
			return 0;
		size_t want = end - pos < SCAN_CHUNK ? (size_t)(end - pos) : SCAN_CHUNK;
		int rc = buf_reserve(&b, want);
		if (rc < 0)
			return rc;
		ssize_t got = fd_pread_full(fd, b.p + b.len, want, (off_t)pos);
		if (got <= 0)
			return got < 0 ? (int)got : 0;
		b.len += (size_t)got;
	}
}
