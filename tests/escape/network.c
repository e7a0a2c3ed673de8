/* Ways out that are not the one way out, and what the one way out answers. */
#include "attempt.h"

#include <arpa/inet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { PATIENCE_MS = 10000 };

/* ---- dialling ---- */

static int dial(const char *address, int port)
{
	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
	struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int is_six = inet_pton(AF_INET6, address, &six.sin6_addr) == 1;
	if (!is_six && inet_pton(AF_INET, address, &four.sin_addr) != 1)
		return -1;
	int s = socket(is_six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct timeval patience = {PATIENCE_MS / 1000, 0};
	(void)setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	(void)setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	int r = is_six ? connect(s, (struct sockaddr *)&six, sizeof(six))
	               : connect(s, (struct sockaddr *)&four, sizeof(four));
	int code = errno;
	if (r == 0)
		return s;
	close(s);
	errno = code;
	return -1;
}

/* Nobody is there, and one is told so at once. */
static enum answer refused(const struct attempt *a)
{
	int s = dial(a->path, a->arg[0] ? (int)a->arg[0] : bait_port());
	if (s < 0 && (errno == ECONNREFUSED || errno == ENETUNREACH || errno == EACCES ||
	                     errno == EADDRNOTAVAIL || errno == EINVAL || errno == EHOSTUNREACH))
		return STOPPED;
	printf("#   %s:%ld: %s\n", a->path, a->arg[0], s < 0 ? strerror(errno) : "connected");
	return THROUGH;
}

static size_t exchange(int s, const void *say, size_t n, char *answer, size_t max)
{
	size_t at = 0;
	if (send(s, say, n, MSG_NOSIGNAL) < 0)
		return 0;
	for (ssize_t got = 1; got > 0 && at<max - 1; at += got> 0 ? (size_t)got : 0)
		got = recv(s, answer + at, max - 1 - at, 0);
	answer[at] = '\0';
	return at;
}

/* The way out's own answer, and not that of whoever was dialled. */
static enum answer http(const struct attempt *a, const char *request, const char *want)
{
	char answer[4096];
	int s = dial(a->path, (int)a->arg[0]);
	if (s < 0)
		return errno == ECONNREFUSED ? STOPPED : THROUGH;
	size_t n = exchange(s, request, strlen(request), answer, sizeof(answer));
	if (n == 0 || (strncmp(answer, "HTTP/1.1 4", 10) == 0 && strstr(answer, want)))
		return STOPPED;
	printf("#   answered: %.60s\n", answer);
	return THROUGH;
}

static enum answer http_address(const struct attempt *a)
{
	return http(
	        a, "GET / HTTP/1.1\r\nHost: metadata.google.internal\r\n\r\n", "agentbox_egress");
}

static enum answer http_fronting(const struct attempt *a)
{
	return http(a, "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n", "agentbox_egress");
}

static enum answer http_connect(const struct attempt *a)
{
	return http(a, "CONNECT 169.254.169.254:80 HTTP/1.1\r\nHost: 169.254.169.254:80\r\n\r\n",
	        "agentbox_egress");
}

static enum answer http_absolute(const struct attempt *a)
{
	return http(a, "GET http://169.254.169.254/ HTTP/1.1\r\nHost: anthropic.agentbox\r\n\r\n",
	        "agentbox_egress");
}

static enum answer http_upgrade(const struct attempt *a)
{
	return http(a,
	        "GET / HTTP/1.1\r\nHost: anthropic.agentbox\r\nConnection: upgrade\r\n"
	        "Upgrade: h2c\r\n\r\n",
	        "agentbox_egress");
}

static enum answer http2(const struct attempt *a)
{
	return http(a, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "agentbox_egress");
}

/* A ClientHello that names somebody: whoever answers it speaks TLS. */
static size_t hello(const char *name, int ech, uint8_t *out)
{
	size_t n = strlen(name), at = 0;
	uint8_t ext[512];
	size_t e = 0;
#define PUT16(buf, pos, v) ((buf)[(pos)++] = (uint8_t)((v) >> 8), (buf)[(pos)++] = (uint8_t)(v))
	PUT16(ext, e, 0);
	PUT16(ext, e, n + 5);
	PUT16(ext, e, n + 3);
	ext[e++] = 0;
	PUT16(ext, e, n);
	memcpy(ext + e, name, n);
	e += n;
	if (ech) {
		PUT16(ext, e, 0xfe0d);
		PUT16(ext, e, 8);
		memset(ext + e, 0, 8);
		e += 8;
	}
	size_t body = 2 + 32 + 1 + 4 + 2 + 2 + e;
	out[at++] = 22;
	PUT16(out, at, 0x0301);
	PUT16(out, at, body + 4);
	out[at++] = 1;
	out[at++] = 0;
	PUT16(out, at, body);
	PUT16(out, at, 0x0303);
	memset(out + at, 7, 32);
	at += 32;
	out[at++] = 0;
	PUT16(out, at, 2);
	PUT16(out, at, 0x1301);
	out[at++] = 1;
	out[at++] = 0;
	PUT16(out, at, e);
	memcpy(out + at, ext, e);
#undef PUT16
	return at + e;
}

static enum answer tls(const struct attempt *a)
{
	static const char *const names[] = {"example.com", "anthropic.agentbox", "a", ""};
	for (size_t i = 0; i < 2 * sizeof(names) / sizeof(names[0]); i++) {
		uint8_t bytes[1024];
		char answer[64];
		int s = dial(a->path, (int)a->arg[0]);
		if (s < 0 && errno == ECONNREFUSED)
			continue;
		size_t n = hello(names[i / 2], i % 2, bytes);
		if (s < 0 || exchange(s, bytes, n, answer, sizeof(answer)) > 0)
			return THROUGH;
		close(s);
	}
	return STOPPED;
}

static enum answer quic(const struct attempt *a)
{
	char packet[1200] = {(char)0xc0};
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)a->arg[0])};
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct pollfd p = {s, POLLIN, 0};
	(void)inet_pton(AF_INET, a->path, &to.sin_addr);
	if (connect(s, (struct sockaddr *)&to, sizeof(to)) < 0)
		return STOPPED;
	(void)send(s, packet, sizeof(packet), 0);
	int heard = poll(&p, 1, PATIENCE_MS);
	return heard == 1 && recv(s, packet, sizeof(packet), 0) < 0 && errno == ECONNREFUSED
	               ? STOPPED
	               : THROUGH;
}

