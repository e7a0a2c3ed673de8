#include "egress/jails.h"

#include "base/clock.h"
#include "base/fd.h"
#include "egress/client.h"
#include "egress/dns_port.h"
#include "egress/http_conn.h"
#include "egress/packet.h"
#include "egress/tls_conn.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <net/ethernet.h>
#include <netpacket/packet.h>
#include <stdio.h>
#include <sys/socket.h>

/* Deadlines are tens of seconds, waiting events are a second late at most. */
enum { TICK_MS = 250 };

typedef void accepted_fn(struct jail *j, int fd);

static void refuse_crowd(struct jail *j, int fd, unsigned port)
{
	struct linger now = {.l_onoff = 1, .l_linger = 0};
	char reason[128];
	snprintf(reason, sizeof(reason), "more than %d connections at once", JAIL_CLIENTS);
	report_denied(&j->report, "(any)", port, reason);
	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	fd_close(fd);
}

static void accept_some(struct listener *l, unsigned port, accepted_fn *accepted)
{
	struct jail *j = l->jail;
	for (int i = 0; i < JAIL_BATCH && l->fd >= 0; i++) {
		int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0) {
			/* Out of descriptors: the connection stays in the queue and the listener
			 * would be ready for ever; it rests until the next tick. */
			if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
				reactor_set(j->services->reactor, &l->watch, 0);
			return;
		}
		if (j->nclients >= JAIL_CLIENTS) {
			refuse_crowd(j, fd, port);
			continue;
		}
		int on = 1;
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		accepted(j, fd);
	}
}

static void on_http(struct watch *w, uint32_t events)
{
	(void)events;
	accept_some(container_of(w, struct listener, watch), 80, http_conn_accept);
}

static void on_tls(struct watch *w, uint32_t events)
{
	(void)events;
	accept_some(container_of(w, struct listener, watch), 443, tls_conn_accept);
}

static void on_dns_tcp(struct watch *w, uint32_t events)
{
	(void)events;
	accept_some(container_of(w, struct listener, watch), 53, dns_port_accept);
}

static void on_dns_udp(struct watch *w, uint32_t events)
{
	(void)events;
	struct listener *l = container_of(w, struct listener, watch);
	dns_port_datagrams(l->jail, l->fd, JAIL_BATCH);
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
		        !packet_parse(bytes + skip, (size_t)n - skip, &p))
			continue;
		char reason[128];
		snprintf(reason, sizeof(reason), "%s: port %u is not served in policy '%.40s'",
		        p.protocol, p.port, l->jail->names.policy);
		report_denied(&l->jail->report, p.address, p.port, reason);
	}
}

static void (*const on_listener[EGRESS_LISTENERS])(struct watch *, uint32_t) = {
        [EGRESS_DNS_UDP] = on_dns_udp,
        [EGRESS_DNS_TCP] = on_dns_tcp,
        [EGRESS_HTTP] = on_http,
        [EGRESS_TLS] = on_tls,
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
	report_flush(&j->report, true);
	free(j);
}

int jails_begin(struct services *s, uint64_t id, uint32_t flags, const struct names *names,
        int fds[EGRESS_LISTENERS], struct err *e)
{
	struct jail *j = xnew(struct jail);
	j->services = s;
	j->id = id;
	j->flags = flags;
	j->names = *names;
	j->corpse.bury = bury;
	list_init(&j->clients);
	report_init(&j->report, s->control, id);
	list_append(&s->jails, &j->link);
	if (list_empty(&s->tick.link))
		reactor_arm(s->reactor, &s->tick, TICK_MS);
	int r = 0;
	for (int i = 0; i < EGRESS_LISTENERS; i++) {
		struct listener *l = &j->listeners[i];
		l->jail = j;
		l->fd = take_fd(fds[i]);
		l->raw = i == EGRESS_WATCH && is_raw(l->fd);
		l->watch = (struct watch){.fd = -1, .ready = on_listener[i]};
		if (r == 0)
			r = fd_set_nonblock(l->fd, 1);
		if (r == 0)
			r = reactor_watch(s->reactor, &l->watch, l->fd, EPOLLIN);
	}
	if (r < 0) {
		jails_end(j);
		return err_set(
		        e, r, "a listener of jail %llu is not usable", (unsigned long long)id);
	}
	return 0;
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
	for (int i = 0; i < EGRESS_LISTENERS; i++) {
		struct listener *l = &j->listeners[i];
		reactor_unwatch(j->services->reactor, &l->watch);
		fd_close(l->fd);
		l->fd = -1;
	}
}

static void leave(struct jail *j, const char *cut)
{
	list_for_each (c, &j->clients, struct client, link)
		if (c->kind->leave)
			c->kind->leave(c, cut);
}

static void end_if_drained(struct services *s)
{
	bool open = false;
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
	end_if_drained(s);
}

void jails_cut(struct services *s, const char *why)
{
	list_for_each (j, &s->jails, struct jail, link)
		leave(j, why);
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
	end_if_drained(j->services);
}

void jails_tick(struct timer *t)
{
	struct services *s = container_of(t, struct services, tick);
	int64_t now = clock_mono_ms();
	list_for_each (j, &s->jails, struct jail, link) {
		for (int i = 0; i < EGRESS_LISTENERS; i++)
			reactor_set(s->reactor, &j->listeners[i].watch, EPOLLIN);
		list_for_each (c, &j->clients, struct client, link) {
			if (now >= c->deadline_ms)
				c->kind->late(c);
		}
		report_flush(&j->report, false);
	}
	end_if_drained(s);
	if (!list_empty(&s->jails)) /* without jails the process sleeps */
		reactor_arm(s->reactor, t, TICK_MS);
}
