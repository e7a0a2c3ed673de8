/* The whole of agentbox-egress, confined as in production, in a network of its own. */
#include "tests/egress_bed.h"

#define HEAD "Host: anthropic.agentbox\r\nConnection: close\r\n"

static bool has(const char *text, const char *part)
{
	return strstr(text, part) != NULL;
}

/* ---- names ---- */

static void test_names(void)
{
	uint32_t v4;
	int before = *bed.dns_queries;
	ok(bed_lookup(EGRESS_RESOLVER, "anthropic.agentbox", 1, &v4) == 0 && v4 == EGRESS_SYNTHETIC,
	        "A of name 0");
	ok(bed_lookup("8.8.8.8", "Plain.Agentbox", 1, &v4) == 0 && v4 == EGRESS_SYNTHETIC + 3,
	        "a hard-coded resolver comes here too");
	ok(bed_lookup("127.0.0.53", "anthropic.agentbox", 28, &v4) == 0 && v4 == 0,
	        "AAAA has no data");
	ok(bed_lookup(EGRESS_RESOLVER, "registry.example", 1, &v4) == 5, "another name is refused");
	ok(bed_event(EGRESS_DENIED, "registry.example", 53,
	           "dns: registry.example not in policy 'default'") != NULL,
	        "and told");
	ok(*bed.dns_queries == before, "no query went outside");

	uint8_t p[512];
	size_t n = bed_dns_query(p + 2, "anthropic.agentbox", 1);
	auto_close int s = bed_connect("1.1.1.1", 53);
	p[0] = 0;
	p[1] = (uint8_t)n;
	(void)!write(s, p, 1); /* the length prefix in two pieces, two queries in one */
	usleep(50000);
	memcpy(p + 2 + n, p, 2 + n);
	(void)!write(s, p + 1, 2 * (2 + n) - 1);
	usleep(200000);
	ok(read(s, p, sizeof(p)) == (ssize_t)(2 * (2 + n + 16)), "two answers by TCP");
}

/* ---- requests ---- */

static void test_credential(void)
{
	auto_free char *a = bed_ask("198.18.1.0",
	        "GET /v1/messages?beta=true&q=a%2Fb HTTP/1.1\r\n" HEAD
	        "X-Api-Key: placeholder\r\nauthorization: Bearer placeholder\r\nAnthropic-Version: "
	        "2023-06-01\r\n"
	        "Connection: x-private\r\nX-Private: 1\r\nTE: trailers\r\nX-Empty:\r\n\r\n");
	ok(has(a, "HTTP/1.1 203 "), "answered with the upstream's status");
	ok(has(a, "GET /prefix/v1/messages?beta=true&q=a%2Fb HTTP/1.1\r\n"),
	        "method, path and query are kept");
	ok(has(bed.asked, "x-api-key: " BED_SECRET "\r\n"), "the credential is added");
	ok(!has(a, BED_SECRET) && has(a, "x-api-key: *************\r\n"),
	        "and does not come back from an upstream that repeats its request");
	ok(!has(a, "placeholder"), "placeholders are dropped");
	ok(has(a, "Host: 127.0.0.1:8080\r\n") && !has(a, "anthropic.agentbox"),
	        "Host is the upstream's");
	ok(has(a, "Anthropic-Version: 2023-06-01\r\n") && has(a, "X-Empty:"),
	        "other headers are passed on");
	ok(!strcasestr(a, "x-private") && !strcasestr(a, "\r\nte:"), "hop-by-hop headers are not");
	ok(!strcasestr(a, "user-agent") && !strcasestr(a, "\r\naccept:"), "nothing is made up");
	ok(has(a, "X-Answer: 1\r\n") && !has(a, "x-hop: 1\r\n"), "response headers likewise");
	const struct jail_egress *m =
	        bed_event(EGRESS_ALLOWED, "127.0.0.1", 8080, "GET, status 203");
	ok(m && m->jail == 1 && m->bytes_out > 100 && m->bytes_in > 100, "told with its bytes");
}

