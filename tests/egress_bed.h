/*
 * egress_bed.h - where agentbox-egress is tested: a network of its own, with a
 * jail's namespace, a resolver, an upstream and the test as agentboxd.
 *
 *	bed_namespaces()   the test leaves the host's network; needs root
 *	bed_fakes()        resolver on 127.0.0.1:53, upstream on 127.0.0.1:8080
 *	bed_egress()       serve_run() in a child, confined as in production
 *	bed_jail(id)       listeners made in the jail's namespace and handed over
 *
 * Sockets of bed_socket() belong to the jail's namespace.
 */
#ifndef TESTS_EGRESS_BED_H
#define TESTS_EGRESS_BED_H

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/ids.h"
#include "base/mem.h"
#include "egress/serve.h"
#include "proto/egress.h"
#include "tests/t.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { BED_WAIT_MS = 20000, BED_UPSTREAM = 8080, BED_EVENTS = 4096, BED_BUDGETS = 16 };
enum { BED_ASKED = 64 << 10 };
#define BED_SECRET     "sk-real-1f9c2"
#define BED_SECRET_NEW "sk-rotated-77aa"

/* What a test adds to the policy, and to what egress is told of a jail. */
static void (*bed_more)(struct policy *p);
static void (*bed_purse)(struct egress_jail *m);
static int bed_authority; /* memfd that goes with the next jails; 0: none */

static struct {
	int host_net, jail_net;
	int control;
	pid_t egress;
	int closed; /* read end: one byte per upstream connection that was cut while hanging */
	int *dns_queries; /* shared with the fake resolver */
	char *asked;      /* shared with the fake upstream: the last request's head */
	struct jail_egress events[BED_EVENTS];
	int nevents;
	struct jail_usage usage; /* all of it together, of the secret told last */
	struct jail_budget budgets[BED_BUDGETS];
	int nbudgets;
	int ready;
	uint16_t ports[POLICY_PORTS]; /* of the policy sent last */
	uint32_t nports;
	char log[64];
} bed;

/* ---- namespaces ---- */

static inline void bed_lo_up(void)
{
	struct ifreq r = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	auto_close int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	must(ioctl(s, SIOCSIFFLAGS, &r) == 0, "lo is up");
}

/* AnyIP: every IPv4 address is local (0.0.0.0/0 in the table `local`). */
static inline void bed_anyip(void)
{
	struct {
		struct nlmsghdr h;
		struct rtmsg r;
		struct rtattr a;
		int oif;
	} m = {.h = {.nlmsg_len = sizeof(m),
	               .nlmsg_type = RTM_NEWROUTE,
	               .nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK},
	        .r = {.rtm_family = AF_INET,
	                .rtm_table = RT_TABLE_LOCAL,
	                .rtm_protocol = RTPROT_BOOT,
	                .rtm_scope = RT_SCOPE_HOST,
	                .rtm_type = RTN_LOCAL},
	        .a = {.rta_len = RTA_LENGTH(sizeof(int)), .rta_type = RTA_OIF},
	        .oif = (int)if_nametoindex("lo")};
	char answer[512];
	auto_close int s = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	must(send(s, &m, sizeof(m), 0) == (ssize_t)sizeof(m), "route sent");
	must(recv(s, answer, sizeof(answer), 0) >= (ssize_t)NLMSG_LENGTH(sizeof(struct nlmsgerr)),
	        "route answered");
	const struct nlmsgerr *e = NLMSG_DATA((struct nlmsghdr *)(void *)answer);
	must(e->error == 0, "AnyIP route");
}

static inline void bed_etc_file(const char *path, const char *text)
{
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	must(fd >= 0 && fd_write_all(fd, text, strlen(text)) == 0, "own %s", path);
}

/* An /etc with nothing of the host's but its ssl/: which files a host has there, and whether they
 * are links, makes no difference. */
