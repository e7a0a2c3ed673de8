#include "supervisor/runs.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "supervisor/active.h"
#include "supervisor/artifacts.h"
#include "supervisor/daemon.h"
#include "supervisor/digest.h"
#include "supervisor/runs_private.h"
#include "supervisor/store.h"

#include <string.h>

enum { LIST_MAX = 1000 };

struct showing {
	struct runs *runs;
	struct jw w;
	bool whole;
	char last[ID_MAX];
	size_t n;
};

static void when(struct jw *w, const char *key, int64_t ms)
{
	char text[CLOCK_TEXT_MAX];
	if (!ms)
		return;
	clock_rfc3339(ms, text);
	jw_str(w, key, text);
}

/* The store lags behind by a commit: what is in memory is newer. */
static const char *status_of(struct runs *rs, const struct store_run *x)
{
	const struct run *r = x->result ? NULL : runs_active(rs, x->id);
	if (!r)
		return x->status;
	if (r->state == RUN_STATE_SAVING && r->judged)
		return run_status_name(r->status);
	return r->slot_us ? "running" : "queued";
}

/* For a person: it works, and has asked something. */
static bool waits(const struct run *r)
{
	return r->state == RUN_STATE_RUNNING && r->asks.nopen;
}

static void show(void *ctx, const struct store_run *x)
{
	struct showing *v = ctx;
	struct run *r = x->result ? NULL : runs_active(v->runs, x->id);
	jw_open(&v->w, NULL, '{');
	jw_str(&v->w, "runId", x->id);
	jw_str(&v->w, "sessionId", x->session);
	jw_str(&v->w, "userId", x->user);
	jw_str(&v->w, "goalId", x->goal);
	jw_str(&v->w, "harness", x->harness);
	jw_str(&v->w, "status", status_of(v->runs, x));
	if (r)
		jw_str(&v->w, "state", waits(r) ? "waiting" : run_state_name(r->state));
	when(&v->w, "createdAt", x->created_ms);
	when(&v->w, "startedAt", x->started_ms);
	when(&v->w, "endedAt", x->ended_ms);
	jw_int(&v->w, "priority", x->priority);
	jw_int(&v->w, "fromSeq", (int64_t)x->from_seq);
	if (v->whole && x->params)
		jw_raw(&v->w, "params", x->params, strlen(x->params));
	if (v->whole && r && waits(r)) {
		jw_open(&v->w, "pending", '[');
		asks_show(&r->asks, &v->w, clock_wall_ms(), clock_mono_us());
		jw_close(&v->w, ']');
	}
	if (v->whole && x->result)
		jw_raw(&v->w, "result", x->result, strlen(x->result));
	jw_close(&v->w, '}');
	(void)str_copy(v->last, sizeof(v->last), x->id);
	v->n++;
}

int runs_show(struct runs *rs, const char *id, struct buf *json, struct err *e)
{
	struct showing v = {.runs = rs, .w = JW_INIT(json), .whole = true};
	return store_run(rs->daemon->store, id, show, &v, e);
}

int runs_list(struct runs *rs, const struct runs_filter *f, struct buf *json, char ret_next[ID_MAX],
        struct err *e)
{
	struct showing v = {.runs = rs, .w = JW_INIT(json)};
	struct store_run_filter q = {
	        .user = f->user,
	        .goal = f->goal,
	        .session = f->session,
	        .harness = f->harness,
	        .status = f->status,
	        .cursor = f->cursor,
	        .limit = f->limit && f->limit < LIST_MAX ? f->limit : LIST_MAX,
	};
	int rc = store_runs(rs->daemon->store, &q, show, &v, e);
	if (rc == 0)
		(void)str_copy(ret_next, ID_MAX, v.n == q.limit ? v.last : "");
	return rc;
}

struct inform {
	struct runs *runs;
	struct run_info *to;
};

static void inform(void *ctx, const struct store_run *x)
{
	struct inform *v = ctx;
	struct run_info *to = v->to;
	(void)str_copy(to->id, sizeof(to->id), x->id);
	(void)str_copy(to->session, sizeof(to->session), x->session);
	(void)str_copy(to->harness, sizeof(to->harness), x->harness);
	(void)str_copy(to->status, sizeof(to->status), status_of(v->runs, x));
	to->from_seq = x->from_seq;
	to->finished = x->result != NULL;
	to->existed = false;
}

int runs_info(struct runs *rs, const char *id, struct run_info *ret, struct err *e)
{
	struct inform v = {rs, ret};
	return store_run(rs->daemon->store, id, inform, &v, e);
}

/* ---- artifacts ---- */

static void show_artifact(void *ctx, size_t n, const struct artifact *a)
{
	(void)n;
	struct jw *w = ctx;
	jw_open(w, NULL, '{');
	jw_str(w, "path", a->path);
	jw_int(w, "bytes", (int64_t)a->bytes);
	jw_str(w, "sha256", a->sha256);
	jw_close(w, '}');
}

int runs_artifacts(struct runs *rs, const char *id, struct buf *json, struct err *e)
{
	struct run_info info;
	int rc = runs_info(rs, id, &info, e);
	struct jw w = JW_INIT(json);
	return rc < 0 ? rc : store_artifacts(rs->daemon->store, id, show_artifact, &w, e);
}

struct pick {
	const char *path;
	size_t n;
	uint64_t bytes;
	char sha256[DIGEST_TEXT];
	bool found;
};

static void pick(void *ctx, size_t n, const struct artifact *a)
{
	struct pick *p = ctx;
	if (strcmp(a->path, p->path) != 0)
		return;
	p->found = true;
	p->n = n;
	p->bytes = a->bytes;
	memcpy(p->sha256, a->sha256, sizeof(p->sha256));
}

int runs_artifact_open(struct runs *rs, const char *id, const char *path, uint64_t *ret_bytes,
        char ret_sha256[65], struct err *e)
{
	struct run_info info;
	struct pick p = {.path = path};
	int rc = runs_info(rs, id, &info, e);
	if (rc == 0)
		rc = store_artifacts(rs->daemon->store, id, pick, &p, e);
	if (rc < 0)
		return rc;
	if (!p.found)
		return err_set(e, -ENOENT, "run %s has no artifact '%.160s'", id, path);
	int fd = artifacts_open(rs->daemon->artifacts_fd, id, p.n, e);
	if (fd >= 0) {
		*ret_bytes = p.bytes;
		memcpy(ret_sha256, p.sha256, sizeof(p.sha256));
	}
	return fd;
}
