/*
 * judge.h - may this request leave the jail?
 *
 * Host, port, dialled address and, where TLS ends here, the server's name must all mean the same
 * entry of the jail's policy, and the entry must let the request through.  Who is refused gets an
 * answer and an event that say which rule decided.
 */
#ifndef EGRESS_JUDGE_H
#define EGRESS_JUDGE_H

#include "base/err.h"
#include "base/http_head.h"
#include "egress/report.h"

struct http_conn;

/* What a request is for: one of the two. */
struct judge_grant {
	const struct policy_inject *inject;
	const struct policy_rule *rule;
};

/* False when it was refused. */
bool judge_request(struct http_conn *c, const struct http_head *h, struct judge_grant *ret);
/* The same of one that is under way, by the policy as it is now; nobody is answered. */
bool judge_again(struct http_conn *c, struct judge_grant *ret);

/* What the jail asked for, and which entry of the policy has it. */
struct report_of judge_asked(const struct http_conn *c, enum egress_remedy remedy);
/* Where that leads to outside. */
struct report_of judge_outside(const struct http_conn *c, enum egress_remedy remedy);

/* Something between the jail and us; and something outside. */
void judge_refuse(struct http_conn *c, int status, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
void judge_refuse_upstream(struct http_conn *c, int status, const struct err *e);

#endif
