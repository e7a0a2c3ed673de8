/*
 * Theory of operation.  A `struct log` is in memory for each session in use:
 * its descriptor, the next number, the size, and a sparse index, rebuilt by one
 * scan at open.  When a line may be seen and when it is safe: eventlog_commit.c.
 */
#include "supervisor/eventlog.h"

#include "base/fd.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "supervisor/eventlog_private.h"
#include "supervisor/hash.h"
#include "supervisor/logline.h"
#include "supervisor/stats.h"
#include "supervisor/store.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- opening ---- */

struct scan {
	struct log *log;
	uint64_t good_end, last;
};

static bool scan_line(void *ctx, const char *line, size_t n, uint64_t offset)
{
	struct scan *s = ctx;
	struct logline_head h;
	/* A line that is not ours in the middle of the file is left for people to look at; at the
	 * end it is what a crash left behind. */
	if (n && line[n - 1] == '}' && logline_head(line, n, &h)) {
		s->good_end = offset + n + 1;
		s->last = h.seq;
		s->log->last = offset;
		if (!s->log->first)
			s->log->first = h.seq;
		logline_index_add(&s->log->index, h.seq, offset);
	}
	return true;
}

static void log_free(struct eventlog *g, struct log *l)
{
	list_remove(&l->link);
	list_remove(&l->age);
	list_remove(&l->dirty);
	fd_close(l->fd);
	logline_index_done(&l->index);
	free(l->hidden);
	free(l);
	g->open--;
}

static struct list *bucket(struct eventlog *g, const char *session)
{
	return &g->buckets[hash_text(session) % EVENTLOG_BUCKETS];
}

/* Logs with nothing on its way can be forgotten; the next use scans them again. */
static void evict(struct eventlog *g)
{
	list_for_each (l, &g->ages, struct log, age) {
		if (g->open < EVENTLOG_FDS)
			return;
		if (!l->busy && l->nhidden == l->first_hidden && list_empty(&l->dirty))
			log_free(g, l);
	}
}

static int scan_file(struct log *l, struct err *e)
{
	struct stat st;
	if (fstat(l->fd, &st) < 0)
		return err_errno(e, "events of %s", l->session);
	struct scan s = {.log = l, .good_end = eventlog_start(l->fd)};
	l->start = s.good_end;
	int rc = logline_each(l->fd, l->start, (uint64_t)st.st_size, scan_line, &s);
	if (rc < 0)
		return err_set(
		        e, rc, "events of %s: cannot be read: %s", l->session, strerror(-rc));
	if (s.good_end < (uint64_t)st.st_size) {
		log_warn("s=%s: the event log ended within a line: %llu bytes cut", l->session,
		        (unsigned long long)((uint64_t)st.st_size - s.good_end));
		if (ftruncate(l->fd, (off_t)s.good_end) < 0)
			return err_errno(e, "events of %s: cut the torn end", l->session);
	}
	l->size = l->visible = s.good_end;
	l->next = s.last + 1;
	return 0;
}

struct stored {
	bool found, gap;
	uint64_t reserved;
};

static void got_session(void *ctx, const struct store_session *s)
{
	*(struct stored *)ctx = (struct stored){true, s->gap, s->reserved};
}

static int append(struct eventlog *g, struct log *l, const char *run, enum event_type t,
        const char *members, size_t n, bool held, struct err *e);

/* Numbers that may have been delivered and are not in the file: only a power cut does that. */
static int bridge_gap(struct eventlog *g, struct log *l, struct err *e)
{
	struct stored s = {0};
	if (!g->store) {
		l->reserved = UINT64_MAX;
		return 0;
	}
	int rc = store_session(g->store, l->session, got_session, &s, e);
	if (rc < 0 && rc != -ENOENT)
		return rc;
	l->reserved = s.reserved;
	if (!s.gap || s.reserved < l->next)
		return 0;
	char members[96];
	int n = snprintf(members, sizeof(members), "\"from\":%llu,\"to\":%llu",
	        (unsigned long long)l->next, (unsigned long long)s.reserved);
	l->next = s.reserved + 1;
	return append(g, l, "", EVENT_LOG_GAP, members, (size_t)n, false, e);
}

