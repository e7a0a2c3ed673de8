/*
 * origin.h - an upstream of a policy, taken apart: scheme, host, port, prefix.
 *
 * Pure.  Strict: http or https, no user, no query, no fragment.  What is joined
 * to it is a request target that http_request_parse accepted: it begins with '/'
 * and has no dot segments, so it can neither move into the authority nor climb
 * out of the prefix.
 */
#ifndef EGRESS_ORIGIN_H
#define EGRESS_ORIGIN_H

#include "base/buf.h"
#include "base/err.h"
#include "policy/policy.h"

#include <stdbool.h>
#include <stdint.h>

struct origin {
	bool tls;
	bool literal; /* host is an address */
	uint16_t port;
	char host[POLICY_HOST_MAX];   /* lower case; IPv6 without brackets */
	char prefix[POLICY_PATH_MAX]; /* "" or "/v1", without a final slash */
};

MUST_USE int origin_parse(const char *url, struct origin *ret, struct err *e);

/* Appends scheme://host:port/prefix + target.  0, or -ENOBUFS when it does not fit. */
MUST_USE int origin_url(const struct origin *o, const char *target, size_t n, struct buf *to);

#endif
