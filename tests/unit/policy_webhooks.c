/* Whose runs a webhook is told of, what keeps it from being believed, and the pauses between
 * attempts. */
#include "policy/webhooks.h"
#include "base/mem.h"
#include "tests/t.h"

static struct err e;

static struct webhook good(void)
{
	return (struct webhook){.name = "main",
	        .url = "https://hooks.example.com/a",
	        .secret = "KEY",
	        .events = WEBHOOK_DEFAULT,
	        .timeout_ms = 10000,
	        .first_ms = 1000,
	        .most_ms = 300000,
	        .keep_ms = 86400000};
}

static bool takes(const struct webhook *w, const char *harness, const char *user, char *name)
{
	char *names[] = {name, NULL};
	return webhook_takes(w, harness, user, name ? names : NULL);
}

static void filter(void)
{
	struct webhook w = good();
	ok(takes(&w, "h", "u", NULL), "without filters, all runs");
	w.nharnesses = 2;
	strcpy(w.harnesses[0], "a");
	strcpy(w.harnesses[1], "web-*");
	ok(takes(&w, "a", "u", NULL) && takes(&w, "web-x", "u", NULL), "of these harnesses");
	ok(!takes(&w, "ab", "u", NULL) && !takes(&w, "xweb-x", "u", NULL), "and no others");
	w.nusers = 1;
	strcpy(w.users[0], "team/*");
	ok(takes(&w, "a", "team/ana", NULL), "and of these users");
	ok(!takes(&w, "a", "ana", NULL) && !takes(&w, "a", "team/ana/x", NULL), "and no others");
	w = good();
	w.named_only = 1;
	ok(!takes(&w, "a", "u", NULL) && !takes(&w, "a", "u", (char[]){"other"}), "not named");
	ok(takes(&w, "a", "u", (char[]){"main"}), "named");
	w.nusers = 1;
	strcpy(w.users[0], "ana");
	ok(!takes(&w, "a", "u", (char[]){"main"}), "a harness does not widen what root says");
}

static void events(void)
{
	ok(webhook_event_bit("run.done", 8) == 1u << WEBHOOK_RUN_DONE, "an event by name");
	ok(webhook_event_bit("run.don", 7) == 0 && webhook_event_bit("run.done2", 9) == 0 &&
	                webhook_event_bit("agent.message", 13) == 0,
	        "what is no event of a webhook");
}

static void refused(const char *what, struct webhook w, const char *why)
{
	int r = webhook_check(&w, NULL, 0, &e);
	ok(r < 0 && strstr(e.text, why), "%s: %s", what, r < 0 ? e.text : "(accepted)");
}

#define REFUSED(what, why, ...)                                                                    \
	do {                                                                                       \
		struct webhook w = good();                                                         \
		__VA_ARGS__;                                                                       \
		refused(what, w, why);                                                             \
	} while (0)

static void refusals(void)
{
	REFUSED("a name", "no name", strcpy(w.name, "a b"));
	REFUSED("a name without end", "no name", memset(w.name, 'a', sizeof(w.name)));
	REFUSED("a query", "no URL", strcpy(w.url, "https://a.b/c?d"));
	REFUSED("plain http", "plain http", strcpy(w.url, "http://a.b/c"));
	REFUSED("loopback", "public", strcpy(w.url, "https://127.0.0.1/c"));
	REFUSED("metadata", "public", strcpy(w.url, "https://169.254.169.254/c"));
	REFUSED("IPv6 loopback", "public", strcpy(w.url, "https://[::1]:8/c"));
	REFUSED("no secret", "secret", w.secret[0] = '\0');
	REFUSED("no event", "events", w.events = 0);
	REFUSED("an unknown event", "events", w.events = 1u << WEBHOOK_EVENT_COUNT);
	REFUSED("too many globs", "filter", w.nharnesses = WEBHOOK_GLOBS + 1);
	REFUSED("an empty glob", "filter", w.nusers = 1);
	REFUSED("too many networks", "networks", w.ncidrs = RULE_CIDRS + 1);
	REFUSED("a short pause", "times", w.first_ms = 1);
	REFUSED("pauses the wrong way round", "times", w.most_ms = 500);
	REFUSED("a timeout of a day", "times", w.timeout_ms = 86400000);
}

static void check(void)
{
	struct webhook w = good(), twice[2] = {good(), good()};
	ok(webhook_check(&w, NULL, 0, &e) == 0, "a good one");
	ok(webhook_check(&twice[1], twice, 1, &e) < 0, "the same name again: %s", e.text);
	refusals();
	w = good();
	w.ncidrs = 1;
	must(cidr_parse("127.0.0.1", &w.cidrs[0]), "an address");
	strcpy(w.url, "http://127.0.0.1:8080/c");
	ok(webhook_check(&w, NULL, 0, &e) == 0, "loopback, where that is named");
	strcpy(w.url, "http://127.0.0.2:8080/c");
	ok(webhook_check(&w, NULL, 0, &e) < 0, "and not its neighbour: %s", e.text);
}

static void pauses(void)
{
	const struct webhook w = good();
	ok(webhook_pause_ms(&w, 1, 0, 0) == 1000, "the first pause");
	ok(webhook_pause_ms(&w, 4, 0, 0) == 8000, "it doubles");
	ok(webhook_pause_ms(&w, 100, 0, 0) == 300000, "up to the longest");
	ok(webhook_pause_ms(&w, 0, 0, 0) == 1000, "no failure is as one");
	int64_t least = INT64_MAX, most = 0;
	for (uint32_t i = 0; i < 10000; i++) {
		int64_t p = webhook_pause_ms(&w, 4, i * 429497u, 0);
		least = p < least ? p : least;
		most = p > most ? p : most;
	}
	ok(least >= 4000 && least < 4100 && most <= 8000 && most > 7900,
	        "between half and all of it: %lld to %lld", (long long)least, (long long)most);
	ok(webhook_pause_ms(&w, 1, 0, 60000) == 60000, "Retry-After is waited for");
	ok(webhook_pause_ms(&w, 8, 0, 1000) == 128000, "and shortens nothing");
	ok(webhook_pause_ms(&w, 1, 0, INT64_MAX) == 3600000, "at most an hour of it");
}

int main(void)
{
	filter();
	events();
	check();
	pauses();
	return done();
}