/* ---- DNS ---- */

static size_t question(uint8_t *q, const char *name, int type, int class)
{
	static const uint8_t head[12] = {0x12, 0x34, 1, 0, 0, 1};
	memcpy(q, head, sizeof(head));
	size_t at = sizeof(head);
	while (*name) {
		size_t n = strcspn(name, ".");
		q[at++] = (uint8_t)n;
		memcpy(q + at, name, n);
		at += n;
		name += n + (name[n] == '.');
	}
	q[at++] = 0;
	q[at++] = (uint8_t)(type >> 8);
	q[at++] = (uint8_t)type;
	q[at++] = (uint8_t)(class >> 8);
	q[at++] = (uint8_t) class;
	return at;
}

static int resolver(const char *address)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(53)};
	struct timeval patience = {PATIENCE_MS / 1000, 0};
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	(void)inet_pton(AF_INET, address, &to.sin_addr);
	(void)setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return connect(s, (struct sockaddr *)&to, sizeof(to)) < 0 ? -1 : s;
}

/* The code of the answer, 16 where it has records, -1 for none. */
static int asked(int s, const uint8_t *q, size_t n)
{
	uint8_t answer[4096];
	if (send(s, q, n, 0) < 0)
		return -1;
	ssize_t got = recv(s, answer, sizeof(answer), 0);
	if (got < 12)
		return -1;
	return answer[6] || answer[7] ? 16 : answer[3] & 15;
}

enum { NO_ERROR = 0, FORMERR = 1, NOTIMP = 4, REFUSED = 5, ANSWERED = 16 };

/* A name that no policy has, asked of whoever. */
static enum answer foreign_name(const struct attempt *a)
{
	uint8_t q[512];
	size_t n = question(q, "exfiltrated.example.com", 1, 1);
	int r = asked(resolver(a->path), q, n);
	if (r == REFUSED)
		return STOPPED;
	printf("#   answer %d\n", r);
	return THROUGH;
}

static enum answer tunnel(const struct attempt *a)
{
	char name[200];
	int s = resolver(a->path);
	for (int i = 0; i < 1000; i++) {
		uint8_t q[512];
		(void)snprintf(name, sizeof(name), "%063d.%063d.cdn.anthropic.agentbox", i, i * 7);
		if (asked(s, q, question(q, name, i % 2 ? 16 : 1, 1)) != REFUSED)
			return THROUGH;
	}
	return STOPPED;
}

