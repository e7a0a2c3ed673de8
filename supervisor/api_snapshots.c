/* What workspaces start from: agentboxd makes and keeps it, and is asked each time. */
#include "supervisor/api.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/mem.h"
#include "supervisor/body.h"
#include "supervisor/daemon.h"
#include "supervisor/http.h"
#include "supervisor/jails.h"
#include "supervisor/loop.h"
#include "supervisor/problem.h"
#include "supervisor/runs.h"

#include <string.h>

enum {
	SNAPSHOT_JSON_MAX = 8 << 10, /* of one */
	SNAPSHOTS_MAX = 4096,
	/* For the jail of a command or run that has just ended. */
	IDLE_WAIT_MS = 1000,
	IDLE_LOOK_MS = 20,
};

struct asking {
	struct daemon *d;
	struct http_request *request; /* borrowed; NULL once the client left */
	struct session *session;      /* CREATE: held, so that no run of it begins */
	char name[NAME_MAX_LEN];      /* "": all are listed */
	char id[ID_MAX];              /* CREATE: of the session */
	bool replace;
	struct op look;
	int64_t until_ms; /* monotonic: when a session that is in use is refused */
	int status;       /* of success */
};

static void on_client_gone(void *ctx)
{
	((struct asking *)ctx)->request = NULL;
}

static struct asking *asking_new(
        struct daemon *d, struct http_request *r, const char *name, int status)
{
	struct asking *a = xnew(struct asking);
	*a = (struct asking){.d = d, .request = r, .status = status};
	(void)str_copy(a->name, sizeof(a->name), name);
	http_on_gone(r, on_client_gone, a);
	return a;
}

static void snapshot_json(struct jw *w, const struct jail_snapshot *x)
{
	char created[CLOCK_TEXT_MAX];
	clock_rfc3339(x->created_ms, created);
	jw_open(w, NULL, '{');
	jw_str(w, "name", x->name);
	jw_str(w, "createdAt", created);
	jw_str(w, "sessionId", x->session);
	jw_int(w, "bytes", (int64_t)x->bytes);
	jw_int(w, "files", (int64_t)x->files);
	jw_int(w, "usedBy", x->users);
	jw_open(w, "sessions", '[');
	for (size_t i = 0; i < ARRAY_LEN(x->user) && x->user[i][0]; i++)
		jw_str(w, NULL, x->user[i]);
	jw_close(w, ']');
	jw_close(w, '}');
}

/* As agentboxd wrote it; what is not text there is its mistake. */
static bool text_ok(const struct jail_snapshot *x)
{
	for (size_t i = 0; i < ARRAY_LEN(x->user); i++)
		if (!msg_text_ok(x->user[i], sizeof(x->user[i])))
			return false;
	return msg_text_ok(x->name, sizeof(x->name)) && msg_text_ok(x->session, sizeof(x->session));
}

/* 0, or -errno with *e: -ENOENT where one was asked for and there is none. */
static int list_json(const struct asking *a, int fd, struct jw *w, struct err *e)
{
	struct jail_snapshot x;
	size_t n = 0;
	for (; n < SNAPSHOTS_MAX; n++) {
		ssize_t got = fd_pread_full(fd, &x, sizeof(x), (off_t)(n * sizeof(x)));
		if (got == 0)
			break;
		if (got != (ssize_t)sizeof(x) || !text_ok(&x))
			return err_set(e, -EBADMSG, "agentboxd's list of snapshots is damaged");
		snapshot_json(w, &x);
	}
	return n == 0 && a->name[0] ? err_set(e, -ENOENT, "there is no snapshot '%s'", a->name) : 0;
}

static void reply_list(const struct asking *a, int fd)
{
	struct err e;
	auto_buf struct buf b = BUF_INIT((size_t)SNAPSHOT_JSON_MAX * SNAPSHOTS_MAX);
	struct jw w = JW_INIT(&b);
	if (!a->name[0]) {
		jw_open(&w, NULL, '{');
		jw_open(&w, "snapshots", '[');
	}
	if (list_json(a, fd, &w, &e) < 0) {
		problem_err(a->request, &e, PROBLEM_INTERNAL);
		return;
	}
	if (!a->name[0]) {
		jw_close(&w, ']');
		jw_close(&w, '}');
	}
	http_reply(a->request, a->status, "application/json", &b);
}

static void on_listed(void *ctx, const struct jail_reply *reply, int fds[MSG_FDS])
{
	auto_free struct asking *a = ctx;
	if (!a->request)
		return;
	if (reply->err.code < 0)
		problem_err(a->request, &reply->err, PROBLEM_INTERNAL);
	else
		reply_list(a, fds[0]);
}

