/* What a jail may try against agentbox-egress, and what an upstream may: all of it, confined. */
#include "tests/egress_bed.h"

enum { ODD = 9100 };

static bool has(const char *text, const char *part)
{
	return strstr(text, part) != NULL;
}

/* ---- the policy ---- */

static struct policy_rule *add(struct policy *p, const char *host, unsigned protocol, unsigned port)
{
	struct policy_rule *r = &p->rules[p->nrules++];
	(void)str_copy(r->host, sizeof(r->host), host);
	r->protocol = protocol;
	r->nports = 1;
	r->ports[0] = (uint16_t)port;
	r->ncidrs = cidr_parse("127.0.0.0/8", &r->cidrs[0]);
	return r;
}

static bool narrowed; /* the second policy: rules that are no longer what they were */

static void rules(struct policy *p)
{
	p->ninject--;
	bed_inject(p, "odd.agentbox", "http://127.0.0.1:9100", NULL, true);
	(void)add(p, ".good.example", RULE_HTTP, 8080);
	(void)add(p, "odd.good.example", RULE_HTTP, ODD);
	add(p, "few.good.example", RULE_HTTP, 8080)->bytes = 100000;
	add(p, "slow.good.example", RULE_HTTP, 8080)->rate_bps = 30000;
	(void)add(p, "tls.good.example", RULE_TLS, 8443);
	(void)add(p, "good.example", narrowed ? RULE_HTTP : RULE_RAW, ODD);
	(void)add(p, "raw.good.example", RULE_RAW, ODD);
	if (narrowed) {
		p->rules[p->nrules - 1].ncidrs = 0;
		p->rules[1].protocol = RULE_TLS;
		p->ninject--;
	}
	struct policy_rule *r = add(p, "", RULE_RAW, ODD);
	r->ncidrs = cidr_parse("2001:db8::/32", &r->cidrs[0]);
	p->flags |= POLICY_PROXY;
	static const uint16_t ports[] = {POLICY_PROXY_PORT, 8080, 8443, ODD};
	memcpy(p->ports, ports, sizeof(ports));
	p->nports = ARRAY_LEN(ports);
}

/* ---- an upstream that says what the path asks for ---- */

