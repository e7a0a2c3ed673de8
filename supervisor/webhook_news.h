/*
 * webhook_news.h - the next event of a run that a webhook wants, and the body
 * that tells it.
 *
 * Reads the session's log from a cursor on: nothing is kept in memory between
 * attempts.
 */
#ifndef SUPERVISOR_WEBHOOK_NEWS_H
#define SUPERVISOR_WEBHOOK_NEWS_H

#include "base/buf.h"
#include "base/err.h"
#include "supervisor/eventlog.h"

#include <stdbool.h>
#include <stdint.h>

struct webhook_news {
	struct buf lines; /* owned */
	const char *line; /* in `lines`, not terminated */
	size_t n;
	uint64_t seq;
	int64_t at_ms;                /* wall clock */
	bool last;                    /* run.done: no other follows */
	struct eventlog_cursor after; /* behind it */
};

void webhook_news_done(struct webhook_news *x); /* zeroed is fine */
#define auto_webhook_news __attribute__((cleanup(webhook_news_done)))

enum webhook_found {
	WEBHOOK_FOUND, /* the cursor stands at it */
	WEBHOOK_LATER, /* it is not there yet */
	WEBHOOK_AGAIN, /* enough for a turn: there is more to read over */
	WEBHOOK_OVER,  /* the run has ended, and none of what was left is wanted */
};

/* `events`: bits of enum webhook_event.  enum webhook_found, or -errno; what is not wanted is
 * behind the cursor then. */
MUST_USE int webhook_news_next(struct eventlog *g, struct eventlog_cursor *c, const char *run,
        uint32_t events, struct webhook_news *ret, struct err *e);

struct webhook_about {
	const char *webhook, *user, *goal, *harness;
};
/* One of more than a body may hold is told by its head, and "truncated":true. */
MUST_USE int webhook_news_body(
        const struct webhook_news *x, const struct webhook_about *about, struct buf *to);

#endif
