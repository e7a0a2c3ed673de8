/*
 * Theory of operation: the process unshares its network namespace, sets it up
 * with plain sockets and rtnetlink (libnl), keeps a descriptor and goes home.
 * Everything sent inside is delivered inside: `local 0.0.0.0/0 dev lo` makes
 * every address one of ours, so a connect to 8.8.8.8:443 reaches the listener
 * on [::]:443, and an unknown port is refused at once by the kernel.
 */
#include "jail/net.h"
#include "base/fd.h"
#include "base/mem.h"
#include "jail/home.h"

#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netlink/netlink.h>
#include <netlink/route/link.h>
#include <netlink/route/nexthop.h>
#include <netlink/route/route.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/rtnetlink.h>

enum {
	LO = 1,                  /* the first device of a namespace */
	BACKLOG = 128,           /* of a listener; agentbox-egress accepts at once */
	WATCH_BUF = 64 << 10,    /* refused attempts waiting to be told of */
	INBOUND_BUF = 128 << 10, /* each way; the kernel doubles it */
	WATCH_BYTES = 96,        /* IPv6 header, TCP header and a bit */
};

static void free_sock(struct nl_sock **s)
{
	nl_socket_free(*s);
}

/* libnl has few words of its own: what the kernel said is in errno, where it said something.  The
 * callers set that to 0 first. */
static int nl_error(struct err *e, const char *what, int r)
{
	return err_set(
	        e, -EIO, "layer netns: %s: %s", what, errno ? strerror(errno) : nl_geterror(r));
}

static int lo_up(struct nl_sock *s, struct err *e)
{
	struct rtnl_link *lo = rtnl_link_alloc(), *up = rtnl_link_alloc();
	int r = -NLE_NOMEM;
	if (lo && up) {
		rtnl_link_set_ifindex(lo, LO);
		rtnl_link_set_flags(up, IFF_UP);
		errno = 0;
		r = rtnl_link_change(s, lo, up, 0);
	}
	rtnl_link_put(lo);
	rtnl_link_put(up);
	return r < 0 ? nl_error(e, "lo", r) : 0;
}

/* ip route add local default dev lo table local */
static int any_ip(struct nl_sock *s, int family, struct err *e)
{
	struct rtnl_route *route = rtnl_route_alloc();
	struct rtnl_nexthop *hop = rtnl_route_nh_alloc();
	struct nl_addr *all = nl_addr_build(family, NULL, 0);
	int r = -NLE_NOMEM;
	if (route && hop && all) {
		nl_addr_set_prefixlen(all, 0);
		rtnl_route_set_family(route, (uint8_t)family);
		rtnl_route_set_table(route, RT_TABLE_LOCAL);
		rtnl_route_set_type(route, RTN_LOCAL);
		rtnl_route_set_protocol(route, RTPROT_STATIC);
		rtnl_route_set_scope(route, family == AF_INET ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE);
		r = rtnl_route_set_dst(route, all);
		rtnl_route_nh_set_ifindex(hop, LO);
		rtnl_route_add_nexthop(route, hop);
		hop = NULL; /* the route's now */
		errno = 0;
		if (r == 0)
			r = rtnl_route_add(s, route, NLM_F_EXCL);
	}
	if (hop)
		rtnl_route_nh_free(hop);
	nl_addr_put(all);
	rtnl_route_put(route);
	return r < 0 ? nl_error(e, "local route", r) : 0;
}

static int routes(struct err *e)
{
	__attribute__((cleanup(free_sock))) struct nl_sock *s = nl_socket_alloc();
	if (!s)
		return err_set(e, -ENOMEM, "layer netns: no memory for a netlink socket");
	errno = 0;
	int r = nl_connect(s, NETLINK_ROUTE);
	if (r < 0)
		return nl_error(e, "netlink", r);
	r = lo_up(s, e);
	if (r == 0)
		r = any_ip(s, AF_INET, e);
	/* Without IPv6 (disable_ipv6=1) its packets find no route: nothing gets out either way,
	 * only the telling of it is lost. */
	if (r == 0)
		(void)!any_ip(s, AF_INET6, NULL);
	return r;
}

static int listener(int type, uint16_t port, struct err *e)
{
	auto_close int s = socket(AF_INET6, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s < 0)
		return err_errno(
		        e, "layer egress: IPv6 sockets (remedy: boot without ipv6.disable=1)");
	int off = 0, on = 1;
	if (setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) < 0)
		return err_errno(e, "layer egress: dual-stack socket");
	if (type == SOCK_DGRAM &&
	        (setsockopt(s, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on)) < 0 ||
	                setsockopt(s, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof(on)) < 0))
		return err_errno(e, "layer egress: packet info");
	struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	if (bind(s, (struct sockaddr *)&any, sizeof(any)) < 0)
		return err_errno(e, "layer egress: port %u", port);
	if (type == SOCK_STREAM && listen(s, BACKLOG) < 0)
		return err_errno(e, "layer egress: listen on port %u", port);
	return take_fd(s);
}

