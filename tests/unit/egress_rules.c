/* Rules of a policy, from the query to the relayed bytes: all of agentbox-egress, confined. */
#include "tests/egress_bed.h"

#include "egress/address.h"

enum { ECHO = 9000, WIDE = 9001, BOUNDED = 9002, PACED = 9003, CLOSED = 9009 };

static bool has(const char *text, const char *part)
{
	return strstr(text, part) != NULL;
}

/* ---- the policy ---- */

static struct policy_rule *add(
        struct policy *p, const char *host, unsigned protocol, unsigned port, bool loopback)
{
	struct policy_rule *r = &p->rules[p->nrules++];
	(void)str_copy(r->host, sizeof(r->host), host);
	r->protocol = protocol;
	r->nports = 1;
	r->ports[0] = (uint16_t)port;
	r->ncidrs = loopback && cidr_parse("127.0.0.0/8", &r->cidrs[0]);
	return r;
}

static bool revoked; /* the second policy lacks the raw echo */

static void rules(struct policy *p)
{
	(void)add(p, "good.example", RULE_TLS, 8443, true);
	(void)add(p, ".good.example", RULE_TLS, 8443, true);
	(void)add(p, "closed.good.example", RULE_TLS, 8443, false);
	(void)add(p, "evil.example", RULE_TLS, 443, false);
	struct policy_rule *http = add(p, "good.example", RULE_HTTP, 8080, true);
	p->requests[0] = (struct policy_request){"GET", "/echo"};
	p->requests[1] = (struct policy_request){"", "/big"};
	p->nrequests = 2;
	http->requests.n = 2;
	if (!revoked)
		(void)add(p, "good.example", RULE_RAW, ECHO, true);
	add(p, "good.example", RULE_RAW, BOUNDED, true)->bytes = 100000;
	add(p, "good.example", RULE_RAW, PACED, true)->rate_bps = 400000;
	(void)add(p, "good.example", RULE_RAW, CLOSED, true);
	struct policy_rule *r = add(p, "", RULE_RAW, ECHO, false);
	r->ncidrs = cidr_parse("127.0.0.5", &r->cidrs[0]);
	/* everything, which is everything public, by number and by name */
	r = add(p, "", RULE_RAW, WIDE, false);
	r->ncidrs = cidr_parse("0.0.0.0/0", &r->cidrs[0]);
	r = add(p, "good.example", RULE_RAW, WIDE, false);
	r->ncidrs = cidr_parse("0.0.0.0/0", &r->cidrs[0]);
	p->flags |= POLICY_PROXY;
	static const uint16_t ports[] = {
	        POLICY_PROXY_PORT, 8080, 8443, ECHO, WIDE, BOUNDED, PACED, CLOSED};
	memcpy(p->ports, ports, sizeof(ports));
	p->nports = ARRAY_LEN(ports);
}

/* ---- what is outside ---- */

