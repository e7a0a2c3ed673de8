/*
 * uploads_flight.c - one attempt of an upload or a deletion, and what comes of it.
 *
 * A bucket that fails is left in peace: each row waits longer and longer, and when several in a row
 * have failed only one goes at a time, with pauses that are the bucket's and not the row's.
 */
#include "supervisor/uploads_private.h"

#include "base/backoff.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "supervisor/artifacts.h"
#include "supervisor/daemon.h"
#include "supervisor/jails.h"
#include "supervisor/media.h"
#include "supervisor/uploads.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	GRACE_MS = 60000,
	PER_MS = 8,             /* bytes: half of what egress takes for standing still */
	RETRY_MOST_MS = 3600000 /* of what the bucket asks for */
};

/* ---- asking ---- */

bool uploads_key(char to[JAIL_OBJECT_KEY], const char *session, const char *run, const char *path)
{
	return snprintf(to, JAIL_OBJECT_KEY, "%s/%s/%s", session, run, path) < JAIL_OBJECT_KEY;
}

struct asking {
	struct uploads *uploads;
	uint64_t number;
};

/* Egress was told: nothing to do.  Else that is the answer. */
static void on_asked(void *ctx, const struct jail_reply *r, int fds[MSG_FDS])
{
	auto_free struct asking *a = ctx;
	(void)fds;
	if (r->err.code == 0)
		return;
	struct jail_objected m = {.number = a->number,
	        .outcome = r->err.code == -ESTALE   ? JAIL_OBJECT_STALE
	                   : r->err.code == -EINVAL ? JAIL_OBJECT_REFUSED
	                                            : JAIL_OBJECT_AGAIN};
	(void)snprintf(m.reason, sizeof(m.reason), "%.160s", r->err.text);
	uploads_answered(a->uploads, &m);
}

void uploads_ask(struct uploads *u, struct jail_object *m, int fd)
{
	struct asking *a = xnew(struct asking);
	m->policy_generation = u->generation;
	*a = (struct asking){u, m->number};
	jails_object(u->daemon->jails, m, fd, on_asked, a);
}

/* ---- the end of a flight ---- */

static void flight_free(struct flight *f)
{
	f->uploads->lanes[f->lane].nflights--;
	list_remove(&f->link);
	free(f->path);
	free(f->sha256);
	free(f->place);
	free(f);
}

/* The bytes are there: those here may go, but for the name, which keeps the numbers whole. */
static void empty_local(const struct flight *f)
{
	char path[ID_MAX + 32];
	(void)snprintf(path, sizeof(path), "%s/%zu", f->run, f->n);
	auto_close int fd =
	        openat(f->uploads->daemon->artifacts_fd, path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || ftruncate(fd, 0) < 0)
		log_warn("r=%s: artifact %zu stays here, too: %s", f->run, f->n, strerror(errno));
}

static void on_written(void *ctx, int rc, const struct err *e)
{
	struct flight *f = ctx;
	struct uploads *u = f->uploads;
	if (rc < 0) { /* a full disk: the row is as it was, and what was done is done again */
		log_err("r=%s: artifact %zu: %s", f->run, f->n, e->text);
		u->lanes[f->lane].next_ms = clock_mono_ms() + (int64_t)u->bucket.first_ms;
	} else if (f->was_put && !u->bucket.keep_local) {
		empty_local(f);
	}
	if (rc == 0 && f->ends)
		uploads_tell(u, f->session, f->run);
	flight_free(f);
	uploads_wake(u);
}

static struct store_object row_of(const struct flight *f)
{
	return (struct store_object){.run = f->run, .n = f->n, .failures = f->failures};
}

static void put_done(struct flight *f)
{
	struct uploads *u = f->uploads;
	struct store_object x = row_of(f);
	x.state = OBJECT_DONE;
	x.place = f->place;
	x.gone_here = !u->bucket.keep_local;
	f->ends = f->was_put = true;
	u->daemon->stats.uploads_done++;
	u->daemon->stats.uploads_bytes += f->bytes;
	store_object_set(u->daemon->store, &x, OBJECT_PENDING, on_written, f);
}

static void put_failed(struct flight *f, const char *why)
{
	struct uploads *u = f->uploads;
	struct store_object x = row_of(f);
	x.state = OBJECT_FAILED;
	x.error = why;
	f->ends = true;
	u->daemon->stats.uploads_failed++;
	log_warn("s=%s r=%s: artifact %zu is not uploaded: %s", f->session, f->run, f->n, why);
	store_object_set(u->daemon->store, &x, OBJECT_PENDING, on_written, f);
}

static void deleted(struct flight *f, const char *but)
{
	struct uploads *u = f->uploads;
	if (but)
		log_warn("s=%s r=%s: artifact %zu stays in the bucket: %s", f->session, f->run,
		        f->n, but);
	else
		u->daemon->stats.objects_deleted++;
	store_object_drop(u->daemon->store, f->run, f->n, on_written, f);
}

static void give_up(struct flight *f, const char *why)
{
	if (f->lane == LANE_PUT)
		put_failed(f, why);
	else
		deleted(f, why);
}

/* ---- answers ---- */

