#include "egress/stream.h"

#include "base/fd.h"
#include "base/mem.h"
#include "egress/address.h"
#include "egress/hello.h"
#include "egress/jails.h"
#include "egress/shake.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* Apart from the stream, which may live for hours without it. */
struct stream_dial {
	struct dial dial;
	struct stream *stream;
};

static const struct policy *policy_of(const struct stream *s)
{
	return &s->client.jail->names.book->policy;
}

/* ---- the end ---- */

static struct report_of told(const struct stream *s, enum egress_remedy remedy)
{
	return (struct report_of){.host = s->host,
	        .port = s->place.port,
	        .protocol = s->spoken,
	        .remedy = remedy,
	        .policy = policy_of(s),
	        .rule = s->rule};
}

static void refuse(struct stream *s, enum egress_remedy remedy, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

static void refuse(struct stream *s, enum egress_remedy remedy, const char *fmt, ...)
{
	char reason[128];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(reason, sizeof(reason), fmt, ap);
	va_end(ap);
	const struct report_of what = told(s, remedy);
	report_denied(&s->client.jail->report, &what, reason);
	client_end(&s->client, true);
}

static void reset_outside(struct stream *s)
{
	struct linger now = {.l_onoff = 1, .l_linger = 0};
	if (s->fd >= 0)
		(void)setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

/* Something broke, or a peer reset: the other one sees the same. */
static void cut(struct stream *s)
{
	reset_outside(s);
	client_end(&s->client, true);
}

static void on_free(struct client *c)
{
	struct stream *s = container_of(c, struct stream, client);
	struct pipes *pipes = &c->jail->services->pipes;
	uint64_t moved = s->in.bytes + s->out.bytes;
	if (s->dial)
		dial_cancel(&s->dial->dial);
	free(s->dial);
	free(s->hello);
	reactor_unwatch(c->reactor, &s->outside);
	fd_close(s->fd);
	pipes_give(pipes, &s->in.pipe);
	pipes_give(pipes, &s->out.pipe);
	if (s->state == STREAM_RELAY) {
		char reason[128], rule[RULE_TEXT_MAX] = "a rule that is gone";
		if (s->rule >= 0)
			rule_text(&policy_of(s)->rules[s->rule], rule);
		snprintf(reason, sizeof(reason), "%s: by %.100s%s",
		        s->rule >= 0 ? rule_protocol_name(policy_of(s)->rules[s->rule].protocol)
		                     : "relay",
		        rule, moved ? "" : ", nothing moved");
		const struct report_of what = told(s, EGRESS_REMEDY_NONE);
		report_allowed(&c->jail->report, &what, reason, s->in.bytes, s->out.bytes);
	}
	free(s);
}

/* ---- RELAY ---- */

/* A socket that is closed in both directions is always "ready": it is not watched any more. */
static void want(struct stream *s, struct watch *w, bool closed, uint32_t events)
{
	if (closed)
		reactor_unwatch(s->client.reactor, w);
	else
		reactor_set(s->client.reactor, w, events);
}

static void interest(struct stream *s)
{
	const struct flow *in = &s->in, *out = &s->out;
	bool hello = s->nhello > 0;
	bool read_in = !in->eof && in->pipe.held == 0 && !s->waiting;
	bool read_out = !out->eof && out->pipe.held == 0 && !s->waiting && !hello;
	want(s, &s->client.watch, out->eof && in->shut,
	        (read_out ? EPOLLIN : 0u) | (in->pipe.held ? EPOLLOUT : 0u));
	want(s, &s->outside, in->eof && out->shut,
	        (read_in ? EPOLLIN : 0u) | (out->pipe.held || hello ? EPOLLOUT : 0u));
}

/* From `from` into the flow's pipe: bytes, 0 for nothing now, -errno when it is over. */
static ssize_t fill(struct stream *s, struct flow *f, int from)
{
	struct jail *j = s->client.jail;
	ssize_t most = jails_allow(j, s->rule, "", PIPE_BYTES);
	if (most <= 0) {
		s->waiting = most == 0;
		return most;
	}
	if (f->pipe.in < 0 && pipes_take(&s->client.jail->services->pipes, &f->pipe) < 0)
		return -EMFILE;
	ssize_t n = splice(
	        from, NULL, f->pipe.in, NULL, (size_t)most, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0) {
		f->eof = true;
		return 0;
	}
	f->pipe.held = (size_t)n;
	f->bytes += (uint64_t)n;
	jails_count(j, s->rule, "", (size_t)n);
	return n;
}

/* Out of the pipe to `to`: 1 when it is empty, 0 when `to` is full, -errno. */
static int drain(struct flow *f, int to)
{
	while (f->pipe.held) {
		ssize_t n = splice(f->pipe.out, NULL, to, NULL, f->pipe.held,
		        SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 && errno == EAGAIN ? 0 : n < 0 ? -errno : -EPIPE;
		f->pipe.held -= (size_t)n;
	}
	return 1;
}

/* Moves what can be moved in one direction; 0, or -errno when the connection is over. */
static int flow(struct stream *s, struct flow *f, int from, int to)
{
	size_t turn = 0;
	int r = drain(f, to);
	while (r == 1 && !f->eof && turn < STREAM_TURN) {
		ssize_t n = fill(s, f, from);
		if (n <= 0) {
			r = n < 0 ? (int)n : 1;
			break;
		}
		turn += (size_t)n;
		r = drain(f, to);
	}
	if (r == 1)
		pipes_give(&s->client.jail->services->pipes, &f->pipe);
	if (r == 1 && f->eof && !f->shut) {
		f->shut = true;
		(void)shutdown(to, SHUT_WR);
	}
	return r < 0 ? r : 0;
}

static int send_hello(struct stream *s)
{
	while (s->nhello) {
		ssize_t n = send(s->fd, s->hello, s->nhello, MSG_NOSIGNAL);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		s->out.bytes += (uint64_t)n;
		jails_count(s->client.jail, s->rule, "", (size_t)n);
		s->nhello -= (size_t)n;
		memmove(s->hello, s->hello + n, s->nhello);
	}
	free(take(s->hello));
	return 0;
}

static void relay(struct stream *s)
{
	int r = s->nhello ? send_hello(s) : 0;
	if (r == 0 && s->nhello == 0)
		r = flow(s, &s->out, s->client.fd, s->fd);
	if (r == 0)
		r = flow(s, &s->in, s->fd, s->client.fd);
	if (r == -EDQUOT) {
		reset_outside(s);
		char rule[RULE_TEXT_MAX];
		rule_text(&policy_of(s)->rules[s->rule], rule);
		if (purse_may_move(&s->client.jail->purse, policy_of(s), ""))
			refuse(s, EGRESS_REMEDY_BYTES, "the bytes of rule %.90s are used up", rule);
		else
			refuse(s, EGRESS_REMEDY_NONE, "the budget's bytes are used up");
	} else if (r < 0) {
		cut(s);
	} else if (s->in.shut && s->out.shut) {
		client_end(&s->client, false);
	} else {
		client_deadline(&s->client, s->waiting ? USAGE_WAIT_MS : STREAM_IDLE_MS);
		interest(s);
	}
}

static void on_outside(struct watch *w, uint32_t events)
{
	struct stream *s = container_of(w, struct stream, outside);
	(void)events;
	if (!s->client.ended)
		relay(s);
}

/* ---- DIAL ---- */

/* A name may be given addresses that are not public; an address has been judged as what it is. */
static enum egress_remedy outside_remedy(const struct stream *s, const struct err *e)
{
	bool name = s->rule >= 0 && policy_of(s)->rules[s->rule].host[0];
	return name && e->code == -EACCES ? EGRESS_REMEDY_ADDRESSES : EGRESS_REMEDY_NONE;
}

static void on_dialled(struct dial *d, int fd, const struct err *e)
{
	struct stream_dial *way = container_of(d, struct stream_dial, dial);
	struct stream *s = way->stream;
	if (s->client.ended) {
		fd_close(fd);
		return;
	}
	if (e) {
		refuse(s, outside_remedy(s, e), "outside: %.110s", e->text);
		return;
	}
	free(take(s->dial));
	s->fd = fd;
	s->state = STREAM_RELAY;
	if (reactor_watch(s->client.reactor, &s->outside, fd, EPOLLIN) < 0)
		cut(s);
	else
		relay(s);
}

static void dial(struct stream *s)
{
	const struct policy_rule *rule = &policy_of(s)->rules[s->rule];
	struct services *v = s->client.jail->services;
	struct reach reach = {.n = rule->ncidrs};
	struct origin to = {.port = (uint16_t)s->place.port, .literal = !rule->host[0]};
	struct err err;
	memcpy(reach.cidrs, rule->cidrs, sizeof(reach.cidrs));
	(void)str_copy(to.host, sizeof(to.host), s->host);
	s->dial = xnew(struct stream_dial);
	s->dial->stream = s;
	dial_init(&s->dial->dial, s->client.reactor, on_dialled);
	s->state = STREAM_DIAL;
	reactor_set(s->client.reactor, &s->client.watch, EPOLLRDHUP);
	client_deadline(&s->client, DIAL_TRY_MS);
	if (dial_start(&s->dial->dial, v->resolver, &to, &reach, &err) < 0)
		refuse(s, outside_remedy(s, &err), "outside: %.110s", err.text);
}

/* ---- HELLO ---- */

/* The name at the address that was dialled, or the address. */
static void set_dialled(struct stream *s)
{
	struct name_ref at = {.kind = NAME_NONE};
	if (s->place.has_v4)
		at = names_at(&s->client.jail->names, s->place.v4);
	if (at.kind != NAME_NONE) {
		(void)str_copy(s->host, sizeof(s->host), at.host);
	} else {
		struct sockaddr_storage a;
		(void)address_of(s->place.mapped, 0, &a);
		address_text((const struct sockaddr *)&a, s->host);
	}
}

/* It is opened here; this one ends without a word. */
static void terminate(struct stream *s)
{
	struct jail *j = s->client.jail;
	int fd = client_release(&s->client);
	if (fd >= 0)
		shake_accept(j, fd, &s->place, s->host, s->hello, s->nhello);
}

/* The server name is there: does it belong to what was dialled, and may it be reached? */
static void judge(struct stream *s, const char *name)
{
	struct names *t = &s->client.jail->names;
	char reason[128];
	size_t n = strlen(name);
	if (n && name[n - 1] == '.') /* not in a hello that follows RFC 6066 */
		n = 0;
	struct name_ref at =
	        s->place.has_v4 ? names_at(t, s->place.v4) : (struct name_ref){.kind = NAME_NONE};
	int rule = names_rule(t, name, n, s->place.port);
	bool belongs = s->place.has_v4 && names_belong(t, name, n, s->place.v4);
	if (!belongs && at.kind != NAME_NONE) {
		refuse(s, EGRESS_REMEDY_NONE, "tls: the server name %.50s is not the name dialled",
		        name);
		return;
	}
	(void)str_copy(s->host, sizeof(s->host), name);
	s->rule = rule;
	if (at.kind == NAME_INJECT)
		refuse(s, EGRESS_REMEDY_NONE, "tls: %.60s is served as http:// only", name);
	else if (rule < 0) {
		names_refusal(t, "tls", name, reason, sizeof(reason));
		refuse(s, names_remedy(t), "%s", reason);
	} else if (!belongs)
		refuse(s, EGRESS_REMEDY_NONE, "tls: %.60s was dialled by a number, not looked up",
		        name);
	else if (policy_of(s)->rules[rule].protocol != RULE_TLS)
		refuse(s, EGRESS_REMEDY_PROTOCOL, "tls: %.60s:%u is allowed as %s", name,
		        s->place.port, rule_protocol_name(policy_of(s)->rules[rule].protocol));
	else if (policy_of(s)->rules[rule].terminate)
		terminate(s);
	else
		dial(s);
}

static void refuse_unnamed(struct stream *s)
{
	char reason[128];
	struct name_ref at = {.kind = NAME_NONE};
	if (s->place.has_v4)
		at = names_at(&s->client.jail->names, s->place.v4);
	if (at.kind != NAME_NONE) {
		refuse(s, EGRESS_REMEDY_NONE, "tls: %.60s was dialled without a server name",
		        s->host);
	} else {
		names_refusal(&s->client.jail->names, "tcp", s->host, reason, sizeof(reason));
		s->spoken = EGRESS_PROTOCOL_TCP; /* or nothing at all */
		refuse(s, names_remedy(&s->client.jail->names), "%s", reason);
	}
}

static void read_hello(struct stream *s)
{
	char name[POLICY_HOST_MAX];
	if (!s->hello)
		s->hello = xcalloc(1, HELLO_MAX);
	ssize_t n = recv(s->client.fd, s->hello + s->nhello, HELLO_MAX - s->nhello, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0)
		s->nhello += (size_t)n;
	enum hello_verdict v = n <= 0 ? HELLO_NOT_TLS : hello_read(s->hello, s->nhello, name);
	if (v == HELLO_NAME)
		judge(s, name);
	else if (v != HELLO_MORE || s->nhello == HELLO_MAX)
		refuse_unnamed(s);
}

/* ---- the client ---- */

static void on_ready(struct client *c, uint32_t events)
{
	struct stream *s = container_of(c, struct stream, client);
	if (s->state == STREAM_HELLO)
		read_hello(s);
	else if (s->state == STREAM_RELAY)
		relay(s);
	else if (events & (EPOLLERR | EPOLLHUP))
		client_end(c, true); /* gone before there was anything to talk to */
	else
		reactor_set(c->reactor, &c->watch, 0); /* half-closed: read when there is a relay */
}

static void on_late(struct client *c)
{
	struct stream *s = container_of(c, struct stream, client);
	if (s->state == STREAM_HELLO) {
		refuse_unnamed(s);
	} else if (s->state == STREAM_DIAL) {
		client_deadline(c, DIAL_TRY_MS);
		dial_late(&s->dial->dial);
	} else if (s->waiting) {
		s->waiting = false;
		relay(s);
	} else {
		reset_outside(s);
		refuse(s, EGRESS_REMEDY_NONE, "no byte moved for %d minutes",
		        STREAM_IDLE_MS / 60000);
	}
}

/* What has begun goes on; the process ends with its last byte. */
static void on_leave(struct client *c, const char *cut)
{
	struct stream *s = container_of(c, struct stream, client);
	if (!cut)
		return;
	reset_outside(s);
	refuse(s, EGRESS_REMEDY_NONE, "%s", cut);
}

/* By the rule as it is now: the protocol that is spoken, and the address that was dialled. */
static bool still_allowed(struct stream *s)
{
	struct sockaddr_storage a;
	socklen_t len = sizeof(a);
	const struct policy_rule *rule = &policy_of(s)->rules[s->rule];
	struct reach reach = {.n = rule->ncidrs};
	memcpy(reach.cidrs, rule->cidrs, sizeof(reach.cidrs));
	if (s->state == STREAM_DIAL)
		s->dial->dial.reach = reach;
	if ((rule->protocol == RULE_RAW) != (s->spoken == EGRESS_PROTOCOL_RAW) ||
	        rule_shows_requests(rule)) /* which were not judged here */
		return false;
	return s->state == STREAM_DIAL || getpeername(s->fd, (struct sockaddr *)&a, &len) < 0 ||
	       address_within(&reach, (const struct sockaddr *)&a);
}

static void on_follow(struct client *c)
{
	struct stream *s = container_of(c, struct stream, client);
	if (s->state == STREAM_HELLO)
		return;
	struct names *t = &c->jail->names;
	int rule = names_rule(t, s->host, strlen(s->host), s->place.port);
	if (rule < 0)
		rule = names_number(t, s->place.mapped, s->place.port);
	s->rule = rule;
	if (rule < 0 || !still_allowed(s)) {
		reset_outside(s);
		refuse(s, names_remedy(t), "the policy allows it no longer");
	}
}

static const struct client_kind kind = {.ready = on_ready,
        .late = on_late,
        .leave = on_leave,
        .free = on_free,
        .follow = on_follow};

static struct stream *begin(struct jail *j, int fd, const struct place *p, uint32_t events)
{
	struct stream *s = xnew(struct stream);
	s->place = *p;
	s->spoken = EGRESS_PROTOCOL_TLS;
	s->rule = -1;
	s->fd = -1;
	s->outside = (struct watch){.fd = -1, .ready = on_outside};
	s->in.pipe = s->out.pipe = (struct splice_pipe){-1, -1, 0};
	client_begin(&s->client, &kind, j, fd, events, STREAM_HELLO_MS);
	set_dialled(s);
	return s;
}

void stream_accept_tls(struct jail *j, int fd, const struct place *p)
{
	(void)begin(j, fd, p, EPOLLIN);
}

void stream_accept_raw(struct jail *j, int fd, const struct place *p, int rule)
{
	struct stream *s = begin(j, fd, p, 0);
	s->rule = rule;
	s->spoken = EGRESS_PROTOCOL_RAW;
	if (!s->client.ended)
		dial(s);
}
