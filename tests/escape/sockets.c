/* Ways out that are not the one way out. */
#include "escape.h"

#include <netinet/in.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <net/if.h>

static void families(void)
{
	static const struct {
		const char *name;
		int family, type, protocol;
	} rows[] = {
	        {"AF_PACKET", 17, SOCK_RAW, 0},
	        {"AF_VSOCK", 40, SOCK_STREAM, 0},
	        {"AF_ALG", 38, SOCK_SEQPACKET, 0},
	        {"AF_RXRPC", 33, SOCK_DGRAM, 0},
	        {"AF_KEY", 15, SOCK_RAW, 2},
	        {"AF_XDP", 44, SOCK_RAW, 0},
	        {"AF_TIPC", 30, SOCK_RDM, 0},
	        {"AF_RDS", 21, SOCK_SEQPACKET, 0},
	        {"AF_BLUETOOTH", 31, SOCK_RAW, 1},
	        {"AF_CAN", 29, SOCK_RAW, 1},
	        {"AF_NETLINK xfrm", 16, SOCK_RAW, 6},
	        {"AF_NETLINK netfilter", 16, SOCK_RAW, 12},
	        {"AF_NETLINK audit", 16, SOCK_RAW, 9},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		FAILS(socket(rows[i].family, rows[i].type, rows[i].protocol), EAFNOSUPPORT, "%s",
		        rows[i].name);
	/* the kernel looks at 32 bits of the family; so must the filter */
	FAILS(syscall(SYS_socket, 0x100000028l, SOCK_STREAM, 0), EAFNOSUPPORT,
	        "AF_VSOCK with a high half");
	FAILS(syscall(SYS_socket, 0x100000026l, SOCK_SEQPACKET, 0), EAFNOSUPPORT,
	        "AF_ALG with a high half");
}

static void protocols(void)
{
	static const struct {
		const char *name;
		int type, protocol;
	} rows[] = {
	        {"raw ICMP", SOCK_RAW, 1},
	        {"raw TCP", SOCK_RAW, 6},
	        {"ping socket", SOCK_DGRAM, 1},
	        {"SCTP", SOCK_STREAM, 132},
	        {"MPTCP", SOCK_STREAM, 262},
	        {"UDP-Lite", SOCK_DGRAM, 136},
	        {"DCCP", 6, 33},
	        {"L2TP", SOCK_DGRAM, 115},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		FAILS2(socket(AF_INET, rows[i].type, rows[i].protocol), EPROTONOSUPPORT,
		        EAFNOSUPPORT, "%s", rows[i].name);
		FAILS2(socket(AF_INET6, rows[i].type, rows[i].protocol), EPROTONOSUPPORT,
		        EAFNOSUPPORT, "%s over IPv6", rows[i].name);
	}
	int pair[2];
	FAILS2(socketpair(AF_INET, SOCK_STREAM, 0, pair), EAFNOSUPPORT, EOPNOTSUPP,
	        "socketpair of another family");
}

static void options(void)
{
	int s = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	FAILS(setsockopt(s, 6, 31, "espintcp", 8), ENOPROTOOPT, "TCP_ULP");
	FAILS(setsockopt(s, 6, 19, &one, sizeof(one)), ENOPROTOOPT, "TCP_REPAIR");
	FAILS(setsockopt(s, SOL_SOCKET, 26, &one, sizeof(one)), ENOPROTOOPT, "SO_ATTACH_FILTER");
	FAILS(setsockopt(s, SOL_SOCKET, 50, &one, sizeof(one)), ENOPROTOOPT, "SO_ATTACH_BPF");
	FAILS(setsockopt(s, IPPROTO_IP, 17, &one, sizeof(one)), ENOPROTOOPT, "IP_XFRM_POLICY");
	FAILS(setsockopt(s, IPPROTO_IP, 64, &one, sizeof(one)), ENOPROTOOPT, "IPT_SO_SET_REPLACE");
	FAILS(setsockopt(s, SOL_SOCKET, SO_MARK, &one, sizeof(one)), EPERM, "SO_MARK");
	FAILS(send(s, "x", 1, MSG_OOB), EOPNOTSUPP, "MSG_OOB");
	int u = socket(AF_INET, SOCK_DGRAM, 0);
	FAILS(setsockopt(u, IPPROTO_UDP, 100, &one, sizeof(one)), ENOPROTOOPT, "UDP_ENCAP");
}

static void network(void)
{
	int s = socket(AF_INET, SOCK_DGRAM, 0);
	struct ifreq lo = {.ifr_name = "lo"};
	ok(ioctl(s, SIOCGIFFLAGS, &lo) == 0, "lo is there");
	FAILS(ioctl(s, SIOCSIFFLAGS, &lo), EPERM, "change a device");
	struct if_nameindex *all = if_nameindex();
	ok(all && all[0].if_index && !all[1].if_index, "and it is the only device");
	int t = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in low = {.sin_family = AF_INET, .sin_port = htons(22)};
	FAILS(bind(t, (struct sockaddr *)&low, sizeof(low)), EACCES, "bind a low port");
	low.sin_port = htons(443);
	int on = 1;
	(void)setsockopt(t, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
	FAILS2(bind(t, (struct sockaddr *)&low, sizeof(low)), EACCES, EADDRINUSE,
	        "share the listener's port");
	/* an abstract socket of the host is in another network namespace */
	int a = socket(AF_UNIX, SOCK_STREAM, 0);
	struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "\0/tmp/.X11-unix/X0"};
	FAILS(connect(a, (struct sockaddr *)&name, offsetof(struct sockaddr_un, sun_path) + 18),
	        ECONNREFUSED, "an abstract socket of the host");
}

int main(void)
{
	families();
	protocols();
	options();
	network();
	return done();
}
