#include "supervisor/webhook_news.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/limits.h"
#include "policy/webhooks.h"
#include "proto/jail.h"
#include "supervisor/logline.h"
#include "supervisor/owner.h"

#include <string.h>

enum {
	READ_MAX = 64 << 10,
	READS = 16,           /* in one go: a megabyte of other events */
	ABOUT_MAX = 16 << 10, /* what stands beside the event, escaped */
};

void webhook_news_done(struct webhook_news *x)
{
	buf_done(&x->lines);
}

static bool is(const char *p, size_t n, const char *text)
{
	return n == strlen(text) && memcmp(p, text, n) == 0;
}

/* One line; `end` is the offset behind it.  WEBHOOK_AGAIN: it is not wanted. */
static int judge(const struct logline_head *h, const char *run, uint32_t events)
{
	if (!is(h->run, h->run_len, run))
		return WEBHOOK_AGAIN;
	if (webhook_event_bit(h->type, h->type_len) & events)
		return WEBHOOK_FOUND;
	return is(h->type, h->type_len, "run.done") ? WEBHOOK_OVER : WEBHOOK_AGAIN;
}

/* Through what was read: `end` is the cursor behind all of it. */
static int look_through(struct webhook_news *x, const char *run, uint32_t events,
        const struct eventlog_cursor *end, struct eventlog_cursor *c)
{
	uint64_t offset = end->offset - x->lines.len;
	const char *p = x->lines.p, *stop = p + x->lines.len;
	while (p < stop) {
		const char *nl = memchr(p, '\n', (size_t)(stop - p));
		size_t n = (size_t)((nl ? nl : stop) - p);
		struct logline_head h;
		int found = logline_head(p, n, &h) ? judge(&h, run, events) : WEBHOOK_AGAIN;
		if (found == WEBHOOK_FOUND) {
			*c = x->after = *end;
			c->seq = x->seq = h.seq;
			c->offset = offset;
			x->after.seq = h.seq + 1;
			x->after.offset = offset + n + 1;
			x->line = p;
			x->n = n;
			x->at_ms = clock_from_rfc3339(h.ts, h.ts_len);
			x->last = is(h.type, h.type_len, "run.done");
		}
		if (found != WEBHOOK_AGAIN)
			return found;
		p += n + 1;
		offset += n + 1;
	}
	*c = *end;
	return WEBHOOK_AGAIN;
}

int webhook_news_next(struct eventlog *g, struct eventlog_cursor *c, const char *run,
        uint32_t events, struct webhook_news *ret, struct err *e)
{
	ret->lines.limit = LIMIT_EVENT + READ_MAX;
	for (int i = 0; i < READS; i++) {
		struct eventlog_cursor end = *c;
		buf_clear(&ret->lines);
		int64_t n = eventlog_read(g, &end, &ret->lines, READ_MAX, e);
		if (n < 0)
			return (int)n;
		if (n == 0) {
			*c = end;
			return WEBHOOK_LATER;
		}
		int found = look_through(ret, run, events, &end, c);
		if (found != WEBHOOK_AGAIN)
			return found;
	}
	return WEBHOOK_AGAIN;
}

/* {"seq":...,"type":"...": all that every event has in front. */
static size_t front(const struct webhook_news *x, const struct logline_head *h)
{
	return (size_t)(h->type + h->type_len + 1 - x->line);
}

int webhook_news_body(
        const struct webhook_news *x, const struct webhook_about *about, struct buf *to)
{
	struct logline_head h;
	if (!logline_head(x->line, x->n, &h))
		return -EBADMSG;
	struct jw w = JW_INIT(to);
	jw_open(&w, NULL, '{');
	jw_bytes(&w, "type", h.type, h.type_len);
	jw_str(&w, "webhook", about->webhook);
	char tenant[NAME_MAX_LEN];
	owner_tenant(about->user, tenant);
	if (*tenant)
		jw_str(&w, "tenant", tenant);
	jw_str(&w, "user", owner_user(about->user));
	jw_str(&w, "goal", about->goal);
	jw_str(&w, "harness", about->harness);
	if (x->n <= JAIL_HOOK_BODY - ABOUT_MAX) {
		jw_raw(&w, "event", x->line, x->n);
	} else {
		jw_open(&w, "event", '{');
		jw_members(&w, x->line + 1, front(x, &h) - 1);
		jw_bool(&w, "truncated", true);
		jw_close(&w, '}');
	}
	jw_close(&w, '}');
	return to->failed;
}
