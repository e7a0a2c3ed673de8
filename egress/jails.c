#include "egress/jails.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "egress/certs.h"
#include "egress/client.h"
#include "egress/dns_port.h"
#include "egress/hooks.h"
#include "egress/objects.h"
#include "egress/http_conn.h"
#include "egress/packet.h"
#include "egress/proxy_conn.h"
#include "egress/stream.h"
#include "egress/upstream.h"

#include <arpa/inet.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <net/ethernet.h>
#include <netpacket/packet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* Deadlines are tens of seconds, waiting events are a second late at most. */
enum { TICK_MS = 250 };
/* The allocator keeps what it has once been given.  Giving back takes it a millisecond or so. */
enum { TRIM_MS = 1000 };

static void refuse_crowd(struct jail *j, int fd, unsigned port)
{
	struct linger now = {.l_onoff = 1, .l_linger = 0};
	char reason[128];
	const struct report_of what = {.host = "(any)",
	        .port = port,
	        .protocol = EGRESS_PROTOCOL_TCP,
	        .policy = &j->names.book->policy,
	        .rule = -1};
	snprintf(reason, sizeof(reason), "more than %d connections at once", JAIL_CLIENTS);
	report_denied(&j->report, &what, reason);
	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	fd_close(fd);
}

/* One connection, or -1 when there is none now. */
static int accept_one(struct listener *l)
{
	int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), on = 1;
	/* Out of descriptors: the connection stays in the queue and the listener would be ready
	 * for ever; it rests until the next tick. */
	if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
		reactor_set(l->jail->services->reactor, &l->watch, 0);
	if (fd >= 0)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

static void accept_some(struct listener *l, void (*accepted)(struct jail *, int, unsigned))
{
	struct jail *j = l->jail;
	for (int i = 0; i < JAIL_BATCH && l->fd >= 0; i++) {
		int fd = accept_one(l);
		if (fd < 0)
			return;
		if (j->nclients >= JAIL_CLIENTS)
			refuse_crowd(j, fd, l->port);
		else
			accepted(j, fd, l->port);
	}
}

/* The address of a name from before a restart, or one that a rule names. */
static int nobody_there(struct jail *j, const struct place *place)
{
	int rule = place->has_v4 ? names_raw(&j->names, place->v4, place->port) : -1;
	return rule >= 0 ? rule : names_number(&j->names, place->mapped, place->port);
}

/* Whose address was dialled decides what is spoken, and the rule of name and port; where there is
 * none, who asks is heard as far as it takes to say what was refused. */
static void arrive(struct jail *j, int fd, const struct place *place, const char *bytes, size_t n)
{
	const struct policy *p = &j->names.book->policy;
	struct name_ref at = {.kind = NAME_NONE};
	if (place->has_v4)
		at = names_at(&j->names, place->v4);
	int rule = -1;
	if (at.kind == NAME_RULE)
		rule = names_rule(&j->names, at.host, strlen(at.host), place->port);
	else if (at.kind == NAME_NONE && !j->names.why_none[0])
		rule = nobody_there(j, place);
	bool http = rule >= 0 ? p->rules[rule].protocol == RULE_HTTP : place->port == 80;
	if (rule >= 0 && p->rules[rule].protocol == RULE_RAW && n == 0)
		stream_accept_raw(j, fd, place, rule);
	else if (at.kind == NAME_PROXY && place->port == POLICY_PROXY_PORT)
		proxy_conn_accept(j, fd, arrive);
	else if (http || n)
		http_conn_accept(j, fd, place, bytes, n);
	else
		stream_accept_tls(j, fd, place);
}

static void dialled(struct jail *j, int fd, unsigned port)
{
	struct place place;
	place_of(fd, port, &place);
	arrive(j, fd, &place, NULL, 0);
}

static void on_stream(struct watch *w, uint32_t events)
{
	(void)events;
	accept_some(container_of(w, struct listener, watch), dialled);
}

static void ask(struct jail *j, int fd, unsigned port)
{
	(void)port;
	dns_port_accept(j, fd);
}

static void on_dns_tcp(struct watch *w, uint32_t events)
{
	(void)events;
	accept_some(container_of(w, struct listener, watch), ask);
}

static void on_dns_udp(struct watch *w, uint32_t events)
{
	(void)events;
	struct listener *l = container_of(w, struct listener, watch);
	dns_port_datagrams(l->jail, l->fd, JAIL_BATCH);
}

/* The filter of the socket knows the ports of every jail, not those of this one's policy. */
static bool served(const struct jail *j, const struct packet *p)
{
	for (uint32_t i = 0; i < j->nports; i++)
		if (j->ports[i].port == p->port && strcmp(p->protocol, "tcp") == 0)
			return true;
	return false;
}