static inline void bed_etc(void)
{
	char ssl[64];
	auto_close int fd = open("/etc/ssl", O_PATH | O_DIRECTORY | O_CLOEXEC);
	must(fd >= 0, "/etc/ssl (Debian: openssl)");
	must(mount("etc", "/etc", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755") == 0, "own /etc");
	umask(022); /* egress reads what is there under its own uid */
	snprintf(ssl, sizeof(ssl), "/proc/self/fd/%d", fd);
	must(mkdir("/etc/ssl", 0755) == 0 && mount(ssl, "/etc/ssl", NULL, MS_BIND, NULL) == 0,
	        "with ssl/");
	bed_etc_file("/etc/resolv.conf", "nameserver 127.0.0.1\n");
	bed_etc_file("/etc/hosts", "127.0.0.1 localhost # the machine\n::1 localhost\n"
	                           "10.1.2.3 inside.example\n");
}

static inline void bed_namespaces(void)
{
	if (geteuid() != 0)
		skip_all("needs root");
	if (unshare(CLONE_NEWNET | CLONE_NEWNS) < 0)
		skip_all("needs network namespaces");
	must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "private mounts");
	bed_etc();
	bed_lo_up();
	bed.host_net = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	must(unshare(CLONE_NEWNET) == 0, "jail's network");
	bed_lo_up();
	bed_anyip();
	bed.jail_net = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	must(setns(bed.host_net, CLONE_NEWNET) == 0, "back");
}

static inline int bed_socket(int family, int type)
{
	if (setns(bed.jail_net, CLONE_NEWNET) != 0)
		abort();
	int s = socket(family, type | SOCK_CLOEXEC, 0);
	if (setns(bed.host_net, CLONE_NEWNET) != 0)
		abort();
	return s;
}

static inline struct sockaddr_in bed_address(const char *ip, unsigned port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	inet_pton(AF_INET, ip, &a.sin_addr);
	return a;
}

/* A connection from inside the jail, or -errno. */
static inline int bed_connect(const char *ip, unsigned port)
{
	struct sockaddr_in a = bed_address(ip, port);
	int s = bed_socket(AF_INET, SOCK_STREAM);
	struct timeval most = {.tv_sec = BED_WAIT_MS / 1000};
	setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
	setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
	if (connect(s, (const struct sockaddr *)&a, sizeof(a)) == 0)
		return s;
	int r = -errno;
	close(s);
	return r;
}

/* ---- the fake resolver: good.example is here, evil.example is here and elsewhere ---- */

static inline size_t bed_dns_answer(uint8_t *p, size_t n)
{
	static const uint8_t good[4] = {127, 0, 0, 1}, public[4] = {198, 41, 0, 4};
	bool evil = memmem(p + 12, n - 12, "\4evil", 5),
	     known = evil || memmem(p + 12, n - 12, "\4good", 5);
	size_t question = 12 + strlen((const char *)p + 12) + 5;
	bool a = p[question - 3] == 1;
	p[2] = 0x81;
	p[3] = known ? 0x80 : 0x83;
	p[6] = 0;
	p[7] = (uint8_t)(known && a ? 1 + evil : 0);
	memset(p + 8, 0, 4);
	size_t at = question;
	for (int i = 0; i < p[7]; i++) {
		static const uint8_t head[] = {0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4};
		memcpy(p + at, head, sizeof(head));
		memcpy(p + at + sizeof(head), i ? good : evil ? public : good, 4);
		at += sizeof(head) + 4;
	}
	return at;
}

static inline void bed_dns_serve(int s)
{
	for (;;) {
		uint8_t p[512];
		struct sockaddr_in from;
		socklen_t len = sizeof(from);
		ssize_t n = recvfrom(s, p, sizeof(p) - 64, 0, (struct sockaddr *)&from, &len);
		if (n < 17)
			continue;
		__atomic_add_fetch(bed.dns_queries, 1, __ATOMIC_SEQ_CST);
		size_t k = bed_dns_answer(p, (size_t)n);
		sendto(s, p, k, 0, (struct sockaddr *)&from, len);
	}
}

/* ---- the fake upstream: one process a connection, one request a connection ---- */

static inline void bed_put(int s, const char *text)
{
	if (fd_write_all(s, text, strlen(text)) < 0)
		_exit(0);
}

static inline void bed_sse(int s)
{
	bed_put(s, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
	           "Transfer-Encoding: chunked\r\nTrailer: x-end\r\n\r\n");
	for (int i = 0; i < 5; i++) {
		bed_put(s, "d\r\ndata: event\n\n\r\n");
		usleep(150 * 1000);
	}
	bed_put(s, "0\r\nx-end: 1\r\n\r\n");
}

static inline void bed_big(int s, size_t n)
{
	static char block[64 << 10];
	char head[128];
	memset(block, 'x', sizeof(block));
	snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", n);
	bed_put(s, head);
	for (size_t k; n; n -= k) {
		k = n < sizeof(block) ? n : sizeof(block);
		if (fd_write_all(s, block, k) < 0)
			_exit(0);
	}
}

/* Reads slowly until nothing has come for a second, and says how much it was. */
static inline void bed_sink(int s, size_t have, size_t want)
{
	static char block[64 << 10];
	while (have < want) {
		ssize_t k = read(s, block, sizeof(block));
		if (k <= 0)
			_exit(0);
		have += (size_t)k;
		if (have < 8 << 20)
			usleep(2000);
	}
	char text[128];
	snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n%08zx", have);
	bed_put(s, text);
}

static inline void bed_echo(int s, const char *p, size_t n)
{
	char head[128];
	snprintf(head, sizeof(head),
	        "HTTP/1.1 203 Fine\r\nContent-Length: %zu\r\nX-Answer: 1\r\nConnection: x-hop\r\n"
	        "x-hop: 1\r\n\r\n",
	        n);
	bed_put(s, head);
	if (fd_write_all(s, p, n) < 0)
		_exit(0);
}

static inline size_t bed_content_length(const char *p)
{
	const char *at = strcasestr(p, "\r\nContent-Length: ");
	return at ? strtoul(at + 18, NULL, 10) : 0;
}

/* /meter/FILE: an answer of a model, recorded; /meter/cut/FILE: all but its end. */
static inline void bed_model(int s, const char *p)
{
	const char *name = strstr(p, "/meter/") + 7;
	bool cut = strncmp(name, "cut/", 4) == 0, events = false;
	char path[128], head[256];
	snprintf(path, sizeof(path), "tests/fixtures/meter/%.*s",
	        (int)strcspn(name + 4 * cut, " ?"), name + 4 * cut);
	events = strstr(path, ".sse") != NULL;
	auto_free char *text = NULL;
	size_t n = 0;
	if (file_slurp(path, 1 << 20, &text, &n) < 0)
		_exit(0);
	snprintf(head, sizeof(head),
	        "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n",
	        events ? "text/event-stream" : "application/json", n);
	bed_put(s, head);
	if (fd_write_all(s, text, cut ? n - 300 : n) < 0)
		_exit(0);
	while (cut && read(s, head, sizeof(head)) > 0)
		;
}

/* /secret/HOW: what came as x-api-key comes back. */
static inline void bed_secret(int s, const char *p)
{
	const char *at = strcasestr(p, "\r\nx-api-key: ");
	auto_free char *key = at ? xstrndup(at + 13, strcspn(at + 13, "\r")) : xstrdup("");
	auto_free char *text = xasprintf("<%s> and %s%s|%s", key, key, key, key);
	char one[16];
	if (strstr(p, "/secret/head ")) {
		auto_free char *a = xasprintf("HTTP/1.1 302 To\r\nLocation: http://x/?k=%s\r\n"
		                              "x-%s: 1\r\nContent-Length: 0\r\n\r\n",
		        key, key);
		bed_put(s, a);
	} else if (strstr(p, "/secret/whole ")) {
		auto_free char *a = xasprintf(
		        "HTTP/1.1 401 No\r\nContent-Length: %zu\r\n\r\n%s", strlen(text), text);
		bed_put(s, a);
	} else if (strstr(p, "/secret/pieces ")) {
		bed_put(s, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
		for (const char *c = text; *c; c++) {
			snprintf(one, sizeof(one), "1\r\n%c\r\n", *c);
			bed_put(s, one);
			usleep(3000);
		}
		bed_put(s, "0\r\n\r\n");
	} else { /* /secret/waits: its beginning, and the rest when asked for by a line */
		bed_put(s, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
		           "data: event\n\n");
		bed_put(s, "data: ");
		if (fd_write_all(s, key, strlen(key) / 2) < 0)
			_exit(0);
		usleep(700 * 1000);
		auto_free char *rest = xasprintf("%s\n\n", key + strlen(key) / 2);
		bed_put(s, rest); /* at once: a chunk could begin in between */
	}
}

static inline void bed_upstream_one(int s, int closed)
{
	static char p[1 << 17];
	size_t n = 0;
	char *end = NULL, last;
	while (!end && n < sizeof(p) - 1) {
		ssize_t k = read(s, p + n, sizeof(p) - 1 - n);
		if (k <= 0)
			_exit(0);
		n += (size_t)k;
		p[n] = '\0';
		end = strstr(p, "\r\n\r\n");
	}
	size_t head = end ? (size_t)(end - p) + 4 : n, want = bed_content_length(p);
	snprintf(bed.asked, BED_ASKED, "%.*s", (int)head, p);
	if (strstr(p, "/meter/"))
		bed_model(s, p);
	else if (strstr(p, "/secret/"))
		bed_secret(s, p);
	else if (strstr(p, "/sse "))
		bed_sse(s);
	else if (strstr(p, "/big?"))
		bed_big(s, strtoul(strstr(p, "/big?") + 5, NULL, 10));
	else if (strstr(p, "/sink "))
		bed_sink(s, n - head, want);
	else if (strstr(p, "/early ")) {
		bed_put(s, "HTTP/1.1 413 No\r\nContent-Length: 3\r\n\r\nno\n");
		shutdown(s, SHUT_WR); /* and no reset, which could overtake the answer */
		while (read(s, p, sizeof(p)) > 0)
			;
	} else if (strstr(p, "/cut "))
		bed_put(s, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nabcde\n\r\n");
	else if (strstr(p, "/hang ")) {
		while (read(s, &last, 1) > 0)
			;
		(void)!write(closed, "x", 1);
	} else {
		usleep(strstr(p, "/slow ") ? 300 * 1000 : 0);
		while (n < head + want ||
		        (strcasestr(p, "chunked") && !memmem(p + head, n - head, "0\r\n\r\n", 5))) {
			ssize_t k = read(s, p + n, sizeof(p) - 1 - n);
			if (k <= 0)
				_exit(0);
			n += (size_t)k;
			p[n] = '\0';
		}
		bed_echo(s, p, n);
	}
	_exit(0);
}

static inline void bed_upstream_serve(int s, int closed)
{
	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		int one = accept(s, NULL, NULL);
		if (one < 0)
			continue;
		if (fork() == 0)
			bed_upstream_one(one, closed);
		close(one);
	}
}

static inline pid_t bed_child(void)
{
	pid_t pid = fork();
	if (pid == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

#define BED_TLS_KEY  "/etc/upstream-key.pem"
#define BED_TLS_CERT "/etc/upstream-cert.pem"

/* For good.example, what is one level below it, and a.b.good.example: both files, in the bed's own
 * /etc. */
static inline void bed_tls_certificate(void)
{
	must(system("openssl req -x509 -newkey rsa:2048 -nodes -keyout " BED_TLS_KEY
	            " -out " BED_TLS_CERT " -days 2 -subj /CN=good.example -addext "
	            "subjectAltName=DNS:good.example,DNS:*.good.example,DNS:a.b.good.example "
	            ">/dev/null 2>&1") == 0,
	        "a certificate");
}

/* At 127.0.0.1:8443; answers with a page of openssl's. */
static inline void bed_tls_upstream(void)
{
	bed_tls_certificate();
	pid_t pid = bed_child();
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);
		dup2(null, 0);
		dup2(null, 1);
		dup2(null, 2);
		execlp("openssl", "openssl", "s_server", "-accept", "127.0.0.1:8443", "-www",
		        "-key", BED_TLS_KEY, "-cert", BED_TLS_CERT, NULL);
		_exit(127);
	}
	must(pid > 0, "an upstream that speaks TLS");
}

static inline void bed_fakes(void)
{
	struct sockaddr_in dns = bed_address("127.0.0.1", 53);
	struct sockaddr_in http = bed_address("127.0.0.1", BED_UPSTREAM);
	int u = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), on = 1, pipes[2];
	int t = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bed.dns_queries =
	        mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bed.asked =
	        mmap(NULL, BED_ASKED, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	setsockopt(t, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	must(bind(u, (const struct sockaddr *)&dns, sizeof(dns)) == 0, "resolver's port");
	must(bind(t, (const struct sockaddr *)&http, sizeof(http)) == 0 && listen(t, 512) == 0,
	        "upstream's port");
	must(pipe2(pipes, O_CLOEXEC) == 0, "pipe");
	bed.closed = pipes[0];
	if (bed_child() == 0)
		bed_dns_serve(u);
	if (bed_child() == 0)
		bed_upstream_serve(t, pipes[1]);
	close(u);
	close(t);
	close(pipes[1]);
}

/* ---- agentboxd's side ---- */

static inline void bed_egress(const char *ca_file)
{
	int sv[2];
	must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) == 0, "control socket");
	strcpy(bed.log, "/tmp/egress-log-XXXXXX");
	int log = mkstemp(bed.log);
	bed.egress = bed_child();
	if (bed.egress == 0) {
		struct err err;
		struct serve_options o = {
		        .uid = ID_EGRESS, .gid = ID_EGRESS, .control = sv[1], .ca_file = ca_file};
		dup2(log, STDERR_FILENO);
		close(sv[0]);
		int r = serve_run(&o, &err);
		if (r < 0)
			dprintf(STDERR_FILENO, "serve_run: %s\n", err.text);
		_exit(r < 0 ? 1 : 0);
	}
	close(log);
	close(sv[1]);
	bed.control = sv[0];
}

static inline void bed_used(const struct jail_usage *u)
{
	struct jail_usage sum = bed.usage;
	bed.usage = *u;
	tokens_add(&bed.usage.tokens, &sum.tokens);
	spending_add(&bed.usage.spent, &sum.spent);
}

/* Takes in what egress has to say for `ms`, or until `until` events of this kind are there. */
static inline void bed_listen(int ms)
{
	_Alignas(8) char m[MSG_MAX];
	int fds[MSG_FDS];
	struct pollfd p = {.fd = bed.control, .events = POLLIN};
	while (poll(&p, 1, ms) > 0) {
		int n = msg_recv(bed.control, m, fds);
		if (n <= 0)
			return;
		const struct msg_head *h = (const struct msg_head *)(void *)m;
		if (h->type == EGRESS_READY)
			bed.ready++;
		else if (h->type == EGRESS_USAGE)
			bed_used((const void *)m);
		else if (h->type == EGRESS_BUDGET && bed.nbudgets < BED_BUDGETS)
			memcpy(&bed.budgets[bed.nbudgets++], m, sizeof(bed.budgets[0]));
		else if (h->type == EGRESS_EVENT && bed.nevents < BED_EVENTS)
			memcpy(&bed.events[bed.nevents++], m, sizeof(bed.events[0]));
		if (ms > 50)
			ms = 50;
	}
}

static inline const struct jail_egress *bed_find(
        unsigned verdict, const char *host, unsigned port, const char *reason)
{
	for (int i = bed.nevents - 1; i >= 0; i--) {
		const struct jail_egress *m = &bed.events[i];
		if (m->verdict == verdict && m->port == port && strcmp(m->host, host) == 0 &&
		        strstr(m->reason, reason))
			return m;
	}
	return NULL;
}

/* The newest event of this kind, waited for. */
static inline const struct jail_egress *bed_event(
        unsigned verdict, const char *host, unsigned port, const char *reason)
{
	int64_t end = clock_mono_ms() + 5000;
	const struct jail_egress *m;
	while (!(m = bed_find(verdict, host, port, reason)) && clock_mono_ms() < end)
		bed_listen(100);
	if (!m)
		for (int i = 0; i < bed.nevents; i++)
			printf("# event %u %s:%u %s\n", bed.events[i].verdict, bed.events[i].host,
			        bed.events[i].port, bed.events[i].reason);
	return m;
}

static inline void bed_inject(
        struct policy *p, const char *host, const char *upstream, const char *secret, bool loopback)
{
	struct policy_inject *i = &p->inject[p->ninject++];
	(void)str_copy(i->host, sizeof(i->host), host);
	(void)str_copy(i->upstream, sizeof(i->upstream), upstream);
	(void)str_copy(i->header, sizeof(i->header), secret ? "x-api-key" : "");
	(void)str_copy(i->secret, sizeof(i->secret), secret ? secret : "");
	i->loopback = loopback;
}

static inline void bed_policies(const char *key, uint64_t generation)
{
	size_t n = sizeof(struct policy_set) + sizeof(struct policy);
	auto_free struct policy_set *s = xcalloc(1, n);
	*s = (struct policy_set){.magic = POLICY_SET_MAGIC,
	        .count = 1,
	        .size = n,
	        .generation = generation,
	        .config = {.supervisor_uid = ID_SUPERVISOR,
	                .supervisor_gid = ID_SUPERVISOR,
	                .egress_uid = ID_EGRESS,
	                .egress_gid = ID_EGRESS,
	                .listener_uid = ID_LISTENER,
	                .listener_gid = ID_LISTENER,
	                .keep.journals_bytes = RETENTION_JOURNALS_LEAST,
	                .max_runs = 1,
	                .max_queued = 1,
	                .nprices = 1,
	                .prices = {{"claude-sonnet-4-5", 3000000, 15000000, 300000, 3750000}},
	                .default_policy = "default"}};
	struct policy *p = &s->policies[0];
	(void)str_copy(p->name, sizeof(p->name), "default");
	(void)str_copy(p->source, sizeof(p->source), "built-in");
	p->ninsns = 1;
	p->bpf[0] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0x7fff0000u);
	bed_inject(
	        p, "anthropic.agentbox", "http://127.0.0.1:8080/prefix", "ANTHROPIC_API_KEY", true);
	bed_inject(p, "private.agentbox", "https://evil.example", "ANTHROPIC_API_KEY", false);
	bed_inject(p, "keyless.agentbox", "http://127.0.0.1:8080", "MISSING_KEY", true);
	bed_inject(p, "plain.agentbox", "http://good.example:8080", NULL, true);
	bed_inject(p, "tls.agentbox", "https://good.example:8443", "ANTHROPIC_API_KEY", true);
	bed_inject(p, "wrongname.agentbox", "https://127.0.0.1:8443", "ANTHROPIC_API_KEY", true);
	bed_inject(p, "hosts.agentbox", "https://inside.example", "ANTHROPIC_API_KEY", false);
	if (bed_more)
		bed_more(p);
	memcpy(bed.ports, p->ports, sizeof(bed.ports));
	bed.nports = p->nports;
	struct egress_secret secret = {.name = "ANTHROPIC_API_KEY", .len = (uint32_t)strlen(key)};
	memcpy(secret.value, key, strlen(key));
	int fds[2] = {
	        fd_sealed_memfd("set", s, n), fd_sealed_memfd("secrets", &secret, sizeof(secret))};
	struct egress_simple m = {.head.type = EGRESS_POLICIES};
	int had = bed.ready;
	must(msg_send(bed.control, &m, sizeof(m), fds, 2) == 0, "policies sent");
	close(fds[0]);
	close(fds[1]);
	for (int64_t end = clock_mono_ms() + BED_WAIT_MS;
	        bed.ready == had && clock_mono_ms() < end;)
		bed_listen(100);
	must(bed.ready == had + 1, "policies in use");
}