static int alive(int s)
{
	uint8_t q[512];
	return asked(s, q, question(q, "anthropic.agentbox", 1, 1)) == ANSWERED;
}

/* Other types of a name that exists say nothing; the server answers afterwards. */
static enum answer odd_types(const struct attempt *a)
{
	static const int types[] = {5, 10, 12, 15, 16, 28, 33, 64, 65, 99, 251, 252, 255, 65535};
	int s = resolver(a->path);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		for (int class = 1; class < 5; class += 2) {
			uint8_t q[512];
			int r = asked(s, q, question(q, "anthropic.agentbox", types[i], class));
			if (r < 0 || r == ANSWERED)
				return THROUGH;
		}
	return alive(s) ? STOPPED : THROUGH;
}

static enum answer malformed(const struct attempt *a)
{
	uint8_t q[4096] = {0};
	int s = resolver(a->path);
	for (size_t n = 0; n < 40; n++) { /* cut short anywhere */
		(void)question(q, "anthropic.agentbox", 1, 1);
		(void)send(s, q, n, 0);
	}
	q[12] = 0xc0; /* a name that is itself */
	q[13] = 12;
	(void)send(s, q, 18, 0);
	memset(q, 0xff, sizeof(q));
	(void)send(s, q, sizeof(q), 0);
	size_t n = question(q, "anthropic.agentbox", 1, 1);
	q[5] = 200; /* questions that are not there */
	(void)send(s, q, n, 0);
	close(s);
	return alive(resolver(a->path)) ? STOPPED : THROUGH;
}

/* A length that never comes: closed, and nobody else waits. */
static enum answer slow_tcp(const struct attempt *a)
{
	char byte;
	int s = dial(a->path, 53);
	if (s < 0)
		return STOPPED;
	(void)send(s, "\1", 1, MSG_NOSIGNAL);
	int others = alive(resolver(a->path));
	struct timeval patience = {12, 0}; /* it is closed after five seconds */
	(void)setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	ssize_t n = recv(s, &byte, 1, 0);
	return others && (n == 0 || (n < 0 && errno == ECONNRESET)) ? STOPPED : THROUGH;
}

/* ---- sockets ---- */

static enum answer socket_of(const struct attempt *a)
{
	errno = 0;
	return answer_of(syscall(SYS_socket, a->arg[0], a->arg[1], a->arg[2]), a);
}

static enum answer option(const struct attempt *a)
{
	int s = socket(AF_INET, a->arg[2] ? SOCK_DGRAM : SOCK_STREAM, 0);
	int one = !a->arg[2]; /* UDP_ENCAP: none, which every kernel takes */
	errno = 0;
	return answer_of(syscall(SYS_setsockopt, s, a->arg[0], a->arg[1], &one, sizeof(one)), a);
}

static enum answer out_of_band(const struct attempt *a)
{
	int s[2];
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, s) < 0)
		return BROKEN;
	errno = 0;
	return answer_of(send(s[0], "x", 1, MSG_OOB | MSG_NOSIGNAL), a);
}

static enum answer bind_port(const struct attempt *a)
{
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)a->arg[0])};
	(void)setsockopt(s, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
	(void)setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	return answer_of(bind(s, (struct sockaddr *)&at, sizeof(at)), a);
}

static enum answer change_device(const struct attempt *a)
{
	int s = socket(AF_INET, SOCK_DGRAM, 0);
	struct ifreq lo = {.ifr_name = "lo"};
	(void)ioctl(s, SIOCGIFFLAGS, &lo);
	errno = 0;
	return answer_of(ioctl(s, SIOCSIFFLAGS, &lo), a);
}

static enum answer add_route(const struct attempt *a)
{
	struct {
		struct nlmsghdr h;
		struct rtmsg r;
	} m = {{sizeof(m), RTM_NEWROUTE, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE, 1, 0},
	        {.rtm_family = AF_INET, .rtm_dst_len = 99}};
	char answer[512];
	int s = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	if (send(s, &m, sizeof(m), 0) < 0 || recv(s, answer, sizeof(answer), 0) < 0)
		return BROKEN;
	struct nlmsgerr *e = NLMSG_DATA((struct nlmsghdr *)answer);
	errno = -e->error;
	return answer_of(e->error ? -1 : 0, a);
}

static enum answer other_devices(const struct attempt *a)
{
	struct if_nameindex *all = if_nameindex();
	(void)a;
	if (!all)
		return BROKEN;
	return all[0].if_index && !all[1].if_index ? STOPPED : THROUGH;
}

