/*
 * proxy_head.h - what of an HTTP head goes into a jail, what of an answer's
 * comes out, and which requests of web pages are refused.  Pure.
 *
 * A port is reached in two forms.  By path (/v1/sessions/ID/ports/PORT/...) it
 * shares the API's origin, so that form is for programs: what a page sends is
 * refused, credentials meant for the API stay outside, and an answer cannot do
 * anything to that origin.  By name (Host: PORT--ID.anything) it is an origin of
 * its own, whose pages are a browser's business; only requests of other origins'
 * pages are refused.
 */
#ifndef SUPERVISOR_PROXY_HEAD_H
#define SUPERVISOR_PROXY_HEAD_H

#include "base/buf.h"
#include "base/err.h"
#include "base/id.h"

#include <stdbool.h>
#include <stddef.h>

enum {
	PROXY_FIELDS = 200,           /* most headers of a head */
	PROXY_FIELDS_MAX = 32 << 10,  /* bytes of them */
	PROXY_REQUEST_MAX = 80 << 10, /* a request's head: what the server lets in, and ours */
};

enum proxy_form { PROXY_BY_PATH, PROXY_BY_NAME };

struct proxy_target {
	enum proxy_form form;
	char session[ID_MAX];
	unsigned port;
};

/* "3000--ses_01jd....localhost:8080", with '-' for '_' where a name may not have it. */
bool proxy_by_name(const char *host, struct proxy_target *ret);

/* ---- pages ---- */

/* What a browser says of a request's origin; each NULL where it is not said. */
struct proxy_page {
	const char *origin, *site, *mode; /* Origin, Sec-Fetch-Site, Sec-Fetch-Mode */
	const char *method, *host;
};
/* For the API and for ports by path.  NULL, or why it is refused. */
const char *proxy_no_page(const struct proxy_page *p);
/* For ports by name. */
const char *proxy_own_page(const struct proxy_page *p);

/* ---- heads ---- */

struct proxy_fields {
	struct buf text;       /* owned: name, NUL, value, NUL, ... */
	struct buf connection; /* owned: what Connection names, by commas */
	unsigned n;
};
#define PROXY_FIELDS_INIT                                                                          \
	{                                                                                          \
		.text = BUF_INIT(PROXY_FIELDS_MAX), .connection = BUF_INIT(PROXY_FIELDS_MAX)       \
	}
void proxy_fields_done(struct proxy_fields *f);
void proxy_fields_clear(struct proxy_fields *f);
/* -EBADMSG: not a header's name or value; -ENOBUFS: too many of them. */
MUST_USE int proxy_fields_add(struct proxy_fields *f, const char *name, const char *value);

struct proxy_request {
	const struct proxy_target *target;
	const char *method;
	const char *path;    /* as sent, with its query */
	const char *host;    /* as sent, or NULL */
	const char *upgrade; /* protocol to change to, or NULL */
	bool chunked;        /* its body is of unknown length */
	const struct proxy_fields *fields;
};
/* -EINVAL: method or path are none that can be sent on. */
MUST_USE int proxy_request_head(const struct proxy_request *q, struct buf *to);

/* Calls `each` for every header of the answer that is passed on, and for those that are ours. */
void proxy_answer_head(const struct proxy_target *t, const struct proxy_fields *fields,
        void (*each)(void *ctx, const char *name, const char *value), void *ctx);

#endif
