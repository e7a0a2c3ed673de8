#include "supervisor/api.h"

#include "base/limits.h"
#include "supervisor/daemon.h"
#include "supervisor/harnesses.h"
#include "supervisor/http.h"
#include "supervisor/problem.h"
#include "supervisor/scope.h"

enum { LIST_MAX = 16 << 20 /* LIMIT_HARNESSES rows of a few KB */ };

static struct harnesses_view view(struct daemon *d, struct http_request *r)
{
	static char *const none[] = {NULL};
	const struct apikey *k = scope_key(d, r);
	bool outside = scope_outside(r);
	return (struct harnesses_view){.names = k         ? k->harnesses
	                                        : outside ? none
	                                                  : NULL,
	        .outside = outside};
}

void api_harness_list(struct daemon *d, struct http_request *r)
{
	auto_buf struct buf b = BUF_INIT(LIST_MAX);
	harnesses_catch_up(d->harnesses);
	const struct harnesses_view seen = view(d, r);
	buf_puts(&b, "{\"harnesses\":[");
	harnesses_list(d->harnesses, &seen, &b);
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
	const struct harnesses_view seen = view(d, r);
	if (harnesses_show(d->harnesses, &seen, http_param(r, 0), &b, &e) < 0)
		problem_err(r, &e, PROBLEM_HARNESS_INVALID);
	else
		http_reply(r, 200, "application/json", &b);
}