/* Passes what nobody takes: TCP SYNs (SYN without ACK) and UDP datagrams to addresses outside
 * 127/8 and ::1, except to the listeners' ports.  The socket is cooked, so offset 0 is the IP
 * header.  TO(i, n) is the jump from instruction i to instruction n. */
enum { V4 = 3, V6 = 10, V6_OTHER = 18, COMMON = 20, UDP = 25, TCP_PORT = 29, PASS = 33, DROP = 34 };
#define LD(size, mode, k) BPF_STMT(BPF_LD | (size) | (mode), k)
#define JEQ(k, t, f)      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, k, t, f)
#define TO(i, n)          ((n) - (i)-1)
static const struct sock_filter watch_filter[] = {
        /*  0 */ LD(BPF_H, BPF_ABS, SKF_AD_OFF + SKF_AD_PROTOCOL),
        /*  1 */ JEQ(ETH_P_IP, TO(1, V4), 0),
        /*  2 */ JEQ(ETH_P_IPV6, TO(2, V6), TO(2, DROP)),
        /*  3: V4, not a later fragment, not to 127/8 */ LD(BPF_H, BPF_ABS, 6),
        /*  4 */ BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x1fff, TO(4, DROP), 0),
        /*  5 */ LD(BPF_B, BPF_ABS, 16),
        /*  6 */ JEQ(127, TO(6, DROP), 0),
        /*  7 */ BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),
        /*  8 */ LD(BPF_B, BPF_ABS, 9),
        /*  9 */ BPF_STMT(BPF_JMP | BPF_JA, TO(9, COMMON)),
        /* 10: V6, not to ::1 */ LD(BPF_W, BPF_ABS, 24),
        /* 11 */ JEQ(0, 0, TO(11, V6_OTHER)),
        /* 12 */ LD(BPF_W, BPF_ABS, 28),
        /* 13 */ JEQ(0, 0, TO(13, V6_OTHER)),
        /* 14 */ LD(BPF_W, BPF_ABS, 32),
        /* 15 */ JEQ(0, 0, TO(15, V6_OTHER)),
        /* 16 */ LD(BPF_W, BPF_ABS, 36),
        /* 17 */ JEQ(1, TO(17, DROP), 0),
        /* 18: V6_OTHER */ BPF_STMT(BPF_LDX | BPF_W | BPF_IMM, 40),
        /* 19 */ LD(BPF_B, BPF_ABS, 6),
        /* 20: COMMON, A = protocol, X = its header */ JEQ(IPPROTO_UDP, TO(20, UDP), 0),
        /* 21 */ JEQ(IPPROTO_TCP, 0, TO(21, DROP)),
        /* 22 */ LD(BPF_B, BPF_IND, 13),
        /* 23 */ BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0x12),
        /* 24 */ JEQ(0x02, TO(24, TCP_PORT), TO(24, DROP)),
        /* 25: UDP */ LD(BPF_H, BPF_IND, 2),
        /* 26 */ JEQ(53, TO(26, DROP), 0),
        /* 27: nor an answer of the resolver */ LD(BPF_H, BPF_IND, 0),
        /* 28 */ JEQ(53, TO(28, DROP), TO(28, PASS)),
        /* 29: TCP_PORT */ LD(BPF_H, BPF_IND, 2),
        /* 30 */ JEQ(53, TO(30, DROP), 0),
        /* 31 */ JEQ(80, TO(31, DROP), 0),
        /* 32 */ JEQ(443, TO(32, DROP), 0),
        /* 33: PASS */ BPF_STMT(BPF_RET | BPF_K, WATCH_BYTES),
        /* 34: DROP */ BPF_STMT(BPF_RET | BPF_K, 0),
};
_Static_assert(ARRAY_LEN(watch_filter) == DROP + 1, "labels of the filter");

/* Sees refused attempts without being able to answer them.  The filter is attached and locked
 * before the socket is bound, so nothing else ever reaches it. */
static int watch(struct err *e)
{
	auto_close int s = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s < 0)
		return err_errno(e, "layer egress: packet socket (CONFIG_PACKET)");
	struct sock_fprog prog = {.len = ARRAY_LEN(watch_filter)};
	struct sock_filter copy[ARRAY_LEN(watch_filter)];
	for (size_t i = 0; i < ARRAY_LEN(copy); i++)
		copy[i] = watch_filter[i];
	prog.filter = copy;
	int on = 1, room = WATCH_BUF;
	if (setsockopt(s, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)) < 0 ||
	        setsockopt(s, SOL_SOCKET, SO_LOCK_FILTER, &on, sizeof(on)) < 0 ||
	        setsockopt(s, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)) < 0 ||
	        /* each packet crosses lo twice: out and in */
	        setsockopt(s, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on)) < 0)
		return err_errno(e, "layer egress: packet socket's filter");
	struct sockaddr_ll lo = {
	        .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = LO};
	if (bind(s, (struct sockaddr *)&lo, sizeof(lo)) < 0)
		return err_errno(e, "layer egress: packet socket on lo");
	return take_fd(s);
}

