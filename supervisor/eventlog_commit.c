/*
 * Theory of operation.  Events that may not be seen yet are listed in `hidden`,
 * in order: held ones (run.done before its commit), and those with a number
 * beyond the reservation.  `visible` is the end of the last event in front of
 * them; readers stop there.  A commit or sync on its way finds its log by name
 * when it comes back: the log may be gone by then.
 */
#include "supervisor/eventlog.h"

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "supervisor/eventlog_private.h"
#include "supervisor/hub.h"
#include "supervisor/store.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum {
	HIDDEN_MAX = 8 * EVENTLOG_BLOCK,    /* behind: the store is slow to reserve */
	HIDDEN_KEPT = 1024,                 /* room that an open log keeps */
	SYNC_EARLY = 8 << 20,               /* unsynced bytes that do not wait for the timer */
	SYNC_TICK_MS = EVENTLOG_SYNC_MS / 2 /* so that a whole period never exceeds the promise */
};

/* What a commit on its way needs when it comes back: the log may be gone by then. */
struct pending {
	struct eventlog *g;
	char session[ID_MAX];
	uint64_t upto, epoch, bytes;
};

/* ---- reservations and visibility ---- */

static void none_hidden(struct log *l)
{
	l->first_hidden = l->nhidden = 0;
	if (l->hidden_room <= HIDDEN_KEPT)
		return;
	free(take(l->hidden)); /* a log stays open long after a flood */
	l->hidden_room = 0;
}

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
		none_hidden(l);
	if (l->visible != before && g->hub)
		hub_notify(g->hub, l->session);
}

static void hide(struct log *l, uint64_t seq, bool held)
{
	/* Where events never pause there always is one that is hidden: what was seen goes. */
	if (l->nhidden == l->hidden_room && l->first_hidden > l->nhidden / 2) {
		l->nhidden -= l->first_hidden;
		memmove(l->hidden, l->hidden + l->first_hidden, l->nhidden * sizeof(*l->hidden));
		l->first_hidden = 0;
	}
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
	struct log *l = eventlog_log(p->g, p->session);
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
	struct log *l = eventlog_log(g, session);
	return l ? l->next + EVENTLOG_BLOCK : EVENTLOG_BLOCK;
}

void eventlog_claimed(struct eventlog *g, const char *session, uint64_t upto)
{
	struct log *l = eventlog_log(g, session);
	if (!l)
		return; /* evicted: the next open reads the reservation from the store */
	if (upto > l->reserved)
		l->reserved = upto;
	reveal(g, l);
	claim_ahead(g, l);
}

uint64_t eventlog_settle(struct eventlog *g, const char *session)
{
	struct log *l = eventlog_log(g, session);
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
	struct log *l = eventlog_log(p->g, p->session);
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
	struct log *l = eventlog_log(g, session);
	return l && (l->unsynced + l->syncing > EVENTLOG_BEHIND ||
	                    l->nhidden - l->first_hidden > HIDDEN_MAX);
}

int eventlog_sync_fd(struct eventlog *g, const char *session)
{
	struct log *l = eventlog_log(g, session);
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

/* ---- written ---- */

void eventlog_written(struct eventlog *g, struct log *l, uint64_t seq, size_t bytes, bool held)
{
	hide(l, seq, held);
	mark_dirty(g, l, bytes);
	claim_ahead(g, l);
	reveal(g, l);
}

void eventlog_release(struct eventlog *g, const char *session, uint64_t seq)
{
	struct log *l = eventlog_log(g, session);
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
