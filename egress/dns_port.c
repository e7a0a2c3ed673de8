#include "egress/dns_port.h"

#include "base/buf.h"
#include "base/mem.h"
#include "egress/client.h"
#include "egress/dns.h"
#include "egress/jails.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum {
	/* Queries are below 300 bytes; what is longer is judged by its first 4 KiB. */
	DATAGRAM_MAX = 4096,
	/* Whole of one query by TCP, and the pause between two. */
	DNS_TCP_MS = 5000,
	DNS_TCP_OUT = 16 << 10,
};

static void answer(struct jail *j, const void *query, size_t n, struct dns_reply *ret)
{
	dns_answer(&j->names, query, n, ret);
	if (ret->verdict != DNS_REFUSED && ret->verdict != DNS_FULL)
		return;
	char reason[128];
	struct report_of what = {.host = ret->name,
	        .port = 53,
	        .protocol = EGRESS_PROTOCOL_DNS,
	        .policy = &j->names.book->policy,
	        .rule = -1};
	if (ret->verdict == DNS_REFUSED)
		what.remedy = names_remedy(&j->names);
	if (ret->verdict == DNS_FULL)
		snprintf(reason, sizeof(reason), "dns: more than %d different names", NAMES_MAX);
	else
		names_refusal(&j->names, "dns", ret->name, reason, sizeof(reason));
	report_denied(&j->report, &what, reason);
}

/* ---- datagrams ---- */

union control {
	char bytes[CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(struct in_pktinfo))];
	struct cmsghdr align;
};

/* Keeps only the address that was asked, as the source of the answer.  The interface is left to
 * routing (index 0): the address is nobody's interface address but AnyIP's. */
static void answer_from(struct msghdr *m, union control *reply)
{
	m->msg_flags = 0;
	struct msghdr to = {.msg_control = reply, .msg_controllen = sizeof(*reply)};
	struct cmsghdr *r = CMSG_FIRSTHDR(&to);
	size_t used = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			struct in6_pktinfo info;
			memcpy(&info, CMSG_DATA(c), sizeof(info));
			info.ipi6_ifindex = 0;
			*r = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(info)),
			        .cmsg_level = IPPROTO_IPV6,
			        .cmsg_type = IPV6_PKTINFO};
			memcpy(CMSG_DATA(r), &info, sizeof(info));
			used = CMSG_SPACE(sizeof(info));
			break;
		}
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			struct in_pktinfo info;
			memcpy(&info, CMSG_DATA(c), sizeof(info));
			info = (struct in_pktinfo){.ipi_spec_dst = info.ipi_addr};
			*r = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(info)),
			        .cmsg_level = IPPROTO_IP,
			        .cmsg_type = IP_PKTINFO};
			memcpy(CMSG_DATA(r), &info, sizeof(info));
			used = CMSG_SPACE(sizeof(info));
		}
	}
	m->msg_control = used ? reply : NULL;
	m->msg_controllen = used;
}

void dns_port_datagrams(struct jail *j, int fd, int most)
{
	for (int i = 0; i < most; i++) {
		uint8_t query[DATAGRAM_MAX];
		struct sockaddr_storage from;
		union control asked = {0}, reply = {0};
		struct iovec io = {query, sizeof(query)};
		struct msghdr m = {.msg_name = &from,
		        .msg_namelen = sizeof(from),
		        .msg_iov = &io,
		        .msg_iovlen = 1,
		        .msg_control = &asked,
		        .msg_controllen = sizeof(asked)};
		ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT);
		if (n < 0)
			return;
		struct dns_reply r;
		answer(j, query, (size_t)n, &r);
		if (r.n == 0)
			continue;
		answer_from(&m, &reply);
		io = (struct iovec){r.bytes, r.n};
		/* A full socket loses the answer as a network would; the client asks again. */
		(void)sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
}

/* ---- TCP (RFC 7766) ---- */

struct dns_conn {
	struct client client;
	struct buf in, out;
};

static void flush(struct dns_conn *d)
{
	struct client *c = &d->client;
	if (c->ended)
		return;
	while (d->out.len && !c->ended) {
		ssize_t n = send(c->fd, d->out.p, d->out.len, MSG_NOSIGNAL);
		if (n > 0)
			buf_consume(&d->out, (size_t)n);
		else if (errno == EAGAIN)
			break;
		else
			client_end(c, false);
	}
	reactor_set(c->reactor, &c->watch, d->out.len ? EPOLLOUT : EPOLLIN);
}

static size_t query_length(const struct dns_conn *d)
{
	const uint8_t *p = (const uint8_t *)d->in.p;
	return (size_t)p[0] << 8 | p[1];
}

static bool whole_query(const struct dns_conn *d)
{
	return d->in.len >= 2 && d->in.len - 2 >= query_length(d);
}

static void answer_queries(struct dns_conn *d)
{
	while (whole_query(d) && d->out.len < DNS_TCP_OUT - DNS_ANSWER_MAX - 2) {
		const uint8_t *p = (const uint8_t *)d->in.p;
		size_t n = query_length(d);
		struct dns_reply r;
		answer(d->client.jail, p + 2, n, &r);
		buf_consume(&d->in, 2 + n);
		if (r.n == 0) {
			client_end(&d->client, false);
			return;
		}
		char len[2] = {(char)(r.n >> 8), (char)r.n};
		buf_put(&d->out, len, 2);
		buf_put(&d->out, r.bytes, r.n);
		client_deadline(&d->client, DNS_TCP_MS);
	}
}

static void on_ready(struct client *c, uint32_t events)
{
	struct dns_conn *d = container_of(c, struct dns_conn, client);
	if (events & EPOLLOUT)
		flush(d);
	if (c->ended || d->out.len)
		return;
	char bytes[DATAGRAM_MAX];
	ssize_t n = recv(c->fd, bytes, sizeof(bytes), 0);
	bool nothing = n < 0 && (errno == EAGAIN || errno == EINTR);
	if (!nothing && (n <= 0 || buf_put(&d->in, bytes, (size_t)n) < 0)) {
		client_end(c, false);
		return;
	}
	/* Until no whole query is left, or the client takes no more answers. */
	do {
		answer_queries(d);
		flush(d);
	} while (!c->ended && d->out.len == 0 && whole_query(d));
}

static void on_late(struct client *c)
{
	client_end(c, false);
}

static void on_free(struct client *c)
{
	struct dns_conn *d = container_of(c, struct dns_conn, client);
	buf_done(&d->in);
	buf_done(&d->out);
	free(d);
}

static const struct client_kind kind = {.ready = on_ready, .late = on_late, .free = on_free};

void dns_port_accept(struct jail *j, int fd)
{
	struct dns_conn *d = xnew(struct dns_conn);
	d->in = (struct buf)BUF_INIT(DNS_QUERY_MAX + 2 + DATAGRAM_MAX);
	d->out = (struct buf)BUF_INIT(DNS_TCP_OUT);
	client_begin(&d->client, &kind, j, fd, EPOLLIN, DNS_TCP_MS);
}
