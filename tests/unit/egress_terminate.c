/* TLS that is terminated: all of agentbox-egress, confined, with clients that go wrong on purpose.
 */
#include "tests/egress_bed.h"
#include "egress/certs.h"
#include "egress/shake.h"
#include "policy/advice.h"

#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#define TRUST "/etc/jail.pem"

enum { TLS_PORT = 8443, OTHER_PORT = 8444, PLAIN_PORT = 8445, BOUND = 300000 };

static bool has(const char *text, const char *part)
{
	return strstr(text, part) != NULL;
}

/* ---- the policy ---- */

static struct policy_rule *add(struct policy *p, const char *host, unsigned port)
{
	struct policy_rule *r = &p->rules[p->nrules++];
	(void)str_copy(r->host, sizeof(r->host), host);
	r->nports = 1;
	r->ports[0] = (uint16_t)port;
	r->ncidrs = cidr_parse("127.0.0.0/8", &r->cidrs[0]);
	return r;
}

static bool relaxed;  /* the second policy terminates other names */
static bool narrowed; /* another has one request less */

static void rules(struct policy *p)
{
	struct policy_rule *r = add(p, "good.example", TLS_PORT);
	r->terminate = !relaxed;
	if (!relaxed) {
		p->requests[0] = (struct policy_request){"GET", "/echo"};
		p->requests[1] = (struct policy_request){"POST", "/sink"};
		p->requests[2] = (struct policy_request){"GET", "/big"};
		p->requests[3] = (struct policy_request){"GET", "/sse"};
		p->nrequests = narrowed ? 3 : 4;
		r->requests.n = p->nrequests;
	}
	add(p, ".good.example", TLS_PORT)->terminate = true;
	r = add(p, "good.example", OTHER_PORT);
	r->terminate = true;
	r->bytes = BOUND;
	(void)add(p, "plain.good.example", PLAIN_PORT);
	if (relaxed)
		add(p, "new.goodness.example", TLS_PORT)->terminate = true;
	static const uint16_t ports[] = {TLS_PORT, OTHER_PORT, PLAIN_PORT};
	memcpy(p->ports, ports, sizeof(ports));
	p->nports = ARRAY_LEN(ports);
}

