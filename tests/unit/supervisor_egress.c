/* What egress told: its words, its sums, and the ring of the latest. */
#include "supervisor/egress_feed.h"
#include "supervisor/egress_news.h"
#include "supervisor/egress_totals.h"
#include "tests/t.h"

#include <stdio.h>
#include <string.h>

static struct jail_egress event(
        enum egress_verdict v, const char *host, uint32_t times, uint64_t in, uint64_t out)
{
	struct jail_egress x = {.verdict = v,
	        .port = 443,
	        .protocol = EGRESS_PROTOCOL_TLS,
	        .remedy = v == EGRESS_DENIED ? EGRESS_REMEDY_ALLOW : EGRESS_REMEDY_NONE,
	        .times = times,
	        .bytes_in = in,
	        .bytes_out = out,
	        .policy = "p",
	        .reason = "why"};
	snprintf(x.host, sizeof(x.host), "%s", host);
	return x;
}

static struct json *members(const struct jail_egress *x)
{
	auto_buf struct buf b = BUF_INIT(EGRESS_NEWS_MAX);
	struct jw w = JW_INIT(&b);
	jw_open(&w, NULL, '{');
	jw_str(&w, "type", egress_news_type(x));
	egress_news_members(x, &w);
	jw_close(&w, '}');
	return json_parse(b.p, b.len, NULL);
}

static void test_words(void)
{
	struct jail_egress no = event(EGRESS_DENIED, "a.example", 3, 0, 0);
	struct jail_egress yes = event(EGRESS_ALLOWED, "b.example", 1, 10, 20);
	snprintf(yes.rule, sizeof(yes.rule), "*.example:443");
	auto_json struct json *j = members(&no), *k = members(&yes);
	is_str(json_str(j, "type", ""), "egress.denied", "a refusal");
	is_str(json_str(j, "protocol", ""), "tls", "what was spoken");
	is_str(json_str(j, "add", ""), "a.example", "what to add");
	is_str(json_str(j, "hint", ""), "add `a.example` to egress.allow of policy 'p'",
	        "and where");
	ok(json_int(j, "times", 0) == 3 && !json_get(j, "rule") && !json_get(j, "bytesIn"),
	        "three times, no rule, no bytes");
	is_str(json_str(k, "rule", ""), "*.example:443", "what went out names its rule");
	ok(json_int(k, "bytesIn", 0) == 10 && json_int(k, "bytesOut", 0) == 20 &&
	                !json_get(k, "add") && !json_get(k, "hint") && !json_get(k, "times"),
	        "and its bytes, and advises nothing");
	auto_buf struct buf b = BUF_INIT(EGRESS_NEWS_MAX);
	egress_news_notice(&no, &b);
	auto_json struct json *notice = json_parse(b.p, b.len, NULL);
	is_str(json_str(notice, "message", ""), "egress denied: a.example:443 (tls): why (3 times)",
	        "a notice");
}

static void test_sums(void)
{
	struct egress_totals t = {0}, again = {0};
	char name[32];
	for (int i = 0; i < EGRESS_HOSTS_KEPT + 10; i++) {
		snprintf(name, sizeof(name), "h%03d.example", i);
		struct jail_egress x = event(EGRESS_ALLOWED, name, 2, (uint64_t)i, 1);
		struct jail_egress no = event(EGRESS_DENIED, name, 1, 0, 0);
		egress_totals_add(&t, &x);
		egress_totals_add(&t, &no);
		auto_json struct json *j = members(&x), *k = members(&no);
		egress_totals_add_event(&again, j);
		egress_totals_add_event(&again, k);
	}
	auto_buf struct buf b = BUF_INIT(64 << 10), c = BUF_INIT(64 << 10);
	struct jw w = JW_INIT(&b), v = JW_INIT(&c);
	jw_open(&w, NULL, '{');
	egress_totals_write(&t, &w);
	jw_close(&w, '}');
	jw_open(&v, NULL, '{');
	egress_totals_write(&again, &v);
	jw_close(&v, '}');
	auto_json struct json *j = json_parse(b.p, b.len, NULL);
	const struct json *e = json_get(j, "egress"), *first = json_first(json_get(e, "hosts"));
	int n = EGRESS_HOSTS_KEPT + 10, shown = 0;
	ok(json_int(e, "allowed", 0) == 2 * n && json_int(e, "denied", 0) == n &&
	                json_int(e, "bytesIn", 0) == n * (n - 1) / 2 &&
	                json_int(e, "bytesOut", 0) == n,
	        "the sums are of all");
	snprintf(name, sizeof(name), "h%03d.example", EGRESS_HOSTS_KEPT - 1);
	is_str(json_str(first, "host", ""), name, "what moved most comes first");
	ok(json_int(first, "requests", 0) == 2 && json_int(first, "denied", 0) == 1,
	        "with its requests and refusals");
	for (const struct json *h = first; h; h = json_next(h))
		shown++;
	ok(shown == EGRESS_HOSTS_SHOWN, "%d hosts are listed", shown);
	ok(b.len == c.len && memcmp(b.p, c.p, b.len) == 0, "the same from the log's events");
	egress_totals_done(&t);
	egress_totals_done(&again);
}

static int woken;

static void wake(struct egress_follower *f)
{
	(void)f;
	woken++;
}

static void test_ring(void)
{
	static struct egress_feed *f; /* for as long as the process, as the supervisor's */
	f = egress_feed_new();
	struct egress_follower a = {.wake = wake}, b = {.wake = wake};
	uint64_t lost;
	char line[32];
	egress_feed_put(f, "0", 1);
	egress_feed_follow(f, &a);
	const char *got = egress_feed_line(f, &a, &lost);
	ok(got && !strcmp(got, "0") && lost == 0 && !egress_feed_line(f, &a, &lost),
	        "what was there before, then nothing");
	for (int i = 1; i <= EGRESS_FEED_LINES + 5; i++) {
		int n = snprintf(line, sizeof(line), "%d", i);
		egress_feed_put(f, line, (size_t)n);
	}
	ok(woken == EGRESS_FEED_LINES + 5, "woken for each");
	got = egress_feed_line(f, &a, &lost);
	ok(got && !strcmp(got, "6") && lost == 5, "who was slow is told what is missing: %d",
	        (int)lost);
	got = egress_feed_line(f, &a, &lost);
	ok(got && !strcmp(got, "7") && lost == 0, "once");
	egress_feed_follow(f, &b);
	got = egress_feed_line(f, &b, &lost);
	ok(got && !strcmp(got, "6") && lost == 0, "a new one begins with the oldest");
	egress_feed_leave(&a);
	egress_feed_leave(&b);
	woken = 0;
	egress_feed_put(f, "x", 1);
	ok(woken == 0, "who has left is not woken");
}

int main(void)
{
	test_words();
	test_sums();
	test_ring();
	return done();
}