/* By name, where it has one here. */
static void refuse_packet(struct jail *j, const struct packet *p)
{
	char reason[128];
	struct name_ref at = {.kind = NAME_NONE};
	uint32_t v4;
	if (inet_pton(AF_INET, p->address, &v4) == 1)
		at = names_at(&j->names, ntohl(v4));
	snprintf(reason, sizeof(reason), "%s: port %u is not served in policy '%.40s'", p->protocol,
	        p->port, j->names.book->policy.name);
	bool tcp = strcmp(p->protocol, "tcp") == 0;
	const struct report_of what = {.host = at.kind == NAME_NONE ? p->address : at.host,
	        .port = p->port,
	        .protocol = tcp ? EGRESS_PROTOCOL_TCP : EGRESS_PROTOCOL_UDP,
	        .remedy = tcp && at.kind != NAME_INJECT ? names_remedy(&j->names)
	                                                : EGRESS_REMEDY_NONE,
	        .policy = &j->names.book->policy,
	        .rule = -1};
	report_denied(&j->report, &what, reason);
}

static void on_packet(struct watch *w, uint32_t events)
{
	(void)events;
	struct listener *l = container_of(w, struct listener, watch);
	for (int i = 0; i < JAIL_BATCH; i++) {
		uint8_t bytes[PACKET_SNAP + ETHER_HDR_LEN];
		struct sockaddr_ll from = {0};
		socklen_t len = sizeof(from);
		ssize_t n = recvfrom(
		        l->fd, bytes, sizeof(bytes), MSG_DONTWAIT, (struct sockaddr *)&from, &len);
		if (n < 0)
			return;
		size_t skip = l->raw ? ETHER_HDR_LEN : 0;
		struct packet p;
		/* On loopback every packet is seen going out and coming in: one is enough. */
		if (from.sll_pkttype == PACKET_OUTGOING || (size_t)n < skip ||
		        !packet_parse(bytes + skip, (size_t)n - skip, &p) || served(l->jail, &p))
			continue;
		refuse_packet(l->jail, &p);
	}
}

static void (*const on_listener[EGRESS_LISTENERS])(struct watch *, uint32_t) = {
        [EGRESS_DNS_UDP] = on_dns_udp,
        [EGRESS_DNS_TCP] = on_dns_tcp,
        [EGRESS_HTTP] = on_stream,
        [EGRESS_TLS] = on_stream,
        [EGRESS_WATCH] = on_packet,
};

static bool is_raw(int fd)
{
	int type = 0;
	socklen_t len = sizeof(type);
	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_RAW;
}

static void bury(struct corpse *c)
{
	struct jail *j = container_of(c, struct jail, corpse);
	struct egress_simple ended = {.head.type = EGRESS_JAIL_ENDED, .jail = j->id};
	report_flush(&j->report, true);
	/* A socket that is full loses it; agentboxd does not wait for ever. */
	if (msg_send(j->services->control, &ended, sizeof(ended), NULL, 0) < 0)
		log_debug("jail %llu: its end is not told", (unsigned long long)j->id);
	names_done(&j->names);
	usage_done(&j->usage);
	purse_done(&j->purse);
	certs_free(j->certs);
	connections_free(j->connections); /* its transfers are buried already */
	free(j);
}

static void close_listener(struct listener *l)
{
	reactor_unwatch(l->jail->services->reactor, &l->watch);
	fd_close(l->fd);
	l->fd = -1;
}

/* Takes *fd. */
static int listen_on(struct jail *j, struct listener *l, int *fd, unsigned port,
        void (*ready)(struct watch *, uint32_t))
{
	*l = (struct listener){
	        .jail = j, .fd = take_fd(*fd), .port = port, .watch = {.fd = -1, .ready = ready}};
	int r = fd_set_nonblock(l->fd, 1);
	return r == 0 ? reactor_watch(j->services->reactor, &l->watch, l->fd, EPOLLIN) : r;
}

int jails_begin(struct services *s, const struct egress_jail *m, struct rulebook *book,
        const char *why_none, int fds[EGRESS_LISTENERS], struct certs *certs, struct err *e)
{
	static const unsigned ports[EGRESS_LISTENERS] = {[EGRESS_DNS_UDP] = 53,
	        [EGRESS_DNS_TCP] = 53,
	        [EGRESS_HTTP] = 80,
	        [EGRESS_TLS] = 443};
	struct jail *j = xnew(struct jail);
	j->services = s;
	j->id = m->jail;
	j->flags = m->flags;
	j->certs = certs;
	list_init(&j->clients);
	names_init(&j->names, j->id, &m->outlets);
	jails_follow(j, book, why_none);
	j->corpse.bury = bury;
	report_init(&j->report, s->control, j->id);
	purse_begin(&j->purse, m, &book->policy, &s->ledger, s->control);
	list_append(&s->jails, &j->link);
	if (list_empty(&s->tick.link))
		reactor_arm(s->reactor, &s->tick, TICK_MS);
	int r = 0;
	for (int i = 0; i < EGRESS_LISTENERS; i++) {
		int one = listen_on(j, &j->listeners[i], &fds[i], ports[i], on_listener[i]);
		j->listeners[i].raw = i == EGRESS_WATCH && is_raw(j->listeners[i].fd);
		r = r < 0 ? r : one;
	}
	if (r < 0) {
		jails_end(j);
		return err_set(
		        e, r, "a listener of jail %llu is not usable", (unsigned long long)m->jail);
	}
	return 0;
}

