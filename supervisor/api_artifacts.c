/* Results of runs: what there is, their bytes, and links to those that are in a bucket. */
#include "supervisor/api.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "proto/jail.h"
#include "supervisor/daemon.h"
#include "supervisor/download.h"
#include "supervisor/http.h"
#include "supervisor/media.h"
#include "supervisor/problem.h"
#include "supervisor/runs.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

void api_run_artifacts(struct daemon *d, struct http_request *r)
{
	struct err e;
	auto_buf struct buf b = BUF_INIT(LIMIT_EVENT);
	buf_puts(&b, "{\"artifacts\":[");
	if (runs_artifacts(d->runs, http_param(r, 0), &b, &e) < 0) {
		problem_err(r, &e, PROBLEM_INTERNAL);
		return;
	}
	buf_puts(&b, "]}");
	http_reply(r, 200, "application/json", &b);
}

/* ---- one of them ---- */

struct download {
	int fd; /* owned */
	uint64_t at, left;
};

static ssize_t download_pull(void *ctx, char *p, size_t max)
{
	struct download *f = ctx;
	if (f->left == 0)
		return HTTP_END;
	ssize_t n = pread(f->fd, p, max < f->left ? max : (size_t)f->left, (off_t)f->at);
	/* Shorter than announced: someone changed our copy. */
	if (n <= 0)
		return HTTP_ABORT;
	f->at += (uint64_t)n;
	f->left -= (uint64_t)n;
	return n;
}

static void download_gone(void *ctx)
{
	struct download *f = ctx;
	fd_close(f->fd);
	free(f);
}

/* ---- that are in a bucket ---- */

enum { ANSWER_MOST = 2 * JAIL_OBJECT_LINK_MAX };

struct linking {
	struct http_request *request; /* borrowed; NULL once the client left */
	bool redirect;
};

static void on_client_gone(void *ctx)
{
	((struct linking *)ctx)->request = NULL;
}

static void on_link(void *ctx, const struct jail_objected *m)
{
	auto_free struct linking *l = ctx;
	char until[CLOCK_TEXT_MAX];
	if (!l->request)
		return;
	if (m->outcome != JAIL_OBJECT_DONE) {
		problem_reply(l->request, PROBLEM_UNREACHABLE, NULL, "no link: %s", m->reason);
		return;
	}
	/* Whoever has it needs no other right until then. */
	http_add_header(l->request, "Cache-Control", "private, no-store");
	if (l->redirect) {
		http_add_header(l->request, "Location", m->link);
		http_reply(l->request, 307, NULL, NULL);
		return;
	}
	auto_buf struct buf b = BUF_INIT(ANSWER_MOST);
	struct jw w = JW_INIT(&b);
	clock_rfc3339(m->until_ms, until);
	jw_open(&w, NULL, '{');
	jw_str(&w, "url", m->link);
	jw_str(&w, "expiresAt", until);
	jw_close(&w, '}');
	http_reply(l->request, 200, "application/json", &b);
}

static void answer_link(struct daemon *d, struct http_request *r, bool redirect)
{
	struct err e;
	struct linking *l = xnew(struct linking);
	*l = (struct linking){r, redirect};
	if (runs_artifact_link(d->runs, http_param(r, 0), http_param(r, 1), on_link, l, &e) < 0) {
		free(l);
		problem_err(r, &e, PROBLEM_INTERNAL);
		return;
	}
	http_on_gone(r, on_client_gone, l);
}

void api_run_artifact(struct daemon *d, struct http_request *r)
{
	struct err e;
	uint64_t bytes, at = 0, n = 0;
	char sha256[65];
	const char *path = http_param(r, 1);
	bool link = false;
	if (http_query_flag(r, "link", &link, &e) < 0) {
		problem_err(r, &e, PROBLEM_BAD_REQUEST);
		return;
	}
	if (link) {
		answer_link(d, r, false);
		return;
	}
	auto_close int fd = runs_artifact_open(d->runs, http_param(r, 0), path, &bytes, sha256, &e);
	if (fd == -EREMOTE) {
		answer_link(d, r, true);
		return;
	}
	if (fd < 0) {
		problem_err(r, &e, PROBLEM_INTERNAL);
		return;
	}
	int status = download_head_kept(r, path, bytes, sha256, &at, &n);
	if (status >= 300)
		return;
	struct download *f = xnew(struct download);
	f->fd = take_fd(fd);
	f->at = at;
	f->left = n;
	struct http_source source = {.pull = download_pull, .gone = download_gone, .ctx = f};
	http_stream(r, status, media_type(path), (int64_t)n, &source);
}