struct log *eventlog_log(struct eventlog *g, const char *session)
{
	list_for_each (l, bucket(g, session), struct log, link)
		if (strcmp(l->session, session) == 0) {
			list_remove(&l->age);
			list_append(&g->ages, &l->age);
			return l;
		}
	return NULL;
}

/* The file's directory entry must be as durable as what is written into it. */
static void sync_dir(struct eventlog *g)
{
	int fd = g->store ? fcntl(g->dirfd, F_DUPFD_CLOEXEC, 0) : -1;
	if (fd >= 0)
		store_sync(g->store, fd, NULL, NULL);
}

static int get(
        struct eventlog *g, const char *session, bool create, struct log **ret, struct err *e)
{
	*ret = eventlog_log(g, session);
	if (*ret)
		return 0;
	if (!id_valid(session, "ses"))
		return err_set(e, -EINVAL, "'%.40s' is no session id", session);
	evict(g);
	char name[ID_MAX + 8];
	(void)snprintf(name, sizeof(name), "%s.jsonl", session);
	const int flags = O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW;
	int fd = openat(g->dirfd, name, flags);
	bool made = fd < 0 && errno == ENOENT && create;
	if (made)
		fd = openat(g->dirfd, name, flags | O_CREAT | O_EXCL, 0600);
	if (fd < 0)
		return err_errno(e, "events of %s", session);
	struct log *l = xnew(struct log);
	l->fd = fd;
	(void)str_copy(l->session, sizeof(l->session), session); /* checked above */
	list_append(bucket(g, session), &l->link);
	list_append(&g->ages, &l->age);
	list_init(&l->dirty);
	g->open++;
	int rc = scan_file(l, e);
	if (rc == 0)
		rc = bridge_gap(g, l, e);
	if (rc < 0) {
		log_free(g, l);
		return rc;
	}
	if (made)
		sync_dir(g);
	*ret = l;
	return 0;
}

/* ---- writing ---- */

static int append(struct eventlog *g, struct log *l, const char *run, enum event_type t,
        const char *members, size_t n, bool held, struct err *e)
{
	if (l->failed)
		return err_set(e, l->failed, "events of %s: an earlier write was lost: %s",
		        l->session, strerror(-l->failed));
	uint64_t seq = l->next;
	int rc = logline_encode(&g->out, seq, l->session, run, t, members, n);
	if (rc < 0)
		return err_set(e, rc, "event %s of %zu bytes is too large", event_name(t), n);
	rc = fd_write_all(l->fd, g->out.line.p, g->out.line.len);
	if (rc < 0) {
		/* What was written of the line goes, or the next one would be glued to it. */
		if (ftruncate(l->fd, (off_t)l->size) < 0)
			l->failed = -errno;
		return err_set(e, rc, "events of %s: write: %s", l->session, strerror(-rc));
	}
	logline_index_add(&l->index, seq, l->size);
	l->first = l->first ? l->first : seq;
	l->last = l->size;
	l->size += g->out.line.len;
	l->next++;
	if (g->stats) {
		g->stats->events++;
		g->stats->event_bytes += g->out.line.len;
	}
	eventlog_written(g, l, seq, g->out.line.len, held);
	return 0;
}

int eventlog_fits(struct eventlog *g, const char *session, const char *run, enum event_type t,
        const char *members, size_t n)
{
	struct log *l;
	int rc = get(g, session, true, &l, NULL);
	return rc < 0 ? rc : logline_encode(&g->out, l->next, session, run, t, members, n);
}

int eventlog_open(struct eventlog *g, const char *session, struct err *e)
{
	struct log *l;
	return get(g, session, true, &l, e);
}

