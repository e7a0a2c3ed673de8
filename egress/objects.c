/*
 * Theory of operation.  A job goes from step to step; each is one call, but for the digest of a
 * part, which is taken in slices of the loop since the part's request is signed with it.
 *
 *	PUT                                       what fits one request
 *	CREATE  { DIGEST PART }...  COMPLETE      what does not
 *	ABORT                                     after a failure behind CREATE
 *	DELETE
 */
#include "egress/objects.h"

#include "base/backoff.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "egress/bucket_call.h"
#include "egress/jails.h"
#include "egress/s3_answer.h"
#include "egress/sigv4.h"
#include "egress/upstream.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	/* At once: those of the supervisor before may be there still. */
	OBJECTS_MOST = 2 * JAIL_OBJECTS,
	TRIES = 4,          /* of a request of a multipart upload */
	ABORTS = 2,         /* then a lifecycle rule of the bucket's has to do it */
	PARTS_MOST = 10000, /* S3's */
	SLICE = 256 << 10,  /* digested in a turn of the loop: 0.2 ms, a millisecond at worst */
	LIST_MOST = PARTS_MOST * 2 * CALL_ETAG,
	QUERY_MOST = 4 * S3_UPLOAD_ID,
	WAIT_MOST_MS = 30000, /* a Retry-After that is longer is the supervisor's to wait for */
};

enum step { STEP_PUT, STEP_CREATE, STEP_DIGEST, STEP_PART, STEP_COMPLETE, STEP_ABORT, STEP_DELETE };

struct objects {
	struct services *services;       /* borrowed: process */
	struct connections *connections; /* owned */
	struct list jobs;                /* of struct job.link */
	unsigned n;
};

struct job {
	struct objects *all;
	struct list link; /* in objects.jobs */
	struct corpse corpse;
	struct timer pause; /* until the step is tried again, or the next slice */
	struct call call;
	struct jail_object ask;
	struct bucket bucket;
	struct object_place at;
	int fd; /* owned */
	enum step step;
	unsigned tries, again;
	/* of a multipart upload */
	unsigned part, nparts;         /* from 0 */
	uint64_t digested;             /* bytes of the part */
	struct digest *digest, *whole; /* owned */
	char part_sha256[DIGEST_TEXT];
	char upload_id[S3_UPLOAD_ID];
	struct buf list; /* the body of COMPLETE */
	struct jail_objected end;
};

/* ---- the end ---- */

static void tell(struct services *s, struct jail_objected *m)
{
	m->head = (struct msg_head){.type = EGRESS_OBJECTED};
	int r = msg_send(s->control, m, sizeof(*m), NULL, 0);
	if (r < 0) /* the supervisor asks again */
		log_warn("agentboxd does not take what became of an artifact: %s", strerror(-r));
}

static void fail(struct services *s, const struct jail_object *m, enum jail_object_outcome how,
        const char *reason)
{
	struct jail_objected end = {.number = m->number, .outcome = how};
	(void)snprintf(end.reason, sizeof(end.reason), "%.190s", reason); /* for people */
	tell(s, &end);
}

static void release(struct job *j)
{
	reactor_disarm(&j->pause);
	call_cancel(&j->call);
	digest_free(take(j->digest));
	digest_free(take(j->whole));
	fd_close(take_fd(j->fd));
	object_place_done(&j->at);
	buf_done(&j->list);
}

static void bury(struct corpse *c)
{
	free(container_of(c, struct job, corpse));
}

static void finish(struct job *j)
{
	struct services *s = j->all->services;
	j->end.number = j->ask.number;
	j->end.again = j->again;
	tell(s, &j->end);
	release(j);
	list_remove(&j->link);
	j->all->n--;
	reactor_bury(s->reactor, &j->corpse);
	jails_slack(s);
	jails_end_if_drained(s);
}

static void go(struct job *j, enum step step);

/* What has failed is over, but for what it has left in the bucket. */
static void give_up(struct job *j, enum jail_object_outcome how, const char *reason)
{
	j->end.outcome = how;
	(void)snprintf(j->end.reason, sizeof(j->end.reason), "%.190s", reason);
	if (j->upload_id[0])
		go(j, STEP_ABORT);
	else
		finish(j);
}