static inline int bed_listener(int type, unsigned port)
{
	int s = bed_socket(AF_INET6, type), on = 1, off = 0;
	struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
	setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	setsockopt(s, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on));
	setsockopt(s, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof(on));
	int r = -1;
	/* The listeners of a jail that has just ended may not be closed yet. */
	for (int i = 0; r < 0 && i < 500; i++, usleep(r < 0 ? 10000 : 0))
		r = bind(s, (const struct sockaddr *)&a, sizeof(a));
	must(r == 0, "port %u in the jail", port);
	must(type == SOCK_DGRAM || listen(s, 1024) == 0, "listening");
	return s;
}

static inline void bed_jail(uint64_t id, uint32_t flags)
{
	int watch = bed_socket(AF_PACKET, SOCK_DGRAM);
	struct sockaddr_ll lo = {
	        .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = 1};
	must(bind(watch, (const struct sockaddr *)&lo, sizeof(lo)) == 0, "watch");
	int fds[EGRESS_LISTENERS + 1] = {[EGRESS_DNS_UDP] = bed_listener(SOCK_DGRAM, 53),
	        [EGRESS_DNS_TCP] = bed_listener(SOCK_STREAM, 53),
	        [EGRESS_HTTP] = bed_listener(SOCK_STREAM, 80),
	        [EGRESS_TLS] = bed_listener(SOCK_STREAM, 443),
	        [EGRESS_WATCH] = watch,
	        bed_authority};
	struct egress_jail m = {
	        .head.type = EGRESS_JAIL, .jail = id, .policy_generation = 1, .flags = flags};
	if (bed_purse)
		bed_purse(&m);
	must(msg_send(bed.control, &m, sizeof(m), fds, EGRESS_LISTENERS + (bed_authority > 0)) == 0,
	        "jail %d handed over", (int)id);
	for (int i = 0; i < EGRESS_LISTENERS; i++)
		close(fds[i]);
	for (uint32_t i = 0; i < bed.nports; i++) {
		struct egress_ports more = {
		        .head.type = EGRESS_PORTS, .jail = id, .n = 1, .ports = {bed.ports[i]}};
		auto_close int fd = bed_listener(SOCK_STREAM, bed.ports[i]);
		must(msg_send(bed.control, &more, sizeof(more), &fd, 1) == 0, "port %u too",
		        bed.ports[i]);
	}
}

