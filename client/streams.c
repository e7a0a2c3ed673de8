#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/mem.h"
#include "client/events.h"
#include "client/frames.h"
#include "client/library.h"

#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- waiting ---- */

static int64_t deadline(int timeout_ms)
{
	return timeout_ms < 0 ? -1 : clock_mono_ms() + timeout_ms;
}

static bool passed(int64_t until)
{
	return until >= 0 && clock_mono_ms() >= until;
}

/* For input, until `until` and at_most ms; -1: for ever. */
static bool has_input(int fd, int64_t until, int at_most)
{
	int64_t left = until < 0 ? INT_MAX : until - clock_mono_ms();
	int ms = left > 0 ? (int)left : 0;
	if (at_most >= 0 && at_most < ms)
		ms = at_most;
	struct pollfd p = {.fd = fd, .events = POLLIN};
	return poll(&p, 1, ms) > 0;
}

static int timed_out(struct agentbox_error *e, int timeout_ms)
{
	struct err why = {0};
	(void)err_set(&why, -ETIMEDOUT, "nothing came in %d ms", timeout_ms);
	return library_failed(e, &why);
}

/* ---- events ---- */

struct agentbox_events {
	struct events *v; /* owned */
	char *run;        /* owned */
};

struct agentbox_events *agentbox_events_open(
        const struct agentbox *ab, const char *run, int64_t after, struct agentbox_error *e)
{
	if (!id_valid(run, "run")) {
		struct err why = {0};
		(void)err_set(&why, -EINVAL, "'%.64s' is not the id of a run", run);
		(void)library_failed(e, &why);
		return NULL;
	}
	struct agentbox_events *x = xnew(struct agentbox_events);
	x->run = xstrdup(run);
	x->v = events_new(&ab->peer, x->run,
	        after > 0 && after < INT64_MAX ? after + 1
	        : after > 0                    ? after
	                                       : 0,
	        true, false);
	return x;
}

int agentbox_events_next(struct agentbox_events *x, int timeout_ms, const char **ret,
        size_t *ret_len, struct agentbox_error *e)
{
	const int64_t until = deadline(timeout_ms);
	for (bool looked = false;; looked = true) {
		auto_json struct json *j = events_next(x->v, ret, ret_len);
		if (j)
			return 1;
		/* Also where something comes all the time that is no event. */
		if (looked && passed(until))
			return timed_out(e, timeout_ms);
		int due = events_wait_ms(x->v);
		if (due != 0 && !has_input(events_fd(x->v), until, due))
			continue;
		struct err why = {0};
		enum events_state state = events_turn(x->v, &why);
		if (state == EVENTS_OVER)
			return 0;
		if (state == EVENTS_REFUSED)
			return library_refused(e, events_answer(x->v));
		if (state == EVENTS_FAILED || state == EVENTS_GIVEN_UP)
			return library_failed(e, &why);
	}
}

int64_t agentbox_events_last(const struct agentbox_events *x)
{
	return events_last(x->v);
}

void agentbox_events_close(struct agentbox_events *x)
{
	if (!x)
		return;
	events_free(x->v);
	free(x->run);
	free(x);
}

/* ---- interactive commands ---- */

/* The reading side alone uses `in`, the writing side alone nothing but `fd`. */
struct agentbox_stdio {
	int fd;        /* owned */
	struct buf in; /* owned */
	size_t taken;  /* of `in`: the frame that was given out */
};

struct agentbox_stdio *agentbox_stdio_open(
        const struct agentbox *ab, const char *path, const char *body, struct agentbox_error *e)
{
	const struct client_request req = {.method = "POST",
	        .path = path,
	        .body = body,
	        .body_len = strlen(body),
	        .upgrade = STDIO_UPGRADE};
	auto_client struct client *c = library_open(ab, &req, e);
	if (!c)
		return NULL;
	struct err why = {0};
	if (client_status(c, &why) != 101) {
		(void)err_set(&why, -EPROTO, "%s is no interactive connection", path);
		(void)library_failed(e, &why);
		return NULL;
	}
	struct agentbox_stdio *s = xnew(struct agentbox_stdio);
	*s = (struct agentbox_stdio){.in = BUF_INIT(STDIO_HEAD + FRAMES_MAX + LIMIT_PUMP_READ)};
	s->fd = client_upgraded(c, &s->in);
	return s;
}

int agentbox_stdio_write(struct agentbox_stdio *s, enum agentbox_stream stream, const void *p,
        size_t n, struct agentbox_error *e)
{
	const char *at = p;
	do {
		size_t k = n < STDIO_FRAME_MAX ? n : STDIO_FRAME_MAX;
		auto_buf struct buf b = BUF_INIT(STDIO_HEAD + STDIO_FRAME_MAX);
		struct err why = {0};
		int r = frames_put(&b, (enum stdio_stream)stream, at, k);
		if (r == 0)
			r = client_send_all(s->fd, b.p, b.len);
		if (r < 0) {
			(void)err_set(&why, r, "writing to the command: %s", strerror(-r));
			return library_failed(e, &why);
		}
		at += k;
		n -= k;
	} while (n);
	return 0;
}

int agentbox_stdio_read(struct agentbox_stdio *s, int timeout_ms, int *ret_stream, const void **ret,
        size_t *ret_len, struct agentbox_error *e)
{
	const int64_t until = deadline(timeout_ms);
	struct err why = {0};
	buf_consume(&s->in, s->taken);
	s->taken = 0;
	for (bool looked = false;; looked = true) {
		struct frame f;
		int n = s->in.len ? frames_next(s->in.p, s->in.len, &f, &why) : 0;
		if (n < 0)
			return library_failed(e, &why);
		if (n > 0) {
			s->taken = (size_t)n;
			*ret_stream = f.stream;
			*ret = f.data;
			*ret_len = f.len;
			return 1;
		}
		/* Also where a frame comes byte by byte. */
		if (looked && passed(until))
			return timed_out(e, timeout_ms);
		if (!has_input(s->fd, until, -1))
			continue;
		char p[LIMIT_PUMP_READ];
		ssize_t k = read(s->fd, p, sizeof(p));
		if (k == 0 && s->in.len) {
			(void)err_set(&why, -ECONNRESET, "the connection ended within a frame");
			return library_failed(e, &why);
		}
		if (k == 0)
			return 0;
		if (k < 0 && errno != EINTR) {
			(void)err_errno(&why, "reading from the command");
			return library_failed(e, &why);
		}
		if (k > 0 && buf_put(&s->in, p, (size_t)k) < 0) {
			(void)err_set(&why, -EBADMSG, "the daemon sends a frame that is too long");
			return library_failed(e, &why);
		}
	}
}

int agentbox_stdio_fd(const struct agentbox_stdio *s)
{
	return s->fd;
}

void agentbox_stdio_close(struct agentbox_stdio *s)
{
	if (!s)
		return;
	fd_close(s->fd);
	buf_done(&s->in);
	free(s);
}