int eventlog_append(struct eventlog *g, const char *session, const char *run, enum event_type t,
        const char *members, size_t n, struct err *e)
{
	struct log *l;
	int rc = get(g, session, true, &l, e);
	return rc < 0 ? rc : append(g, l, run, t, members, n, false, e);
}

int eventlog_append_held(struct eventlog *g, const char *session, const char *run,
        enum event_type t, const char *members, size_t n, uint64_t *ret_seq, struct err *e)
{
	struct log *l;
	int rc = get(g, session, true, &l, e);
	if (rc == 0)
		rc = append(g, l, run, t, members, n, true, e);
	if (rc == 0)
		*ret_seq = l->next - 1;
	return rc;
}

uint64_t eventlog_next_seq(struct eventlog *g, const char *session)
{
	struct log *l;
	return get(g, session, false, &l, NULL) < 0 ? 1 : l->next;
}

int eventlog_remove(struct eventlog *g, const char *session, struct err *e)
{
	struct log *l = eventlog_log(g, session);
	if (l)
		log_free(g, l);
	char name[ID_MAX + 8];
	(void)snprintf(name, sizeof(name), "%.39s.jsonl", session);
	if (unlinkat(g->dirfd, name, 0) < 0 && errno != ENOENT)
		return err_errno(e, "events of %s: remove", session);
	return 0;
}

/* ---- reading ---- */

struct seek {
	uint64_t want;
	struct eventlog_cursor *cursor;
	bool found;
};

static bool seek_line(void *ctx, const char *line, size_t n, uint64_t offset)
{
	struct seek *s = ctx;
	struct logline_head h;
	if (!logline_head(line, n, &h) || h.seq < s->want)
		return true;
	s->cursor->offset = offset;
	s->cursor->seq = h.seq;
	s->found = true;
	return false;
}

int eventlog_seek(struct eventlog *g, const char *session, uint64_t seq,
        struct eventlog_cursor *ret, struct err *e)
{
	struct eventlog_cursor c = {.seq = seq ? seq : 1};
	(void)str_copy(c.session, sizeof(c.session), session); /* get() checks it */
	struct log *l;
	int rc = get(g, session, false, &l, e);
	if (rc < 0 && rc != -ENOENT)
		return rc;
	if (rc == 0) {
		struct seek s = {c.seq, &c, false};
		rc = logline_each(l->fd, eventlog_at(l, c.seq), l->visible, seek_line, &s);
		if (rc < 0)
			return err_set(e, rc, "events of %s: read: %s", session, strerror(-rc));
		if (!s.found)
			c.offset = l->visible;
		c.placed = true;
	}
	*ret = c;
	return 0;
}

static uint64_t seq_after(const char *p, size_t n)
{
	const char *nl = n > 1 ? memrchr(p, '\n', n - 1) : NULL;
	const char *last = nl ? nl + 1 : p;
	struct logline_head h;
	return logline_head(last, (size_t)(p + n - last), &h) ? h.seq + 1 : 0;
}