static int open_listeners(int l[EGRESS_LISTENERS], struct err *e)
{
	static const struct {
		int type;
		uint16_t port;
	} wanted[] = {
	        [EGRESS_DNS_UDP] = {SOCK_DGRAM, 53},
	        [EGRESS_DNS_TCP] = {SOCK_STREAM, 53},
	        [EGRESS_HTTP] = {SOCK_STREAM, 80},
	        [EGRESS_TLS] = {SOCK_STREAM, 443},
	};
	_Static_assert(ARRAY_LEN(wanted) == EGRESS_WATCH, "one row a listener");
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		l[i] = listener(wanted[i].type, wanted[i].port, e);
		if (l[i] < 0)
			return l[i];
	}
	l[EGRESS_WATCH] = watch(e);
	return l[EGRESS_WATCH] < 0 ? l[EGRESS_WATCH] : 0;
}

static int open_ports(struct net_ports *p, struct err *e)
{
	for (uint32_t i = 0; i < p->n; i++) {
		p->fd[i] = listener(SOCK_STREAM, p->port[i], e);
		if (p->fd[i] < 0)
			return p->fd[i];
	}
	return 0;
}

void net_ports_init(struct net_ports *p, const uint16_t *ports, uint32_t n)
{
	p->n = n;
	for (uint32_t i = 0; i < POLICY_PORTS; i++) {
		p->port[i] = i < n ? ports[i] : 0;
		p->fd[i] = -1;
	}
}

void net_ports_done(struct net_ports *p)
{
	for (uint32_t i = 0; i < p->n; i++)
		fd_close(take_fd(p->fd[i]));
	p->n = 0;
}

bool net_ports_have(const struct net_ports *p, uint16_t port)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (p->port[i] == port)
			return true;
	return false;
}

/* ---- into a jail ---- */

/* The way back of whoever enters a namespace for a moment. */
static void go_home(int home)
{
	struct home way = {0};
	while (home_retry(&way, setns(home, CLONE_NEWNET), "network namespace"))
		;
}

/* As root's, its buffers are charged to no jail: they are kept small. */
static int begin(uint16_t port, bool v6, struct err *e)
{
	auto_close int s =
	        socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s < 0)
		return err_errno(e, "a socket for port %u", port);
	const int room = INBOUND_BUF, on = 1;
	if (setsockopt(s, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)) < 0 ||
	        setsockopt(s, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)) < 0 ||
	        setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0)
		return err_errno(e, "a socket for port %u", port);
	struct sockaddr_in a4 = {.sin_family = AF_INET,
	        .sin_port = htons(port),
	        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_in6 a6 = {.sin6_family = AF_INET6,
	        .sin6_port = htons(port),
	        .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	const void *to = v6 ? (const void *)&a6 : &a4;
	if (connect(s, to, v6 ? sizeof(a6) : sizeof(a4)) < 0 && errno != EINPROGRESS)
		return err_errno(e, "port %u", port);
	return take_fd(s);
}

int net_connect(int netns, uint16_t port, bool v6, struct err *e)
{
	auto_close int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (home < 0)
		return err_errno(e, "/proc/self/ns/net");
	if (setns(netns, CLONE_NEWNET) < 0)
		return err_errno(e, "the jail's network namespace");
	int s = begin(port, v6, e);
	go_home(home);
	return s;
}

/* ---- the whole ---- */

int net_make(int ret_listeners[EGRESS_LISTENERS], struct net_ports *more, struct err *e)
{
	int l[EGRESS_LISTENERS] = {-1, -1, -1, -1, -1};
	auto_close int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (home < 0)
		return err_errno(e, "layer netns: /proc/self/ns/net");
	if (unshare(CLONE_NEWNET) < 0)
		return err_errno(e, "layer netns: the kernel refuses a network namespace");
	auto_close int ns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	int r = ns < 0 ? err_errno(e, "layer netns: /proc/self/ns/net") : routes(e);
	if (r == 0)
		r = open_listeners(l, e);
	if (r == 0)
		r = open_ports(more, e);
	go_home(home);
	for (int i = 0; i < EGRESS_LISTENERS; i++) {
		if (r < 0)
			fd_close(l[i]);
		else
			ret_listeners[i] = l[i];
	}
	if (r < 0)
		net_ports_done(more);
	return r < 0 ? r : take_fd(ns);
}
