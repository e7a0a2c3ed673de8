/* What a flood leaves behind in agentbox-egress. */
#include "tests/egress_bed.h"

enum { FLOOD = 200, BODY = 250000, DEAF = 8092 };

static void deaf(struct policy *p)
{
	p->ninject = 1; /* those of the bed would leave no room */
	bed_inject(p, "deaf.agentbox", "http://127.0.0.1:8092", "ANTHROPIC_API_KEY", true);
}

/* Takes connections and never says a word. */
static void deaf_upstream(void)
{
	struct sockaddr_in a = bed_address("127.0.0.1", DEAF);
	int t = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(bind(t, (const struct sockaddr *)&a, sizeof(a)) == 0 && listen(t, 4096) == 0, "deaf");
}

/* Requests whose bodies are kept to be sent again, since there is no answer. */
static long flood(int *s, long enough)
{
	static char body[BODY];
	for (int i = 0; i < FLOOD; i++) {
		s[i] = bed_connect("198.18.1.1", 80);
		must(s[i] >= 0, "connection %d", i);
		struct timeval soon = {.tv_usec = 200000};
		setsockopt(s[i], SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof(soon));
		dprintf(s[i],
		        "POST / HTTP/1.1\r\nHost: deaf.agentbox\r\n"
		        "Content-Length: %d\r\n\r\n",
		        BODY);
		(void)!write(s[i], body, sizeof(body)); /* as much as it takes */
	}
	long kib = bed_rss_kib();
	for (int64_t end = clock_mono_ms() + 60000; kib < enough && clock_mono_ms() < end;) {
		bed_listen(100);
		kib = bed_rss_kib();
	}
	return kib;
}

/* The least of the next seconds. */
static long settled(long enough)
{
	int64_t end = clock_mono_ms() + 60000;
	long kib = bed_rss_kib();
	while (kib > enough && clock_mono_ms() < end) {
		bed_listen(100);
		kib = bed_rss_kib();
	}
	return kib;
}

int main(void)
{
	static int s[FLOOD];
	bed_namespaces();
	bed_fakes();
	bed_egress("/etc/ssl/certs/ca-certificates.crt");
	bed_more = deaf;
	deaf_upstream();
	bed_policies(BED_SECRET, 1);
	bed_jail(1, 0);
	free(bed_ask("198.18.1.0", "GET /x HTTP/1.0\r\nHost: anthropic.agentbox\r\n\r\n"));
	long before = bed_rss_kib(), most = flood(s, before + (long)FLOOD * BODY / 2048);
	if (!ok(most > 3 * before, "a flood takes memory: %ld KiB before, %ld in it", before, most))
		return done();
#ifdef SANITIZED /* it keeps what was freed */
	long enough = most * 2;
#else
	long enough = before + before / 2;
#endif
	for (int i = 0; i < FLOOD; i++)
		close(s[i]);
	long after = settled(enough);
	ok(after <= enough, "its connections ended, it is given back: %ld KiB", after);
	most = flood(s, before + (long)FLOOD * BODY / 2048);
	bed_jail_end(1);
	after = settled(enough);
	ok(after <= enough, "after the jail's end, too: %ld KiB after %ld", after, most);
	for (int i = 0; i < FLOOD; i++)
		close(s[i]);
	kill(bed.egress, SIGTERM);
	return done();
}
