/*
 * relay.c - what agentbox-egress costs a connection, against a bare splice(2) relay and against a
 * direct connection in the same run.
 *
 *	throughput	one connection, client to sink, both relays in turn
 *	connect		connect() until the first byte came back, less the same without a relay
 *	memory		per connection, with CONNECTIONS of them open and idle
 *	flood		the same connect while another jail opens connections as fast as it can
 *
 * Needs root.  The network is tests/egress_bed.h's; its TAP goes nowhere.
 */
#include "tests/egress_bed.h"

#include <sys/epoll.h>
#include <sys/resource.h>

enum { ECHO = 9000, SINK = 9001, BARE = 9010, ROUNDS = 7, CONNECTS = 400, BYTES = 512 << 20 };
enum { JAILS = 20, EACH = 250 };

static FILE *out;

static void policy(struct policy *p)
{
	static const uint16_t ports[] = {ECHO, SINK};
	for (size_t i = 0; i < ARRAY_LEN(ports); i++) {
		struct policy_rule *r = &p->rules[p->nrules++];
		(void)str_copy(r->host, sizeof(r->host), "good.example");
		r->protocol = RULE_RAW;
		r->nports = 1;
		r->ports[0] = p->ports[p->nports++] = ports[i];
		r->ncidrs = cidr_parse("127.0.0.0/8", &r->cidrs[0]);
	}
}

/* ---- servers outside: one process each, all connections by poll ---- */

static int listening(unsigned port)
{
	struct sockaddr_in a = bed_address("127.0.0.1", port);
	int t = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	setsockopt(t, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	must(bind(t, (const struct sockaddr *)&a, sizeof(a)) == 0 && listen(t, 4096) == 0,
	        "server");
	return t;
}

static void serve(unsigned port, bool echo)
{
	int t = listening(port);
	if (bed_child() != 0) {
		close(t);
		return;
	}
	int ep = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event ev = {.events = EPOLLIN, .data.fd = t};
	epoll_ctl(ep, EPOLL_CTL_ADD, t, &ev);
	static char block[1 << 20];
	for (;;) {
		if (epoll_wait(ep, &ev, 1, -1) != 1)
			continue;
		int fd = ev.data.fd;
		if (fd == t) {
			fd = accept4(t, NULL, NULL, SOCK_CLOEXEC);
			ev = (struct epoll_event){.events = EPOLLIN, .data.fd = fd};
			epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev);
			continue;
		}
		ssize_t n = read(fd, block, sizeof(block));
		if (n <= 0)
			close(fd);
		else if (echo)
			(void)!write(fd, block, (size_t)n);
	}
}

/* The peer: accept, connect, splice until the end.  Nothing is asked, nothing counted. */
static void bare_relay(void)
{
	int t = listening(BARE), pipes[2];
	if (bed_child() != 0) {
		close(t);
		return;
	}
	must(pipe2(pipes, O_CLOEXEC) == 0, "pipe");
	(void)fcntl(pipes[1], F_SETPIPE_SZ, 256 << 10);
	for (;;) {
		struct sockaddr_in to = bed_address("127.0.0.1", SINK);
		int in = accept4(t, NULL, NULL, SOCK_CLOEXEC);
		int up = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (connect(up, (const struct sockaddr *)&to, sizeof(to)) < 0)
			_exit(1);
		ssize_t n;
		while ((n = splice(in, NULL, pipes[1], NULL, 256 << 10, SPLICE_F_MOVE)) > 0)
			while (n > 0) {
				ssize_t k =
				        splice(pipes[0], NULL, up, NULL, (size_t)n, SPLICE_F_MOVE);
				if (k <= 0)
					_exit(1);
				n -= k;
			}
		close(in);
		close(up);
	}
}

/* ---- measures ---- */

static int64_t now_us(void)
{
	return clock_mono_us();
}