/* ---- what failed, and whether it is tried again ---- */

static void begin(struct job *j);

static void on_pause(struct timer *t)
{
	begin(container_of(t, struct job, pause));
}

/* The requests of a multipart upload alone: of others the supervisor tries the whole. */
static bool repeats(const struct job *j)
{
	return j->step == STEP_ABORT ? j->tries < ABORTS : j->upload_id[0] && j->tries < TRIES;
}

static void failed(struct job *j, bool again, int64_t after_ms, const char *reason)
{
	j->tries++;
	if (again && repeats(j) && after_ms <= WAIT_MOST_MS) {
		int64_t pause = (int64_t)backoff_ms(
		        j->bucket.first_ms, j->bucket.most_ms, j->tries, backoff_random());
		j->again++;
		reactor_arm(
		        j->all->services->reactor, &j->pause, pause > after_ms ? pause : after_ms);
		return;
	}
	if (j->step == STEP_ABORT) {
		log_warn("parts of %s stay in the bucket: %s", j->ask.key, reason);
		finish(j);
		return;
	}
	j->end.retry_after_ms = after_ms;
	give_up(j, again ? JAIL_OBJECT_AGAIN : JAIL_OBJECT_REFUSED, reason);
}

static void answered_badly(struct job *j, const struct s3_answer *a)
{
	char reason[192];
	const struct call *c = &j->call;
	if (a->code[0])
		(void)snprintf(reason, sizeof(reason), "%s%s%s (status %d)", a->code,
		        a->message[0] ? ": " : "", a->message, c->status);
	else if (c->status / 100 == 2)
		(void)snprintf(
		        reason, sizeof(reason), "status %d with an answer that is none", c->status);
	else
		(void)snprintf(reason, sizeof(reason), "status %d", c->status);
	/* As after COMPLETE whose answer was lost: nothing is left to go on with, or to abort. */
	if (strcmp(a->code, "NoSuchUpload") == 0)
		j->upload_id[0] = '\0';
	/* One that is cut or strange may be whole the next time. */
	bool again = c->status / 100 == 2 || s3_answer_again(c->status, a->code);
	failed(j, again, c->retry_after_ms, reason);
}

/* ---- steps ---- */

static uint64_t part_begin(const struct job *j)
{
	return j->part * j->bucket.part_bytes;
}

static uint64_t part_bytes(const struct job *j)
{
	uint64_t left = j->ask.bytes - part_begin(j);
	return left < j->bucket.part_bytes ? left : j->bucket.part_bytes;
}

static void sha256(const struct buf *b, char ret[DIGEST_TEXT])
{
	struct digest *d = digest_new();
	digest_add(d, b->p, b->len);
	digest_end(d, ret);
}

/* The request of a step; `query` and `payload` are for it to point to. */
static struct call_spec spec_of(struct job *j, struct buf *query, char payload[DIGEST_TEXT])
{
	static const char *const methods[] = {[STEP_PUT] = "PUT",
	        [STEP_CREATE] = "POST",
	        [STEP_PART] = "PUT",
	        [STEP_COMPLETE] = "POST",
	        [STEP_ABORT] = "DELETE",
	        [STEP_DELETE] = "DELETE"};
	bool begins = j->step == STEP_PUT || j->step == STEP_CREATE;
	struct call_spec x = {.bucket = &j->bucket,
	        .at = &j->at,
	        .method = methods[j->step],
	        .payload = SIGV4_EMPTY,
	        .type = begins ? j->ask.type : NULL,
	        .sha256 = begins ? j->ask.sha256 : NULL,
	        .fd = j->fd};
	if (j->step == STEP_PUT) {
		x.payload = j->ask.sha256;
		x.bytes = j->ask.bytes;
	} else if (j->step == STEP_CREATE) {
		buf_puts(query, "uploads=");
	} else if (j->step == STEP_PART) {
		buf_printf(query, "partNumber=%u&", j->part + 1);
		x.payload = j->part_sha256;
		x.offset = part_begin(j);
		x.bytes = part_bytes(j);
	} else if (j->step == STEP_COMPLETE) {
		sha256(&j->list, payload);
		x.payload = payload;
		x.text = &j->list;
	}
	if (j->step == STEP_PART || j->step == STEP_COMPLETE || j->step == STEP_ABORT) {
		buf_puts(query, "uploadId=");
		sigv4_encode(query, j->upload_id, strlen(j->upload_id), false);
	}
	x.query = query->p ? query->p : "";
	return x;
}

