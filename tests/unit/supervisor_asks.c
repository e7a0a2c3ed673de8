/* What an agent waits for, by what its driver tells. */
#include "supervisor/asks.h"

#include "base/mem.h"
#include "tests/t.h"

static struct asks a;

static void event(enum event_type t, const char *members)
{
	asks_event(&a, t, members, strlen(members));
}

static void ask(int i)
{
	char text[64];
	snprintf(text, sizeof(text), "\"permissionId\":\"n%d\"", i);
	event(EVENT_PERMISSION_ASKED, text);
}

static const char *shown(void)
{
	static struct buf b = BUF_INIT(4096);
	struct jw w = JW_INIT(&b);
	buf_clear(&b);
	asks_show(&a, &w, 1000, 1000000);
	(void)buf_putc(&b, '\0');
	return b.p;
}

static void open_and_closed(void)
{
	asks_init(&a);
	event(EVENT_AGENT_MESSAGE, "\"permissionId\":\"p\"");
	ok(a.nopen == 0, "only asking opens");
	event(EVENT_PERMISSION_ASKED,
	        "\"permissionId\":\"p\",\"title\":\"rm\",\"options\":[\"once\",\"deny\"]");
	event(EVENT_QUESTION_ASKED, "\"questionId\":\"p\",\"text\":\"which?\"");
	must(a.nopen == 2, "two are open");
	struct ask *p = asks_find(&a, false, "p"), *q = asks_find(&a, true, "p");
	must(p && q && p != q, "a permission and a question of one id are two");
	ok(asks_offers(p, "once") && !asks_offers(p, "always") && !asks_offers(q, "once"),
	        "what each offers");
	ok(!asks_next_due(&a), "unstamped they wait for no moment");
	p->asked_ms = 500;
	p->due_us = 3000000;
	q->asked_ms = 600;
	q->due_us = 2000000;
	ok(asks_next_due(&a) == q, "the first to expire");
	is_str(shown(),
	        "{\"permissionId\":\"p\",\"title\":\"rm\",\"options\":[\"once\",\"deny\"],"
	        "\"askedAt\":\"1970-01-01T00:00:00.500Z\",\"expiresAt\":\"1970-01-01T00:00:03."
	        "000Z\"},"
	        "{\"questionId\":\"p\",\"text\":\"which?\",\"askedAt\":\"1970-01-01T00:00:00."
	        "600Z\","
	        "\"expiresAt\":\"1970-01-01T00:00:02.000Z\"}",
	        "both are shown");
	event(EVENT_PERMISSION_ANSWERED, "\"permissionId\":\"other\"");
	ok(a.nopen == 2 && !asks_was(&a, "other"), "an answer to nothing");
	event(EVENT_PERMISSION_ANSWERED, "\"permissionId\":\"p\",\"answer\":\"once\"");
	ok(!asks_find(&a, false, "p") && asks_find(&a, true, "p") && asks_was(&a, "p"),
	        "an answer closes the one it is for");
	event(EVENT_QUESTION_ANSWERED, "\"questionId\":\"p\"");
	ok(a.nopen == 0, "and the other");
	event(EVENT_PERMISSION_ASKED, "\"permissionId\":");
	ok(a.nopen == 0, "what is no JSON opens nothing");
	asks_done(&a);
}

static void crowded(void)
{
	asks_init(&a);
	for (int i = 0; i < ASKS_OPEN_MAX; i++)
		ask(i);
	ok(!asks_crowded(&a), "so many may be open");
	ask(ASKS_OPEN_MAX);
	ok(asks_crowded(&a), "and no more");
	asks_done(&a);
	asks_init(&a);
	ask(1);
	auto_buf struct buf b = BUF_INIT(2 * ASKS_BYTES_MAX);
	(void)buf_puts(&b, "\"questionId\":\"q\",\"text\":\"");
	while (b.len < ASKS_BYTES_MAX)
		(void)buf_putc(&b, 'x');
	(void)buf_putc(&b, '"');
	event(EVENT_QUESTION_ASKED, b.p);
	ok(asks_crowded(&a), "nor ones that nobody can read");
	asks_drop(&a, asks_find(&a, true, "q"));
	ok(!asks_crowded(&a) && a.nopen == 1, "without it there is room");
	asks_done(&a);
}

static void many(void)
{
	asks_init(&a);
	for (int i = 0; i < ASKS_CLOSED_MAX + 10; i++) {
		ask(i);
		char id[16];
		snprintf(id, sizeof(id), "n%d", i);
		asks_drop(&a, asks_find(&a, false, id));
	}
	ok(a.nclosed == ASKS_CLOSED_MAX && a.nopen == 0, "what was answered is kept, so many");
	ok(!asks_was(&a, "n9") && asks_was(&a, "n10") && asks_was(&a, "n1033"), "the latest");
	ask(1);
	asks_done(&a); /* with one open: the sanitizer looks */
}

int main(void)
{
	open_and_closed();
	crowded();
	many();
	return done();
}