/* As when the request and the end of the connection meet half way. */
static void drop(int s)
{
	const struct linger now = {.l_onoff = 1, .l_linger = 0};
	setsockopt(s, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	_exit(0);
}

static void odd_one(int s)
{
	static const struct {
		const char *path, *answer;
	} all[] = {
	        {"/switch ", "HTTP/1.1 101 Switching Protocols\r\n\r\nHTTP/1.1 200 OK\r\n"
	                     "Content-Length: 6\r\n\r\nforged"},
	        {"/early ", "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n"
	                    "Content-Length: 4\r\n\r\nlate"},
	        {"/split ", "HTTP/1.1 200 OK\r\nX-A: b\rSet-Cookie: forged=1\r\nX-B: c\r\n"
	                    "Content-Length: 2\r\n\r\nok"},
	        {"/nine ", "just text"},
	        {"/minus ", "HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok"},
	        {"/both ", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n"
	                   "\r\n2\r\nok\r\n0\r\n\r\n"},
	        {"/extra ", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n"
	                    "Content-Length: 6\r\n\r\nforged"},
	        {"/none ", "HTTP/1.1 204 No\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n"
	                   "forged"},
	};
	char p[8192];
	size_t n = 0;
	bool used = false;
	for (;;) {
		ssize_t k = read(s, p + n, sizeof(p) - 1 - n);
		if (k <= 0)
			_exit(0);
		n += (size_t)k;
		p[n] = '\0';
		if (!has(p, "\r\n\r\n")) {
			n = n > sizeof(p) / 2 ? 0 : n; /* a body */
			continue;
		}
		n = 0;
		if (has(p, "/once ") && used)
			drop(s);
		used = true;
		for (size_t i = 0; i < ARRAY_LEN(all); i++)
			if (has(p, all[i].path))
				bed_put(s, all[i].answer);
		if (has(p, "/nine ") || has(p, "/minus "))
			_exit(0);
		if (has(p, "/plain ") || has(p, "/once "))
			bed_put(s, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nplain");
	}
}

static void odd_upstream(void)
{
	struct sockaddr_in a = bed_address("127.0.0.1", ODD);
	int t = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	setsockopt(t, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	must(bind(t, (const struct sockaddr *)&a, sizeof(a)) == 0 && listen(t, 512) == 0, "odd");
	if (bed_child() == 0) {
		signal(SIGCHLD, SIG_IGN);
		for (;;) {
			int one = accept(t, NULL, NULL);
			if (one >= 0 && fork() == 0)
				odd_one(one);
			close(one);
		}
	}
	close(t);
}

/* ---- inside ---- */

static int dial_name(const char *name, unsigned port)
{
	char ip[32];
	uint32_t a;
	if (bed_lookup(EGRESS_RESOLVER, name, 1, &a) != 0 || !a)
		return -1;
	snprintf(ip, sizeof(ip), "%u.%u.%u.%u", a >> 24, a >> 16 & 255, a >> 8 & 255, a & 255);
	return bed_connect(ip, port);
}

static char *say(int s, const char *text)
{
	if (s < 0 || fd_write_all(s, text, strlen(text)) < 0)
		return xstrdup("(no connection)");
	return bed_read_all(s);
}

/* One request to `name`, the head given without its Host. */
static char *ask(const char *name, unsigned port, const char *line, const char *fields)
{
	auto_close int s = dial_name(name, port);
	auto_free char *request =
	        xasprintf("%s HTTP/1.1\r\nHost: %s:%u\r\nConnection: close\r\n%s\r\n", line, name,
	                port, fields);
	return say(s, request);
}

/* ---- tests ---- */

/* Longer than any place for it; what is left of it when it is cut is a name of somebody else. */
static void test_long_name(void)
{
	char host[256];
	memset(host, 'a', sizeof(host));
	host[50] = host[100] = '.';
	static const char end[] = ".evil.example.good.example";
	memcpy(host + POLICY_HOST_MAX - 1 - strlen(".evil.example"), end, sizeof(end));
	uint32_t v4;
	ok(bed_lookup(EGRESS_RESOLVER, host, 1, &v4) == 5, "a name that is too long is refused");
	/* Its place could be guessed: by the rules it has none. */
	auto_close int s = dial_name("www.good.example", 8080);
	auto_free char *request = xasprintf("GET / HTTP/1.1\r\nHost: %s:8080\r\n\r\n", host);
	auto_free char *a = say(s, request);
	ok(has(a, "HTTP/1.1 403") && has(a, "not in policy"), "as Host, too");
}

static void test_odd_upstream(void)
{
	static const struct {
		const char *path, *answer;
	} rows[] = {
	        {"/switch", "502 Bad Gateway"},
	        {"/early", "\r\n\r\nlate"},
	        {"/split", "X-B: c\r\n"},
	        {"/nine", "502 Bad Gateway"},
	        {"/minus", "502 Bad Gateway"},
	        {"/both", "\r\n0\r\n\r\n"},
	        {"/extra", "\r\n\r\nok"},
	        {"/none", "HTTP/1.1 204 "},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_free char *line = xasprintf("GET %s", rows[i].path);
		auto_free char *a = ask("odd.good.example", ODD, line, "");
		/* The connection outside may be kept: what came too much must not be an answer. */
		auto_free char *b = ask("odd.good.example", ODD, "GET /plain", "");
		if (!ok(has(a, rows[i].answer) && !has(a, "forged") && has(b, "\r\n\r\nplain"),
		            "an upstream that answers %s", rows[i].path))
			printf("# %.300s\n# %.300s\n", a, b);
	}
	ok(bed_event(EGRESS_DENIED, "odd.good.example", ODD, "switches to another protocol") !=
	                NULL,
	        "a protocol nobody asked for is told");
}

/* A kept connection that ends as it is used again is nobody's fault: the request is sent once more,
 * wherever its sending had got to. */
static void test_met_half_way(void)
{
	enum { BODY = 200000, TIMES = 100 };
	auto_free char *body = xcalloc(1, BODY + 64);
	int fine = 0;
	memset(body, 'x', BODY);
	for (int i = 0; i < TIMES; i++) {
		auto_free char *first = bed_ask("198.18.1.6",
		        "GET /once HTTP/1.1\r\nHost: odd.agentbox\r\nConnection: close\r\n\r\n");
		auto_free char *again =
		        xasprintf("POST /once HTTP/1.1\r\nHost: odd.agentbox\r\nConnection: "
		                  "close\r\nContent-Length: %d\r\n\r\n%s",
		                BODY, body);
		auto_free char *second = bed_ask("198.18.1.6", again);
		fine += has(first, "plain") && has(second, "plain");
		if (!has(second, "plain"))
			printf("# %.300s\n", second);
	}
	ok(fine == TIMES, "requests on kept connections that end: %d of %d answered", fine, TIMES);
}

/* Bytes are bytes, whatever they are called. */
static void test_heads(void)
{
	static char field[40000] = "X: ";
	memset(field + 3, 'x', sizeof(field) - 6);
	memcpy(field + sizeof(field) - 3, "\r\n", 3);
	int through = 0;
	for (int i = 0; i < 5; i++) {
		auto_free char *a = ask("few.good.example", 8080, "HEAD /", field);
		through += has(a, "HTTP/1.1 203");
	}
	ok(through == 3, "100,000 bytes are three heads of 40,000, begun: %d", through);
	ok(bed_event(EGRESS_DENIED, "few.good.example", 8080, "are used up") != NULL, "told");
	int64_t start = clock_mono_ms();
	for (int i = 0; i < 3; i++) {
		auto_free char *a = ask("slow.good.example", 8080, "HEAD /", field);
		ok(has(a, "HTTP/1.1 203"), "at a rate, each goes through");
	}
	int64_t took = clock_mono_ms() - start;
	ok(took > 2000 && took < 15000, "80,000 bytes before the last at 30,000 a second: %d ms",
	        (int)took);
}

static void test_proxy(void)
{
	static const struct {
		const char *request, *status, *reason;
	} rows[] = {
	        {"CONNECT odd.good.example:22 HTTP/1.1\r\n\r\n", "403",
	                "odd.good.example:22 not in policy"},
	        {"CONNECT 127.0.0.1:22 HTTP/1.1\r\n\r\n", "403", "127.0.0.1:22 not in policy"},
	        {"CONNECT 198.18.1.0:443 HTTP/1.1\r\n\r\n", "403", "not in policy"},
	        {"CONNECT [::1]:9100 HTTP/1.1\r\n\r\n", "403", "::1:9100 not in policy"},
	        {"CONNECT [::ffff:10.0.0.1]:9100 HTTP/1.1\r\n\r\n", "403", "not in policy"},
	        {"CONNECT ::1:9100 HTTP/1.1\r\n\r\n", "400", "HOST:PORT"},
	        {"CONNECT [::1 HTTP/1.1\r\n\r\n", "400", "HOST:PORT"},
	        {"CONNECT [2001:db8::7]:9100 HTTP/1.1\r\n\r\n", "200", "established"},
	        {"CONNECT proxy.agentbox:3128 HTTP/1.1\r\n\r\n", "403", "not in policy"},
	        {"CONNECT anthropic.agentbox:443 HTTP/1.1\r\n\r\n", "403", "not in policy"},
	        {"GET http://proxy.agentbox:3128/ HTTP/1.1\r\nHost: proxy.agentbox:3128\r\n\r\n",
	                "403", "not in policy"},
	        {"GET http://tls.good.example:8443/ HTTP/1.1\r\nHost: tls.good.example:8443\r\n"
	         "\r\n",
	                "403", "is allowed as tls"},
	        {"GET https://odd.good.example:9100/ HTTP/1.1\r\nHost: a\r\n\r\n", "400",
	                "METHOD http://HOST/"},
	        {"GET http://u@odd.good.example:9100/ HTTP/1.1\r\nHost: a\r\n\r\n", "400",
	                "malformed"},
	        {"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "400", "METHOD http://HOST/"},
	        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "400", "METHOD http://HOST/"},
	        {"GET http://odd.good.example:9100/plain HTTP/1.1\r\nHost: odd.good.example:9100"
	         "\r\nHost: odd.good.example:9100\r\n\r\n",
	                "400", "more than one Host"},
	        {"\x05\x01", "400", "not an HTTP request"},
	        {"\x16\x03\x01\x02", "400", "not an HTTP request"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_close int s = bed_connect("198.18.0.2", POLICY_PROXY_PORT);
		int64_t start = clock_mono_ms();
		(void)!write(s, rows[i].request, strlen(rows[i].request));
		char a[1024] = "", status[32];
		(void)!read(s, a, sizeof(a) - 1);
		snprintf(status, sizeof(status), "HTTP/1.1 %s ", rows[i].status);
		if (!ok(has(a, status) && has(a, rows[i].reason) && clock_mono_ms() - start < 1500,
		            "at once: %s %s", rows[i].status, rows[i].reason))
			printf("# %.400s\n", a);
	}
}

static bool reset(int s)
{
	char x;
	return read(s, &x, 1) < 0 && errno == ECONNRESET;
}

/* Rules that are still there and allow less. */
static void test_narrowed(void)
{
	static const char hang[] = "GET /quiet HTTP/1.1\r\nHost: odd.good.example:9100\r\n\r\n";
	static const char broker[] = "GET /quiet HTTP/1.1\r\nHost: odd.agentbox\r\n\r\n";
	auto_close int http = dial_name("odd.good.example", ODD);
	auto_close int raw = dial_name("good.example", ODD);
	auto_close int inward = dial_name("raw.good.example", ODD);
	auto_close int gone = bed_connect("198.18.1.6", 80);
	(void)!write(http, hang, sizeof(hang) - 1);
	(void)!write(raw, "x", 1);
	(void)!write(inward, "x", 1);
	(void)!write(gone, broker, sizeof(broker) - 1);
	usleep(300 * 1000);
	narrowed = true;
	bed_policies(BED_SECRET, 2);
	ok(reset(http), "a rule that is of another protocol now cuts its request");
	ok(bed_event(EGRESS_DENIED, "odd.good.example", ODD, "allows it no longer") != NULL,
	        "told");
	ok(reset(raw), "and its relay");
	ok(reset(inward), "a rule without its network cuts what is in there");
	ok(reset(gone), "a name that is injected no longer cuts its request");
	ok(bed_event(EGRESS_DENIED, "odd.agentbox", 80, "allows it no longer") != NULL, "told");
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	bed_namespaces();
	bed_fakes();
	odd_upstream();
	bed_egress("/etc/ssl/certs/ca-certificates.crt");
	bed_more = rules;
	bed_policies(BED_SECRET, 1);
	bed_jail(1, 0);
	test_long_name();
	test_odd_upstream();
	test_met_half_way();
	test_heads();
	test_proxy();
	test_narrowed();
	unlink(bed.log);
	return done();
}