#define STARS "*************" /* as long as BED_SECRET */

/* The credential, sent back by its upstream. */
static void test_echo(void)
{
	static const struct {
		const char *how, *want, *what;
	} all[] = {
	        {"head", "Location: http://x/?k=" STARS "\r\n", "in a redirect"},
	        {"head", "x-" STARS ": 1\r\n", "in a field's name"},
	        {"whole", "<" STARS "> and " STARS STARS "|" STARS, "in the text of an error"},
	        {"pieces", "\r\n>\r\n", "in chunks of a byte"},
	};
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		auto_free char *request =
		        xasprintf("GET /secret/%s HTTP/1.1\r\n" HEAD "\r\n", all[i].how);
		auto_free char *a = bed_ask("198.18.1.0", request);
		ok(has(a, all[i].want) && !has(a, BED_SECRET), "masked %s", all[i].what);
	}
	bed_listen(100);
	ok(bed_event(EGRESS_ALLOWED, "127.0.0.1", 8080, "status 401, its secret masked") != NULL,
	        "which is told");
	auto_free char *ranged =
	        bed_ask("198.18.1.0", "GET /echo HTTP/1.1\r\n" HEAD "Range: bytes=0-7\r\n\r\n");
	ok(has(ranged, " 203 ") && !strcasestr(bed.asked, "\r\nrange:"),
	        "a part of it cannot be asked for");
}

/* Events pass at once; only what could be the beginning of a secret waits. */
static void test_masked_stream(void)
{
	auto_close int s = bed_connect("198.18.1.0", 80);
	static const char request[] = "GET /secret/waits HTTP/1.1\r\n" HEAD "\r\n";
	must(s >= 0 && fd_write_all(s, request, sizeof(request) - 1) == 0, "asked");
	char some[4096] = "some room before it";
	size_t n = strlen(some);
	int64_t begun = clock_mono_ms();
	while (!has(some, "data: event\n\n") || !has(some + n - strlen("data: \r\n"), "data: ")) {
		ssize_t k = read(s, some + n, sizeof(some) - 1 - n);
		must(k > 0, "it comes");
		n += (size_t)k;
		some[n] = '\0';
	}
	ok(clock_mono_ms() - begun < 600, "an event comes at once, beside a beginning that waits");
	ok(!has(some, "sk-real"), "which does not come");
	auto_free char *rest = bed_read_all(s);
	ok(has(rest, STARS "\n\n") && !has(rest, BED_SECRET), "the whole is masked");
}