static void make_authority(void)
{
	static const char *const names[] = {"good.example", ".good.example"};
	struct authority a;
	struct err e;
	must(certs_make(names, ARRAY_LEN(names), &a, &e) == 0, "an authority");
	bed_authority = fd_sealed_memfd("authority", &a, sizeof(a));
	auto_close int fd = open(TRUST, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	must(fd >= 0 && fd_write_all(fd, a.cert, a.cert_bytes) == 0, "and who trusts it");
}

/* ---- what is outside: TLS before the plain upstream of the bed ---- */

static void carry(SSL *ssl, int s, int plain)
{
	static char block[16 << 10];
	struct pollfd p[2] = {{.fd = s, .events = POLLIN}, {.fd = plain, .events = POLLIN}};
	for (;;) {
		int n = 1;
		if (!SSL_pending(ssl) && poll(p, 2, -1) < 0)
			_exit(1);
		if (SSL_pending(ssl) || p[0].revents) {
			n = SSL_read(ssl, block, sizeof(block));
			if (n <= 0 || fd_write_all(plain, block, (size_t)n) < 0)
				_exit(0);
		}
		if (p[1].revents) {
			n = (int)read(plain, block, sizeof(block));
			if (n <= 0) {
				SSL_shutdown(ssl);
				_exit(0);
			}
			if (SSL_write(ssl, block, n) != n)
				_exit(0);
		}
		p[0].revents = p[1].revents = 0;
	}
}

static void serve_one(SSL_CTX *ctx, int s)
{
	struct sockaddr_in a = bed_address("127.0.0.1", BED_UPSTREAM);
	int plain = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	SSL *ssl = SSL_new(ctx);
	SSL_set_fd(ssl, s);
	if (SSL_accept(ssl) != 1 || connect(plain, (const struct sockaddr *)&a, sizeof(a)) != 0)
		_exit(1);
	carry(ssl, s, plain);
}

static void tls_upstream(unsigned port)
{
	struct sockaddr_in a = bed_address("127.0.0.1", port);
	int t = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	setsockopt(t, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	must(bind(t, (const struct sockaddr *)&a, sizeof(a)) == 0 && listen(t, 512) == 0,
	        "an upstream on %u", port);
	if (bed_child() == 0) {
		SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
		if (SSL_CTX_use_certificate_chain_file(ctx, BED_TLS_CERT) != 1 ||
		        SSL_CTX_use_PrivateKey_file(ctx, BED_TLS_KEY, SSL_FILETYPE_PEM) != 1)
			_exit(1);
		signal(SIGCHLD, SIG_IGN);
		signal(SIGPIPE, SIG_IGN);
		for (;;) {
			int one = accept(t, NULL, NULL);
			if (one >= 0 && fork() == 0)
				serve_one(ctx, one);
			close(one);
		}
	}
	close(t);
}

/* ---- a client, whose bytes go through our hands ---- */

struct client_spec {
	const char *name; /* dialled */
	const char *sni;  /* NULL: the same; "": none */
	unsigned port;
	const char *alpn; /* in wire form, or NULL */
	const char *trust;
	int version;
	size_t split; /* the hello is sent in two parts, the second after this many bytes */
	bool trickle; /* byte by byte, all of the handshake */
};

struct talk {
	int s;
	SSL *ssl;
	BIO *in, *out;
	bool ready; /* the handshake is done */
	size_t hello;
};

/* Each name is looked up once: lookups of the same name are events of their own for whoever watches
 * the jail's packets, and the table of events is small. */
static int dial_name(const char *name, unsigned port)
{
	static char last[POLICY_HOST_MAX];
	static uint32_t a;
	char ip[32];
	if (strcmp(last, name) != 0 && (bed_lookup(EGRESS_RESOLVER, name, 1, &a) != 0 || !a))
		return -1;
	(void)str_copy(last, sizeof(last), name);
	snprintf(ip, sizeof(ip), "%u.%u.%u.%u", a >> 24, a >> 16 & 255, a >> 8 & 255, a & 255);
	return bed_connect(ip, port);
}

static bool push(struct talk *t, const struct client_spec *c)
{
	char *p;
	long n = BIO_get_mem_data(t->out, &p);
	size_t first = n > 0 && !t->hello ? c->split : 0, at = 0;
	int on = 1;
	if (n <= 0)
		return true;
	if (!t->hello)
		t->hello = (size_t)n;
	setsockopt(t->s, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	while (at < (size_t)n) {
		size_t k = c->trickle ? 1 : first && at == 0 ? first : (size_t)n - at;
		if (send(t->s, p + at, k, MSG_NOSIGNAL) != (ssize_t)k)
			return false;
		at += k;
		if (first && at == first)
			usleep(300);
	}
	(void)BIO_reset(t->out);
	return true;
}

static bool pull(struct talk *t)
{
	char block[16 << 10];
	ssize_t n = recv(t->s, block, sizeof(block), 0);
	return n > 0 && BIO_write(t->in, block, (int)n) == n;
}

static void begin(struct talk *t, const struct client_spec *c)
{
	static SSL_CTX *ctx;
	if (!ctx)
		ctx = SSL_CTX_new(TLS_client_method());
	*t = (struct talk){.s = dial_name(c->name, c->port)};
	t->ssl = SSL_new(ctx);
	t->in = BIO_new(BIO_s_mem());
	t->out = BIO_new(BIO_s_mem());
	BIO_set_mem_eof_return(t->in, -1);
	SSL_set_bio(t->ssl, t->in, t->out);
	SSL_set_connect_state(t->ssl);
	const char *sni = c->sni ? c->sni : c->name;
	if (*sni)
		SSL_ctrl(t->ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
		        (void *)(uintptr_t)sni);
	SSL_set1_host(t->ssl, c->name);
	SSL_set_verify(t->ssl, SSL_VERIFY_PEER, NULL);
	X509_STORE *store = X509_STORE_new();
	X509_STORE_load_locations(store, c->trust ? c->trust : TRUST, NULL);
	SSL_set0_verify_cert_store(t->ssl, store);
	if (c->alpn)
		SSL_set_alpn_protos(
		        t->ssl, (const unsigned char *)c->alpn, (unsigned)strlen(c->alpn));
	if (c->version) {
		SSL_set_min_proto_version(t->ssl, c->version);
		SSL_set_max_proto_version(t->ssl, c->version);
	}
}

static bool shake_hands(struct talk *t, const struct client_spec *c)
{
	begin(t, c);
	for (;;) {
		int r = SSL_do_handshake(t->ssl), why = SSL_get_error(t->ssl, r);
		bool sent = push(t, c); /* an alert, too */
		if (r == 1 && sent)
			return t->ready = true;
		if (!sent || why != SSL_ERROR_WANT_READ || !pull(t))
			return false;
	}
}

static void hang_up(struct talk *t)
{
	SSL_free(t->ssl);
	close(t->s);
	ERR_clear_error();
}

static bool say(struct talk *t, const char *p, size_t n)
{
	static const struct client_spec plain = {.split = 0};
	return SSL_write(t->ssl, p, (int)n) == (int)n && push(t, &plain);
}

/* Until the other side ends, or `until` is there; owned. */
static char *hear(struct talk *t, const char *until)
{
	struct buf b = BUF_INIT(256 << 20);
	char block[16 << 10];
	buf_puts(&b, "");
	for (;;) {
		int n = SSL_read(t->ssl, block, sizeof(block));
		if (n > 0)
			buf_put(&b, block, (size_t)n);
		else if (SSL_get_error(t->ssl, n) != SSL_ERROR_WANT_READ || !pull(t))
			break;
		if (until && b.len && memmem(b.p, b.len, until, strlen(until)))
			break;
	}
	if (b.len == 0)
		buf_put(&b, "", 1);
	return buf_take(&b);
}

/* One connection, one request (its headers after the first line), all that comes back. */
static char *ask(const struct client_spec *c, const char *line, const char *host)
{
	char request[512];
	struct talk t;
	char *answer = NULL;
	snprintf(request, sizeof(request), "%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n",
	        line, host);
	if (shake_hands(&t, c) && say(&t, request, strlen(request)))
		answer = hear(&t, NULL);
	hang_up(&t);
	return answer ? answer : xstrdup("(no handshake)");
}

#define GOOD                                                                                       \
	{                                                                                          \
		.name = "good.example", .port = TLS_PORT                                           \
	}
static const struct client_spec good = GOOD;

/* ---- tests ---- */

static void test_requests(void)
{
	static const struct {
		const char *line, *host, *answer;
	} rows[] = {
	        {"GET /echo", "good.example:8443", "HTTP/1.1 203"},
	        {"GET /echo?a=/../b", "GOOD.example:8443", "GET /echo?a=/../b"},
	        {"GET /other", "good.example:8443", "not among the requests"},
	        {"DELETE /echo", "good.example:8443", "not among the requests"},
	        {"GET /%65cho", "good.example:8443", "not among the requests"},
	        {"GET /x%2f../echo", "good.example:8443", "HTTP/1.1 40"},
	        {"GET /echo", "good.example", "Host names port 443, 8443 was dialled"},
	        {"GET /echo", "www.good.example:8443", "is not the server name good.example"},
	        {"GET /echo", "evil.example:8443", "not in policy"},
	        {"GET https://good.example:8443/echo", "good.example:8443", "HTTP/1.1 40"},
	        {"GET /echo", "good.example:8443\r\nUpgrade: websocket\r\nConnection: upgrade",
	                "Upgrade is refused"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_free char *a = ask(&good, rows[i].line, rows[i].host);
		if (!ok(has(a, rows[i].answer), "%s: %s", rows[i].line, rows[i].answer))
			printf("# %.300s\n", a);
	}
	ok(bed_event(EGRESS_DENIED, "good.example", TLS_PORT, "GET /other is not among") != NULL,
	        "a refused request is told");
	const struct jail_egress *m =
	        bed_event(EGRESS_ALLOWED, "good.example", TLS_PORT, "GET, status 203");
	ok(m && m->bytes_in > 100 && m->bytes_out > 50, "an allowed one with its bytes");
	struct client_spec below = GOOD;
	below.name = "a.b.good.example";
	auto_free char *b = ask(&below, "GET /anything", "a.b.good.example:8443");
	if (!ok(has(b, "HTTP/1.1 203"), "a name below a suffix, every request"))
		printf("# %.300s\n", b);
	below.name = "x.y.good.example";
	auto_free char *c = ask(&below, "GET /echo", "x.y.good.example:8443");
	if (!ok(has(c, "HTTP/1.1 502") && !has(c, "GET /echo"),
	            "a server whose certificate is for another name is not asked"))
		printf("# %.300s\n", c);
}

static void test_many_requests(void)
{
	static const char one[] = "GET /echo HTTP/1.1\r\nHost: good.example:8443\r\n\r\n";
	struct talk t;
	int fine = 0;
	must(shake_hands(&t, &good), "one connection");
	for (int i = 0; i < 20; i++) {
		auto_free char *a = say(&t, one, sizeof(one) - 1) ? hear(&t, "\r\n\r\nGET") : NULL;
		fine += a && has(a, "HTTP/1.1 203");
	}
	ok(fine == 20, "twenty requests on it");
	static const char other[] = "GET /echo HTTP/1.1\r\nHost: www.good.example:8443\r\n\r\n";
	auto_free char *b = say(&t, other, sizeof(other) - 1) ? hear(&t, NULL) : NULL;
	ok(b && has(b, "HTTP/1.1 403"), "not for another host of the same server");
	hang_up(&t);
}

/* A hello is taken apart twice, by us and by OpenSSL: where it is cut makes no difference. */
static void test_splits(void)
{
	struct talk t;
	struct client_spec c = GOOD;
	int whole = 0, tried = 0;
	must(shake_hands(&t, &c), "in one piece");
	size_t n = t.hello;
	hang_up(&t);
	for (c.split = 1; c.split < n; c.split++, tried++) {
		whole += shake_hands(&t, &c);
		hang_up(&t);
	}
	ok(whole == tried && tried > 150, "the hello split at each byte: %d of %d", whole, tried);
	c.split = 0;
	c.trickle = true;
	ok(shake_hands(&t, &c), "a handshake byte by byte");
	static const char line[] = "GET /echo HTTP/1.1\r\nHost: good.example:8443\r\n"
	                           "Connection: close\r\n\r\n";
	bool said = true;
	for (size_t i = 0; i < sizeof(line) - 1; i++)
		said = said && say(&t, line + i, 1);
	auto_free char *a = said ? hear(&t, NULL) : xstrdup("");
	ok(has(a, "HTTP/1.1 203"), "a request a record for each byte");
	hang_up(&t);
}

static void test_versions(void)
{
	static const struct {
		const char *alpn, *what, *got;
		bool works;
	} rows[] = {
	        {"\x8http/1.1", "http/1.1", "http/1.1", true},
	        {"\x2h2\x8http/1.1", "h2 and http/1.1", "http/1.1", true},
	        {"\x6random", "something else", "", true},
	        {"\x2h2", "h2 alone", "", false},
	};
	struct talk t;
	struct client_spec c = GOOD;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		c.alpn = rows[i].alpn;
		bool works = shake_hands(&t, &c);
		const unsigned char *got = NULL;
		unsigned n = 0;
		SSL_get0_alpn_selected(t.ssl, &got, &n);
		ok(works == rows[i].works && n == strlen(rows[i].got) &&
		                (!n || memcmp(got, rows[i].got, n) == 0),
		        "a program that offers %s", rows[i].what);
		hang_up(&t);
	}
	ok(bed_event(EGRESS_DENIED, "good.example", TLS_PORT, "HTTP/2 alone") != NULL, "told");
	c.alpn = NULL;
	c.version = TLS1_2_VERSION;
	auto_free char *a = ask(&c, "GET /echo", "good.example:8443");
	ok(has(a, "HTTP/1.1 203"), "TLS 1.2");
	must(shake_hands(&t, &c), "again");
	SSL_renegotiate(t.ssl);
	static const struct client_spec plain = {.split = 0};
	int r = SSL_do_handshake(t.ssl);
	while (r != 1 && SSL_get_error(t.ssl, r) == SSL_ERROR_WANT_READ && push(&t, &plain) &&
	        pull(&t))
		r = SSL_do_handshake(t.ssl);
	ok(r != 1, "it is not negotiated again");
	hang_up(&t);
	c.version = TLS1_1_VERSION;
	ok(!shake_hands(&t, &c), "nothing older");
	hang_up(&t);
}

static void test_names(void)
{
	struct talk t;
	struct client_spec c = GOOD;
	c.sni = "www.good.example";
	ok(!shake_hands(&t, &c), "another server name than the one dialled");
	hang_up(&t);
	ok(bed_event(EGRESS_DENIED, "good.example", TLS_PORT, "is not the name dialled") != NULL,
	        "told");
	c.sni = "";
	ok(!shake_hands(&t, &c), "none");
	hang_up(&t);
	ok(bed_event(EGRESS_DENIED, "good.example", TLS_PORT, "without a server name") != NULL,
	        "told");
	c = (struct client_spec)GOOD;
	c.name = "a_b.good.example";
	ok(!shake_hands(&t, &c), "one that no certificate can have");
	hang_up(&t);
	ok(bed_event(EGRESS_DENIED, "a_b.good.example", TLS_PORT, "is no host name") != NULL,
	        "told");
}

static void test_distrust(void)
{
	struct talk t;
	struct client_spec c = GOOD;
	c.trust = BED_TLS_CERT; /* the server's own, as a program has it that pins */
	ok(!shake_hands(&t, &c), "a program that trusts another authority");
	hang_up(&t);
	const struct jail_egress *m =
	        bed_event(EGRESS_DENIED, "good.example", TLS_PORT, "does not trust");
	must(m, "told");
	char hint[ADVICE_HINT_MAX];
	const struct advice advice = {.remedy = m->remedy,
	        .protocol = m->protocol,
	        .host = m->host,
	        .port = m->port,
	        .policy = m->policy,
	        .rule = m->rule};
	ok(advice_hint(&advice, hint) &&
	                has(hint, "leave `terminate` out of rule good.example:8443"),
	        "with what to do: %s", hint);
	begin(&t, &good);
	(void)SSL_do_handshake(t.ssl);
	(void)push(&t, &good);
	ok(pull(&t), "one that has seen the certificate");
	hang_up(&t);
	ok(bed_event(EGRESS_DENIED, "good.example", TLS_PORT, "hung up on the jail's certificate"),
	        "and hangs up without a word");
	c = (struct client_spec){
	        .name = "plain.good.example", .port = PLAIN_PORT, .trust = BED_TLS_CERT};
	ok(shake_hands(&t, &c), "a name that is not terminated: the server's own certificate");
	hang_up(&t);
	c.trust = TRUST;
	ok(!shake_hands(&t, &c), "and no other");
	hang_up(&t);
}

static void test_slow(void)
{
	struct talk t;
	char byte;
	int64_t start = clock_mono_ms();
	begin(&t, &good);
	(void)SSL_do_handshake(t.ssl);
	(void)push(&t, &good);
	while (recv(t.s, &byte, 1, 0) > 0)
		;
	int64_t took = clock_mono_ms() - start;
	ok(took >= SHAKE_MS && took < SHAKE_MS + BED_WAIT_MS / 2, "a handshake that stops: %lld ms",
	        (long long)took);
	hang_up(&t);
	ok(bed_event(EGRESS_DENIED, "good.example", TLS_PORT, "did not end within") != NULL,
	        "told");
	begin(&t, &good);
	(void)SSL_do_handshake(t.ssl);
	(void)push(&t, &good);
	must(pull(&t) && send(t.s, "garbage, not a record", 21, MSG_NOSIGNAL) == 21, "garbage");
	while (recv(t.s, &byte, 1, 0) > 0)
		;
	ok(bed_event(EGRESS_DENIED, "good.example", TLS_PORT, "tls: handshake: ") != NULL,
	        "what is no record is told");
	hang_up(&t);
}

/* Much in each direction, in records of all sizes, with a side that sleeps. */
static void test_volume(void)
{
	enum { UP = 8 << 20, DOWN = 24 << 20 };
	static char block[40 << 10];
	struct talk t;
	char head[256];
	must(shake_hands(&t, &good), "up");
	snprintf(head, sizeof(head),
	        "POST /sink HTTP/1.1\r\nHost: good.example:8443\r\nContent-Length: %d\r\n"
	        "Connection: close\r\n\r\n",
	        UP);
	bool said = say(&t, head, strlen(head));
	for (size_t n = 0, k = 1; said && n < UP; n += k, k = (k * 7 + 13) % sizeof(block)) {
		k = k ? k : 1;
		k = k < UP - n ? k : UP - n;
		said = say(&t, block, k);
	}
	auto_free char *a = said ? hear(&t, NULL) : xstrdup("(cut)");
	snprintf(head, sizeof(head), "%08x", UP);
	if (!ok(has(a, head), "8 MiB to an upstream that reads slowly"))
		printf("# %.300s\n", a);
	hang_up(&t);
	must(shake_hands(&t, &good), "down");
	static const char get[] = "GET /big?25165824 HTTP/1.1\r\nHost: good.example:8443\r\n"
	                          "Connection: close\r\n\r\n";
	must(say(&t, get, sizeof(get) - 1), "asked");
	sleep(1);
	auto_free char *b = hear(&t, NULL);
	size_t n = strlen(b);
	ok(n > DOWN && n < DOWN + 1000, "24 MiB to a program that slept: %zu", n);
	hang_up(&t);
	auto_free char *c = ask(&good, "GET /sse", "good.example:8443");
	ok(has(c, "data: event"), "events");
}

static void test_bounds(void)
{
	struct client_spec c = GOOD;
	c.port = OTHER_PORT;
	auto_free char *a = ask(&c, "GET /big?100000", "good.example:8444");
	ok(strlen(a) > 100000, "within a rule's bytes");
	auto_free char *b = ask(&c, "GET /big?1000000", "good.example:8444");
	ok(strlen(b) < BOUND, "more than that is cut");
	ok(bed_event(EGRESS_DENIED, "good.example", OTHER_PORT, "are used up") != NULL, "told");
}

/* What is under way when the policies are sent again: the same ones with secrets that have changed,
 * or others. */
static void test_change_meanwhile(void)
{
	static const char get[] = "GET /sse HTTP/1.1\r\nHost: good.example:8443\r\n\r\n";
	for (narrowed = false;; narrowed = true) {
		struct talk t;
		must(shake_hands(&t, &good) && say(&t, get, sizeof(get) - 1), "events");
		auto_free char *first = hear(&t, "data: event");
		bed_policies(BED_SECRET, 1);
		auto_free char *rest = hear(&t, "0\r\n\r\n");
		bool whole = has(rest, "0\r\n\r\n");
		hang_up(&t);
		if (narrowed) {
			ok(!whole, "a request that is not among those allowed any more is cut");
			break;
		}
		if (!ok(whole, "policies that allow an answer do not cut it"))
			printf("# %.300s|%.300s\n", first, rest);
	}
	ok(bed_event(EGRESS_DENIED, "good.example", TLS_PORT, "allows it no longer") != NULL,
	        "told");
	narrowed = false;
	bed_policies(BED_SECRET, 1);
}

static void test_change(void)
{
	static const char get[] = "GET /echo HTTP/1.1\r\nHost: good.example:8443\r\n\r\n";
	struct talk t;
	must(shake_hands(&t, &good) && say(&t, get, sizeof(get) - 1), "asked before");
	free(hear(&t, "\r\n\r\nGET"));
	relaxed = true;
	bed_policies(BED_SECRET, 2);
	auto_free char *a = say(&t, get, sizeof(get) - 1) ? hear(&t, NULL) : xstrdup("");
	ok(has(a, "not terminated any more"), "a connection of before is not used on");
	hang_up(&t);
	struct client_spec c = GOOD;
	c.trust = BED_TLS_CERT;
	struct talk relayed;
	ok(shake_hands(&relayed, &c), "the next one gets to the server itself");
	c.name = "new.goodness.example";
	ok(!shake_hands(&t, &c), "a name that was not terminated when the jail began");
	hang_up(&t);
	ok(bed_event(EGRESS_DENIED, "new.goodness.example", TLS_PORT, "this jail began before"),
	        "is told as that");
	relaxed = false;
	bed_policies(BED_SECRET, 1);
	auto_free char *b = hear(&relayed, NULL);
	hang_up(&relayed);
	bed_listen(100);
	const struct jail_egress *m =
	        bed_event(EGRESS_DENIED, "good.example", TLS_PORT, "allows it no longer");
	ok(*b == '\0' && m && m->protocol == EGRESS_PROTOCOL_TLS,
	        "a relay of what is terminated from now on is cut");
	bed_jail_end(1);
	close(bed_authority);
	bed_authority = 0;
	bed_policies(BED_SECRET, 1);
	bed_jail(2, 0);
	ok(!shake_hands(&t, &good), "a jail without an authority terminates nothing");
	hang_up(&t);
	ok(bed_event(EGRESS_DENIED, "good.example", TLS_PORT, "before its policy terminated any"),
	        "told");
}

static int open_fds(void)
{
	char path[64];
	int n = 0;
	snprintf(path, sizeof(path), "/proc/%d/fd", bed.egress);
	for (int i = 0; i < 4096; i++) {
		char one[96];
		struct stat st;
		snprintf(one, sizeof(one), "%s/%d", path, i);
		n += lstat(one, &st) == 0;
	}
	return n;
}

static void test_leaks(int fds, long kib)
{
	struct talk t;
	for (int i = 0; i < 300; i++) {
		begin(&t, &good);
		(void)SSL_do_handshake(t.ssl);
		(void)push(&t, &good);
		hang_up(&t);
	}
	for (int i = 0; i < 100 && open_fds() > fds + 4; i++)
		bed_listen(100);
	ok(open_fds() <= fds + 4, "%d descriptors before, %d after", fds, open_fds());
#ifdef SANITIZED /* it keeps what was freed */
	kib += 512 << 10;
#endif
	ok(bed_rss_kib() < kib + (8 << 10), "%ld KiB before, %ld after", kib, bed_rss_kib());
	auto_free char *log = NULL;
	must(file_slurp(bed.log, 1 << 20, &log, NULL) == 0, "log");
	if (!ok(!has(log, "error") && !has(log, "Sanitizer"), "nothing went wrong in it"))
		printf("# %s\n", log);
}

int main(void)
{
	bed_namespaces();
	signal(SIGPIPE, SIG_IGN);
	bed_tls_certificate();
	make_authority();
	bed_fakes();
	tls_upstream(TLS_PORT);
	tls_upstream(OTHER_PORT);
	tls_upstream(PLAIN_PORT);
	bed_egress(BED_TLS_CERT);
	bed_more = rules;
	bed_policies(BED_SECRET, 1);
	bed_jail(1, 0);
	test_requests();
	int fds = open_fds();
	long kib = bed_rss_kib();
	test_many_requests();
	test_splits();
	test_versions();
	test_names();
	test_distrust();
	test_slow();
	test_volume();
	test_bounds();
	test_leaks(fds, kib);
	test_change_meanwhile();
	test_change();
	kill(bed.egress, SIGTERM);
	return done();
}