int64_t eventlog_read(
        struct eventlog *g, struct eventlog_cursor *c, struct buf *to, size_t max, struct err *e)
{
	int rc = c->placed ? 0 : eventlog_seek(g, c->session, c->seq, c, e);
	if (rc < 0)
		return rc;
	struct log *l;
	if (!c->placed || (rc = get(g, c->session, false, &l, e)) == -ENOENT)
		return 0;
	if (rc < 0)
		return rc;
	if (c->offset < l->start)
		c->offset = l->start; /* what it stood at is gone */
	if (c->offset >= l->visible)
		return 0;
	size_t start = to->len, left = (size_t)(l->visible - c->offset);
	size_t most = left < LIMIT_EVENT ? left : LIMIT_EVENT; /* no line is longer */
	for (size_t want = max < most ? max : most;; want = 2 * want < most ? 2 * want : most) {
		to->len = start;
		if ((rc = buf_reserve(to, want)) < 0)
			return err_set(e, rc, "events of %s: %zu bytes at once", c->session, want);
		ssize_t got = fd_pread_full(l->fd, to->p + start, want, (off_t)c->offset);
		if (got < 0)
			return err_set(e, (int)got, "events of %s: read: %s", c->session,
			        strerror((int)-got));
		/* beyond `max` one line only: what it is framed into has room for no more */
		char *nl = !got         ? NULL
		           : want > max ? memchr(to->p + start, '\n', (size_t)got)
		                        : memrchr(to->p + start, '\n', (size_t)got);
		if (!nl && want < most && got)
			continue;
		size_t n = nl ? (size_t)(nl - (to->p + start)) + 1 : 0;
		to->len = start + n;
		to->p[to->len] = '\0';
		uint64_t seq = n ? seq_after(to->p + start, n) : 0;
		c->seq = seq ? seq : c->seq;
		c->offset += n;
		return (int64_t)n;
	}
}

struct every {
	const char *run;
	uint64_t seq;
	eventlog_each_fn *each;
	void *ctx;
};

static bool every_line(void *ctx, const char *line, size_t n, uint64_t offset)
{
	(void)offset;
	const struct every *x = ctx;
	struct logline_head h;
	if (logline_head(line, n, &h) && h.seq >= x->seq && h.run_len == strlen(x->run) &&
	        memcmp(h.run, x->run, h.run_len) == 0)
		x->each(x->ctx, h.type, h.type_len, line, n);
	return true;
}

void eventlog_each(struct eventlog *g, const char *session, const char *run, uint64_t seq,
        eventlog_each_fn *each, void *ctx)
{
	struct log *l;
	struct every x = {run, seq, each, ctx};
	if (get(g, session, false, &l, NULL) == 0) /* unreadable: nothing is there */
		(void)logline_each(l->fd, eventlog_at(l, seq), l->size, every_line, &x);
}

void eventlog_tail(
        struct eventlog *g, const char *session, uint64_t bytes, logline_fn *line, void *ctx)
{
	struct log *l;
	if (get(g, session, false, &l, NULL) < 0)
		return; /* unreadable: nothing is there */
	uint64_t from = l->size > bytes ? logline_index_below(&l->index, l->size - bytes) : 0;
	(void)logline_each(l->fd, from > l->start ? from : l->start, l->size, line, ctx);
}

struct wanted {
	const char *type;
	char *line; /* owned */
};

static void wanted_line(void *ctx, const char *type, size_t type_len, const char *line, size_t n)
{
	struct wanted *w = ctx;
	if (type_len != strlen(w->type) || memcmp(type, w->type, type_len) != 0)
		return;
	free(w->line);
	w->line = xstrndup(line, n);
}

char *eventlog_find(struct eventlog *g, const char *session, const char *run, const char *type)
{
	struct wanted w = {.type = type};
	eventlog_each(g, session, run, 0, wanted_line, &w);
	return w.line;
}

/* ---- life ---- */

struct eventlog *eventlog_new(
        int dirfd, struct loop *l, struct hub *h, struct store *st, struct stats *stats)
{
	struct eventlog *g = xnew(struct eventlog);
	g->dirfd = dirfd;
	g->loop = l;
	g->hub = h;
	g->store = st;
	g->stats = stats;
	for (size_t i = 0; i < EVENTLOG_BUCKETS; i++)
		list_init(&g->buckets[i]);
	list_init(&g->ages);
	list_init(&g->dirty);
	g->out.line = (struct buf)BUF_INIT(LIMIT_EVENT);
	g->out.stamp_ms = -1;
	return g;
}

void eventlog_free(struct eventlog *g)
{
	if (!g)
		return;
	list_for_each (l, &g->ages, struct log, age)
		log_free(g, l);
	buf_done(&g->out.line);
	free(g);
}