static void test_refusals(void)
{
	static const struct {
		const char *ip, *request, *status, *host, *reason;
		unsigned port;
	} all[] = {
	        {"198.18.1.0", "GET / HTTP/1.1\r\nHost: registry.example\r\n\r\n", "403",
	                "registry.example", "http: registry.example not in policy 'default'", 80},
	        {"93.184.216.34", "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n", "403",
	                "example.com", "not in policy", 80},
	        {"198.18.1.3", "GET / HTTP/1.1\r\n" HEAD "\r\n", "403", "anthropic.agentbox",
	                "does not belong to the address 198.18.1.3", 80},
	        {"127.0.0.1", "GET / HTTP/1.1\r\n" HEAD "\r\n", "403", "anthropic.agentbox",
	                "does not belong", 80},
	        {"198.18.1.0", "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n",
	                "403", "198.18.1.0", "CONNECT", 80},
	        {"198.18.1.0", "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
	                "403", "198.18.1.0", "proxy", 80},
	        {"198.18.1.0", "GET / HTTP/1.1\r\n" HEAD "Upgrade: websocket\r\n\r\n", "403",
	                "anthropic.agentbox", "Upgrade", 80},
	        {"198.18.1.0", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "403", "198.18.1.0", "HTTP/2",
	                80},
	        {"198.18.1.0",
	                "POST / HTTP/1.1\r\n" HEAD
	                "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
	                "400", "198.18.1.0", "together", 80},
	        {"198.18.1.0", "GET /../x HTTP/1.1\r\n" HEAD "\r\n", "400", "198.18.1.0",
	                "dot segments", 80},
	        {"198.18.1.0", "\x16\x03\x01\x02", "400", "198.18.1.0", "not an HTTP request", 80},
	        {"198.18.1.2", "GET / HTTP/1.1\r\nHost: keyless.agentbox\r\n\r\n", "503",
	                "keyless.agentbox", "secret MISSING_KEY is not configured", 80},
	        {"198.18.1.1", "GET / HTTP/1.1\r\nHost: private.agentbox\r\n\r\n", "502",
	                "evil.example", "has the address 127.0.0.1, which is not public", 443},
	        {"198.18.1.6", "GET / HTTP/1.1\r\nHost: hosts.agentbox\r\n\r\n", "502",
	                "inside.example", "has the address 10.1.2.3, which is not public", 443},
	        {"198.18.1.0",
	                "POST /echo HTTP/1.1\r\n" HEAD "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
	                "400", "anthropic.agentbox", "chunked request body is malformed", 80},
	};
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		char status[32];
		auto_free char *a = bed_ask(all[i].ip, all[i].request);
		snprintf(status, sizeof(status), "HTTP/1.1 %s ", all[i].status);
		if (!ok(strncmp(a, status, strlen(status)) == 0 && has(a, all[i].reason), "%s: %s",
		            all[i].status, all[i].reason))
			printf("# %.400s\n", a);
		ok(bed_event(EGRESS_DENIED, all[i].host, all[i].port, all[i].reason) != NULL,
		        "told of %s", all[i].host);
	}
}

static void test_resolved(void)
{
	auto_free char *a =
	        bed_ask("198.18.1.3", "GET /one HTTP/1.1\r\nHost: plain.agentbox\r\n"
	                              "Authorization: Bearer mine\r\nConnection: close\r\n\r\n");
	ok(has(a, "Host: good.example:8080\r\n"), "an upstream found by DNS");
	ok(has(a, "Authorization: Bearer mine\r\n"),
	        "without a credential of ours, the jail's is passed on");
	auto_free char *h = bed_ask("198.18.1.0", "HEAD /one HTTP/1.1\r\n" HEAD "\r\n");
	ok(has(h, "HTTP/1.1 203 ") && strlen(strstr(h, "\r\n\r\n")) == 4,
	        "HEAD has no body, though the upstream sent one");
	auto_free char *old =
	        bed_ask("198.18.1.0", "GET /sse HTTP/1.0\r\nHost: anthropic.agentbox\r\n\r\n");
	if (!ok(has(old, "Connection: close\r\n") && !has(old, "chunked") &&
	                    has(old, "data: event"),
	            "HTTP/1.0 is answered until the close"))
		printf("# %s\n", old);
}

