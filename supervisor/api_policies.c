#include "supervisor/api.h"

#include "supervisor/daemon.h"
#include "supervisor/http.h"
#include "supervisor/policies.h"
#include "supervisor/problem.h"
#include "supervisor/scope.h"

enum { POLICIES_JSON_MAX = 4 << 20 /* LIMIT_POLICIES with all their mounts */ };

static struct policies_view view(struct daemon *d, struct http_request *r)
{
	static char *const none[] = {NULL};
	const struct apikey *k = scope_key(d, r);
	bool outside = scope_outside(r);
	return (struct policies_view){.names = k         ? k->policies
	                                       : outside ? none
	                                                 : NULL,
	        .outside = outside};
}

void api_policy_list(struct daemon *d, struct http_request *r)
{
	auto_buf struct buf b = BUF_INIT(POLICIES_JSON_MAX);
	buf_puts(&b, "{\"policies\":[");
	const struct policies_view seen = view(d, r);
	policies_list(d->policies, &seen, &b);
	buf_puts(&b, "]}");
	if (b.failed)
		problem_reply(r, PROBLEM_INTERNAL, NULL, "the list of policies is too long");
	else
		http_reply(r, 200, "application/json", &b);
}

void api_policy_show(struct daemon *d, struct http_request *r)
{
	struct err e;
	auto_buf struct buf b = BUF_INIT(POLICIES_JSON_MAX);
	const struct policies_view seen = view(d, r);
	if (policies_show(d->policies, &seen, http_param(r, 0), &b, &e) < 0)
		problem_err(r, &e, PROBLEM_POLICY_UNMET);
	else
		http_reply(r, 200, "application/json", &b);
}