/* One slice of the part's digest. */
static void digest_some(struct job *j)
{
	auto_free char *slice = xcalloc(1, SLICE);
	uint64_t left = part_bytes(j) - j->digested;
	size_t n = left < SLICE ? (size_t)left : SLICE;
	if (fd_pread_full(j->fd, slice, n, (off_t)(part_begin(j) + j->digested)) != (ssize_t)n) {
		give_up(j, JAIL_OBJECT_REFUSED, "the copy of it on this host is cut");
		return;
	}
	digest_add(j->digest, slice, n);
	digest_add(j->whole, slice, n);
	j->digested += n;
	if (j->digested < part_bytes(j)) {
		reactor_arm(j->all->services->reactor, &j->pause, 0);
		return;
	}
	digest_end(take(j->digest), j->part_sha256);
	go(j, STEP_PART);
}

static void begin(struct job *j)
{
	struct err e;
	char payload[DIGEST_TEXT];
	auto_buf struct buf query = BUF_INIT(QUERY_MOST);
	if (j->step == STEP_DIGEST) {
		digest_some(j);
		return;
	}
	struct call_spec x = spec_of(j, &query, payload);
	if (call_begin(&j->call, j->all->services, j->all->connections, &x, &e) < 0)
		failed(j, true, 0, e.text);
}

static void go(struct job *j, enum step step)
{
	j->step = step;
	j->tries = 0;
	begin(j);
}

/* Its bytes were those of the record, part by part. */
static void complete(struct job *j)
{
	char sha[DIGEST_TEXT];
	digest_end(take(j->whole), sha);
	buf_puts(&j->list, "</CompleteMultipartUpload>");
	if (!digest_same(sha, j->ask.sha256))
		give_up(j, JAIL_OBJECT_REFUSED, "the copy of it on this host is not what it was");
	else if (j->list.failed)
		give_up(j, JAIL_OBJECT_REFUSED, "it has too many parts");
	else
		go(j, STEP_COMPLETE);
}

static void next_part(struct job *j)
{
	if (j->part == j->nparts) {
		complete(j);
		return;
	}
	j->digest = digest_new();
	j->digested = 0;
	go(j, STEP_DIGEST);
}

static void part_done(struct job *j)
{
	buf_printf(&j->list, "<Part><PartNumber>%u</PartNumber><ETag>%s</ETag></Part>", j->part + 1,
	        j->call.etag);
	j->part++;
	next_part(j);
}

static bool fine(const struct job *j, const struct s3_answer *a)
{
	int status = j->call.status;
	/* What is gone is gone; a bucket that is gone is root's to look at. */
	if (status == 404 && (j->step == STEP_DELETE || j->step == STEP_ABORT))
		return strcmp(a->code, "NoSuchBucket") != 0;
	if (status / 100 != 2)
		return false;
	if (j->step == STEP_CREATE)
		return a->upload_id[0] != '\0';
	if (j->step == STEP_PART)
		return j->call.etag[0] != '\0';
	return j->step != STEP_COMPLETE || strcmp(a->root, "CompleteMultipartUploadResult") == 0;
}

static void on_answer(struct call *c, const struct err *e)
{
	struct job *j = container_of(c, struct job, call);
	struct s3_answer a;
	if (e) {
		failed(j, true, 0, e->text);
		return;
	}
	(void)s3_answer_parse(c->answer.p ? c->answer.p : "", c->answer.len, &a);
	if (!fine(j, &a)) {
		answered_badly(j, &a);
	} else if (j->step == STEP_CREATE) {
		memcpy(j->upload_id, a.upload_id, sizeof(j->upload_id));
		next_part(j);
	} else if (j->step == STEP_PART) {
		part_done(j);
	} else {
		finish(j); /* of ABORT `end` says why */
	}
}

