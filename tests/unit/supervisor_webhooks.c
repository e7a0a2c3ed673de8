/* What of a log a webhook is told, from which place on, and the body that tells it. */
#include "supervisor/webhook_news.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "policy/webhooks.h"
#include "proto/jail.h"
#include "supervisor/stats.h"
#include "tests/t.h"

#include <fcntl.h>

static char dir[] = "/tmp/agentbox-webhooks-XXXXXX";
static char ses[ID_MAX];
static struct eventlog *g;
static struct err e;

static void add(const char *run, enum event_type t, const char *members)
{
	must(eventlog_append(g, ses, run, t, members, strlen(members), &e) == 0, "an event: %s",
	        event_name(t));
}

static void fresh(void)
{
	id_new("ses", ses);
}

static struct eventlog_cursor at(uint64_t seq)
{
	struct eventlog_cursor c = {.seq = seq};
	(void)str_copy(c.session, sizeof(c.session), ses);
	return c;
}

/* All of them from the cursor on: "3 5 OVER". */
static const char *all(struct eventlog_cursor *c, const char *run, uint32_t events)
{
	static char out[256];
	static const char *const words[] = {"", "LATER", "AGAIN", "OVER"};
	out[0] = '\0';
	for (;;) {
		auto_webhook_news struct webhook_news x = {0};
		int r = webhook_news_next(g, c, run, events, &x, &e);
		size_t n = strlen(out);
		if (r != WEBHOOK_FOUND) {
			(void)str_copy(out + n, sizeof(out) - n, r < 0 ? e.text : words[r]);
			return out;
		}
		snprintf(out + n, sizeof(out) - n, "%llu%s ", (unsigned long long)x.seq,
		        x.last ? "!" : "");
		/* Where the cursor stands it is found again: that is how it is tried again. */
		auto_webhook_news struct webhook_news same = {0};
		if (webhook_news_next(g, c, run, events, &same, &e) != WEBHOOK_FOUND ||
		        same.seq != x.seq || same.n != x.n || memcmp(same.line, x.line, x.n) != 0)
			return "another one the second time";
		*c = x.after;
	}
}

static void order(void)
{
	fresh();
	add("run_a", EVENT_RUN_STARTED, "\"x\":1");
	add("run_a", EVENT_AGENT_MESSAGE, "\"text\":\"run.done\"");
	add("run_b", EVENT_RUN_STARTED, "\"x\":1");
	add("run_a", EVENT_PERMISSION_ASKED, "\"x\":1");
	struct eventlog_cursor c = at(1);
	is_str(all(&c, "run_a", WEBHOOK_DEFAULT), "1 4 LATER", "of its run, what is wanted");
	is_str(all(&c, "run_a", WEBHOOK_DEFAULT), "LATER", "nothing twice");
	add("run_a", EVENT_RUN_DONE, "\"x\":1");
	add("run_b", EVENT_RUN_DONE, "\"x\":1");
	is_str(all(&c, "run_a", WEBHOOK_DEFAULT), "5! LATER", "the end is the last");
	c = at(1);
	is_str(all(&c, "run_a", 1u << WEBHOOK_RUN_STARTED), "1 OVER", "or it is over");
	c = at(2);
	is_str(all(&c, "run_a", WEBHOOK_DEFAULT), "4 5! LATER", "from a number on");
	c = at(1);
	is_str(all(&c, "run_b", WEBHOOK_DEFAULT), "3 6! LATER", "another run of the session");
	id_new("ses", ses);
	c = at(1);
	is_str(all(&c, "run_a", WEBHOOK_DEFAULT), "LATER", "a session without a log");
}

static void far(void)
{
	fresh();
	auto_buf struct buf b = BUF_INIT(1 << 20);
	buf_puts(&b, "\"text\":\"");
	for (int i = 0; i < 100000; i++)
		buf_putc(&b, 'x');
	buf_putc(&b, '"');
	for (int i = 0; i < 20; i++)
		must(eventlog_append(g, ses, "run_a", EVENT_AGENT_MESSAGE, b.p, b.len, &e) == 0,
		        "a long message");
	add("run_a", EVENT_RUN_DONE, "\"x\":1");
	struct eventlog_cursor c = at(1);
	is_str(all(&c, "run_a", WEBHOOK_DEFAULT), "AGAIN", "a megabyte is enough for a turn");
	is_str(all(&c, "run_a", WEBHOOK_DEFAULT), "21! LATER", "it goes on from there");
}

static struct json *body(size_t *ret_n)
{
	static const struct webhook_about about = {"main", "ana \"x\"", "deck", "hello"};
	struct eventlog_cursor c = at(1);
	auto_webhook_news struct webhook_news x = {0};
	auto_buf struct buf b = BUF_INIT(JAIL_HOOK_BODY);
	must(webhook_news_next(g, &c, "run_a", WEBHOOK_DEFAULT, &x, &e) == WEBHOOK_FOUND, "found");
	must(webhook_news_body(&x, &about, &b) == 0, "a body");
	ok(clock_wall_ms() - x.at_ms < 60000 && x.at_ms <= clock_wall_ms(), "and when it was");
	*ret_n = b.len;
	return json_parse(b.p, b.len, &e);
}

static void bodies(void)
{
	size_t n;
	fresh();
	add("run_a", EVENT_RUN_DONE, "\"result\":{\"status\":\"succeeded\"}");
	struct json *j = body(&n);
	must(j, "is JSON");
	is_str(json_str(j, "type", ""), "run.done", "its type in front");
	is_str(json_str(j, "user", ""), "ana \"x\"", "whose it is");
	is_str(json_str(json_path(j, "event", "result", NULL), "status", ""), "succeeded",
	        "and the event as it is");
	json_free(j);
	fresh();
	auto_buf struct buf b = BUF_INIT(8 << 20);
	buf_puts(&b, "\"result\":{\"finalText\":\"");
	while (b.len < (2 << 20))
		buf_puts(&b, "0123456789abcdef");
	buf_puts(&b, "\"}");
	must(eventlog_append(g, ses, "run_a", EVENT_RUN_DONE, b.p, b.len, &e) == 0, "a large one");
	j = body(&n);
	must(j, "is JSON");
	const struct json *event = json_get(j, "event");
	ok(n < 1000 && json_bool(event, "truncated", false) && !json_get(event, "result"),
	        "its head, in %zu bytes", n);
	is_str(json_str(event, "session", ""), ses, "which says where the rest is");
	json_free(j);
}

int main(void)
{
	static struct stats stats;
	must(mkdtemp(dir) != NULL, "a directory");
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	g = eventlog_new(fd, NULL, NULL, NULL, &stats);
	order();
	far();
	bodies();
	for (int i = 0; i < WEBHOOK_EVENT_COUNT; i++)
		ok(event_by_name(webhook_event_names[i]) >= 0, "%s is an event",
		        webhook_event_names[i]);
	eventlog_free(g);
	close(fd);
	char *rm = xasprintf("rm -rf %s", dir);
	ok(system(rm) == 0, "cleaned up");
	free(rm);
	return done();
}