static inline void bed_jail_end(uint64_t id)
{
	struct egress_simple m = {.head.type = EGRESS_JAIL_END, .jail = id};
	must(msg_send(bed.control, &m, sizeof(m), NULL, 0) == 0, "jail %d ends", (int)id);
}

/* ---- talking ---- */

static inline size_t bed_dns_query(uint8_t *p, const char *name, unsigned type)
{
	uint8_t *at = p + 12;
	memset(p, 0, 12);
	p[1] = 7;
	p[2] = 1;
	p[5] = 1;
	while (*name) {
		size_t n = strcspn(name, ".");
		*at++ = (uint8_t)n;
		memcpy(at, name, n);
		at += n;
		name += n + (name[n] == '.');
	}
	memcpy(at, "\0\0\0\0\1", 5);
	at[2] = (uint8_t)type;
	return (size_t)(at + 5 - p);
}

/* rcode, or -1 without an answer; *ret_v4 0 without an address. */
static inline int bed_lookup(const char *server, const char *name, unsigned type, uint32_t *ret_v4)
{
	uint8_t p[512];
	struct sockaddr_in a = bed_address(server, 53);
	auto_close int s = bed_socket(AF_INET, SOCK_DGRAM);
	struct timeval most = {.tv_sec = 5};
	setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
	*ret_v4 = 0;
	/* Connected: an answer from another address than the one asked would not arrive. */
	if (connect(s, (const struct sockaddr *)&a, sizeof(a)) < 0)
		return -1;
	(void)!write(s, p, bed_dns_query(p, name, type));
	ssize_t n = read(s, p, sizeof(p));
	if (n < 12)
		return -1;
	if (p[7] == 1 && n >= 4)
		*ret_v4 = (uint32_t)p[n - 4] << 24 | (uint32_t)p[n - 3] << 16 |
		          (uint32_t)p[n - 2] << 8 | p[n - 1];
	return p[3] & 15;
}

/* Everything until the end of the connection; NUL-terminated, owned by the caller. */
static inline char *bed_read_all(int s)
{
	struct buf b = BUF_INIT(256 << 20);
	char block[16 << 10];
	ssize_t n;
	while ((n = read(s, block, sizeof(block))) > 0)
		buf_put(&b, block, (size_t)n);
	return buf_take(&b);
}

/* One request, which should ask for the connection to be closed. */
static inline char *bed_ask(const char *ip, const char *request)
{
	auto_close int s = bed_connect(ip, 80);
	if (s < 0 || fd_write_all(s, request, strlen(request)) < 0)
		return xstrdup("(no connection)");
	return bed_read_all(s);
}

static inline long bed_rss_kib(void)
{
	char path[64], line[256];
	long kib = -1;
	snprintf(path, sizeof(path), "/proc/%d/status", bed.egress);
	FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		(void)sscanf(line, "VmRSS: %ld", &kib);
	if (f)
		fclose(f);
	return kib;
}

#endif