static void echo_one(int s)
{
	char block[64 << 10];
	ssize_t n;
	static const struct linger at_once = {.l_onoff = 1};
	while ((n = read(s, block, sizeof(block))) > 0) {
		if (n == 6 && memcmp(block, "!reset", 6) == 0) {
			setsockopt(s, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
			_exit(0);
		}
		if (fd_write_all(s, block, (size_t)n) < 0)
			break;
	}
	_exit(0);
}

static void echo_upstream(unsigned port)
{
	struct sockaddr_in a = bed_address("0.0.0.0", port);
	int t = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	setsockopt(t, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	must(bind(t, (const struct sockaddr *)&a, sizeof(a)) == 0 && listen(t, 512) == 0,
	        "echo on %u", port);
	if (bed_child() == 0) {
		signal(SIGCHLD, SIG_IGN);
		for (;;) {
			int one = accept(t, NULL, NULL);
			if (one >= 0 && fork() == 0)
				echo_one(one);
			close(one);
		}
	}
	close(t);
}

/* ---- inside ---- */

/* Output of a shell command in the jail's network. */
static char *inside(const char *command)
{
	int p[2];
	must(pipe2(p, O_CLOEXEC) == 0, "pipe");
	if (bed_child() == 0) {
		dup2(p[1], 1);
		dup2(p[1], 2);
		if (setns(bed.jail_net, CLONE_NEWNET) == 0)
			execl("/bin/sh", "sh", "-c", command, NULL);
		_exit(127);
	}
	close(p[1]);
	char *text = bed_read_all(p[0]);
	close(p[0]);
	return text;
}

#define HELLO(name, server)                                                                        \
	"echo | openssl s_client -connect " name ":8443 -servername " server                       \
	" -CAfile " BED_TLS_CERT " -verify_return_error -brief 2>&1"

static int dial_name(const char *name, unsigned port)
{
	char ip[32];
	uint32_t a;
	must(bed_lookup(EGRESS_RESOLVER, name, 1, &a) == 0 && a, "%s has an address", name);
	snprintf(ip, sizeof(ip), "%u.%u.%u.%u", a >> 24, a >> 16 & 255, a >> 8 & 255, a & 255);
	int s = bed_connect(ip, port);
	must(s >= 0, "%s:%u takes a connection", name, port);
	return s;
}

/* ---- tests ---- */

static void test_tls(void)
{
	auto_free char *a = inside(HELLO("good.example", "good.example"));
	if (!ok(has(a, "CONNECTION ESTABLISHED"), "TLS to an allowed name, certificate and all"))
		printf("# %s\n", a);
	const struct jail_egress *m =
	        bed_event(EGRESS_ALLOWED, "good.example", 8443, "tls: by good.example:8443");
	ok(m && m->bytes_in > 500 && m->bytes_out > 200, "told with its bytes");
	auto_free char *b = inside(HELLO("deep.down.good.example", "deep.down.good.example"));
	ok(has(b, "verify error") || has(b, "hostname mismatch") || has(b, "CONNECTION EST"),
	        "a name below a suffix gets there");
	ok(bed_event(EGRESS_ALLOWED, "deep.down.good.example", 8443, "*.good.example") != NULL,
	        "by the suffix");
	int before = *bed.dns_queries;
	auto_free char *c = inside(HELLO("never.good.example", "www.good.example"));
	ok(!has(c, "ESTABLISHED"), "another server name than the one dialled is cut");
	ok(bed_event(EGRESS_DENIED, "never.good.example", 8443,
	           "the server name www.good.example is not the name dialled") != NULL,
	        "and told");
	ok(*bed.dns_queries == before, "before anything is looked up outside");
	auto_free char *d = inside("echo | openssl s_client -connect good.example:8443 "
	                           "-noservername -brief 2>&1");
	ok(!has(d, "ESTABLISHED"), "so is none");
	ok(bed_event(EGRESS_DENIED, "good.example", 8443, "without a server name") != NULL,
	        "and told too");
	auto_free char *e = inside(HELLO("127.0.0.9", "good.example"));
	ok(!has(e, "ESTABLISHED"), "an allowed name at a number that is not its own");
	ok(bed_event(EGRESS_DENIED, "good.example", 8443, "was dialled by a number") != NULL,
	        "and told as that");
}

static void test_addresses(void)
{
	auto_free char *a = inside(HELLO("closed.good.example", "closed.good.example"));
	ok(!has(a, "ESTABLISHED"), "a name that leads to a private address is not dialled");
	ok(bed_event(EGRESS_DENIED, "closed.good.example", 8443, "127.0.0.1, which is not public"),
	        "and told");
	auto_free char *b = inside("echo | openssl s_client -connect evil.example:443 -servername "
	                           "evil.example -brief 2>&1");
	ok(!has(b, "ESTABLISHED"), "one that mixes public and private neither");
	ok(bed_event(EGRESS_DENIED, "evil.example", 443, "not public") != NULL, "the whole answer");
}

static void test_raw(void)
{
	char back[64] = {0};
	auto_close int s = dial_name("good.example", ECHO);
	(void)!write(s, "hello", 5);
	ok(read(s, back, sizeof(back)) == 5 && !memcmp(back, "hello", 5), "raw bytes and back");
	shutdown(s, SHUT_WR);
	ok(read(s, back, sizeof(back)) == 0, "the end of one direction is passed on");
	const struct jail_egress *m = bed_event(EGRESS_ALLOWED, "good.example", ECHO, "raw: by");
	ok(m && m->bytes_in == 5 && m->bytes_out == 5, "counted to the byte");
	auto_close int n = bed_connect("127.0.0.5", ECHO);
	(void)!write(n, "number", 6);
	ok(read(n, back, sizeof(back)) == 6, "an address that a rule names");
	auto_close int o = bed_connect("127.0.0.6", ECHO);
	ok(read(o, back, sizeof(back)) < 0 && errno == ECONNRESET, "and its neighbour");
	ok(bed_event(EGRESS_DENIED, "127.0.0.6", ECHO, "not in policy") != NULL, "told");
	auto_close int c = dial_name("good.example", CLOSED);
	ok(read(c, back, sizeof(back)) < 0 && errno == ECONNRESET, "a port nobody listens on");
	ok(bed_event(EGRESS_DENIED, "good.example", CLOSED, "Connection refused") != NULL,
	        "told with the reason");
}

/* One more address of this host, as of a card that it has. */
static void own_address(const char *ip)
{
	struct ifreq r = {.ifr_name = "lo:1"};
	struct sockaddr_in a = bed_address(ip, 0);
	auto_close int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	memcpy(&r.ifr_addr, &a, sizeof(a));
	must(ioctl(s, SIOCSIFADDR, &r) == 0, "own address %s", ip);
}

static void test_wide(void)
{
	char back[8];
	auto_close int n = bed_connect("127.0.0.5", WIDE);
	ok(read(n, back, sizeof(back)) < 0 && errno == ECONNRESET, "0.0.0.0/0 is not loopback");
	ok(bed_event(EGRESS_DENIED, "127.0.0.5", WIDE, "not in policy") != NULL, "told");
	auto_close int m = dial_name("good.example", WIDE);
	ok(read(m, back, sizeof(back)) < 0 && errno == ECONNRESET, "nor by a name");
	ok(bed_event(EGRESS_DENIED, "good.example", WIDE, "127.0.0.1, which is not public"),
	        "told");
	static const struct {
		const char *named, *dialled;
		bool fine;
	} rows[] = {
	        {"0.0.0.0/0", "198.41.0.4", true},
	        {"0.0.0.0/0", "10.1.2.3", false},
	        {"0.0.0.0/0", "169.254.169.254", false},
	        {"0.0.0.0/0", "127.0.0.1", false},
	        {"10.0.0.0/8", "10.1.2.3", true},
	        {"10.1.2.0/24", "10.1.2.3", true},
	        {"127.0.0.0/8", "127.0.0.1", true},
	        {"169.254.169.254", "169.254.169.254", true},
	        {"10.0.0.0/8", "10.9.9.9", false},
	        {"10.9.9.0/24", "10.9.9.9", false},
	        {"10.9.9.9", "10.9.9.9", true},
	        {"0.0.0.0/0", "198.41.7.1", false},
	        {"198.41.7.1", "198.41.7.1", true},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct reach r = {.n = 1};
		struct sockaddr_in a = bed_address(rows[i].dialled, 1);
		must(cidr_parse(rows[i].named, &r.cidrs[0]), "%s", rows[i].named);
		if (strcmp(rows[i].dialled, "10.9.9.9") == 0 ||
		        a.sin_addr.s_addr == htonl(0xc6290701))
			own_address(rows[i].dialled);
		ok(address_dialable(&r, (const struct sockaddr *)&a) == rows[i].fine,
		        "%s, where %s is named", rows[i].dialled, rows[i].named);
	}
}

/* Bytes without a name, to an address that the egress before gave out. */
static void test_forgotten(void)
{
	char back[8];
	uint32_t a;
	must(bed_lookup(EGRESS_RESOLVER, "good.example", 1, &a) == 0 && a, "an address");
	close(bed.control);
	waitpid(bed.egress, NULL, 0);
	bed_egress("/etc/ssl/certs/ca-certificates.crt");
	bed_policies(BED_SECRET, 1);
	bed_jail(1, 0);
	char ip[32];
	snprintf(ip, sizeof(ip), "%u.%u.%u.%u", a >> 24, a >> 16 & 255, a >> 8 & 255, a & 255);
	auto_close int s = bed_connect(ip, BOUNDED);
	(void)!write(s, "again", 5);
	ok(read(s, back, sizeof(back)) == 5, "a name's address counts under the next egress");
	snprintf(
	        ip, sizeof(ip), "%u.%u.%u.%u", a >> 24, a >> 16 & 255, a >> 8 & 255, (a & 255) ^ 1);
	auto_close int o = bed_connect(ip, BOUNDED);
	ok(read(o, back, sizeof(back)) < 0 && errno == ECONNRESET, "and its neighbour does not");
}

/* Much in both directions at once, with a reader that sleeps. */
static void test_volume(void)
{
	enum { TOTAL = 64 << 20 };
	static char block[256 << 10], got[256 << 10];
	auto_close int s = dial_name("good.example", ECHO);
	for (size_t i = 0; i < sizeof(block); i++)
		block[i] = (char)(i * 7 + (i >> 9));
	pid_t pid = bed_child();
	if (pid == 0) {
		for (size_t n = 0; n < TOTAL; n += sizeof(block))
			if (fd_write_all(s, block, sizeof(block)) < 0)
				_exit(1);
		shutdown(s, SHUT_WR);
		_exit(0);
	}
	size_t n = 0, wrong = 0;
	ssize_t k;
	while ((k = read(s, got, sizeof(got))) > 0) {
		for (ssize_t i = 0; i < k; i++)
			wrong += got[i] != block[(n + (size_t)i) % sizeof(block)];
		n += (size_t)k;
		if (n < 8 << 20)
			usleep(5000);
	}
	waitpid(pid, NULL, 0);
	ok(n == TOTAL && wrong == 0, "64 MiB there and back: %zu bytes, %zu wrong", n, wrong);
}

static void test_bounds(void)
{
	char block[4096] = {0};
	auto_close int s = dial_name("good.example", BOUNDED);
	size_t n = 0;
	ssize_t k = 0;
	for (int i = 0; i < 100 && k >= 0; i++) {
		k = send(s, block, sizeof(block), MSG_NOSIGNAL);
		if (k > 0)
			k = recv(s, block, sizeof(block), 0);
		n += k > 0 ? (size_t)k : 0;
	}
	ok(k < 0 && n <= 100000 && n > 40000, "a rule's bytes are a bound: %zu came back", n);
	ok(bed_event(EGRESS_DENIED, "good.example", BOUNDED, "are used up") != NULL, "told");

	auto_close int p = dial_name("good.example", PACED);
	int64_t start = clock_mono_ms();
	for (n = 0; n < 200000; n += 4000)
		(void)!write(p, block, 4000); /* all of it fits into buffers on the way */
	for (n = 0, k = 1; n < 200000 && k > 0; n += k > 0 ? (size_t)k : 0)
		k = recv(p, block, sizeof(block), 0);
	/* 400,000 in a second of both directions: 200,000 bytes there and back take one. */
	int64_t took = clock_mono_ms() - start;
	ok(n == 200000 && took > 700 && took < 15000, "a rate is kept: %lld ms", (long long)took);
}

static void test_http(void)
{
	static const struct {
		const char *request, *answer;
	} rows[] = {
	        {"GET /echo HTTP/1.1\r\nHost: good.example:8080\r\n", "HTTP/1.1 203"},
	        {"GET /echo?x=/../y HTTP/1.1\r\nHost: GOOD.example:8080\r\n", "HTTP/1.1 203"},
	        {"POST /echo HTTP/1.1\r\nHost: good.example:8080\r\nContent-Length: 0\r\n",
	                "not among the requests"},
	        {"GET /other HTTP/1.1\r\nHost: good.example:8080\r\n", "not among the requests"},
	        {"GET /echo HTTP/1.1\r\nHost: good.example\r\n", "Host names port 80"},
	        {"GET /echo HTTP/1.1\r\nHost: www.good.example:8080\r\n", "does not belong"},
	        {"GET /echo HTTP/1.1\r\nHost: anthropic.agentbox:8080\r\n", "does not belong"},
	        {"GET /echo HTTP/1.1\r\nHost: bad.example:8080\r\n", "not in policy"},
	        {"GET http://good.example:8080/echo HTTP/1.1\r\nHost: good.example:8080\r\n",
	                "HTTP/1.1 403"},
	        {"CONNECT good.example:8080 HTTP/1.1\r\nHost: good.example:8080\r\n",
	                "HTTP/1.1 403"},
	        {"GET /echo HTTP/1.1\r\nHost: good.example:8080\r\nUpgrade: h2c\r\n"
	         "Connection: upgrade\r\n",
	                "HTTP/1.1 403"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_close int s = dial_name("good.example", 8080);
		char request[512];
		snprintf(request, sizeof(request), "%s%s\r\n", rows[i].request,
		        has(rows[i].request, "Connection") ? "" : "Connection: close\r\n");
		(void)!write(s, request, strlen(request));
		auto_free char *a = bed_read_all(s);
		if (!ok(has(a, rows[i].answer), "%.40s...: %s", rows[i].request, rows[i].answer))
			printf("# %.300s\n", a);
	}
	/* The Host of every request counts, not of the first alone. */
	auto_close int s = dial_name("good.example", 8080);
	static const char two[] = "GET /echo HTTP/1.1\r\nHost: good.example:8080\r\n\r\n"
	                          "GET /echo HTTP/1.1\r\nHost: www.good.example:8080\r\n\r\n";
	(void)!write(s, two, sizeof(two) - 1);
	auto_free char *a = bed_read_all(s);
	ok(has(a, "HTTP/1.1 203") && has(a, "HTTP/1.1 403") && has(a, "does not belong"),
	        "a second host on one connection is refused");
}

static void test_other_names(void)
{
	int before = *bed.dns_queries;
	uint32_t a;
	ok(bed_lookup(EGRESS_RESOLVER, "registry.example", 1, &a) == 5, "another name is refused");
	ok(bed_lookup(EGRESS_RESOLVER, "5-0123456789abcdef.good.example", 1, &a) == 0 && a,
	        "one below a suffix is answered");
	ok(*bed.dns_queries == before, "and nobody outside hears of them");
	char x;
	auto_close int s = bed_connect("198.18.129.7", 8443);
	ok(read(s, &x, 1) < 0 && errno == ECONNRESET, "an address that no name has");
	auto_free char *b = inside(HELLO("198.18.129.7", "good.example"));
	ok(!has(b, "ESTABLISHED"), "whatever server name comes with it");
}

#define CURL "curl -sS -m 20 -x http://proxy.agentbox:3128 --cacert " BED_TLS_CERT " "

static void test_proxy(void)
{
	static const struct {
		const char *command, *answer;
	} rows[] = {
	        {CURL "https://good.example:8443/", "s_server"},
	        {CURL "https://other.example/", "response 403"},
	        {CURL "https://good.example/", "response 403"},
	        {CURL "https://closed.good.example:8443/", "reset"},
	        {CURL "http://good.example:8080/echo http://good.example:8080/echo", "GET /echo"},
	        {CURL "http://good.example:8080/other", "not among the requests"},
	        {CURL "http://anthropic.agentbox/v1/models", "x-api-key: ***"},
	        {CURL "http://other.example/", "not in policy"},
	        {CURL "-H 'Host: www.good.example:8080' http://good.example:8080/echo",
	                "does not belong"},
	        {CURL "-p http://good.example:8080/echo", "GET /echo"},
	        {"printf 'GET / HTTP/1.1\r\n\r\n' | socat -t9 - tcp:proxy.agentbox:3128", "400"},
	        {"printf 'CONNECT a HTTP/1.1\r\n\r\n' | socat -t9 - tcp:proxy.agentbox:3128",
	                "403"},
	        {"printf 'CONNECT a:99999 HTTP/1.1\r\n\r\n' | socat -t9 - "
	         "tcp:proxy.agentbox:3128",
	                "400"},
	        {"printf 'CONNECT good.example:8443 HTTP/1.1\r\n\r\nearly' | socat -t9 - "
	         "tcp:proxy.agentbox:3128",
	                "before CONNECT was answered"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_free char *a = inside(rows[i].command);
		if (!ok(has(a, rows[i].answer), "%s: %s", rows[i].command, rows[i].answer))
			printf("# %.300s\n", a);
	}
	ok(bed_event(EGRESS_DENIED, "other.example", 443, "proxy: other.example not in policy"),
	        "a refusal of the proxy is told");
}

static void test_change(void)
{
	char back[8];
	int cut = dial_name("good.example", ECHO), kept = dial_name("good.example", PACED);
	(void)!write(cut, "a", 1);
	(void)!write(kept, "b", 1);
	ok(read(cut, back, 1) == 1 && read(kept, back, 1) == 1, "two connections");
	revoked = true;
	bed_policies(BED_SECRET, 2);
	ok(read(cut, back, 1) < 0 && errno == ECONNRESET,
	        "a rule that is gone takes its own along");
	ok(bed_event(EGRESS_DENIED, "good.example", ECHO, "allows it no longer") != NULL, "told");
	(void)!write(kept, "c", 1);
	ok(read(kept, back, 1) == 1, "and leaves the others");
	close(cut);
	close(kept);
}

static int open_fds(void)
{
	char command[64];
	snprintf(command, sizeof(command), "ls /proc/%d/fd | wc -l", bed.egress);
	auto_free char *text = inside(command);
	return atoi(text);
}

/* Descriptors of egress, once there are no more than `most`, or after a while. */
static int fds_settled(int most)
{
	for (int64_t end = clock_mono_ms() + 5000; open_fds() > most && clock_mono_ms() < end;)
		bed_listen(50);
	return open_fds();
}

static void test_resets(void)
{
	static const struct linger at_once = {.l_onoff = 1};
	char back[8];
	revoked = false;
	bed_policies(BED_SECRET, 3);
	bed_listen(500);          /* those before are over */
	int fds = open_fds() + 2; /* a pipe more is kept */
	auto_close int s = dial_name("good.example", ECHO);
	ok(write(s, "a", 1) == 1 && read(s, back, 1) == 1, "a relay");
	ok(write(s, "!reset", 6) == 6 && read(s, back, 1) < 0 && errno == ECONNRESET,
	        "an upstream's reset is the jail's");
	for (int i = 0; i < 20; i++) {
		int t = dial_name("good.example", ECHO);
		must(write(t, "a", 1) == 1 && read(t, back, 1) == 1, "one more");
		setsockopt(t, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
		close(t);
	}
	int now = fds_settled(fds);
	ok(now <= fds, "resets leave nothing: %d descriptors, %d before", now, fds);
}

/* Who never reads holds up himself, and nothing outlives his jail. */
static void test_stalled(void)
{
	static char block[64 << 10];
	char back[8];
	int before = open_fds(), stalled[8];
	for (size_t i = 0; i < ARRAY_LEN(stalled); i++) {
		stalled[i] = dial_name("good.example", ECHO);
		(void)fcntl(stalled[i], F_SETFL, O_NONBLOCK);
		for (int64_t end = clock_mono_ms() + 100; clock_mono_ms() < end;)
			(void)!write(stalled[i], block, sizeof(block));
	}
	auto_close int s = dial_name("good.example", ECHO);
	ok(write(s, "a", 1) == 1 && read(s, back, 1) == 1, "others go on beside windows of zero");
	ok(open_fds() >= before + 2 * (int)ARRAY_LEN(stalled), "which are open");
	bed_jail_end(1);
	int now = fds_settled(before);
	ok(now < before, "the end of the jail closes both sides of each: %d, %d before", now,
	        before);
	for (size_t i = 0; i < ARRAY_LEN(stalled); i++)
		close(stalled[i]);
}

static void test_leaks(int fds)
{
	bed_listen(300);
	int now = open_fds();
	ok(now <= fds + 8, "%d descriptors before, %d after (pipes are kept)", fds, now);
	auto_free char *log = NULL;
	must(file_slurp(bed.log, 1 << 20, &log, NULL) == 0, "log");
	if (!ok(!has(log, "error") && !has(log, "Sanitizer"), "nothing went wrong in it"))
		printf("# %s\n", log);
}

int main(void)
{
	bed_namespaces();
	bed_fakes();
	bed_tls_upstream();
	usleep(300 * 1000);
	echo_upstream(ECHO);
	echo_upstream(BOUNDED);
	echo_upstream(PACED);
	bed_egress("/etc/ssl/certs/ca-certificates.crt");
	bed_more = rules;
	bed_policies(BED_SECRET, 1);
	bed_jail(1, 0);
	free(inside(HELLO("good.example", "good.example"))); /* so that what is kept is there */
	int fds = open_fds();
	test_tls();
	test_addresses();
	test_raw();
	test_wide();
	test_volume();
	test_bounds();
	test_http();
	test_other_names();
	test_proxy();
	test_change();
	test_resets();
	test_leaks(fds);
	test_forgotten();
	test_stalled();
	kill(bed.egress, SIGTERM);
	return done();
}
