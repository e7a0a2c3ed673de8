/*
 * Theory of operation.  A `struct log` is in memory for each session in use:
 * its descriptor, the next number, the size, and a sparse index (one entry per
 * INDEX_STEP bytes) rebuilt by one scan at open.  Events that may not be seen
 * yet are listed in `hidden`, in order: held ones (run.done before its commit),
 * and those with a number beyond the reservation.  `visible` is the end of the
 * last event in front of them; readers stop there.
 */
#include "supervisor/eventlog.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "supervisor/hash.h"
#include "supervisor/hub.h"
#include "supervisor/loop.h"
#include "supervisor/stats.h"
#include "supervisor/store.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	BUCKETS = 1024,
	INDEX_STEP = 64 << 10, /* a seek scans at most this much */
	SCAN_CHUNK = 256 << 10,
	HIDDEN_MAX = 8 * EVENTLOG_BLOCK,    /* behind: the store is slow to reserve */
	SYNC_EARLY = 8 << 20,               /* unsynced bytes that do not wait for the timer */
	SYNC_TICK_MS = EVENTLOG_SYNC_MS / 2 /* so that a whole period never exceeds the promise */
};

struct mark {
	uint64_t seq, offset;
};

struct hidden {
	uint64_t seq, end;
	bool held;
};

struct log {
	struct list link;  /* in eventlog.buckets */
	struct list age;   /* in eventlog.ages, least recently used first */
	struct list dirty; /* in eventlog.dirty while bytes are not synced */
	char session[ID_MAX];
	int fd;             /* owned */
	uint64_t next;      /* number of the next event */
	uint64_t size;      /* bytes in the file */
	uint64_t visible;   /* bytes readers may see */
	uint64_t reserved;  /* numbers that may be delivered */
	uint64_t epoch;     /* counts settlements: an older claim does not count */
	bool claiming;      /* a reservation is on its way */
	bool claim_failed;  /* said once; tried again at each tick */
	unsigned busy;      /* syncs and claims on their way: not to be evicted */
	uint64_t unsynced;  /* bytes written since the last sync was asked for */
	uint64_t syncing;   /* bytes a sync on its way covers */
	int failed;         /* -errno of a sync: nothing more is accepted */
	struct mark *index; /* owned */
	size_t nindex, index_room;
	struct hidden *hidden; /* owned; from first_hidden on */
	size_t first_hidden, nhidden, hidden_room;
};

struct eventlog {
	int dirfd; /* borrowed */
	struct loop *loop;
	struct hub *hub;
	struct store *store;
	struct stats *stats;
	struct list buckets[BUCKETS];
	struct list ages, dirty;
	size_t open;
	struct buf line; /* reused for encoding */
	struct op tick;
};

