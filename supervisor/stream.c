#include "supervisor/stream.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "supervisor/daemon.h"
#include "supervisor/http.h"
#include "supervisor/hub.h"
#include "supervisor/loop.h"
#include "supervisor/problem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* The contract's: proxies drop connections silent for a minute. */
	KEEPALIVE_MS = 15000,
	/* Read from the log at a time: a turn's share of one follower; and where others hold much.
	 */
	READ_MAX = 64 << 10,
	READ_LITTLE = 8 << 10,
	/* Memory kept between reads; one large event must not stay allocated for hours. */
	KEEP_ROOM = 256 << 10,
};

/* A follower that waits holds no bytes; one whose client is slow holds one frame. */
struct stream {
	struct daemon *d;
	struct http_request *request; /* borrowed: until gone */
	struct stream_spec spec;
	struct eventlog_cursor cursor;
	uint64_t next; /* number of the next event that it is owed */
	struct hub_sub sub;
	struct buf own;      /* what is not of the log, before the frame */
	struct frame *frame; /* owned reference, or NULL */
	size_t own_sent, sent;
	bool ended; /* the run's last event is in the frame, or was */
	bool waits; /* its next event is large, and there is no room for it now */
	bool read;  /* something of the log */
	bool keepalive;
	bool over; /* the client is gone; the timer's end frees */
	struct op timer;
};

static void trim(struct buf *b)
{
	if (b->room > KEEP_ROOM)
		buf_done(b);
	else
		buf_clear(b);
}

static char *unreadable(struct daemon *d, const char *session)
{
	for (size_t i = 0; i < DAEMON_UNREADABLE; i++)
		if (strcmp(d->unreadable[i], session) == 0)
			return d->unreadable[i];
	return NULL;
}

static void say_unreadable(struct stream *s, const char *why)
{
	struct daemon *d = s->d;
	if (unreadable(d, s->spec.session))
		return;
	char *slot = d->unreadable[d->next_unreadable++ % DAEMON_UNREADABLE];
	memcpy(slot, s->spec.session, ID_MAX);
	log_err("s=%s: %s", s->spec.session, why);
}

static void readable(struct stream *s)
{
	char *slot = unreadable(s->d, s->spec.session);
	if (slot)
		slot[0] = '\0';
}

/* As frames_next; where there is no room for a large event, 0 and `waits`. */
static int read_log(struct stream *s, struct err *e)
{
	/* Behind its beginning all that follow the same want the same.  Before the first read the
	 * cursor's number may be one that is still to come. */
	const struct frames_spec spec = {.format = s->spec.format,
	        .run = s->spec.run,
	        .from = s->read && s->cursor.seq >= s->spec.from ? 0 : s->spec.from};
	bool room = http_room(s->request, LIMIT_EVENT);
	int rc = frames_next(s->d->frames, s->d->log, &spec, &s->cursor,
	        room ? READ_MAX : READ_LITTLE, room ? LIMIT_EVENT : KEEP_ROOM, &s->frame, e);
	s->waits = rc == -ENOBUFS && !room;
	s->read |= rc > 0;
	if (s->waits)
		http_starve(s->request);
	return s->waits ? 0 : rc;
}

/* What is not kept any more is told in its place. */
static void tell_gone(struct stream *s)
{
	uint64_t first = eventlog_first(s->d->log, s->spec.session);
	if (s->next >= first)
		return;
	char line[512], now[CLOCK_TEXT_MAX];
	clock_rfc3339(clock_wall_ms(), now);
	int n = snprintf(line, sizeof(line),
	        "{\"seq\":%llu,\"ts\":\"%s\",\"session\":\"%s\",\"run\":\"%s\","
	        "\"type\":\"log.gap\",\"from\":%llu,\"to\":%llu,\"reason\":\"retention\"}",
	        (unsigned long long)first - 1, now, s->spec.session, s->spec.run,
	        (unsigned long long)s->next, (unsigned long long)first - 1);
	struct logline_head h;
	if (logline_head(line, (size_t)n, &h))
		frames_put(&s->own, s->spec.format, &h, line, (size_t)n);
	s->next = first;
}

