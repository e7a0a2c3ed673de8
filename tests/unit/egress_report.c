/* Events: the first at once, repeats summed, nothing lost when the socket is full; and secrets. */
#include "egress/report.h"

#include "base/fd.h"
#include "base/mem.h"
#include "egress/secrets.h"
#include "tests/t.h"

#include <fcntl.h>
#include <sys/socket.h>

static int pair[2];

/* Takes all that is there; the number of events, their last one and the sum of their bytes. */
static int take_events(struct jail_egress *ret_last, uint64_t *ret_bytes)
{
	_Alignas(8) char m[MSG_MAX];
	int fds[MSG_FDS], n = 0;
	*ret_bytes = 0;
	while (msg_recv(pair[1], m, fds) == (int)sizeof(*ret_last)) {
		memcpy(ret_last, m, sizeof(*ret_last));
		*ret_bytes += ret_last->bytes_in;
		n++;
	}
	return n;
}

static const struct policy *policy(void)
{
	static struct policy p = {.name = "p",
	        .nrules = 1,
	        .rules = {{.host = ".b.example", .nports = 1, .ports = {8443}}}};
	return &p;
}

static void denied(struct report *r, const char *host, unsigned port, const char *reason)
{
	const struct report_of what = {.host = host,
	        .port = port,
	        .protocol = EGRESS_PROTOCOL_HTTP,
	        .remedy = EGRESS_REMEDY_ALLOW,
	        .policy = policy(),
	        .rule = -1};
	report_denied(r, &what, reason);
}

static void test_repeats(struct report *r)
{
	struct jail_egress m = {0};
	uint64_t bytes;
	report_init(r, pair[0], 7);
	for (int i = 0; i < 100; i++)
		denied(r, "a.example", 80, "http: no");
	ok(take_events(&m, &bytes) == 1 && m.jail == 7 && m.port == 80 &&
	                m.verdict == EGRESS_DENIED,
	        "one of a hundred at once");
	is_str(m.reason, "http: no", "as it is");
	ok(m.times == 1 && m.protocol == EGRESS_PROTOCOL_HTTP && m.remedy == EGRESS_REMEDY_ALLOW,
	        "with what was spoken and what would help");
	ok(!strcmp(m.policy, "p") && !m.rule[0], "and whose rules they are, of which none decided");
	report_flush(r, true);
	ok(take_events(&m, &bytes) == 1, "the others as one");
	ok(m.times == 99 && !strcmp(m.reason, "http: no"), "counted");
	report_flush(r, true);
	ok(take_events(&m, &bytes) == 0, "and nothing more");
}

static void test_kinds(struct report *r)
{
	struct jail_egress m;
	uint64_t bytes;
	char host[32];
	report_init(r, pair[0], 7);
	for (int i = 0; i < 1000; i++) {
		snprintf(host, sizeof(host), "n%d.example", i);
		denied(r, host, 53, "dns: no");
	}
	int now = take_events(&m, &bytes);
	ok(now >= REPORT_BURST && now < REPORT_BURST + 50, "a thousand kinds are %d events", now);
	report_flush(r, true);
	int rest = take_events(&m, &bytes);
	ok(rest <= REPORT_SLOTS, "and %d for the rest", rest);
	is_str(m.host, "(several)", "of which the last stands for all others");
}

static void test_full(struct report *r)
{
	struct jail_egress m;
	uint64_t bytes, sum = 0;
	report_init(r, pair[0], 7);
	const struct report_of what = {.host = "a.b.example",
	        .port = 8443,
	        .protocol = EGRESS_PROTOCOL_TLS,
	        .policy = policy()};
	for (int i = 0; i < 5000; i++)
		report_allowed(r, &what, "tls", 10, 1);
	while (take_events(&m, &bytes) > 0) {
		sum += bytes;
		is_str(m.rule, "*.b.example:8443", "by its rule");
		report_flush(r, true);
	}
	ok(sum == 50000, "no byte is lost when the socket is full: %d", (int)sum);
}

static int secrets_fd(const char *name, const char *value, size_t cut)
{
	struct egress_secret s = {.len = (uint32_t)strlen(value)};
	memcpy(s.name, name, strlen(name));
	memcpy(s.value, value, strlen(value));
	return fd_sealed_memfd("secrets", &s, sizeof(s) - cut);
}

static void test_secrets(void)
{
	struct secrets *s = secrets_new();
	struct err e;
	size_t n = 0;
	auto_close int one = secrets_fd("KEY", "value", 0), two = secrets_fd("KEY", "other", 0);
	auto_close int bad = secrets_fd("BAD", "a\r\nb: c", 0), cut = secrets_fd("KEY", "value", 1);
	ok(!secrets_find(s, "KEY", &n), "none at first");
	must(secrets_replace(s, one, &e) == 0, "a set");
	const char *v = secrets_find(s, "KEY", &n);
	ok(v && n == 5 && !memcmp(v, "value", 5) && !secrets_find(s, "KE", &n),
	        "found by its whole name");
	ok(secrets_replace(s, bad, &e) == -EINVAL && strstr(e.text, "BAD") &&
	                !strstr(e.text, "b: c"),
	        "refused by name: %s", e.text);
	ok(secrets_replace(s, cut, &e) == -EBADMSG, "half an entry is refused");
	v = secrets_find(s, "KEY", &n);
	ok(v && !memcmp(v, "value", 5), "then the old set stays");
	must(secrets_replace(s, two, &e) == 0, "another set");
	v = secrets_find(s, "KEY", &n);
	ok(v && !memcmp(v, "other", 5), "takes its place");
	secrets_free(s);
}

int main(void)
{
	struct report *r = xnew(struct report);
	must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0,
	        "socket");
	test_repeats(r);
	test_kinds(r);
	test_full(r);
	test_secrets();
	free(r);
	return done();
}