static void test_bodies(void)
{
	auto_free char *a =
	        bed_ask("198.18.1.0", "POST /echo HTTP/1.1\r\n" HEAD
	                              "Transfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n6\r\n "
	                              "world\r\n0\r\nX-Trailer: 1\r\n\r\n");
	if (!ok(has(a, "Transfer-Encoding: chunked\r\n") && has(a, "hello") && !has(a, "X-Trailer"),
	            "a chunked body arrives"))
		printf("# %s\n", a);
	auto_free char *b = bed_ask("198.18.1.0",
	        "PUT /echo HTTP/1.1\r\n" HEAD "Content-Length: 11\r\n\r\nhello world");
	if (!ok(has(b, "PUT /prefix/echo") && has(b, "Content-Length: 11\r\n") &&
	                    has(b, "\r\n\r\nhello world"),
	            "a measured body arrives"))
		printf("# %s\n", b);
	auto_free char *c = bed_ask("198.18.1.0", "POST /echo HTTP/1.1\r\n" HEAD "\r\n");
	ok(has(c, "Content-Length: 0\r\n"), "a POST without a body says so");
	auto_free char *early = bed_ask(
	        "198.18.1.0", "POST /early HTTP/1.1\r\n" HEAD "Content-Length: 100000000\r\n\r\nx");
	ok(has(early, "HTTP/1.1 413 ") && has(early, "no\n"),
	        "an answer before the end of the body arrives");
	auto_free char *cut = bed_ask("198.18.1.0", "GET /cut HTTP/1.1\r\n" HEAD "\r\n");
	ok(has(cut, "abcde") && !has(cut, "\r\n0\r\n"),
	        "a response that was cut does not end well");

	auto_close int s = bed_connect("198.18.1.0", 80);
	char p[4096] = "";
	const char *head =
	        "POST /echo HTTP/1.1\r\n" HEAD "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n";
	(void)!write(s, head, strlen(head));
	ssize_t n = read(s, p, sizeof(p) - 1);
	ok(n > 0 && has(p, "HTTP/1.1 100 Continue\r\n\r\n"), "100 Continue before the body");
	(void)!write(s, "hello", 5);
	auto_free char *rest = bed_read_all(s);
	ok(has(rest, "HTTP/1.1 203") && has(rest, "\r\n\r\nhello") && !has(rest, "Expect"),
	        "and the answer after it");
}

static void test_keep_alive(void)
{
	auto_close int s = bed_connect("198.18.1.0", 80);
	const char *two =
	        "GET /a HTTP/1.1\r\nHost: anthropic.agentbox\r\n\r\nGET /b HTTP/1.1\r\n" HEAD
	        "\r\n";
	(void)!write(s, two, strlen(two));
	auto_free char *a = bed_read_all(s);
	const char *first = strstr(a, "GET /prefix/a "), *second = strstr(a, "GET /prefix/b ");
	ok(first && second && first < second, "two requests on one connection, in order");
}

static void test_sse(void)
{
	auto_close int s = bed_connect("198.18.1.0", 80);
	const char *ask = "GET /sse HTTP/1.1\r\n" HEAD "\r\n";
	int64_t begin = clock_mono_ms(), at[16] = {0};
	char p[4096];
	int events = 0;
	ssize_t n;
	(void)!write(s, ask, strlen(ask));
	while ((n = read(s, p, sizeof(p) - 1)) > 0) {
		p[n] = '\0';
		for (const char *q = p; (q = strstr(q, "data: event\n\n")) && events < 16; q++)
			at[events++] = clock_mono_ms() - begin;
	}
	must(events == 5, "five events, each whole");
	ok(at[4] - at[0] > 400, "spread as they were sent: %d ms", (int)(at[4] - at[0]));
	ok(at[0] < 400, "the first one at once: %d ms", (int)at[0]);
}

static void test_large(void)
{
	enum { DOWN = 96 << 20, UP = 96 << 20 };
	static char block[64 << 10];
	auto_free char *warm = bed_ask("198.18.1.0", "GET /big?1000000 HTTP/1.1\r\n" HEAD "\r\n");
	must(has(warm, "xxx"), "a first one, so that buffers are there");
	long before = bed_rss_kib(), most = 0;
	auto_close int s = bed_connect("198.18.1.0", 80);
	auto_free char *ask = xasprintf("GET /big?%d HTTP/1.1\r\n" HEAD "\r\n", DOWN);
	(void)!write(s, ask, strlen(ask));
	size_t got = 0;
	ssize_t n;
	while ((n = read(s, block, sizeof(block))) > 0) {
		if (got < 4 << 20)
			usleep(5000);
		got += (size_t)n;
		long now = bed_rss_kib();
		most = now > most ? now : most;
	}
	ok(got > DOWN && got < DOWN + 4096, "a large response arrives: %zu", got);
	ok(most - before < 4096, "through flat memory: %ld KiB more", most - before);

	auto_close int u = bed_connect("198.18.1.0", 80);
	auto_free char *put =
	        xasprintf("PUT /sink HTTP/1.1\r\n" HEAD "Content-Length: %d\r\n\r\n", UP);
	(void)!write(u, put, strlen(put));
	for (size_t left = UP; left;) {
		n = write(u, block, left < sizeof(block) ? left : sizeof(block));
		if (n <= 0)
			break;
		left -= (size_t)n;
		long now = bed_rss_kib();
		most = now > most ? now : most;
	}
	auto_free char *a = bed_read_all(u);
	auto_free char *want = xasprintf("%08x", UP);
	ok(has(a, want), "a large request arrives");
	ok(most - before < 4096, "through flat memory: %ld KiB more", most - before);
}