static void list(struct asking *a)
{
	const struct jail_snapshot_ask m = {.op = JAIL_SNAPSHOT_LIST};
	jails_snapshot(a->d->jails, &m, a->name, on_listed, a);
}

void api_snapshot_list(struct daemon *d, struct http_request *r)
{
	list(asking_new(d, r, "", 200));
}

/* A name that cannot be one is a name that is not there. */
static bool named(struct http_request *r, const char *name)
{
	if (name_valid(name))
		return true;
	problem_reply(r, PROBLEM_NOT_FOUND, NULL, "'%.64s' is no snapshot's name", name);
	return false;
}

void api_snapshot_show(struct daemon *d, struct http_request *r)
{
	const char *name = http_param(r, 0);
	if (named(r, name))
		list(asking_new(d, r, name, 200));
}

/* ---- making one ---- */

static void on_made(void *ctx, const struct jail_reply *reply, int fds[MSG_FDS])
{
	struct asking *a = ctx;
	(void)fds;
	runs_let_session(a->d->runs, take(a->session));
	if (a->request && reply->err.code == 0) {
		list(a);
		return;
	}
	if (a->request)
		problem_err(a->request, &reply->err, PROBLEM_INTERNAL);
	free(a);
}

static void try_again(struct op *op, int res, uint32_t flags);

/* Until it is made no run of the session begins; one that comes waits. */
static void try_to_make(struct asking *a)
{
	struct err e;
	int r = runs_keep_session(a->d->runs, a->id, &a->session, &e);
	if (r == -EBUSY && clock_mono_ms() < a->until_ms) {
		loop_timeout(a->d->loop, &a->look, IDLE_LOOK_MS, try_again);
		return;
	}
	if (r < 0) {
		problem_err(a->request, &e, PROBLEM_INTERNAL);
		free(a);
		return;
	}
	struct jail_snapshot_ask m = {
	        .op = JAIL_SNAPSHOT_CREATE, .flags = a->replace ? JAIL_SNAPSHOT_REPLACE : 0};
	memcpy(m.session, a->id, sizeof(m.session));
	jails_snapshot(a->d->jails, &m, a->name, on_made, a);
}

static void try_again(struct op *op, int res, uint32_t flags)
{
	struct asking *a = container_of(op, struct asking, look);
	(void)res;
	(void)flags;
	if (a->request)
		try_to_make(a);
	else
		free(a);
}

void api_snapshot_create(struct daemon *d, struct http_request *r)
{
	static const struct body_key keys[] = {
	        {"name", BODY_STRING, true},
	        {"sessionId", BODY_STRING, true},
	        {"replace", BODY_BOOL, false},
	};
	struct err e;
	size_t n;
	const char *text = http_body(r, &n);
	auto_json struct json *body = body_parse(text, n, &e);
	if (!body || body_check(body, "", keys, ARRAY_LEN(keys), &e) < 0) {
		problem_err(r, &e, PROBLEM_BAD_REQUEST);
		return;
	}
	const char *name = json_str(body, "name", ""), *id = json_str(body, "sessionId", "");
	if (d->draining) {
		problem_reply(r, PROBLEM_DRAINING, NULL, "the daemon is about to stop");
		return;
	}
	if (!name_valid(name)) {
		problem_reply(r, PROBLEM_BAD_REQUEST, NULL,
		        "name: '%.64s' is none (lower-case letters, digits, '.', '_' and '-', at "
		        "most %d)",
		        name, NAME_MAX_LEN - 1);
		return;
	}
	if (!id_valid(id, "ses")) {
		problem_reply(r, PROBLEM_NOT_FOUND, NULL, "there is no session '%.64s'", id);
		return;
	}
	struct asking *a = asking_new(d, r, name, 201);
	(void)str_copy(a->id, sizeof(a->id), id);
	a->replace = json_bool(body, "replace", false);
	a->until_ms = clock_mono_ms() + IDLE_WAIT_MS;
	try_to_make(a);
}

/* ---- taking one away ---- */

static void on_removed(void *ctx, const struct jail_reply *reply, int fds[MSG_FDS])
{
	auto_free struct asking *a = ctx;
	(void)fds;
	if (!a->request)
		return;
	if (reply->err.code < 0)
		problem_err(a->request, &reply->err, PROBLEM_INTERNAL);
	else
		http_reply(a->request, 204, NULL, NULL);
}

void api_snapshot_delete(struct daemon *d, struct http_request *r)
{
	const struct jail_snapshot_ask m = {.op = JAIL_SNAPSHOT_REMOVE};
	const char *name = http_param(r, 0);
	if (named(r, name))
		jails_snapshot(d->jails, &m, name, on_removed, asking_new(d, r, name, 204));
}
