#include "supervisor/api.h"

#include "base/limits.h"
#include "supervisor/daemon.h"
#include "supervisor/harnesses.h"
#include "supervisor/http.h"
#include "supervisor/problem.h"

enum { LIST_MAX = 16 << 20 /* LIMIT_HARNESSES rows of a few KB */ };

void api_harness_list(struct daemon *d, struct http_request *r)
{
	auto_buf struct buf b = BUF_INIT(LIST_MAX);
	harnesses_catch_up(d->harnesses);
	buf_puts(&b, "{\"harnesses\":[");
	harnesses_list(d->harnesses, &b);
	buf_puts(&b, "]}");
	if (b.failed)
		problem_reply(r, PROBLEM_INTERNAL, NULL, "the list of harnesses is too long");
	else
		http_reply(r, 200, "application/json", &b);
}

void api_harness_show(struct daemon *d, struct http_request *r)
{
	struct err e;
	/* The system prompt is part of it; escapes may make it longer than the file. */
	auto_buf struct buf b = BUF_INIT((size_t)8 * LIMIT_YAML_FILE);
	harnesses_catch_up(d->harnesses);
	if (harnesses_show(d->harnesses, http_param(r, 0), &b, &e) < 0)
		problem_err(r, &e, PROBLEM_HARNESS_INVALID);
	else
		http_reply(r, 200, "application/json", &b);
}