/* ---- the beginning ---- */

static struct job *find(const struct objects *o, const char *key)
{
	list_for_each (j, &o->jobs, struct job, link)
		if (strcmp(j->ask.key, key) == 0)
			return j;
	return NULL;
}

static void link_to(struct objects *o, const struct bucket *b, const struct jail_object *m)
{
	struct err e;
	struct object_place at = {.path = BUF_INIT(0)};
	auto_buf struct buf link = BUF_INIT(JAIL_OBJECT_LINK_MAX - 1);
	struct jail_objected end = {.number = m->number};
	int64_t now = clock_wall_ms();
	int r = object_place(b, m->key, &at, &e);
	if (r == 0)
		r = object_link(o->services, b, &at, now, &link, &e);
	object_place_done(&at);
	if (r < 0) {
		fail(o->services, m, JAIL_OBJECT_REFUSED, e.text);
		return;
	}
	end.until_ms = now / 1000 * 1000 + (int64_t)b->link_ms;
	memcpy(end.link, link.p, link.len);
	tell(o->services, &end);
}

static void start(struct objects *o, const struct bucket *b, const struct jail_object *m, int fd)
{
	struct err e;
	struct job *j = xnew(struct job);
	*j = (struct job){.all = o, .ask = *m, .bucket = *b, .fd = fd};
	j->corpse.bury = bury;
	j->pause.fire = on_pause;
	list_init(&j->pause.link);
	list_init(&j->call.still.link);
	j->call.done = on_answer;
	j->whole = digest_new();
	j->list = (struct buf)BUF_INIT(LIST_MOST);
	buf_puts(&j->list, "<CompleteMultipartUpload>");
	j->nparts = (unsigned)((m->bytes + b->part_bytes - 1) / b->part_bytes);
	list_append(&o->jobs, &j->link);
	o->n++;
	if (object_place(b, m->key, &j->at, &e) < 0)
		give_up(j, JAIL_OBJECT_REFUSED, e.text);
	else if (m->op == JAIL_OBJECT_PUT && j->nparts > PARTS_MOST)
		give_up(j, JAIL_OBJECT_REFUSED, "it has too many parts: make `part_size` larger");
	else
		go(j, m->op == JAIL_OBJECT_DELETE ? STEP_DELETE
		        : j->nparts > 1           ? STEP_CREATE
		                                  : STEP_PUT);
}

void objects_begin(
        struct objects *o, const struct policy_set *set, const struct jail_object *m, int *fd)
{
	struct services *s = o->services;
	const struct bucket *b = set ? &set->config.bucket : NULL;
	if (!b || !b->on || m->policy_generation != set->generation)
		fail(s, m, JAIL_OBJECT_STALE, "agentbox-egress has another configuration in use");
	else if (m->op >= JAIL_OBJECT_OPS || !jail_object_key_ok(m->key) ||
	         (m->op == JAIL_OBJECT_PUT) != (*fd >= 0))
		fail(s, m, JAIL_OBJECT_REFUSED, "not a request for an artifact");
	else if (m->op == JAIL_OBJECT_LINK)
		link_to(o, b, m);
	else if (o->n == OBJECTS_MOST || find(o, m->key)) /* of the supervisor before */
		fail(s, m, JAIL_OBJECT_AGAIN, "another request for it, or too many, are under way");
	else
		start(o, b, m, take_fd(*fd));
}

bool objects_open(const struct objects *o)
{
	return o && o->n > 0;
}

/* ---- life ---- */

struct objects *objects_new(struct services *s)
{
	struct objects *o = xnew(struct objects);
	o->services = s;
	o->connections = connections_new(s->upstream);
	list_init(&o->jobs);
	return o;
}

void objects_free(struct objects *o)
{
	if (!o)
		return;
	list_for_each (j, &o->jobs, struct job, link) {
		release(j);
		free(j);
	}
	connections_free(o->connections);
	free(o);
}