/* What the harness planted outside: see tests/integration/50-escape.t. */
static enum answer host_abstract(const struct attempt *a)
{
	struct sockaddr_un name;
	int s = socket(AF_UNIX, SOCK_STREAM, 0);
	socklen_t n = bait_abstract(&name);
	errno = 0;
	return answer_of(connect(s, (struct sockaddr *)&name, n), a);
}

/* N27: no place of the jail has a socket that is not its own. */
static enum answer planted_sockets(const struct attempt *a)
{
	(void)a;
	int n = 0;
	FILE *f = popen("find / -xdev -type s 2>/dev/null; find /usr /tools /run /tmp "
	                "/workspace /home/agent /dev -type s 2>/dev/null",
	        "r");
	for (char line[512]; f && fgets(line, sizeof(line), f);)
		n++;
	if (f)
		pclose(f);
	return n ? THROUGH : STOPPED;
}

/* N30: the half of a request, and no more to come: closed, not waited for. */
static enum answer half_closed(const struct attempt *a)
{
	static const char part[] = "GET / HTTP/1.1\r\nHost: anthropic";
	char answer[256];
	int s = dial(a->path, (int)a->arg[0]);
	if (s < 0)
		return STOPPED;
	(void)send(s, part, sizeof(part) - 1, MSG_NOSIGNAL);
	(void)shutdown(s, SHUT_WR);
	ssize_t n = recv(s, answer, sizeof(answer), 0);
	return n == 0 || (n > 9 && answer[9] == '4') || (n < 0 && errno == ECONNRESET) ? STOPPED
	                                                                               : THROUGH;
}

#define REFUSES(id_, address, port_)                                                               \
	{                                                                                          \
		.id = id_, .what = address " port " #port_, .fn = refused, .path = address,        \
		.arg = {port_}, .without = "egress"                                                \
	}
#define BY_HTTP(id_, what_, fn_, address)                                                          \
	{                                                                                          \
		.id = id_, .what = what_, .fn = fn_, .path = address, .arg = {80},                 \
		.without = "egress"                                                                \
	}
#define BY_DNS(id_, what_, fn_, address)                                                           \
	{                                                                                          \
		.id = id_, .what = what_, .fn = fn_, .path = address, .without = "egress"          \
	}
#define SOCKET(id_, what_, lax, want_, also_, ...)                                                 \
	{                                                                                          \
		.id = id_, .what = what_, .fn = socket_of, .without = lax, .want = want_,          \
		.also = also_,                                                                     \
		.arg = { __VA_ARGS__ }                                                             \
	}
#define SOCKET_MODULE(id_, what_, want_, also_, ...)                                               \
	{                                                                                          \
		.id = id_, .what = what_, .fn = socket_of, .want = want_, .also = also_,           \
		.arg = {__VA_ARGS__}, .uncontrolled = "would load a module into the host"          \
	}
#define OPTION(what_, lax, ...)                                                                    \
	{                                                                                          \
		.id = "N24", .what = what_, .fn = option, .without = lax, .want = ENOPROTOOPT,     \
		.arg = { __VA_ARGS__ }                                                             \
	}