static void drop(struct stream *s)
{
	frames_drop(take(s->frame));
	buf_done(&s->own);
	s->sent = s->own_sent = 0;
	http_hold(s->request, 0);
}

/* Has the next events ready.  > 0: there are some; 0: nothing for now; -errno. */
static int refill(struct stream *s)
{
	struct err e;
	drop(s);
	tell_gone(s);
	/* A run's stream may have to read over many events of its neighbours. */
	while (!s->ended) {
		int rc = read_log(s, &e);
		if (rc < 0)
			say_unreadable(s, e.text);
		if (rc < 0 || (rc == 0 && s->own.len == 0))
			return rc;
		if (rc == 0)
			break;
		s->next = s->cursor.seq;
		s->ended = s->frame->ended;
		readable(s);
		if (s->frame->out.len > 0)
			break;
		frames_drop(take(s->frame));
	}
	http_hold(s->request, s->frame ? s->frame->out.room : 0);
	return 1;
}

static bool all_given(const struct stream *s)
{
	return s->own_sent == s->own.len && (!s->frame || s->sent == s->frame->out.len);
}

static ssize_t pull(void *ctx, char *p, size_t max)
{
	struct stream *s = ctx;
	if (all_given(s)) {
		int rc = refill(s);
		if (rc < 0)
			return HTTP_ABORT;
		bool none = all_given(s);
		if (none && !s->waits && (s->ended || !s->spec.follow))
			return HTTP_END;
		if (none && s->keepalive)
			buf_puts(&s->own, ": keepalive\n\n");
		s->keepalive = false;
		if (all_given(s))
			return HTTP_WAIT;
	}
	if (s->own_sent < s->own.len)
		return http_give(&s->own, &s->own_sent, p, max);
	return http_give(&s->frame->out, &s->sent, p, max);
}

static void stream_free(struct stream *s)
{
	buf_done(&s->own);
	frames_drop(s->frame);
	free(s);
}

static void on_keepalive(struct op *op, int res, uint32_t flags)
{
	struct stream *s = container_of(op, struct stream, timer);
	(void)res;
	(void)flags;
	if (s->over) {
		stream_free(s);
		return;
	}
	s->keepalive = true;
	http_wake(s->request);
	loop_timeout(s->d->loop, &s->timer, KEEPALIVE_MS, on_keepalive);
}

static void on_gone(void *ctx)
{
	struct stream *s = ctx;
	hub_unsubscribe(s->d->hub, &s->sub);
	s->over = true;
	if (s->timer.inflight)
		loop_cancel(s->d->loop, &s->timer);
	else
		stream_free(s);
}

static void on_more(struct hub_sub *sub)
{
	http_wake(container_of(sub, struct stream, sub)->request);
}

void stream_events(struct daemon *d, struct http_request *r, const struct stream_spec *spec)
{
	struct err e;
	struct stream *s = xnew(struct stream);
	s->d = d;
	s->request = r;
	s->spec = *spec;
	s->next = spec->from ? spec->from : 1;
	s->own = (struct buf)BUF_INIT(READ_MAX);
	if (eventlog_seek(d->log, spec->session, spec->from, &s->cursor, &e) < 0) {
		problem_err(r, &e, PROBLEM_INTERNAL);
		stream_free(s);
		return;
	}
	bool sse = spec->format == FRAMES_SSE;
	if (spec->follow) {
		s->sub.wake = on_more;
		hub_subscribe(d->hub, spec->session, &s->sub);
		if (sse)
			loop_timeout(d->loop, &s->timer, KEEPALIVE_MS, on_keepalive);
	}
	struct http_source source = {.pull = pull, .gone = on_gone, .ctx = s};
	http_add_header(r, "Cache-Control", "no-store");
	http_stream(r, 200, sse ? "text/event-stream" : "application/x-ndjson", -1, &source);
}

