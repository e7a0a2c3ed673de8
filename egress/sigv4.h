/*
 * sigv4.h - AWS Signature Version 4, as S3 wants it: a request's Authorization, and links that hold
 * for a while.
 *
 * Pure.  Here and not libcurl's: a link is signed without a request, and two ways to sign would
 * have to agree on every encoding.  What is signed is given as it goes on the wire (path and query
 * encoded by sigv4_encode, the query sorted), so nothing is encoded twice.
 */
#ifndef EGRESS_SIGV4_H
#define EGRESS_SIGV4_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SIGV4_STAMP = 17, SIGV4_DIGEST = 65 };
#define SIGV4_EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

struct sigv4_keys {
	const char *access, *secret; /* borrowed; not terminated */
	size_t naccess, nsecret;
	const char *region;
};

struct sigv4_field {
	const char *name; /* lower case */
	const char *value;
};

struct sigv4_request {
	const char *method, *path, *query; /* as they are sent; query "" or sorted */
	const struct sigv4_field *fields;  /* all that are signed, `host` too, sorted by name */
	size_t nfields;
	const char *payload; /* SHA-256 of the body as hexadecimal digits */
	int64_t at_ms;       /* wall clock */
};

/* 20130524T000000Z */
void sigv4_stamp(int64_t at_ms, char ret[SIGV4_STAMP]);

/* Appends n bytes, each as %XX but for those that RFC 3986 leaves alone, and '/' where it parts. */
void sigv4_encode(struct buf *to, const char *p, size_t n, bool path);

/* Appends the value of the header Authorization. */
MUST_USE int sigv4_authorize(
        const struct sigv4_keys *k, const struct sigv4_request *r, struct buf *to, struct err *e);

/* Appends the query of a link that GETs `path` from `host` for so many seconds.  token: "" or what
 * goes with temporary keys. */
MUST_USE int sigv4_link(const struct sigv4_keys *k, const char *host, const char *path,
        const char *token, int64_t at_ms, unsigned seconds, struct buf *to, struct err *e);

#endif
