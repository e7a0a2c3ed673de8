#include "supervisor/frames.h"

#include "base/limits.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum {
	KEPT = 16,                /* followers of one session come one after the other */
	KEPT_BYTES = 128 << 10,   /* each */
	LINES_KEPT = 128 << 10,   /* of the buffer for lines */
	FRAMES_SLACK = 128 << 10, /* what an event's frame is longer by, and what came before it */
};

/* For whom a frame is. */
struct key {
	char session[ID_MAX], run[ID_MAX];
	enum frames_format format;
	uint64_t offset, from;
};

struct kept {
	struct frame *frame; /* owned reference, or NULL */
	struct key key;
	struct eventlog_cursor after;
};

struct frames {
	struct kept kept[KEPT];
	unsigned next;
	struct buf lines; /* for the call at hand */
};

/* ---- one line ---- */

void frames_put(struct buf *to, enum frames_format f, const struct logline_head *h,
        const char *line, size_t n)
{
	if (f == FRAMES_SSE)
		buf_printf(to, "id: %llu\nevent: %.*s\ndata: ", (unsigned long long)h->seq,
		        (int)h->type_len, h->type);
	buf_put(to, line, n);
	buf_puts(to, f == FRAMES_SSE ? "\n\n" : "\n");
}

bool frames_of_run(const struct logline_head *h, const char *run)
{
	return !run[0] || (h->run_len == strlen(run) && memcmp(h->run, run, h->run_len) == 0);
}

bool frames_is_done(const struct logline_head *h)
{
	static const char done[] = "run.done";
	return h->type_len == sizeof(done) - 1 && memcmp(h->type, done, h->type_len) == 0;
}

/* ---- life ---- */

struct frames *frames_new(void)
{
	struct frames *fs = xnew(struct frames);
	fs->lines = (struct buf)BUF_INIT(LIMIT_EVENT + FRAMES_SLACK);
	return fs;
}

void frames_drop(struct frame *f)
{
	if (!f || --f->refs > 0)
		return;
	buf_done(&f->out);
	free(f);
}

void frames_free(struct frames *fs)
{
	for (size_t i = 0; fs && i < KEPT; i++)
		frames_drop(fs->kept[i].frame);
	if (fs)
		buf_done(&fs->lines);
	free(fs);
}

/* ---- what is shared ---- */

static struct key key_of(const struct frames_spec *spec, const struct eventlog_cursor *c)
{
	struct key k = {.format = spec->format, .offset = c->offset, .from = spec->from};
	(void)str_copy(k.session, sizeof(k.session), c->session);
	(void)str_copy(k.run, sizeof(k.run), spec->run);
	return k;
}

static struct kept *find(struct frames *fs, const struct key *k)
{
	for (size_t i = 0; i < KEPT; i++) {
		struct kept *x = &fs->kept[i];
		if (x->frame && x->key.offset == k->offset && x->key.from == k->from &&
		        x->key.format == k->format && strcmp(x->key.session, k->session) == 0 &&
		        strcmp(x->key.run, k->run) == 0)
			return x;
	}
	return NULL;
}

static void keep(struct frames *fs, const struct key *k, const struct eventlog_cursor *after,
        struct frame *f)
{
	if (f->out.room > KEPT_BYTES)
		return;
	struct kept *x = &fs->kept[fs->next++ % KEPT];
	frames_drop(x->frame);
	f->refs++;
	*x = (struct kept){.frame = f, .key = *k, .after = *after};
}

/* ---- reading ---- */

/* Frames what is in `lines`; an event of its own run that ends it ends the frame. */
static void frame_lines(const struct buf *lines, const struct frames_spec *spec, struct frame *f)
{
	const char *p = lines->p, *end = p + lines->len;
	while (p < end && !f->ended) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t n = (size_t)((nl ? nl : end) - p);
		struct logline_head h;
		if (logline_head(p, n, &h) && frames_of_run(&h, spec->run)) {
			/* `from` may lie beyond the log's end of now. */
			if (h.seq >= spec->from)
				frames_put(&f->out, spec->format, &h, p, n);
			f->ended = spec->run[0] && frames_is_done(&h);
		}
		p += n + 1;
	}
}

int frames_next(struct frames *fs, struct eventlog *g, const struct frames_spec *spec,
        struct eventlog_cursor *c, size_t max, size_t limit, struct frame **ret, struct err *e)
{
	struct key k = key_of(spec, c);
	/* Who stands at what is not kept any more is told of a gap: a frame of before would come
	 * behind that. */
	bool shared = c->placed && c->seq >= eventlog_first(g, c->session);
	struct kept *x = shared ? find(fs, &k) : NULL;
	if (x) {
		*c = x->after;
		x->frame->refs++;
		*ret = x->frame;
		return 1;
	}
	buf_clear(&fs->lines);
	fs->lines.limit = limit + max;
	int64_t n = eventlog_read(g, c, &fs->lines, max, e);
	if (n <= 0)
		return (int)n;
	struct frame *f = xnew(struct frame);
	f->refs = 1;
	f->out = (struct buf)BUF_INIT(LIMIT_EVENT + FRAMES_SLACK);
	frame_lines(&fs->lines, spec, f);
	if (fs->lines.room > LINES_KEPT)
		buf_done(&fs->lines);
	if (f->out.failed) {
		int rc = f->out.failed;
		frames_drop(f);
		return err_set(e, rc, "an event does not fit into its frame");
	}
	if (shared)
		keep(fs, &k, c, f);
	*ret = f;
	return 1;
}
