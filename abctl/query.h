/*
 * query.h - the plain questions: one request, one JSON answer.
 *
 * Each function ends in one of two ways: 0, or an exit code after having said
 * why on stderr (problem+json becomes a sentence with its hint).
 */
#ifndef ABCTL_QUERY_H
#define ABCTL_QUERY_H

#include "client/client.h"
#include "client/url.h"
#include "abctl/verb.h"
#include "base/json.h"

enum { QUERY_PATH_MAX = 8 << 10 }; /* what servers take as a request line */

/* Says what is wrong with a system error or an answer >= 400; the exit code. */
int query_failed(const struct err *e);
int query_refused(struct client *c);

/* Sends, expects 2xx, parses.  *ret is owned, NULL for an empty answer. */
MUST_USE int query_send(const struct cli *cli, const struct client_request *req, struct json **ret);
MUST_USE int query_get(const struct cli *cli, const char *path, struct json **ret);

/* Says nothing: owned, or NULL with *e where none answers, or none within `ms` (0: no limit). */
struct json *query_quietly(const struct cli *cli, const char *path, int ms, struct err *e);
/* The same of the daemon's version. */
struct json *query_version(const struct cli *cli, int ms, struct err *e);

/* Sends, expects 2xx; the body is still to be read.  *ret is owned. */
MUST_USE int query_open(
        const struct cli *cli, const struct client_request *req, struct client **ret);
/* An answer that comes as lines of JSON, each an event.  *ret is owned. */
MUST_USE int query_lines(const struct cli *cli, const char *path, struct client **ret);

/* The answer as JSON on stdout, as it came. */
void query_print(const struct json *j);

/* Sends, and says what came of it: the answer as JSON where JSON is wanted, else the sentence.  The
 * exit code. */
MUST_USE int query_say(const struct cli *cli, const struct client_request *req, const char *fmt,
        ...) __attribute__((format(printf, 3, 4)));

/* "USER/GOAL" becomes its session's id, an id stays.  *ret is owned. */
MUST_USE int query_session(const struct cli *cli, const char *text, char **ret);

#endif
