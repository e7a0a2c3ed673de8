/*
 * problem.h - refusals as RFC 9457 application/problem+json:
 * {"type":"urn:agentbox:error:KIND","title","status","detail","hint"?}.
 *
 * KIND is for programs and part of the contract; detail says what is wrong,
 * hint what to do.  Both answer the request.
 */
#ifndef SUPERVISOR_PROBLEM_H
#define SUPERVISOR_PROBLEM_H

#include "base/buf.h"
#include "base/err.h"
#include "supervisor/http.h"

/* symbol, status, kind, title */
#define PROBLEMS(X)                                                                                \
	X(BAD_REQUEST, 400, "bad_request", "Bad Request")                                          \
	X(UNAUTHORIZED, 401, "unauthorized", "Unauthorized")                                       \
	X(FORBIDDEN, 403, "forbidden", "Forbidden")                                                \
	X(NOT_FOUND, 404, "not_found", "Not Found")                                                \
	X(METHOD, 405, "method_not_allowed", "Method Not Allowed")                                 \
	X(CONFLICT, 409, "conflict", "Conflict")                                                   \
	X(TOO_LARGE, 413, "too_large", "Content Too Large")                                        \
	X(TARGET_TOO_LONG, 414, "target_too_long", "URI Too Long")                                 \
	X(RANGE, 416, "range_not_satisfiable", "Range Not Satisfiable")                            \
	X(HARNESS_INVALID, 422, "harness_invalid", "Harness Invalid")                              \
	X(POLICY_UNMET, 422, "policy_unmet", "Policy Unmet")                                       \
	X(UPGRADE, 426, "upgrade_required", "Upgrade Required")                                    \
	X(QUEUE_FULL, 429, "queue_full", "Queue Full")                                             \
	X(RATE, 429, "rate", "Too Many Requests")                                                  \
	X(QUOTA, 429, "quota", "Quota Exceeded")                                                   \
	X(HEAD_TOO_LARGE, 431, "head_too_large", "Request Header Fields Too Large")                \
	X(INTERNAL, 500, "internal", "Internal Server Error")                                      \
	X(NOT_IMPLEMENTED, 501, "not_implemented", "Not Implemented")                              \
	X(UNREACHABLE, 502, "unreachable", "Bad Gateway")                                          \
	X(DRAINING, 503, "draining", "Service Unavailable")                                        \
	X(BUSY, 503, "busy", "Service Unavailable")                                                \
	X(VERSION, 505, "version_not_supported", "HTTP Version Not Supported")                     \
	X(STORAGE, 507, "storage_full", "Insufficient Storage")

enum problem {
#define PROBLEM_ENUM(sym, status, kind, title) PROBLEM_##sym,
	PROBLEMS(PROBLEM_ENUM)
#undef PROBLEM_ENUM
	        PROBLEM_COUNT
};

/* `hint` may be NULL. */
void problem_reply(struct http_request *r, enum problem p, const char *hint, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
/* 429 or 503, and after how many milliseconds it makes sense to ask again. */
void problem_retry(struct http_request *r, enum problem p, int64_t after_ms, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
/* What an error of ours means to a client; -ENOEXEC is `unmet` (a harness or a policy),
 * -ENOPKG (a layer that is missing here) always policy_unmet. */
enum problem problem_of(int code, enum problem unmet);
void problem_err(struct http_request *r, const struct err *e, enum problem unmet);
/* Likewise; with 429 the client is told to come again in so many seconds. */
void problem_err_after(
        struct http_request *r, const struct err *e, enum problem unmet, unsigned seconds);
/* The document itself; pure. */
void problem_text(struct buf *to, enum problem p, const char *detail, const char *hint);

#endif