/* What a commit on its way needs when it comes back: the log may be gone by then. */
struct pending {
	struct eventlog *g;
	char session[ID_MAX];
	uint64_t upto, epoch, bytes;
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

bool eventlog_line_head(const char *line, size_t n, struct eventlog_head *ret)
{
	const char *end = line + n, *skipped;
	size_t len;
	const char *p = after(line, end, "{\"seq\":");
	uint64_t seq = 0;
	while (p && p < end && *p >= '0' && *p <= '9' && seq < UINT64_MAX / 16)
		seq = seq * 10 + (uint64_t)(*p++ - '0');
	p = word(after(p, end, ",\"ts\":\""), end, &skipped, &len);
	p = word(after(p, end, ",\"session\":\""), end, &skipped, &len);
	p = word(after(p, end, ",\"run\":\""), end, &ret->run, &ret->run_len);
	p = word(after(p, end, ",\"type\":\""), end, &ret->type, &ret->type_len);
	if (!p || seq == 0)
		return false;
	ret->seq = seq;
	return true;
}

static int encode(struct buf *b, uint64_t seq, const char *session, const char *run,
        enum event_type t, const char *members, size_t n)
{
	char ts[CLOCK_TEXT_MAX];
	clock_rfc3339(clock_wall_ms(), ts);
	buf_clear(b);
	buf_printf(b,
	        "{\"seq\":%llu,\"ts\":\"%s\",\"session\":\"%s\",\"run\":\"%s\",\"type\":\"%s\"",
	        (unsigned long long)seq, ts, session, run, event_name(t));
	if (n) {
		buf_putc(b, ',');
		buf_put(b, members, n);
	}
	buf_puts(b, "}\n");
	return b->failed;
}

/* ---- the index ---- */

static void index_add(struct log *l, uint64_t seq, uint64_t offset)
{
	if (l->nindex && offset - l->index[l->nindex - 1].offset < INDEX_STEP)
		return;
	if (l->nindex == l->index_room) {
		l->index_room = l->index_room ? 2 * l->index_room : 8;
		l->index = xrealloc(l->index, l->index_room, sizeof(*l->index));
	}
	l->index[l->nindex++] = (struct mark){seq, offset};
}

/* The last mark not beyond seq; offset 0 without one. */
static uint64_t index_find(const struct log *l, uint64_t seq)
{
	size_t lo = 0, hi = l->nindex;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (l->index[mid].seq <= seq)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? l->index[lo - 1].offset : 0;
}

/* Calls line() for each whole line from `offset` to `end`; stops when it gives false.  0 or -errno.
 */
typedef bool line_fn(void *ctx, const char *line, size_t n, uint64_t offset);
static int each_line(int fd, uint64_t offset, uint64_t end, line_fn *line, void *ctx)
{
	auto_buf struct buf b = BUF_INIT(LIMIT_EVENT + SCAN_CHUNK);
	uint64_t at = offset; /* file position of b.p */
	size_t searched = 0;
	for (;;) {
		char *nl = b.len > searched ? memchr(b.p + searched, '\n', b.len - searched) : NULL;
		if (nl) {
			size_t n = (size_t)(nl - b.p);
			if (!line(ctx, b.p, n, at))
				return 0;
			/* One line of a chunk at a time would move the rest each time: find all
			 * lines of the chunk first. */
			size_t from = n + 1;
			while ((nl = memchr(b.p + from, '\n', b.len - from)) != NULL) {
				n = (size_t)(nl - b.p) - from;
				if (!line(ctx, b.p + from, n, at + from))
					return 0;
				from += n + 1;
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

/* ---- opening ---- */

struct scan {
	struct log *log;
	uint64_t good_end, last;
};

static bool scan_line(void *ctx, const char *line, size_t n, uint64_t offset)
{
	struct scan *s = ctx;
	struct eventlog_head h;
	/* A line that is not ours in the middle of the file is left for people to look at; at the
	 * end it is what a crash left behind. */
	if (n && line[n - 1] == '}' && eventlog_line_head(line, n, &h)) {
		s->good_end = offset + n + 1;
		s->last = h.seq;
		index_add(s->log, h.seq, offset);
	}
	return true;
}

static void log_free(struct eventlog *g, struct log *l)
{
	list_remove(&l->link);
	list_remove(&l->age);
	list_remove(&l->dirty);
	fd_close(l->fd);
	free(l->index);
	free(l->hidden);
	free(l);
	g->open--;
}

static struct list *bucket(struct eventlog *g, const char *session)
{
	return &g->buckets[hash_text(session) % BUCKETS];
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
	struct scan s = {.log = l};
	int rc = each_line(l->fd, 0, (uint64_t)st.st_size, scan_line, &s);
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

static struct log *find(struct eventlog *g, const char *session)
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
	*ret = find(g, session);
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

/* ---- reservations and visibility ---- */

static void reveal(struct eventlog *g, struct log *l)
{
	uint64_t before = l->visible;
	while (l->first_hidden < l->nhidden) {
		struct hidden *h = &l->hidden[l->first_hidden];
		if (h->held || h->seq > l->reserved)
			break;
		l->visible = h->end;
		l->first_hidden++;
	}
	if (l->first_hidden == l->nhidden)
		l->first_hidden = l->nhidden = 0;
	if (l->visible != before && g->hub)
		hub_notify(g->hub, l->session);
}

static void hide(struct log *l, uint64_t seq, bool held)
{
	if (l->nhidden == l->hidden_room) {
		l->hidden_room = l->hidden_room ? 2 * l->hidden_room : 8;
		l->hidden = xrealloc(l->hidden, l->hidden_room, sizeof(*l->hidden));
	}
	l->hidden[l->nhidden++] = (struct hidden){seq, l->size, held};
}

static void claim_ahead(struct eventlog *g, struct log *l);
static void tick_later(struct eventlog *g, struct log *l);

static void claim_done(void *ctx, int rc, const struct err *e)
{
	auto_free struct pending *p = ctx;
	struct log *l = find(p->g, p->session);
	if (!l)
		return;
	l->busy--;
	if (l->epoch != p->epoch)
		return;
	l->claiming = false;
	if (rc < 0) {
		/* A full disk: what is not reserved stays hidden, and the tick tries again. */
		if (!l->claim_failed)
			log_err("s=%s: reserving event numbers: %s", p->session, e->text);
		l->claim_failed = true;
		tick_later(p->g, l);
		return;
	}
	l->claim_failed = false;
	if (p->upto > l->reserved)
		l->reserved = p->upto;
	reveal(p->g, l);
	claim_ahead(p->g, l); /* a flood may have gone past the block meanwhile */
}

static struct pending *pending_new(struct eventlog *g, struct log *l)
{
	struct pending *p = xnew(struct pending);
	p->g = g;
	memcpy(p->session, l->session, sizeof(p->session));
	p->epoch = l->epoch;
	l->busy++;
	return p;
}

/* Half a block ahead, so that the commit is there before the numbers are used up. */
static void claim_ahead(struct eventlog *g, struct log *l)
{
	if (l->claiming || !g->store || l->next + EVENTLOG_BLOCK / 2 <= l->reserved)
		return;
	l->claiming = true;
	struct pending *p = pending_new(g, l);
	p->upto = l->next + EVENTLOG_BLOCK;
	store_reserve(g->store, l->session, p->upto, claim_done, p);
}

uint64_t eventlog_claim(struct eventlog *g, const char *session)
{
	struct log *l = find(g, session);
	return l ? l->next + EVENTLOG_BLOCK : EVENTLOG_BLOCK;
}

void eventlog_claimed(struct eventlog *g, const char *session, uint64_t upto)
{
	struct log *l = find(g, session);
	if (!l)
		return; /* evicted: the next open reads the reservation from the store */
	if (upto > l->reserved)
		l->reserved = upto;
	reveal(g, l);
	claim_ahead(g, l);
}

uint64_t eventlog_settle(struct eventlog *g, const char *session)
{
	struct log *l = find(g, session);
	if (!l || !g->store)
		return 0;
	l->epoch++;
	l->claiming = false;
	/* What is hidden now becomes visible by its own commit, so the numbers stay usable here;
	 * only the next event has to claim anew. */
	l->reserved = l->next - 1;
	return l->reserved;
}

/* ---- syncing ---- */

static void sync_done(void *ctx, int rc, const struct err *e)
{
	auto_free struct pending *p = ctx;
	struct log *l = find(p->g, p->session);
	if (!l)
		return;
	l->busy--;
	l->syncing -= p->bytes;
	if (rc == 0)
		return;
	/* After a failed fsync the kernel may have dropped the pages: no later success would mean
	 * that these bytes are on the disk (fsync(2), EIO). */
	log_err("s=%s: %s", p->session, e->text);
	l->failed = rc;
}

static void sync_log(struct eventlog *g, struct log *l)
{
	list_remove(&l->dirty);
	int fd = fcntl(l->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0) {
		log_err("s=%s: sync of the event log: %s", l->session, strerror(errno));
		l->failed = -errno;
		return;
	}
	struct pending *p = pending_new(g, l);
	p->bytes = l->unsynced;
	l->syncing += l->unsynced;
	l->unsynced = 0;
	store_sync(g->store, fd, sync_done, p);
}

static void ticked(struct op *op, int res, uint32_t flags)
{
	(void)flags;
	struct eventlog *g = container_of(op, struct eventlog, tick);
	if (res == -ECANCELED)
		return;
	list_for_each (l, &g->dirty, struct log, dirty) {
		sync_log(g, l);
		claim_ahead(g, l);
	}
}

static void tick_later(struct eventlog *g, struct log *l)
{
	if (!g->store || !g->loop)
		return;
	if (list_empty(&l->dirty))
		list_append(&g->dirty, &l->dirty);
	if (!g->tick.inflight)
		loop_timeout(g->loop, &g->tick, SYNC_TICK_MS, ticked);
}

static void mark_dirty(struct eventlog *g, struct log *l, size_t n)
{
	l->unsynced += n;
	tick_later(g, l);
	if (l->unsynced >= SYNC_EARLY && g->store && g->loop)
		sync_log(g, l);
}

bool eventlog_behind(struct eventlog *g, const char *session)
{
	struct log *l = find(g, session);
	return l && (l->unsynced + l->syncing > EVENTLOG_BEHIND ||
	                    l->nhidden - l->first_hidden > HIDDEN_MAX);
}

int eventlog_sync_fd(struct eventlog *g, const char *session)
{
	struct log *l = find(g, session);
	if (!l)
		return -ENOENT;
	int fd = fcntl(l->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	l->unsynced = 0;
	list_remove(&l->dirty);
	return fd;
}

int eventlog_sync_all(struct eventlog *g, struct err *e)
{
	int ret = 0;
	list_for_each (l, &g->ages, struct log, age)
		if (l->unsynced && fdatasync(l->fd) < 0)
			ret = err_errno(e, "events of %s: sync", l->session);
	return ret;
}

/* ---- writing ---- */

static int append(struct eventlog *g, struct log *l, const char *run, enum event_type t,
        const char *members, size_t n, bool held, struct err *e)
{
	if (l->failed)
		return err_set(e, l->failed, "events of %s: an earlier write was lost: %s",
		        l->session, strerror(-l->failed));
	uint64_t seq = l->next;
	int rc = encode(&g->line, seq, l->session, run, t, members, n);
	if (rc < 0)
		return err_set(e, rc, "event %s of %zu bytes is too large", event_name(t), n);
	rc = fd_write_all(l->fd, g->line.p, g->line.len);
	if (rc < 0) {
		/* What was written of the line goes, or the next one would be glued to it. */
		if (ftruncate(l->fd, (off_t)l->size) < 0)
			l->failed = -errno;
		return err_set(e, rc, "events of %s: write: %s", l->session, strerror(-rc));
	}
	index_add(l, seq, l->size);
	l->size += g->line.len;
	l->next++;
	if (g->stats) {
		g->stats->events++;
		g->stats->event_bytes += g->line.len;
	}
	hide(l, seq, held);
	mark_dirty(g, l, g->line.len);
	claim_ahead(g, l);
	reveal(g, l);
	return 0;
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

void eventlog_release(struct eventlog *g, const char *session, uint64_t seq)
{
	struct log *l = find(g, session);
	if (!l)
		return;
	for (size_t i = l->first_hidden; i < l->nhidden; i++)
		if (l->hidden[i].seq == seq) {
			l->hidden[i].held = false;
			break;
		}
	if (seq > l->reserved)
		l->reserved = seq; /* the commit that released it holds its number */
	reveal(g, l);
}

uint64_t eventlog_next_seq(struct eventlog *g, const char *session)
{
	struct log *l;
	return get(g, session, false, &l, NULL) < 0 ? 1 : l->next;
}

int eventlog_remove(struct eventlog *g, const char *session, struct err *e)
{
	struct log *l = find(g, session);
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
	struct eventlog_head h;
	if (!eventlog_line_head(line, n, &h) || h.seq < s->want)
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
		rc = each_line(l->fd, index_find(l, c.seq), l->visible, seek_line, &s);
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
	struct eventlog_head h;
	return eventlog_line_head(last, (size_t)(p + n - last), &h) ? h.seq + 1 : 0;
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
	if (c->offset >= l->visible)
		return 0;
	size_t start = to->len, left = (size_t)(l->visible - c->offset);
	for (size_t want = max < left ? max : left;; want = 2 * want < left ? 2 * want : left) {
		to->len = start;
		if ((rc = buf_reserve(to, want)) < 0)
			return err_set(e, rc, "events of %s: %zu bytes at once", c->session, want);
		ssize_t got = fd_pread_full(l->fd, to->p + start, want, (off_t)c->offset);
		if (got < 0)
			return err_set(e, (int)got, "events of %s: read", c->session);
		char *nl = got ? memrchr(to->p + start, '\n', (size_t)got) : NULL;
		if (!nl && want < left && got)
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

struct wanted {
	const char *run, *type;
	char *line; /* owned */
};

static bool wanted_line(void *ctx, const char *line, size_t n, uint64_t offset)
{
	(void)offset;
	struct wanted *w = ctx;
	struct eventlog_head h;
	if (eventlog_line_head(line, n, &h) && h.run_len == strlen(w->run) &&
	        h.type_len == strlen(w->type) && memcmp(h.run, w->run, h.run_len) == 0 &&
	        memcmp(h.type, w->type, h.type_len) == 0) {
		free(w->line);
		w->line = xcalloc(1, n + 1);
		memcpy(w->line, line, n);
	}
	return true;
}

char *eventlog_find(struct eventlog *g, const char *session, const char *run, const char *type)
{
	struct log *l;
	struct wanted w = {.run = run, .type = type};
	if (get(g, session, false, &l, NULL) == 0)
		(void)each_line(l->fd, 0, l->size, wanted_line, &w); /* unreadable: not found */
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
	for (size_t i = 0; i < BUCKETS; i++)
		list_init(&g->buckets[i]);
	list_init(&g->ages);
	list_init(&g->dirty);
	g->line = (struct buf)BUF_INIT(LIMIT_EVENT);
	return g;
}

void eventlog_free(struct eventlog *g)
{
	if (!g)
		return;
	list_for_each (l, &g->ages, struct log, age)
		log_free(g, l);
	buf_done(&g->line);
	free(g);
}
