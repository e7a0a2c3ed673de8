#include "client/events.h"

#include "base/clock.h"
#include "base/mem.h"
#include "client/url.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* Without an event; a restart of the daemon takes one or two seconds. */
	RECONNECT_MS = 15000,
	RECONNECT_STEP_MS = 250, /* between two tries, at first; then twice that, and so on */
	RECONNECT_STEP_MAX_MS = 2000,
	HELD_MS = 15000, /* a connection that lasted was in order, though the agent said nothing */
	PATH_MAX_LEN = 1024,
};

struct events {
	const struct client_peer *peer;
	const char *run;
	int64_t from, last; /* number of the first wanted, and of the last taken */
	bool live;
	struct client *c;    /* owned; NULL: none now */
	bool known;          /* the daemon has answered before: a failure may pass */
	bool connected;      /* the last connection got as far as an answer */
	bool ended, done;    /* the connection; the run */
	int code;            /* of the connection that ended: 0, or negative with `why` */
	struct err why;      /* what the last connection ended with */
	int64_t seen, began; /* `last` when it was opened, and when that was */
	int64_t since;       /* when it last was in order, 0: it is */
	int64_t due;         /* when to connect */
	int step;
};

const char *events_payload(const char *line)
{
	if (line[0] == '{')
		return line;
	if (strncmp(line, "data:", 5) != 0)
		return NULL;
	line += 5;
	return *line == ' ' ? line + 1 : line;
}

struct events *events_new(
        const struct client_peer *peer, const char *run, int64_t from, bool live, bool known)
{
	struct events *v = xnew(struct events);
	*v = (struct events){.peer = peer, .run = run, .from = from, .live = live, .known = known};
	return v;
}

void events_free(struct events *v)
{
	if (v)
		client_free(v->c);
	free(v);
}

int events_fd(const struct events *v)
{
	return v->c && !v->ended ? client_fd(v->c) : -1;
}

int events_wait_ms(const struct events *v)
{
	if (v->c)
		return v->ended ? 0 : -1;
	int64_t left = v->due - clock_mono_ms();
	return left > 0 ? (int)left : 0;
}

int64_t events_last(const struct events *v)
{
	return v->last;
}

struct client *events_answer(struct events *v)
{
	return v->c;
}

/* Ended as `why` says: when to try again. */
static enum events_state lost(struct events *v, struct err *e)
{
	int64_t now = clock_mono_ms();
	bool first = false;
	client_free(v->c);
	v->c = NULL;
	if (v->last > v->seen || (v->connected && now > v->began + HELD_MS))
		v->since = 0;
	if (!v->since) {
		v->since = now;
		v->step = RECONNECT_STEP_MS;
		first = true;
	}
	if (now > v->since + RECONNECT_MS) {
		(void)err_set(e, v->why.code, "%s (%s)",
		        v->connected ? "the events break off again and again"
		                     : "the daemon does not answer any more",
		        v->why.text);
		return EVENTS_GIVEN_UP;
	}
	v->due = now + v->step;
	v->step = 2 * v->step < RECONNECT_STEP_MAX_MS ? 2 * v->step : RECONNECT_STEP_MAX_MS;
	return first ? EVENTS_LOST : EVENTS_WAIT;
}

/* Without an answer, or in the middle of one. */
static enum events_state broke(struct events *v, struct err *e)
{
	/* Reset before it has said anything: whoever took the request is dying. */
	if (v->live && (v->known || (v->c && v->why.code == -ECONNRESET)))
		return lost(v, e);
	if (e)
		*e = v->why;
	return EVENTS_FAILED;
}

static enum events_state connect_again(struct events *v, struct err *e)
{
	int64_t from = v->last ? v->last + 1 : v->from ? v->from : 1;
	auto_buf struct buf path = BUF_INIT(PATH_MAX_LEN);
	buf_puts(&path, "/v1/runs/");
	url_encode(&path, v->run);
	buf_printf(&path, "/events?from=%" PRId64 "%s", from, v->live ? "&follow=1" : "");
	struct client_request req = {
	        .method = "GET",
	        .path = path.p,
	        .accept = v->live ? "text/event-stream" : "application/x-ndjson",
	        .last_event_id = v->last,
	};
	v->connected = v->ended = false;
	v->seen = v->last;
	v->began = clock_mono_ms();
	if (path.failed)
		(void)err_set(&v->why, -EINVAL, "the id of the run is too long");
	else
		v->c = client_open(v->peer, &req, &v->why);
	return v->c ? EVENTS_WAIT : broke(v, e);
}

static enum events_state take_in(struct events *v, struct err *e)
{
	v->code = client_pump(v->c, &v->why);
	if (!client_has_head(v->c))
		return v->code < 0 ? broke(v, e) : EVENTS_WAIT;
	int status = client_status(v->c, &v->why);
	if (status == 503) { /* what a dying daemon answers first */
		(void)err_set(&v->why, -EAGAIN, "it answered 503");
		return lost(v, e);
	}
	if (status >= 300)
		return EVENTS_REFUSED;
	v->connected = v->known = true;
	v->ended = v->code <= 0;
	return EVENTS_CAME;
}

enum events_state events_turn(struct events *v, struct err *e)
{
	if (v->done)
		return EVENTS_OVER;
	if (!v->c)
		return connect_again(v, e);
	if (!v->ended)
		return take_in(v, e);
	if (v->code == 0 && !v->live)
		return EVENTS_OVER;
	if (v->code == 0)
		(void)err_set(&v->why, -ECONNRESET, "it ended before the run did");
	return broke(v, e);
}

struct json *events_next(struct events *v, const char **ret, size_t *ret_len)
{
	size_t n;
	for (const char *line; v->c && !v->done && (line = client_line(v->c, &n));) {
		const char *text = events_payload(line);
		if (!text)
			continue;
		n -= (size_t)(text - line);
		auto_json struct json *j = json_parse(text, n, NULL);
		int64_t seq = json_int(j, "seq", 0);
		/* After a reconnect the server may begin a little earlier. */
		if (!j || (seq && seq <= v->last))
			continue;
		if (seq)
			v->last = seq;
		v->done = strcmp(json_str(j, "type", ""), "run.done") == 0;
		*ret = text;
		*ret_len = n;
		return take(j);
	}
	return NULL;
}
