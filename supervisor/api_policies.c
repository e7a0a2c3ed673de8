#include "supervisor/api.h"

#include "supervisor/daemon.h"
#include "supervisor/http.h"
#include "supervisor/policies.h"
#include "supervisor/problem.h"

enum { POLICIES_JSON_MAX = 4 << 20 /* LIMIT_POLICIES with all their mounts */ };

void api_policy_list(struct daemon *d, struct http_request *r)
{
	auto_buf struct buf b = BUF_INIT(POLICIES_JSON_MAX);
	buf_puts(&b, "{\"policies\":[");
	policies_list(d->policies, &b);
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
	if (policies_show(d->policies, http_param(r, 0), &b, &e) < 0)
		problem_err(r, &e, PROBLEM_POLICY_UNMET);
	else
		http_reply(r, 200, "application/json", &b);
}