static void test_parallel(void)
{
	enum { MANY = 100 };
	int s[MANY], fine = 0;
	const char *ask = "POST /slow HTTP/1.1\r\n" HEAD "Content-Length: 2\r\n\r\nhi";
	int64_t begin = clock_mono_ms();
	for (int i = 0; i < MANY; i++) {
		s[i] = bed_connect("198.18.1.0", 80);
		(void)!write(s[i], ask, strlen(ask));
	}
	for (int i = 0; i < MANY; i++) {
		auto_free char *a = bed_read_all(s[i]);
		fine += has(a, "HTTP/1.1 203") && has(a, "\r\n\r\nhi");
		close(s[i]);
	}
	ok(fine == MANY, "%d of %d at once", fine, MANY);
	ok(clock_mono_ms() - begin < 15000, "not one after the other (that were 30 s)");
}

static bool upstream_cut(void)
{
	char x;
	struct pollfd p = {.fd = bed.closed, .events = POLLIN};
	return poll(&p, 1, 5000) == 1 && read(bed.closed, &x, 1) == 1;
}

static int hanging(void)
{
	int s = bed_connect("198.18.1.0", 80);
	const char *ask = "GET /hang HTTP/1.1\r\nHost: anthropic.agentbox\r\n\r\n";
	(void)!write(s, ask, strlen(ask));
	usleep(300 * 1000);
	return s;
}

static void test_disconnect(void)
{
	close(hanging());
	ok(upstream_cut(), "a client that goes away cancels its request upstream");
	ok(bed_event(EGRESS_ALLOWED, "127.0.0.1", 8080, "no response, cancelled") != NULL,
	        "and what went out is counted");
}

static void test_rotation(void)
{
	bed_policies(BED_SECRET_NEW, 2);
	auto_free char *a = bed_ask("198.18.1.0", "GET /echo HTTP/1.1\r\n" HEAD "\r\n");
	ok(has(bed.asked, "x-api-key: " BED_SECRET_NEW "\r\n") && !has(a, BED_SECRET_NEW),
	        "the new secret is used at once");
}

/* ---- other ports ---- */

static void test_tls_port(void)
{
	/* A hello of 1.3 with nothing but the server name. */
	static const char name[] = "api.openai.com";
	uint8_t p[256] = {22, 3, 1, 0, 0, 1, 0, 0, 0, 3, 3};
	size_t at = 11 + 32, len = sizeof(name) - 1;
	static const uint8_t middle[] = {0, 0, 2, 0x13, 1, 1, 0};
	memcpy(p + at, middle, sizeof(middle));
	at += sizeof(middle);
	const uint8_t ext[] = {0, (uint8_t)(len + 9), 0, 0, 0, (uint8_t)(len + 5), 0,
	        (uint8_t)(len + 3), 0, 0, (uint8_t)len};
	memcpy(p + at, ext, sizeof(ext));
	at += sizeof(ext);
	memcpy(p + at, name, len);
	at += len;
	p[4] = (uint8_t)(at - 5);
	p[8] = (uint8_t)(at - 9);
	auto_close int s = bed_connect("104.18.6.192", 443);
	(void)!write(s, p, 20);
	usleep(50000);
	(void)!write(s, p + 20, at - 20);
	ok(read(s, p, sizeof(p)) < 0 && errno == ECONNRESET, "TLS is reset");
	ok(bed_event(EGRESS_DENIED, name, 443, "tls: api.openai.com not in policy 'default'") !=
	                NULL,
	        "and named");
	auto_close int silent = bed_connect("104.18.6.193", 443);
	ok(read(silent, p, sizeof(p)) < 0 && errno == ECONNRESET, "so is silence, after a while");
	ok(bed_event(EGRESS_DENIED, "104.18.6.193", 443, "not in policy") != NULL,
	        "by its address");
}

