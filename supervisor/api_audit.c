/* GET /v1/audit: what is kept of the audit log, and what comes, as NDJSON. */
#include "supervisor/api.h"

#include "base/mem.h"
#include "supervisor/audit.h"
#include "supervisor/daemon.h"
#include "supervisor/http.h"
#include "supervisor/problem.h"

struct watching {
	struct http_request *request; /* borrowed: until gone */
	struct audit_reader reader;
	bool follow;
};

static ssize_t pull(void *ctx, char *p, size_t max)
{
	struct watching *x = ctx;
	ssize_t n = audit_read(&x->reader, p, max);
	if (n < 0)
		return HTTP_ABORT;
	return n > 0 ? n : x->follow ? HTTP_WAIT : HTTP_END;
}

static void on_gone(void *ctx)
{
	struct watching *x = ctx;
	audit_leave(&x->reader);
	free(x);
}

static void on_more(struct audit_reader *r)
{
	http_wake(container_of(r, struct watching, reader)->request);
}

void api_audit(struct daemon *d, struct http_request *r)
{
	struct err e;
	bool follow;
	if (http_query_flag(r, "follow", &follow, &e) < 0) {
		problem_err(r, &e, PROBLEM_BAD_REQUEST);
		return;
	}
	struct watching *x = xnew(struct watching);
	x->request = r;
	x->follow = follow;
	x->reader.wake = on_more;
	audit_follow(d->audit, &x->reader);
	const struct http_source source = {.pull = pull, .gone = on_gone, .ctx = x};
	http_add_header(r, "Cache-Control", "no-store");
	http_stream(r, 200, "application/x-ndjson", -1, &source);
}