static int64_t pause_of(const struct uploads *u, unsigned failures, int64_t asked_ms)
{
	int64_t ms = (int64_t)backoff_ms(
	        u->bucket.first_ms, u->bucket.most_ms, failures, backoff_random());
	if (asked_ms > RETRY_MOST_MS)
		asked_ms = RETRY_MOST_MS;
	return asked_ms > ms ? asked_ms : ms;
}

static void try_again(struct flight *f, const struct jail_objected *m)
{
	struct uploads *u = f->uploads;
	struct lane *l = &u->lanes[f->lane];
	int64_t pause = pause_of(u, ++f->failures, m->retry_after_ms);
	struct store_object x = row_of(f);
	l->failures++;
	if (l->failures >= UPLOAD_FLIGHTS || m->retry_after_ms > 0)
		l->next_ms = clock_mono_ms() + pause;
	if (f->failures == 1)
		log_warn("s=%s r=%s: artifact %zu: %s; it is tried again", f->session, f->run, f->n,
		        m->reason);
	u->daemon->stats.uploads_retried++;
	x.state = f->lane == LANE_PUT ? OBJECT_PENDING : OBJECT_DELETING;
	x.due_ms = clock_wall_ms() + pause;
	x.error = m->reason;
	store_object_set(u->daemon->store, &x, x.state, on_written, f);
}

static bool too_old(const struct flight *f)
{
	return clock_wall_ms() - f->since_ms > (int64_t)f->uploads->bucket.keep_ms;
}

static void landed(struct flight *f, const struct jail_objected *m)
{
	struct uploads *u = f->uploads;
	struct lane *l = &u->lanes[f->lane];
	f->number = 0;
	u->daemon->stats.uploads_retried += m->again;
	if (m->outcome == JAIL_OBJECT_STALE) { /* not asked at all */
		l->next_ms = clock_mono_ms() + UPLOAD_SOON_MS;
		flight_free(f);
	} else if (m->outcome == JAIL_OBJECT_DONE) {
		l->failures = 0;
		l->next_ms = 0;
		if (f->lane == LANE_PUT)
			put_done(f);
		else
			deleted(f, NULL);
	} else if (m->outcome == JAIL_OBJECT_REFUSED || too_old(f)) {
		give_up(f, m->reason);
	} else {
		try_again(f, m);
	}
	uploads_wake(u);
}

void uploads_answered(struct uploads *u, const struct jail_objected *m)
{
	list_for_each (f, &u->flights, struct flight, link)
		if (f->number && (f->number == m->number || m->number == 0)) {
			landed(f, m);
			if (m->number)
				return;
		}
	while (uploads_linked(u, m) && m->number == 0)
		; /* those of an earlier supervisor are nobody's */
}

void uploads_late(struct uploads *u, int64_t now)
{
	static const struct jail_objected silent = {.outcome = JAIL_OBJECT_AGAIN,
	        .reason = "agentbox-egress has not said what came of it"};
	list_for_each (f, &u->flights, struct flight, link)
		if (f->number && now >= f->deadline_ms)
			landed(f, &silent);
}

/* ---- the beginning ---- */

static struct flight *flight_new(
        struct uploads *u, enum upload_lane lane, const struct store_object *x)
{
	struct flight *f = xnew(struct flight);
	f->uploads = u;
	f->lane = lane;
	(void)str_copy(f->run, sizeof(f->run), x->run); /* ids */
	(void)str_copy(f->session, sizeof(f->session), x->session);
	f->n = x->n;
	f->path = xstrdup(x->path);
	f->sha256 = xstrdup(x->sha256);
	/* What is to be put goes to where things go now; what is deleted is where it was put. */
	f->place = xstrdup(lane == LANE_PUT ? u->place : x->place);
	f->bytes = x->bytes;
	f->since_ms = x->since_ms;
	f->failures = x->failures;
	list_append(&u->flights, &f->link);
	u->lanes[lane].nflights++;
	return f;
}

void uploads_fly(struct uploads *u, enum upload_lane lane, const struct store_object *x)
{
	struct err e;
	struct flight *f = flight_new(u, lane, x);
	struct jail_object m = {
	        .op = lane == LANE_PUT ? JAIL_OBJECT_PUT : JAIL_OBJECT_DELETE, .bytes = f->bytes};
	if (!u->bucket.on || strcmp(f->place, u->place) != 0) {
		give_up(f, "agentboxd.yaml does not name that bucket any more");
		return;
	}
	if (!uploads_key(m.key, f->session, f->run, f->path)) {
		give_up(f, "its name has more than S3's 1024 bytes");
		return;
	}
	int fd = -1;
	if (lane == LANE_PUT) {
		fd = artifacts_open(u->daemon->artifacts_fd, f->run, f->n, &e);
		if (fd < 0 && fd != -EMFILE && fd != -ENFILE) {
			put_failed(f, e.text);
			return;
		}
	}
	(void)str_copy(m.sha256, sizeof(m.sha256), f->sha256);       /* 64 digits */
	(void)str_copy(m.type, sizeof(m.type), media_type(f->path)); /* of ours, all short */
	f->deadline_ms = clock_mono_ms() + GRACE_MS + 16 * (int64_t)u->bucket.timeout_ms +
	                 (int64_t)(f->bytes / PER_MS);
	m.number = f->number = ++u->last_number;
	uploads_ask(u, &m, fd);
}