static void test_watch(void)
{
	ok(bed_connect("203.0.113.7", 8443) == -ECONNREFUSED, "no other port answers");
	ok(bed_event(EGRESS_DENIED, "203.0.113.7", 8443, "tcp: port 8443") != NULL,
	        "and it is told");
	auto_close int u = bed_socket(AF_INET, SOCK_DGRAM);
	struct sockaddr_in a = bed_address("203.0.113.8", 443);
	(void)!sendto(u, "x", 1, 0, (const struct sockaddr *)&a, sizeof(a));
	ok(bed_event(EGRESS_DENIED, "203.0.113.8", 443, "udp: port 443") != NULL, "QUIC too");
}

static uint32_t refusals_of(const char *host, uint32_t *ret_events)
{
	uint32_t times = 0;
	*ret_events = 0;
	for (int i = 0; i < bed.nevents; i++)
		if (strcmp(bed.events[i].host, host) == 0) {
			times += bed.events[i].times;
			(*ret_events)++;
		}
	return times;
}

static void test_flood(void)
{
	uint32_t v4;
	char name[64];
	int before = bed.nevents;
	for (int i = 0; i < 500; i++)
		(void)bed_lookup(EGRESS_RESOLVER, "same.example", 1, &v4);
	for (int i = 0; i < 500; i++) {
		snprintf(name, sizeof(name), "n%d.example", i);
		(void)bed_lookup(EGRESS_RESOLVER, name, 1, &v4);
	}
	bed_listen(1500);
	int64_t end = clock_mono_ms() + 10000;
	uint32_t times = 0, events = 0;
	while ((times = refusals_of("same.example", &events)) < 500 && clock_mono_ms() < end)
		bed_listen(100);
	ok(events < 100 && times == 500, "repeats are counted: %u in %u events", times, events);
	/* 50 at once and 20 a second; the packets of the lookups themselves are seen as well. */
	ok(bed.nevents - before < 400, "1000 refusals are %d events", bed.nevents - before);
}

static void test_no_egress(void)
{
	bed_jail_end(1);
	bed_listen(300);
	bed_jail(2, JAIL_MAKE_NO_EGRESS);
	uint32_t v4;
	ok(bed_lookup(EGRESS_RESOLVER, "anthropic.agentbox", 1, &v4) == 5,
	        "no name where nothing goes out");
	auto_free char *a = bed_ask("198.18.1.0", "GET /echo HTTP/1.1\r\n" HEAD "\r\n");
	ok(has(a, "HTTP/1.1 403") && has(a, "nothing goes out of this jail"), "and no request");
	const struct jail_egress *m =
	        bed_event(EGRESS_DENIED, "anthropic.agentbox", 80, "nothing goes out");
	ok(m && m->jail == 2, "told under its own number");
	bed_jail_end(2);
}

static void test_jail_end(void)
{
	char x;
	int s = hanging();
	auto_close int idle = bed_connect("198.18.1.0", 80);
	bed_jail_end(1);
	ok(read(s, &x, 1) <= 0 && read(idle, &x, 1) <= 0,
	        "the end of a jail closes its connections");
	ok(upstream_cut(), "and cancels what was under way");
	ok(bed_connect("198.18.1.0", 80) == -ECONNREFUSED, "its listeners are gone");
	close(s);
	bed_jail(1, 0);
}