/* ---- the result alone ---- */

struct waiter {
	struct daemon *d;
	struct http_request *request; /* borrowed: until gone */
	char run[ID_MAX];
	struct eventlog_cursor cursor;
	struct hub_sub sub;
	struct buf lines;
};

static void waiter_free(void *ctx)
{
	struct waiter *w = ctx;
	hub_unsubscribe(w->d->hub, &w->sub);
	buf_done(&w->lines);
	free(w);
}

static void reply_result(struct waiter *w, const char *line, size_t n)
{
	struct http_request *r = w->request;
	struct err e;
	auto_json struct json *event = json_parse(line, n, &e);
	const struct json *result = json_get(event, "result");
	auto_buf struct buf b = BUF_INIT(LIMIT_EVENT);
	if (!result || json_print(result, &b) < 0)
		problem_reply(r, PROBLEM_INTERNAL, NULL, "%s ended without a result", w->run);
	else
		http_reply(r, 200, "application/json", &b);
	waiter_free(w);
}

/* True when the request has been answered and the waiter is no more. */
static bool look_for_result(struct waiter *w)
{
	const char *p = w->lines.p, *end = p + w->lines.len;
	while (p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t n = (size_t)((nl ? nl : end) - p);
		struct logline_head h;
		if (logline_head(p, n, &h) && frames_of_run(&h, w->run) && frames_is_done(&h)) {
			reply_result(w, p, n);
			return true;
		}
		p += n + 1;
	}
	return false;
}

static void on_news(struct hub_sub *sub)
{
	struct waiter *w = container_of(sub, struct waiter, sub);
	struct err e;
	trim(&w->lines);
	int64_t n = eventlog_read(w->d->log, &w->cursor, &w->lines, READ_MAX, &e);
	if (n < 0) {
		problem_err(w->request, &e, PROBLEM_INTERNAL);
		waiter_free(w);
	} else if (n > 0 && !look_for_result(w)) {
		trim(&w->lines);
		hub_kick(w->d->hub, &w->sub); /* the rest in the next turn */
	}
}

void stream_result(struct daemon *d, struct http_request *r, const char *session, const char *run,
        uint64_t from)
{
	struct err e;
	struct waiter *w = xnew(struct waiter);
	w->d = d;
	w->request = r;
	(void)str_copy(w->run, sizeof(w->run), run);
	w->lines = (struct buf)BUF_INIT(LIMIT_EVENT + READ_MAX);
	w->sub.wake = on_news;
	hub_subscribe(d->hub, session, &w->sub);
	if (eventlog_seek(d->log, session, from, &w->cursor, &e) < 0) {
		problem_err(r, &e, PROBLEM_INTERNAL);
		waiter_free(w);
		return;
	}
	http_on_gone(r, waiter_free, w);
	hub_kick(d->hub, &w->sub);
}

/* ---- what the client wants ---- */

static int number(const char *what, const char *text, uint64_t *ret, struct err *e)
{
	char *end;
	errno = 0;
	unsigned long long v = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || errno)
		return err_set(e, -EINVAL, "%s: '%.32s' is not a number", what, text);
	*ret = v;
	return 0;
}

int stream_wanted(struct http_request *r, struct stream_spec *s, struct err *e)
{
	const char *accept = http_header(r, "Accept");
	s->format = accept && strstr(accept, "text/event-stream") ? FRAMES_SSE : FRAMES_NDJSON;
	const char *last = http_header(r, "Last-Event-ID"), *from = http_query(r, "from");
	if (last && last[0]) {
		if (number("Last-Event-ID", last, &s->from, e) < 0)
			return e->code;
		s->from += s->from < UINT64_MAX;
	} else if (from && number("from", from, &s->from, e) < 0) {
		return e->code;
	}
	return http_query_flag(r, "follow", &s->follow, e);
}
