/*
 * http.h - what requests of jails must be beyond well-formed (base/http_head.h).
 *
 * Pure.  A request names the host it is for, and its target begins with '/' and
 * has no dot segments: it is joined to a prefix that root gave.
 */
#ifndef EGRESS_HTTP_H
#define EGRESS_HTTP_H

#include "base/http_head.h"

/* As http_head_parse and http_head_host; -EACCES also for CONNECT and the requests of proxies. */
MUST_USE int http_request_parse(const char *p, size_t n, struct http_head *ret, struct err *e);
/* Is the field for one connection only (RFC 9110, 7.6.1), or named by a Connection field? */
bool http_hop_by_hop(struct http_text name, const struct http_field *fields, size_t n);

#endif
