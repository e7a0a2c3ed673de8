/* What clients are told of uploads: a member of each artifact, links, and one event of a run. */
#include "supervisor/uploads.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "supervisor/daemon.h"
#include "supervisor/eventlog.h"
#include "supervisor/uploads_private.h"

#include <stdlib.h>
#include <string.h>

enum { EVENT_BYTES = 4096, URL_BYTES = 2 * JAIL_OBJECT_KEY + BUCKET_PLACE_MAX };

/* ---- a member ---- */

static const char *status_of(const struct store_object *x)
{
	static const char *const names[] = {[OBJECT_PENDING] = "pending",
	        [OBJECT_DONE] = "done",
	        [OBJECT_FAILED] = "failed",
	        [OBJECT_DELETING] = "deleted"};
	return names[x->state];
}

void uploads_show(const struct store_object *x, struct jw *w)
{
	jw_open(w, "upload", '{');
	jw_str(w, "status", status_of(x));
	if (x->state == OBJECT_DONE) {
		auto_buf struct buf url = BUF_INIT(URL_BYTES);
		const char *bucket = strchr(x->place, ' ');
		size_t n = bucket ? strlen(++bucket) : 0;
		buf_printf(&url, "s3://%s%s%s/%s/%s", bucket ? bucket : "",
		        n && bucket[n - 1] == '/' ? "" : "/", x->session, x->run, x->path);
		jw_str(w, "url", url.p);
		jw_bool(w, "local", !x->gone_here);
	}
	if (x->error[0] && x->state != OBJECT_DONE)
		jw_str(w, "error", x->error);
	jw_close(w, '}');
}

/* ---- links ---- */

static void link_end(struct uploads *u, struct link_asked *x, const struct jail_objected *m)
{
	list_remove(&x->link);
	u->nlinks--;
	x->done(x->ctx, m);
	free(x);
}

bool uploads_linked(struct uploads *u, const struct jail_objected *m)
{
	list_for_each (x, &u->links, struct link_asked, link)
		if (x->number == m->number || m->number == 0) {
			link_end(u, x, m);
			return true;
		}
	return false;
}

void uploads_links_late(struct uploads *u, int64_t now)
{
	static const struct jail_objected silent = {
	        .outcome = JAIL_OBJECT_AGAIN, .reason = "agentbox-egress has not said anything"};
	list_for_each (x, &u->links, struct link_asked, link)
		if (now >= x->deadline_ms)
			link_end(u, x, &silent);
}

int uploads_link(struct uploads *u, const struct store_object *x, uploads_link_fn *done, void *ctx,
        struct err *e)
{
	struct jail_object m = {.op = JAIL_OBJECT_LINK};
	if (x->state != OBJECT_DONE)
		return err_set(e, -ENOENT, "'%.160s' is not in the bucket: its upload is %s",
		        x->path, status_of(x));
	if (!u->bucket.on || strcmp(x->place, u->place) != 0)
		return err_set(e, -ENOENT,
		        "'%.160s' was uploaded to %.200s, which agentboxd.yaml does not name any "
		        "more",
		        x->path, x->place);
	if (u->nlinks == UPLOAD_LINKS || u->stopped)
		return err_set(e, -EAGAIN, "%d links are asked for already", UPLOAD_LINKS);
	if (!uploads_key(m.key, x->session, x->run, x->path))
		return err_set(e, -EINVAL, "its name is too long");
	struct link_asked *l = xnew(struct link_asked);
	l->done = done;
	l->ctx = ctx;
	l->deadline_ms = clock_mono_ms() + UPLOAD_LINK_MS;
	list_append(&u->links, &l->link);
	u->nlinks++;
	m.number = l->number = ++u->last_number;
	uploads_ask(u, &m, -1);
	uploads_wake(u); /* for its deadline */
	return 0;
}

/* ---- the event ---- */

struct sum {
	uint64_t pending, done, failed, bytes;
	bool told;
	char error[192];
};

static void add(void *ctx, const struct store_object *x)
{
	struct sum *s = ctx;
	s->pending += x->state == OBJECT_PENDING;
	s->done += x->state == OBJECT_DONE;
	s->failed += x->state == OBJECT_FAILED;
	s->bytes += x->state == OBJECT_DONE ? x->bytes : 0;
	s->told |= x->told;
	if (x->state == OBJECT_FAILED && !s->error[0])
		(void)str_copy(s->error, sizeof(s->error), x->error); /* cut is fine: for people */
}

static bool telling(const struct uploads *u, const char *run)
{
	list_for_each (t, &u->tellings, struct telling, link)
		if (strcmp(t->run, run) == 0)
			return true;
	return false;
}

static void on_told(void *ctx, int rc, const struct err *e)
{
	struct telling *t = ctx;
	if (rc < 0) /* the next supervisor looks into the log */
		log_err("r=%s: its uploads: %s", t->run, e->text);
	list_remove(&t->link);
	free(t);
}

/* It is in the log: so it need not be told again. */
static void tick_off(struct uploads *u, const char *session, const char *run)
{
	struct telling *t = xnew(struct telling);
	t->uploads = u;
	(void)str_copy(t->run, sizeof(t->run), run); /* an id */
	list_append(&u->tellings, &t->link);
	store_objects_told(
	        u->daemon->store, run, eventlog_sync_fd(u->daemon->log, session), on_told, t);
}

void uploads_tell(struct uploads *u, const char *session, const char *run)
{
	struct err e;
	struct sum s = {0};
	auto_buf struct buf b = BUF_INIT(EVENT_BYTES);
	struct jw w = JW_INIT(&b);
	if (telling(u, run) || store_objects(u->daemon->store, run, add, &s, &e) < 0 || s.pending ||
	        s.told || s.done + s.failed == 0)
		return;
	jw_str(&w, "runId", run);
	jw_int(&w, "uploaded", (int64_t)s.done);
	jw_int(&w, "failed", (int64_t)s.failed);
	jw_int(&w, "bytes", (int64_t)s.bytes);
	if (s.error[0])
		jw_str(&w, "error", s.error);
	if (eventlog_append(u->daemon->log, session, "", EVENT_ARTIFACTS_UPLOADED, b.p, b.len, &e) <
	        0)
		log_warn("s=%s r=%s: %s", session, run, e.text);
	tick_off(u, session, run);
}

/* ---- after a death ---- */

struct looking {
	const char *run;
	bool found;
};

static void look(void *ctx, const char *type, size_t type_len, const char *line, size_t n)
{
	struct looking *l = ctx;
	static const char name[] = "artifacts.uploaded";
	l->found |= type_len == sizeof(name) - 1 && memcmp(type, name, type_len) == 0 &&
	            memmem(line, n, l->run, strlen(l->run)) != NULL;
}

static void tell_again(void *ctx, const struct store_object *x)
{
	struct uploads *u = ctx;
	struct looking l = {.run = x->run};
	eventlog_each(u->daemon->log, x->session, "", 0, look, &l);
	if (l.found)
		tick_off(u, x->session, x->run);
	else
		uploads_tell(u, x->session, x->run);
}

void uploads_tell_again(struct uploads *u)
{
	struct err e;
	if (store_objects_untold(u->daemon->store, tell_again, u, &e) < 0)
		log_err("uploads that are not told of: %s", e.text);
}