static int by_size(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static int dial_direct(unsigned port)
{
	struct sockaddr_in a = bed_address("127.0.0.1", port);
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(connect(s, (const struct sockaddr *)&a, sizeof(a)) == 0, "connected");
	return s;
}

static char address[32];

static int64_t send_all(int s)
{
	static char block[256 << 10];
	char x;
	int64_t t0 = now_us();
	for (size_t n = 0; n < BYTES; n += sizeof(block))
		must(fd_write_all(s, block, sizeof(block)) == 0, "sent");
	shutdown(s, SHUT_WR);
	(void)!read(s, &x, 1); /* until the sink has closed */
	int64_t took = now_us() - t0;
	close(s);
	return took;
}

static void throughput(void)
{
	int64_t ours[ROUNDS], bare[ROUNDS];
	for (int i = 0; i < ROUNDS; i++) {
		ours[i] = send_all(bed_connect(address, SINK));
		bare[i] = send_all(dial_direct(BARE));
	}
	qsort(ours, ROUNDS, sizeof(ours[0]), by_size);
	qsort(bare, ROUNDS, sizeof(bare[0]), by_size);
	fprintf(out, "relay_throughput\t%.0f\tMiB/s\n",
	        (BYTES >> 20) * 1e6 / (double)ours[ROUNDS / 2]);
	fprintf(out, "relay_bare_splice\t%.0f\tMiB/s\n",
	        (BYTES >> 20) * 1e6 / (double)bare[ROUNDS / 2]);
	fprintf(out, "relay_vs_bare_splice\t%.2f\tx\n",
	        (double)bare[ROUNDS / 2] / (double)ours[ROUNDS / 2]);
}

static int64_t first_byte(int64_t t0, int s)
{
	char x = 'x';
	must(write(s, &x, 1) == 1 && read(s, &x, 1) == 1, "a byte and back");
	int64_t took = now_us() - t0;
	close(s);
	return took;
}

/* Medians of both in turn; the socket of the jail is made before the clock starts. */
static int64_t connecting(const char *name)
{
	static int64_t ours[CONNECTS], direct[CONNECTS];
	struct sockaddr_in a = bed_address(address, ECHO), d = bed_address("127.0.0.1", ECHO);
	for (int i = 0; i < CONNECTS; i++) {
		int s = bed_socket(AF_INET, SOCK_STREAM);
		int64_t t0 = now_us();
		must(connect(s, (const struct sockaddr *)&a, sizeof(a)) == 0, "in");
		ours[i] = first_byte(t0, s);
		s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		t0 = now_us();
		must(connect(s, (const struct sockaddr *)&d, sizeof(d)) == 0, "direct");
		direct[i] = first_byte(t0, s);
	}
	qsort(ours, CONNECTS, sizeof(ours[0]), by_size);
	qsort(direct, CONNECTS, sizeof(direct[0]), by_size);
	int64_t added = ours[CONNECTS / 2] - direct[CONNECTS / 2];
	fprintf(out, "%s_p50\t%lld\tus\n", name, (long long)added);
	return added;
}

static void resolve(void)
{
	uint32_t v4;
	must(bed_lookup(EGRESS_RESOLVER, "good.example", 1, &v4) == 0 && v4, "the name");
	snprintf(address, sizeof(address), "%u.%u.%u.%u", v4 >> 24, v4 >> 16 & 255, v4 >> 8 & 255,
	        v4 & 255);
}

static void another_jail(uint64_t id)
{
	must(unshare(CLONE_NEWNET) == 0, "another network");
	bed_lo_up();
	bed_anyip();
	bed.jail_net = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	must(setns(bed.host_net, CLONE_NEWNET) == 0, "back");
	bed_jail(id, 0);
	resolve();
}

static void memory(void)
{
	int first = bed.jail_net;
	static int open_ones[JAILS * EACH];
	int n = 0;
	long before = bed_rss_kib();
	for (uint64_t id = 2; id < 2 + JAILS; id++) {
		another_jail(id);
		for (int i = 0; i < EACH; i++) {
			char x = 'x';
			int s = open_ones[n++] = bed_connect(address, ECHO);
			must(s >= 0 && write(s, &x, 1) == 1 && read(s, &x, 1) == 1, "open");
		}
	}
	long after = bed_rss_kib();
	fprintf(out, "relay_connections\t%d\topen\nrelay_memory\t%.1f\tKiB/connection\n", n,
	        (double)(after - before) / n);
	while (n)
		close(open_ones[--n]);
	for (uint64_t id = 2; id < 2 + JAILS; id++)
		bed_jail_end(id);
	bed.jail_net = first;
	resolve();
}

static void flood(int64_t quiet)
{
	int first = bed.jail_net;
	another_jail(100);
	char where[32];
	memcpy(where, address, sizeof(where));
	int net = bed.jail_net;
	pid_t pid = bed_child();
	if (pid == 0) {
		struct sockaddr_in a = bed_address(where, ECHO);
		if (setns(net, CLONE_NEWNET) < 0)
			_exit(1);
		for (;;) {
			int s = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
			(void)!connect(s, (const struct sockaddr *)&a, sizeof(a));
			close(s);
		}
	}
	bed.jail_net = first;
	resolve();
	int64_t flooded = connecting("relay_flooded_connect");
	fprintf(out, "relay_flooded_vs_quiet\t%.2f\tx\n", (double)flooded / (double)quiet);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

int main(void)
{
	out = fdopen(dup(1), "w");
	if (!out || !freopen("/dev/null", "w", stdout))
		return 111;
	setlinebuf(out);
	struct rlimit files = {1 << 16, 1 << 16};
	(void)setrlimit(RLIMIT_NOFILE, &files);
	bed_namespaces();
	bed_fakes();
	serve(ECHO, true);
	serve(SINK, false);
	bare_relay();
	bed_egress("/etc/ssl/certs/ca-certificates.crt");
	bed_more = policy;
	bed_policies(BED_SECRET, 1);
	bed_jail(1, 0);
	resolve();
	throughput();
	int64_t quiet = connecting("relay_connect_added");
	memory();
	flood(quiet);
	kill(bed.egress, SIGTERM);
	return 0;
}