/* ---- TLS outside ---- */

static void test_tls_outside(void)
{
	auto_free char *a = bed_ask(
	        "198.18.1.4", "GET / HTTP/1.1\r\nHost: tls.agentbox\r\nConnection: close\r\n\r\n");
	if (!ok(has(a, "HTTP/1.1 200 ") && has(a, "TLSv1.3"), "an upstream by TLS"))
		printf("# %.400s\n", a);
	auto_free char *b = bed_ask("198.18.1.5",
	        "GET / HTTP/1.1\r\nHost: wrongname.agentbox\r\nConnection: close\r\n\r\n");
	ok(has(b, "HTTP/1.1 502 "), "a certificate of another name is refused");
	ok(bed_event(EGRESS_DENIED, "127.0.0.1", 8443, "SSL") != NULL, "and told");
}

static void test_secrecy(void)
{
	auto_free char *log = NULL;
	size_t n = 0;
	int leaked = 0;
	for (int i = 0; i < bed.nevents; i++)
		leaked += memmem(&bed.events[i], sizeof(bed.events[i]), "sk-", 3) != NULL;
	ok(leaked == 0, "no event of %d has a secret", bed.nevents);
	must(file_slurp(bed.log, 1 << 20, &log, &n) == 0, "log");
	ok(!has(log, "sk-"), "nor has the log");
	ok(!has(log, "error: "), "which has no error either");
	if (n)
		printf("# %s", log);
}

static void test_confined(void)
{
	char path[64], line[256];
	int fine = 0;
	snprintf(path, sizeof(path), "/proc/%d/status", bed.egress);
	FILE *f = fopen(path, "re");
	must(f != NULL, "status");
	while (fgets(line, sizeof(line), f)) {
		unsigned a, b, c, d;
		if (sscanf(line, "Uid: %u %u %u %u", &a, &b, &c, &d) == 4)
			fine += a == ID_EGRESS && b == a && c == a && d == a;
		fine += has(line, "CapPrm:\t0000000000000000") +
		        has(line, "CapBnd:\t0000000000000000") + has(line, "NoNewPrivs:\t1") +
		        has(line, "Seccomp:\t2") + has(line, "Threads:\t1\n");
	}
	fclose(f);
	ok(fine == 6, "own id, no capability, no new privileges, filtered, one thread");
}

static void test_end(void)
{
	int status = 0;
	close(bed.control);
	pid_t pid = 0;
	for (int i = 0; i < 100 && pid == 0; i++, usleep(50000))
		pid = waitpid(bed.egress, &status, WNOHANG);
	auto_free char *log = NULL;
	if (status != 0 && file_slurp(bed.log, 1 << 20, &log, NULL) == 0)
		printf("# status %x: %s\n", status, log);
	ok(pid == bed.egress && WIFEXITED(status) && WEXITSTATUS(status) == 0,
	        "ends when agentboxd is gone");
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	if (system("openssl version >/dev/null 2>&1") != 0)
		skip_all("needs openssl");
	bed_namespaces();
	bed_fakes();
	bed_tls_upstream();
	bed_egress(BED_TLS_CERT);
	bed_policies(BED_SECRET, 1);
	test_confined();
	bed_jail(1, 0);
	test_names();
	test_credential();
	test_echo();
	test_masked_stream();
	test_refusals();
	test_resolved();
	test_bodies();
	test_keep_alive();
	test_sse();
	test_large();
	test_parallel();
	test_disconnect();
	test_tls_port();
	test_watch();
	test_flood();
	test_jail_end();
	test_tls_outside();
	test_no_egress();
	bed_jail(1, 0);
	test_rotation();
	test_secrecy();
	test_end();
	unlink(bed.log);
	return done();
}
