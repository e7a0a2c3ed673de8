/*
 * stream.h - events to clients: as Server-Sent Events, as JSON Lines, or the
 * result alone.
 *
 * A follower is a cursor into the session's event log, woken by the hub; what
 * its client does not take stays in the log (frames.h).  It ends with the client, or
 * behind the run.done of its run.
 */
#ifndef SUPERVISOR_STREAM_H
#define SUPERVISOR_STREAM_H

#include "base/id.h"
#include "supervisor/frames.h"

#include <stdbool.h>
#include <stdint.h>

struct daemon;
struct http_request;

struct stream_spec {
	enum frames_format format;
	char session[ID_MAX];
	char run[ID_MAX]; /* "": events of all runs */
	uint64_t from;    /* first number wanted; 0 is as 1 */
	bool follow;      /* wait for more (a run's: until its run.done) */
};

/* Answers the request with the events. */
void stream_events(struct daemon *d, struct http_request *r, const struct stream_spec *s);
/* Answers the request with the result of the run once it has one.  The client may leave. */
void stream_result(struct daemon *d, struct http_request *r, const char *session, const char *run,
        uint64_t from);

/* What the client wants: by Accept; Last-Event-ID goes before ?from=.  -EINVAL. */
MUST_USE int stream_wanted(struct http_request *r, struct stream_spec *s, struct err *e);

#endif
