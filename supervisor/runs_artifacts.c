/*
 * runs_artifacts.c - the results of runs, and what has become of them in root's bucket.
 *
 * A result is written once, before anything of it is uploaded; where it is shown, its list of
 * artifacts is written anew with what the store knows now.
 */
#include "supervisor/runs.h"

#include "base/digest.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "supervisor/artifacts.h"
#include "supervisor/daemon.h"
#include "supervisor/runs_private.h"
#include "supervisor/store.h"
#include "supervisor/uploads.h"

#include <errno.h>
#include <string.h>

/* ---- the list ---- */

enum { MEMBER_MAX = 16 << 10 };

struct listing {
	struct jw w;
	char **uploads; /* owned: members by the artifact's number, NULL where there is none */
	size_t n;
};

static void take_upload(void *ctx, const struct store_object *x)
{
	struct listing *l = ctx;
	auto_buf struct buf b = BUF_INIT(MEMBER_MAX);
	struct jw w = JW_INIT(&b);
	if (x->n >= LIMIT_ARTIFACTS)
		return; /* none of ours */
	uploads_show(x, &w);
	if (x->n >= l->n) {
		l->uploads = xrealloc(l->uploads, x->n + 1, sizeof(*l->uploads));
		memset(l->uploads + l->n, 0, (x->n + 1 - l->n) * sizeof(*l->uploads));
		l->n = x->n + 1;
	}
	l->uploads[x->n] = buf_take(&b);
}

static void show_artifact(void *ctx, size_t n, const struct artifact *a)
{
	struct listing *l = ctx;
	jw_open(&l->w, NULL, '{');
	jw_str(&l->w, "path", a->path);
	jw_int(&l->w, "bytes", (int64_t)a->bytes);
	jw_str(&l->w, "sha256", a->sha256);
	if (n < l->n && l->uploads[n])
		jw_members(&l->w, l->uploads[n], strlen(l->uploads[n]));
	jw_close(&l->w, '}');
}

static int list(struct runs *rs, const char *id, struct listing *l, struct err *e)
{
	int rc = store_objects(rs->daemon->store, id, take_upload, l, e);
	return rc < 0 ? rc : store_artifacts(rs->daemon->store, id, show_artifact, l, e);
}

static void listing_done(struct listing *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->uploads[i]);
	free(l->uploads);
}

int runs_artifacts(struct runs *rs, const char *id, struct buf *json, struct err *e)
{
	struct run_info info;
	struct listing l = {.w = JW_INIT(json)};
	int rc = runs_info(rs, id, &info, e);
	if (rc == 0)
		rc = list(rs, id, &l, e);
	listing_done(&l);
	return rc;
}

/* ---- a result ---- */

/* Behind the bracket that closes an array which begins at `p`, or NULL. */
static const char *array_end(const char *p)
{
	bool text = false;
	for (int depth = 0; *p; p++) {
		if (text && *p == '\\' && p[1])
			p++;
		else if (*p == '"')
			text = !text;
		else if (!text && *p == '[')
			depth++;
		else if (!text && *p == ']' && --depth == 0)
			return p + 1;
	}
	return NULL;
}

char *runs_result_now(struct runs *rs, const char *id, const char *result)
{
	/* Within a text its quotes would have backslashes in front. */
	static const char key[] = ",\"artifacts\":";
	const char *at = strstr(result, key), *end = at ? array_end(at + strlen(key)) : NULL;
	auto_buf struct buf b = BUF_INIT(LIMIT_EVENT);
	struct listing l = {.w = JW_INIT(&b)};
	struct err e;
	buf_put(&b, result, end ? (size_t)(at - result) + strlen(key) : 0);
	buf_putc(&b, '[');
	int rc = end ? list(rs, id, &l, &e) : -ENOENT;
	bool any = l.n > 0;
	listing_done(&l);
	buf_puts(&b, "]");
	buf_puts(&b, end ? end : "");
	return rc == 0 && any && !b.failed ? buf_take(&b) : xstrdup(result);
}

/* ---- one of them ---- */

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

static int find(struct runs *rs, const char *id, struct pick *p, struct err *e)
{
	struct run_info info;
	int rc = runs_info(rs, id, &info, e);
	if (rc == 0)
		rc = store_artifacts(rs->daemon->store, id, pick, p, e);
	if (rc == 0 && !p->found)
		rc = err_set(e, -ENOENT, "run %s has no artifact '%.160s'", id, p->path);
	return rc;
}

struct remote {
	size_t n;
	bool gone_here;
};

static void see_remote(void *ctx, const struct store_object *x)
{
	struct remote *r = ctx;
	if (x->n == r->n)
		r->gone_here = x->gone_here;
}

int runs_artifact_open(struct runs *rs, const char *id, const char *path, uint64_t *ret_bytes,
        char ret_sha256[65], struct err *e)
{
	struct pick p = {.path = path};
	int rc = find(rs, id, &p, e);
	struct remote r = {.n = p.n};
	if (rc == 0)
		rc = store_objects(rs->daemon->store, id, see_remote, &r, e);
	if (rc < 0)
		return rc;
	if (r.gone_here)
		return err_set(e, -EREMOTE, "'%.160s' is in the bucket alone", path);
	int fd = artifacts_open(rs->daemon->artifacts_fd, id, p.n, e);
	if (fd >= 0) {
		*ret_bytes = p.bytes;
		memcpy(ret_sha256, p.sha256, sizeof(p.sha256));
	}
	return fd;
}

struct linking {
	struct uploads *uploads;
	size_t n;
	uploads_link_fn *done;
	void *ctx;
	bool found;
	int rc;
	struct err *e;
};

static void link_it(void *ctx, const struct store_object *x)
{
	struct linking *l = ctx;
	if (x->n != l->n)
		return;
	l->found = true;
	l->rc = uploads_link(l->uploads, x, l->done, l->ctx, l->e);
}

int runs_artifact_link(struct runs *rs, const char *id, const char *path, uploads_link_fn *done,
        void *ctx, struct err *e)
{
	struct pick p = {.path = path};
	int rc = find(rs, id, &p, e);
	if (rc < 0)
		return rc;
	struct linking l = {rs->daemon->uploads, p.n, done, ctx, false, 0, e};
	rc = store_objects(rs->daemon->store, id, link_it, &l, e);
	if (rc == 0 && !l.found)
		rc = err_set(e, -ENOENT,
		        "there is no link to '%.160s': it is here alone (artifacts.store of "
		        "agentboxd.yaml)",
		        path);
	return rc < 0 ? rc : l.rc;
}
