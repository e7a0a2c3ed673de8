#include "supervisor/stream.h"

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
	/* Read from the log at a time: a turn's share of one follower. */
	READ_MAX = 64 << 10,
	/* Memory kept between reads; one large event must not stay allocated for hours. */
	KEEP_ROOM = 256 << 10,
};

struct stream {
	struct daemon *d;
	struct http_request *request; /* borrowed: until gone */
	struct stream_spec spec;
	struct eventlog_cursor cursor;
	struct hub_sub sub;
	struct buf lines, out;
	size_t sent; /* of out */
	bool ended;  /* the run's last event is in out */
	bool waits;  /* its next event is large, and there is no room for it now */
	bool keepalive;
	bool over; /* the client is gone; the timer's end frees */
	struct op timer;
};

void stream_frame(struct buf *to, enum stream_format f, const struct logline_head *h,
        const char *line, size_t n)
{
	if (f == STREAM_SSE)
		buf_printf(to, "id: %llu\nevent: %.*s\ndata: ", (unsigned long long)h->seq,
		        (int)h->type_len, h->type);
	buf_put(to, line, n);
	buf_puts(to, f == STREAM_SSE ? "\n\n" : "\n");
}

static bool of_run(const struct logline_head *h, const char *run)
{
	return !run[0] || (h->run_len == strlen(run) && memcmp(h->run, run, h->run_len) == 0);
}

static bool is_done(const struct logline_head *h)
{
	static const char done[] = "run.done";
	return h->type_len == sizeof(done) - 1 && memcmp(h->type, done, h->type_len) == 0;
}

/* Frames what is in `lines`; an event of its own run that ends it ends the stream. */
static void frame_lines(struct stream *s)
{
	const char *p = s->lines.p, *end = p + s->lines.len;
	while (p < end && !s->ended) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t n = (size_t)((nl ? nl : end) - p);
		struct logline_head h;
		if (logline_head(p, n, &h) && of_run(&h, s->spec.run)) {
			/* `from` may lie beyond the log's end of now. */
			if (h.seq >= s->spec.from)
				stream_frame(&s->out, s->spec.format, &h, p, n);
			s->ended = s->spec.run[0] && is_done(&h);
		}
		p += n + 1;
	}
}

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

static void trim_all(struct stream *s)
{
	trim(&s->lines);
	trim(&s->out);
	http_hold(s->request, 0);
}

/* As eventlog_read; where there is no room for a large event, 0 and `waits`. */
static int64_t read_log(struct stream *s, struct err *e)
{
	trim(&s->lines);
	bool room = http_room(s->request, LIMIT_EVENT);
	s->lines.limit = room ? LIMIT_EVENT + READ_MAX : KEEP_ROOM;
	int64_t n = eventlog_read(s->d->log, &s->cursor, &s->lines, READ_MAX, e);
	s->waits = n == -ENOBUFS && !room;
	if (s->waits)
		http_starve(s->request);
	return s->waits ? 0 : n;
}

/* Fills `out` with the next events.  > 0: more is there; 0: nothing for now; -errno. */
static int64_t refill(struct stream *s)
{
	struct err e;
	trim_all(s);
	s->sent = 0;
	/* A run's stream may have to read over many events of its neighbours. */
	while (s->out.len == 0 && !s->ended) {
		int64_t n = read_log(s, &e);
		if (n < 0)
			say_unreadable(s, e.text);
		if (n <= 0)
			return n;
		frame_lines(s);
		if (s->out.failed) {
			say_unreadable(s, "an event does not fit into its frame");
			return s->out.failed;
		}
		readable(s);
	}
	http_hold(s->request, s->out.room > KEEP_ROOM ? s->out.room : 0);
	if (s->lines.room > KEEP_ROOM)
		buf_done(&s->lines);
	return (int64_t)s->out.len;
}

static ssize_t pull(void *ctx, char *p, size_t max)
{
	struct stream *s = ctx;
	if (s->sent == s->out.len) {
		int64_t n = refill(s);
		if (n < 0)
			return HTTP_ABORT;
		if (s->out.len == 0 && !s->waits && (s->ended || !s->spec.follow))
			return HTTP_END;
		if (s->out.len == 0 && s->keepalive)
			buf_puts(&s->out, ": keepalive\n\n");
		s->keepalive = false;
		if (s->out.len == 0)
			return HTTP_WAIT;
	}
	size_t n = s->out.len - s->sent;
	if (n > max)
		n = max;
	memcpy(p, s->out.p + s->sent, n);
	s->sent += n;
	return (ssize_t)n;
}

static void stream_free(struct stream *s)
{
	buf_done(&s->lines);
	buf_done(&s->out);
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
	/* One whole event, and its frame. */
	s->out = (struct buf)BUF_INIT(LIMIT_EVENT + 2 * READ_MAX);
	if (eventlog_seek(d->log, spec->session, spec->from, &s->cursor, &e) < 0) {
		problem_err(r, &e, PROBLEM_INTERNAL);
		stream_free(s);
		return;
	}
	bool sse = spec->format == STREAM_SSE;
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
		if (logline_head(p, n, &h) && of_run(&h, w->run) && is_done(&h)) {
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
	s->format = accept && strstr(accept, "text/event-stream") ? STREAM_SSE : STREAM_NDJSON;
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