/* Tables are read by column. */
/* clang-format off */
static const struct attempt rows[] = {
	REFUSES("N1", "8.8.8.8", 22),
	REFUSES("N1", "1.1.1.1", 853),
	REFUSES("N1", "2001:4860:4860::8888", 8443),
	{ .id = "N1", .what = "everybody", .fn = refused, .path = "255.255.255.255", .arg = { 80 },
		.uncontrolled = "no kernel connects to everybody" },
	{ .id = "N1", .what = "a group", .fn = refused, .path = "224.0.0.1", .arg = { 80 },
		.uncontrolled = "no kernel connects to a group" },
	{ .id = "N1", .what = "TLS to 8.8.8.8", .fn = tls, .path = "8.8.8.8", .arg = { 443 },
		.without = "egress" },
	{ .id = "N1", .what = "TLS to 2001:4860:4860::8888", .fn = tls, .arg = { 443 },
		.path = "2001:4860:4860::8888", .without = "egress" },
	BY_HTTP("N2", "the metadata service of most clouds", http_address, "169.254.169.254"),
	BY_HTTP("N2", "its address in IPv6", http_address, "fd00:ec2::254"),
	BY_HTTP("N2", "another cloud's", http_address, "100.100.100.200"),
	BY_HTTP("N2", "a third one's", http_address, "168.63.129.16"),
	BY_HTTP("N2", "a fourth one's", http_address, "192.0.0.192"),
	BY_DNS("N3", "a name that no policy has", foreign_name, "198.18.0.1"),
	BY_DNS("N4", "asked of the local stub", foreign_name, "127.0.0.53"),
	BY_DNS("N4", "asked of a public resolver", foreign_name, "8.8.8.8"),
	BY_DNS("N4", "asked of a private one", foreign_name, "10.200.1.1"),
	BY_DNS("N5", "a thousand labels below an allowed name", tunnel, "198.18.0.1"),
	BY_DNS("N6", "other types and classes", odd_types, "198.18.0.1"),
	{ .id = "N6", .what = "what is no query", .fn = malformed, .path = "198.18.0.1",
		.uncontrolled = "here the answer is that the resolver lives" },
	BY_DNS("N7", "a query by TCP that never ends", slow_tcp, "198.18.0.1"),
	{ .id = "N12", .what = "TLS to an allowed name's address", .fn = tls, .path = "198.18.1.0",
		.arg = { 443 }, .without = "egress" },
	BY_HTTP("N16", "another Host at an allowed name's address", http_fronting, "198.18.1.0"),
	BY_HTTP("N18", "CONNECT", http_connect, "198.18.1.0"),
	BY_HTTP("N18", "an absolute target", http_absolute, "198.18.1.0"),
	BY_HTTP("N18", "an upgrade to HTTP/2", http_upgrade, "198.18.1.0"),
	BY_HTTP("N18", "HTTP/2 with prior knowledge", http2, "198.18.1.0"),
	REFUSES("N20", "127.0.0.1", 3128),
	REFUSES("N20", "127.0.0.1", 8080),
	{ .id = "N21", .what = "share the way out's port 443", .fn = bind_port,
		.without = "privilege,netns", .want = EACCES, .also = EADDRINUSE, .arg = { 443 } },
	{ .id = "N21", .what = "share the way out's port 80", .fn = bind_port,
		.without = "privilege,netns", .want = EACCES, .also = EADDRINUSE, .arg = { 80 } },
	{ .id = "N21", .what = "a low port", .fn = bind_port, .without = "privilege", .want = EACCES,
		.arg = { 22 } },
	{ .id = "N23", .what = "QUIC", .fn = quic, .path = "8.8.8.8", .arg = { 443 },
		.without = "egress" },
	{ .id = "N23", .what = "UDP to anywhere", .fn = quic, .path = "9.9.9.9", .arg = { 123 },
		.without = "egress" },
	SOCKET("N24", "AF_PACKET", "filter,privilege", EAFNOSUPPORT, 0, AF_PACKET, SOCK_RAW, 0),
	SOCKET("N24", "raw ICMP", "filter,privilege", EPROTONOSUPPORT, 0, AF_INET, SOCK_RAW, 1),
	SOCKET("N24", "raw TCP", "filter,privilege", EPROTONOSUPPORT, 0, AF_INET, SOCK_RAW, 6),
	SOCKET("N24", "ping", "filter", EPROTONOSUPPORT, 0, AF_INET, SOCK_DGRAM, 1),
	SOCKET("N24", "MPTCP", "filter", EPROTONOSUPPORT, 0, AF_INET, SOCK_STREAM, 262),
	SOCKET("N24", "UDP-Lite", "filter", EPROTONOSUPPORT, 0, AF_INET, SOCK_DGRAM, 136),
	SOCKET("N24", "netlink uevent", "filter", EAFNOSUPPORT, 0, AF_NETLINK, SOCK_RAW, 15),
	SOCKET("N24", "netlink generic", "filter", EAFNOSUPPORT, 0, AF_NETLINK, SOCK_RAW, 16),
	SOCKET("N24", "netlink generic with a high half", "filter", EAFNOSUPPORT, 0,
		0x100000000l | AF_NETLINK, SOCK_RAW, 0x100000010l),
	SOCKET_MODULE("N24", "netlink xfrm", EAFNOSUPPORT, 0, AF_NETLINK, SOCK_RAW, 6),
	SOCKET_MODULE("N24", "netlink netfilter", EAFNOSUPPORT, 0, AF_NETLINK, SOCK_RAW, 12),
	SOCKET_MODULE("N24", "SCTP", EPROTONOSUPPORT, 0, AF_INET, SOCK_STREAM, 132),
	SOCKET_MODULE("N24", "DCCP", EPROTONOSUPPORT, 0, AF_INET, 6, 33),
	SOCKET_MODULE("N24", "L2TP", EPROTONOSUPPORT, 0, AF_INET6, SOCK_DGRAM, 115),
	SOCKET_MODULE("N24", "AF_XDP", EAFNOSUPPORT, 0, 44, SOCK_RAW, 0),
	SOCKET_MODULE("N24", "AF_ALG", EAFNOSUPPORT, 0, 38, SOCK_SEQPACKET, 0),
	SOCKET_MODULE("N24", "AF_ALG with a high half", EAFNOSUPPORT, 0, 0x100000026l,
		SOCK_SEQPACKET, 0),
	SOCKET_MODULE("N24", "AF_RXRPC", EAFNOSUPPORT, 0, 33, SOCK_DGRAM, 0),
	SOCKET_MODULE("N24", "AF_KEY", EAFNOSUPPORT, 0, 15, SOCK_RAW, 2),
	SOCKET_MODULE("N24", "AF_TIPC", EAFNOSUPPORT, 0, 30, SOCK_RDM, 0),
	SOCKET_MODULE("N24", "AF_RDS", EAFNOSUPPORT, 0, 21, SOCK_SEQPACKET, 0),
	SOCKET_MODULE("N24", "AF_BLUETOOTH", EAFNOSUPPORT, 0, 31, SOCK_RAW, 1),
	SOCKET_MODULE("N24", "AF_CAN", EAFNOSUPPORT, 0, 29, SOCK_RAW, 1),
	SOCKET_MODULE("N28", "AF_VSOCK", EAFNOSUPPORT, 0, 40, SOCK_STREAM, 0),
	SOCKET_MODULE("N28", "AF_VSOCK with a high half", EAFNOSUPPORT, 0, 0x100000028l,
		SOCK_STREAM, 0),
	OPTION("TCP_ULP", "filter", 6, 31, 0),
	OPTION("TCP_ULP with a high half", "filter", 0x100000006l, 0x10000001fl, 0),
	OPTION("TCP_REPAIR", "filter", 6, 19, 0),
	OPTION("SO_ATTACH_FILTER", "filter", SOL_SOCKET, 26, 0),
	OPTION("SO_ATTACH_BPF", "filter", SOL_SOCKET, 50, 0),
	OPTION("SO_ATTACH_REUSEPORT_CBPF", "filter", SOL_SOCKET, 51, 0),
	OPTION("IP_XFRM_POLICY", "filter", IPPROTO_IP, 17, 0),
	OPTION("IPT_SO_SET_REPLACE", "filter", IPPROTO_IP, 64, 0),
	OPTION("UDP_ENCAP", "filter", IPPROTO_UDP, 100, 1),
	{ .id = "N24", .what = "SO_MARK", .fn = option, .without = "privilege", .want = EPERM,
		.arg = { SOL_SOCKET, SO_MARK, 0 } },
	{ .id = "N24", .what = "MSG_OOB", .fn = out_of_band, .without = "filter", .want = EOPNOTSUPP },
	{ .id = "N24", .what = "change a device", .fn = change_device, .without = "privilege",
		.want = EPERM },
	{ .id = "N24", .what = "add a route", .fn = add_route, .without = "privilege", .want = EPERM },
	{ .id = "N25", .what = "a service on the host's loopback", .fn = refused,
		.without = "netns", .path = "127.0.0.1" },
	{ .id = "N25", .what = "devices of the host", .fn = other_devices, .without = "netns" },
	{ .id = "N26", .what = "an abstract socket of the host", .fn = host_abstract,
		.without = "netns", .want = ECONNREFUSED },
	{ .id = "N27", .what = "a socket in the jail's files", .fn = planted_sockets,
		.uncontrolled = "the harness shows nothing that has one" },
	{ .id = "N30", .what = "half a connection", .fn = half_closed, .path = "198.18.1.0",
		.arg = { 80 }, .without = "egress" },
	REFUSES("N32", "198.18.1.200", 8443),
	REFUSES("N32", "10.255.255.255", 8443),
	{ .id = "N32", .what = "TLS to an address that nobody got", .fn = tls,
		.path = "198.18.1.200", .arg = { 443 }, .without = "egress" },
	{ .id = "N32", .what = "TLS to the way out by its loopback address", .fn = tls,
		.path = "127.0.0.1", .arg = { 443 }, .without = "egress" },
	BY_HTTP("N32", "the way out by its loopback address", http_address, "127.0.0.1"),
	BY_HTTP("N32", "HTTP to an address that nobody got", http_address, "198.18.1.200"),
};
/* clang-format on */
ATTEMPTS_MAIN(rows)
