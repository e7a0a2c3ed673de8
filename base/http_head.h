/*
 * http_head.h - heads of HTTP/1.x requests, strictly.
 *
 * Pure; for the control socket and for the jails' way out.  Both serve clients
 * of their own, so there is no reason to guess: bare line feeds, folded lines,
 * two lengths, length and chunks together and blanks before a colon are errors,
 * because two readers that repair them differently is how requests are smuggled
 * (RFC 9112, 11.2).  Texts point into the caller's bytes.
 */
#ifndef BASE_HTTP_HEAD_H
#define BASE_HTTP_HEAD_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	HTTP_HEAD_MAX = 64 << 10, /* the largest default among servers in use (8 KiB .. 64 KiB) */
	HTTP_FIELDS = 100,
	HTTP_METHOD_MAX = 32,
	HTTP_NO_PORT = -1,
};

struct http_text {
	const char *p; /* borrowed: as long as the head's bytes */
	size_t n;
};

struct http_field {
	struct http_text name, value; /* value without blanks around it */
};

struct http_head {
	struct http_text method, target; /* printable ASCII, not empty */
	struct http_text host;           /* the Host field; p is NULL where HTTP/1.0 has none */
	int port;                        /* of http_head_host, else 0; HTTP_NO_PORT: none said */
	int minor;                       /* HTTP/1.minor */
	bool keep_alive, expect_continue, upgrade, chunked;
	int64_t content_length; /* -1: none */
	size_t nfields;
	struct http_field fields[HTTP_FIELDS];
};

/* Bytes of the head, its empty line included; 0 when more is needed; -E2BIG beyond the limit.
 * `from` is where the search starts: bytes already searched need not be searched again. */
MUST_USE int http_head_length(const char *p, size_t n, size_t from);

/* p[n] is one whole head.  0; -EINVAL malformed; -E2BIG too many fields; -EACCES HTTP/2;
 * -EPROTONOSUPPORT another version of HTTP; -EOPNOTSUPP an unknown coding or expectation. */
MUST_USE int http_head_parse(const char *p, size_t n, struct http_head *ret, struct err *e);
/* Takes the Host field apart: `host` becomes a host's name without the root's dot.  -EINVAL. */
MUST_USE int http_head_host(struct http_head *h, struct err *e);

bool http_is(struct http_text t, const char *word); /* case is ignored */
bool http_token(struct http_text t);                /* tchar of RFC 9110, not empty */
/* Is `word` an element of a comma-separated list? */
bool http_list_has(struct http_text list, const char *word, size_t n);
/* "Name: value" of one line without its end.  False when it is not a field. */
bool http_field_parse(const char *p, size_t n, struct http_field *ret);

#endif
