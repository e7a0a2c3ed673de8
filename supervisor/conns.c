#include "supervisor/conns.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>

enum {
	/* From the opening or the last answer to the end of the next headers: an idle client
	 * loses its place, and one that sends a byte a minute is no better. */
	WAIT_MS = 120 * 1000,
	/* A body: LIMIT_HTTP_BODY over a local socket takes milliseconds. */
	BODY_MS = 120 * 1000,
	/* For so long nobody else takes its place. */
	BODY_SAFE_MS = 10 * 1000,
	/* A client that takes no byte of its answer for so long is cut; it can come back with
	 * Last-Event-ID. */
	STALL_MS = 300 * 1000,
	/* What a client still sends is dropped for so long after its last answer, so that it can
	 * read that before it sees a broken pipe. */
	LINGER_MS = 2000,
};

/* What one uid has: counted, since with thousands a walk for each that comes would be felt. */
struct conns_share {
	struct list link; /* in conns.shares */
	uid_t uid;
	unsigned n, ncut; /* as in struct conns */
};

unsigned conns_affordable(void)
{
	struct rlimit r;
	if (getrlimit(RLIMIT_NOFILE, &r) < 0)
		return LIMIT_CONNECTIONS;
	rlim_t half = r.rlim_cur / 2;
	if (half >= LIMIT_CONNECTIONS + CONNS_SPARE)
		return LIMIT_CONNECTIONS;
	return half > 2L * CONNS_SPARE ? (unsigned)half - CONNS_SPARE : CONNS_SPARE;
}

void conns_init(struct conns *cs, unsigned most)
{
	cs->n = cs->ncut = 0;
	cs->most = most;
	cs->most_of_peer = most / 4 * 3;
	list_init(&cs->shares);
	for (int s = 0; s < CONN_STATES; s++)
		list_init(&cs->by_state[s]);
}

/* ---- states ---- */

void conns_enter(struct conns *cs, struct conn *c, enum conn_state s)
{
	/* What is being cut stays so: it must not be counted as a place to be had twice. */
	if (c->state == CONN_CUT)
		return;
	cs->ncut += s == CONN_CUT;
	c->share->ncut += s == CONN_CUT;
	list_remove(&c->link);
	list_append(&cs->by_state[s], &c->link);
	c->state = s;
	c->since_ms = clock_mono_ms();
}

static struct conns_share *share_of(struct conns *cs, uid_t uid)
{
	list_for_each (s, &cs->shares, struct conns_share, link)
		if (s->uid == uid)
			return s;
	return NULL;
}

void conns_add(struct conns *cs, struct conn *c, int fd, const struct auth_peer *peer)
{
	c->fd = fd;
	c->peer = *peer;
	c->share = share_of(cs, peer->uid);
	if (!c->share) {
		c->share = xnew(struct conns_share);
		c->share->uid = peer->uid;
		list_append(&cs->shares, &c->share->link);
	}
	c->share->n++;
	list_init(&c->link);
	conns_enter(cs, c, CONN_WAITING);
	cs->n++;
}

void conns_remove(struct conns *cs, struct conn *c)
{
	struct conns_share *s = c->share;
	cs->ncut -= c->state == CONN_CUT;
	s->ncut -= c->state == CONN_CUT;
	cs->n--;
	list_remove(&c->link);
	if (--s->n > 0)
		return;
	list_remove(&s->link);
	free(s);
}

void conns_cut(struct conns *cs, struct conn *c)
{
	conns_enter(cs, c, CONN_CUT);
	shutdown(c->fd, SHUT_RDWR);
}

/* ---- room ---- */

/* Those being cut do not count: their places are as good as free. */
static unsigned of_peer(struct conns *cs, uid_t uid)
{
	const struct conns_share *s = share_of(cs, uid);
	return s ? s->n - s->ncut : 0;
}

static struct conn *oldest_of(struct conns *cs, enum conn_state s, const uid_t *uid)
{
	list_for_each (c, &cs->by_state[s], struct conn, link)
		if (!uid || c->peer.uid == *uid)
			return c;
	return NULL;
}

/* Of that uid, or of all (NULL): the longest idle one, else one whose body takes long. */
static struct conn *dispensable(struct conns *cs, const uid_t *uid)
{
	struct conn *c = oldest_of(cs, CONN_WAITING, uid);
	if (c)
		return c;
	c = oldest_of(cs, CONN_READING, uid);
	return c && clock_mono_ms() - c->since_ms > BODY_SAFE_MS ? c : NULL;
}

const char *conns_room(struct conns *cs, uid_t uid, bool *ret_cut)
{
	const char *why = NULL;
	struct conn *victim = NULL;
	*ret_cut = false;
	if (of_peer(cs, uid) >= cs->most_of_peer) {
		victim = dispensable(cs, &uid);
		why = victim ? NULL : "too many connections of this user, all busy";
	} else if (cs->n - cs->ncut >= cs->most) {
		victim = dispensable(cs, NULL);
		why = victim ? NULL : "too many connections, all busy";
	}
	if (!why && cs->n >= cs->most + CONNS_SPARE)
		why = "too many connections at once";
	if (!why && victim) {
		conns_cut(cs, victim);
		*ret_cut = true;
	}
	return why;
}

void conns_refuse(int fd, const char *reason)
{
	char body[256], text[512];
	int n = snprintf(body, sizeof(body),
	        "{\"type\":\"urn:agentbox:error:busy\",\"title\":\"Service Unavailable\","
	        "\"status\":503,\"detail\":\"%s\"}",
	        reason);
	n = snprintf(text, sizeof(text),
	        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\n"
	        "Retry-After: 1\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s",
	        n, body);
	/* The client may be gone or not reading: nothing can be done about it. */
	if (send(fd, text, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		log_debug("http: refused a connection: %s", reason);
}

/* ---- deadlines ---- */

int64_t conns_cut_late(struct conns *cs, bool *ret_cut)
{
	static const struct {
		enum conn_state state;
		int64_t allowed_ms;
	} bounds[] = {
	        {CONN_WAITING, WAIT_MS},
	        {CONN_READING, BODY_MS},
	        {CONN_WRITING, STALL_MS},
	        {CONN_ENDING, LINGER_MS},
	};
	int64_t now = clock_mono_ms(), next = -1;
	*ret_cut = false;
	for (size_t i = 0; i < ARRAY_LEN(bounds); i++) {
		struct conn *c;
		while ((c = list_first(&cs->by_state[bounds[i].state], struct conn, link))) {
			int64_t left = c->since_ms + bounds[i].allowed_ms - now;
			if (left > 0) {
				next = next < 0 || left < next ? left : next;
				break;
			}
			conns_cut(cs, c);
			*ret_cut = true;
		}
	}
	return next;
}