int jails_port(struct jail *j, unsigned port, int *fd, struct err *e)
{
	if (j->nports == POLICY_PORTS)
		return err_set(e, -E2BIG, "jail %llu has %d ports already",
		        (unsigned long long)j->id, POLICY_PORTS);
	struct listener *l = &j->ports[j->nports];
	int r = listen_on(j, l, fd, port, on_stream);
	if (r < 0) {
		close_listener(l);
		return err_set(e, r, "port %u of jail %llu is not usable", port,
		        (unsigned long long)j->id);
	}
	j->nports++;
	return 0;
}

void jails_follow(struct jail *j, struct rulebook *book, const char *why_none)
{
	names_follow(&j->names, book, why_none);
	usage_follow(&j->usage, &book->policy);
	list_for_each (c, &j->clients, struct client, link) {
		if (c->kind->follow)
			c->kind->follow(c);
	}
}

ssize_t jails_allow(struct jail *j, int rule, const char *secret, size_t want)
{
	const struct policy *p = &j->names.book->policy;
	if (!purse_may_move(&j->purse, p, secret))
		return -EDQUOT;
	return rule < 0 ? (ssize_t)want : usage_allow(&j->usage, p, rule, want);
}

void jails_count(struct jail *j, int rule, const char *secret, size_t n)
{
	purse_count_bytes(&j->purse, secret, n);
	if (rule >= 0)
		usage_count(&j->usage, rule, n);
}

struct jail *jails_find(struct services *s, uint64_t id)
{
	list_for_each (j, &s->jails, struct jail, link) {
		if (j->id == id)
			return j;
	}
	return NULL;
}

static void close_listeners(struct jail *j)
{
	for (int i = 0; i < EGRESS_LISTENERS; i++)
		close_listener(&j->listeners[i]);
	for (uint32_t i = 0; i < j->nports; i++)
		close_listener(&j->ports[i]);
}

static void leave(struct jail *j, const char *cut)
{
	list_for_each (c, &j->clients, struct client, link)
		if (c->kind->leave)
			c->kind->leave(c, cut);
}

void jails_end_if_drained(struct services *s)
{
	bool open = hooks_open(s->hooks) || objects_open(s->objects);
	list_for_each (j, &s->jails, struct jail, link)
		open |= j->nclients > 0;
	if (s->draining && !open)
		reactor_stop(s->reactor);
}

void jails_drain(struct services *s)
{
	s->draining = true;
	list_for_each (j, &s->jails, struct jail, link) {
		close_listeners(j);
		leave(j, NULL);
	}
	jails_end_if_drained(s);
}

void jails_cut(struct services *s, const char *why)
{
	list_for_each (j, &s->jails, struct jail, link)
		leave(j, why);
}

void jails_slack(struct services *s)
{
	if (!s->trim_ms)
		s->trim_ms = clock_mono_ms() + TRIM_MS;
}

void jails_end(struct jail *j)
{
	struct reactor *loop = j->services->reactor;
	struct client *c;
	close_listeners(j);
	while ((c = list_first(&j->clients, struct client, link)))
		client_end(c, true);
	list_remove(&j->link);
	/* After its clients, which still count their bytes into its report. */
	reactor_bury(loop, &j->corpse);
	jails_slack(j->services);
	jails_end_if_drained(j->services);
}

void jails_tick(struct timer *t)
{
	struct services *s = container_of(t, struct services, tick);
	int64_t now = clock_mono_ms();
	list_for_each (j, &s->jails, struct jail, link) {
		for (int i = 0; i < EGRESS_LISTENERS; i++)
			reactor_set(s->reactor, &j->listeners[i].watch, EPOLLIN);
		for (uint32_t i = 0; i < j->nports; i++)
			reactor_set(s->reactor, &j->ports[i].watch, EPOLLIN);
		list_for_each (c, &j->clients, struct client, link) {
			if (now >= c->deadline_ms)
				c->kind->late(c);
		}
		report_flush(&j->report, false);
		purse_tick(&j->purse);
	}
	jails_end_if_drained(s);
	if (s->trim_ms && now >= s->trim_ms) {
		s->trim_ms = 0;
		(void)malloc_trim(0);
	}
	if (!list_empty(&s->jails) || s->trim_ms) /* without jails the process sleeps */
		reactor_arm(s->reactor, t, TICK_MS);
}
