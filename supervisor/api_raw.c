/*
 * GET /v1/runs/{id}/raw: what the agent has printed, as it came.
 *
 * One JSON object a line, each of one read: {"stream":"stdout","text":"..."}, or
 * "base64" instead of "text" where that is no UTF-8.  {"stream":"gap"} stands
 * where something is missing.
 */
#include "supervisor/api.h"

#include "base/base64.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "supervisor/daemon.h"
#include "supervisor/http.h"
#include "supervisor/hub.h"
#include "supervisor/journal.h"
#include "supervisor/problem.h"
#include "supervisor/runs.h"

#include <string.h>

struct raw {
	struct daemon *d;
	struct http_request *request; /* borrowed: until gone */
	char run[ID_MAX];
	bool follow, over;
	struct hub_sub sub;
	struct journal_reader reader;
	struct buf record, out;
	size_t sent; /* of out */
};

static void put_gap(struct raw *x, uint64_t bytes, const char *why)
{
	struct jw w = JW_INIT(&x->out);
	jw_open(&w, NULL, '{');
	jw_str(&w, "stream", "gap");
	if (bytes)
		jw_int(&w, "bytes", (int64_t)bytes);
	jw_str(&w, "reason", why);
	jw_close(&w, '}');
	(void)buf_putc(&x->out, '\n'); /* fits */
}

static void put(struct raw *x, const struct journal_raw *r)
{
	if ((r->type != JOURNAL_STDOUT && r->type != JOURNAL_STDERR) || !r->n)
		return;
	struct jw w = JW_INIT(&x->out);
	jw_open(&w, NULL, '{');
	jw_str(&w, "stream", r->type == JOURNAL_STDOUT ? "stdout" : "stderr");
	if (json_writable(r->p, r->n)) {
		jw_bytes(&w, "text", r->p, r->n);
	} else {
		auto_buf struct buf b = BUF_INIT((size_t)2 * LIMIT_PUMP_READ);
		if (base64_encode(r->p, r->n, &b) == 0) /* fits: one read */
			jw_bytes(&w, "base64", b.p, b.len);
	}
	jw_close(&w, '}');
	(void)buf_putc(&x->out, '\n'); /* fits: the limit is a read of escapes */
}

static bool finished(const struct raw *x)
{
	struct run_info info;
	struct err e;
	return runs_info(x->d->runs, x->run, &info, &e) < 0 || info.finished;
}

/* What comes when there is no record now. */
static void pause_or_end(struct raw *x, const struct journal_raw *r)
{
	if (r->broken)
		put_gap(x, 0, "the disk was full: what came then is missing");
	x->over = r->broken || !x->follow || finished(x);
	if (!x->over && r->ended)
		journal_reader_done(&x->reader); /* the run begins anew, and so does its log */
}

/* One record into `out`, if there is one now.  0, or -errno. */
static int refill(struct raw *x, struct err *e)
{
	struct journal_raw r = {.n = 0};
	buf_clear(&x->out);
	x->sent = 0;
	while (!x->out.len && !x->over) {
		int rc = x->reader.fd >= 0
		                 ? 0
		                 : journal_reader_open(x->d->journals_fd, x->run, &x->reader, e);
		if (rc == 0)
			rc = journal_reader_next(&x->reader, &x->record, &r, e);
		if (rc < 0 && rc != -ENOENT)
			return rc;
		if (rc <= 0) {
			pause_or_end(x, &r);
			return 0;
		}
		if (r.gap)
			put_gap(x, r.gap,
			        "the run has ended, and of its log the beginning and the "
			        "end are kept");
		else
			put(x, &r);
	}
	return x->out.failed;
}

static ssize_t pull(void *ctx, char *p, size_t max)
{
	struct raw *x = ctx;
	struct err e;
	if (x->sent == x->out.len && refill(x, &e) < 0) {
		log_err("r=%s: %s", x->run, e.text);
		return HTTP_ABORT;
	}
	if (x->sent == x->out.len)
		return x->over ? HTTP_END : HTTP_WAIT;
	return http_give(&x->out, &x->sent, p, max);
}

static void on_gone(void *ctx)
{
	struct raw *x = ctx;
	hub_unsubscribe(x->d->hub, &x->sub);
	journal_reader_done(&x->reader);
	buf_done(&x->record);
	buf_done(&x->out);
	free(x);
}

static void on_more(struct hub_sub *sub)
{
	http_wake(container_of(sub, struct raw, sub)->request);
}

void api_run_raw(struct daemon *d, struct http_request *r)
{
	struct err e;
	struct run_info info;
	bool follow;
	struct journal_reader reader = {.fd = -1};
	if (runs_info(d->runs, http_param(r, 0), &info, &e) < 0 ||
	        http_query_flag(r, "follow", &follow, &e) < 0) {
		problem_err(r, &e, PROBLEM_INTERNAL);
		return;
	}
	if (info.guarded) {
		problem_reply(r, PROBLEM_CONFLICT, NULL,
		        "the harness of run %s has guardrails for its output: there is no raw log "
		        "until it has passed them",
		        info.id);
		return;
	}
	int rc = journal_reader_open(d->journals_fd, info.id, &reader, &e);
	if (rc < 0 && info.finished) {
		problem_reply(r, PROBLEM_NOT_FOUND, NULL,
		        "of run %s no raw log is kept: it never began, or the oldest are gone",
		        info.id);
		return;
	}
	struct raw *x = xnew(struct raw);
	x->d = d;
	x->request = r;
	x->follow = follow;
	x->reader = reader;
	(void)str_copy(x->run, sizeof(x->run), info.id);
	x->record = (struct buf)BUF_INIT((size_t)4 * LIMIT_YAML_FILE);
	x->out = (struct buf)BUF_INIT((size_t)8 * LIMIT_PUMP_READ);
	x->sub.wake = on_more;
	if (follow)
		hub_subscribe(d->hub, info.session, &x->sub);
	struct http_source source = {.pull = pull, .gone = on_gone, .ctx = x};
	http_add_header(r, "Cache-Control", "no-store");
	http_add_header(r, "X-Content-Type-Options", "nosniff");
	http_stream(r, 200, "application/x-ndjson", -1, &source);
}
