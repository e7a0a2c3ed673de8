/*
 * Theory of operation.  A run waits (it has not ended), is ready (it has, and nothing is under way
 * with it), or flies (it is in the request whose answer is awaited).  All is done in a hook of the
 * loop's turn, as webhooks are: the runs that are ready are read one after another, so many bytes
 * of log a turn, into one body; when that is full, or none is left, it goes.  What comes back
 * decides for all in it: they are told, given up, or ready again after a pause.
 */
#include "supervisor/traces.h"

#include "base/backoff.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/version.h"
#include "supervisor/daemon.h"
#include "supervisor/eventlog.h"
#include "supervisor/jails.h"
#include "supervisor/logline.h"
#include "supervisor/loop.h"
#include "supervisor/policies.h"
#include "supervisor/trace.h"
#include "supervisor/trace_spans.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* No webhook has such a name: it is none of policy files. */
static const char row_name[] = "@otlp";

enum {
	BACKLOG = 10000,       /* runs that wait for the collector: beyond, the oldest is dropped */
	BATCH = 512,           /* spans: with so many it goes at once */
	READ_MAX = 64 << 10,   /* of a log, in one go */
	READS = 4,             /* in a turn of the loop */
	BODY_ROOM = 400 << 10, /* a body with so much left is tried with another run */
	GRACE_MS = 5000,       /* what egress has beyond the attempt's own time */
	SOON_MS = 200,         /* policies were reloaded meanwhile */
	SAY_AGAIN_MS = 60000,  /* a collector that refuses is not news each second */
};

struct told {
	struct list link; /* in one of traces.waits, .ready, .flies */
	char run[ID_MAX], session[ID_MAX];
	uint64_t seq;     /* of its first event */
	int64_t since_ms; /* wall: when it ended, or was found ended */
};

struct traces {
	struct daemon *daemon; /* borrowed */
	struct list waits, ready, flies;
	unsigned n;
	struct otlp config;
	bool on;             /* root wants it */
	uint64_t generation; /* of the configuration in use */
	uint64_t random;     /* part of attempts' numbers: another supervisor's are others */

	/* What is being made: of the run that is read, and those that are in `body` fly already. */
	struct spans *spans; /* owned */
	struct told *reading;
	struct eventlog_cursor cursor;
	struct buf body;
	unsigned nspans; /* in it */
	bool full;       /* the next run did not fit */

	uint64_t number; /* of the attempt under way, 0: none */
	int64_t deadline_ms;
	unsigned failures;
	int64_t next_ms;  /* monotonic: not before that */
	int64_t quiet_ms; /* monotonic: nothing is said of another `said` until then */
	uint32_t said;    /* status */
	bool stopped, dirty;
	struct loop_hook hook;
	struct op timer;
	int64_t timer_ms;
};

static void wake(struct traces *t)
{
	if (!t->dirty)
		loop_again(t->daemon->loop);
	t->dirty = true;
}

/* ---- runs ---- */

static void put(struct told *x, struct list *to)
{
	list_remove(&x->link);
	list_append(to, &x->link);
}

static void drop_reading(struct traces *t)
{
	spans_free(take(t->spans));
	t->reading = NULL;
}

/* Nothing is owed any more. */
static void let_go(struct traces *t, struct told *x)
{
	if (t->reading == x)
		drop_reading(t);
	store_delivered_all(t->daemon->store, row_name, x->run);
	list_remove(&x->link);
	t->n--;
	t->daemon->stats.traces_pending--;
	free(x);
}

static void give_up(struct traces *t, struct told *x)
{
	t->daemon->stats.traces_dropped++;
	let_go(t, x);
}

static void give_up_all(struct traces *t, struct list *of, const char *session)
{
	list_for_each (x, of, struct told, link)
		if (!session || strcmp(x->session, session) == 0)
			give_up(t, x);
}

static struct told *oldest(struct traces *t)
{
	struct list *all[] = {&t->ready, &t->waits, &t->flies};
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (!list_empty(all[i]))
			return list_first(all[i], struct told, link);
	return NULL;
}

bool traces_sample(const struct traces *t, const char *run, const char *text, struct trace *ret)
{
	*ret = (struct trace){.given = false};
	if (!t->on && !text)
		return false;
	trace_of(run, text, ret);
	return t->on && trace_taken(ret, t->config.sample);
}

void traces_for(
        const struct traces *t, const char *run, const char *text, struct store_webhooks *ret)
{
	struct trace trace;
	if (traces_sample(t, run, text, &trace))
		(void)str_copy(ret->names[ret->n++], NAME_MAX_LEN, row_name);
}

bool traces_follow(struct traces *t, const struct store_delivery *row)
{
	if (strcmp(row->webhook, row_name) != 0)
		return false;
	if (!t->on) { /* as a webhook that is not configured any more */
		t->daemon->stats.traces_dropped++;
		store_delivered_all(t->daemon->store, row_name, row->run);
		return true;
	}
	if (t->n == BACKLOG)
		give_up(t, oldest(t));
	struct told *x = xnew(struct told);
	(void)str_copy(x->run, sizeof(x->run), row->run); /* ids */
	(void)str_copy(x->session, sizeof(x->session), row->session);
	x->seq = row->seq;
	x->since_ms = clock_wall_ms();
	list_init(&x->link);
	list_append(row->over ? &t->ready : &t->waits, &x->link);
	t->n++;
	t->daemon->stats.traces_pending++;
	wake(t);
	return true;
}

void traces_over(struct traces *t, const char *run)
{
	list_for_each (x, &t->waits, struct told, link) {
		if (strcmp(x->run, run) != 0)
			continue;
		x->since_ms = clock_wall_ms();
		put(x, &t->ready);
		wake(t);
		return;
	}
}

void traces_forget(struct traces *t, const char *session)
{
	give_up_all(t, &t->waits, session);
	give_up_all(t, &t->ready, session);
	give_up_all(t, &t->flies, session);
}

/* ---- a body ---- */

static void begin_body(struct traces *t)
{
	const struct otlp *o = &t->config;
	t->body.limit = JAIL_HOOK_BODY;
	buf_clear(&t->body);
	t->nspans = 0;
	t->full = false;
	struct jw w = JW_INIT(&t->body);
	jw_open(&w, NULL, '{');
	jw_open(&w, "resourceSpans", '[');
	jw_open(&w, NULL, '{');
	jw_open(&w, "resource", '{');
	jw_open(&w, "attributes", '[');
	spans_attribute(&w, "service.name", o->service);
	spans_attribute(&w, "service.version", AGENTBOX_VERSION);
	for (uint32_t i = 0; i < o->nattributes; i++)
		spans_attribute(&w, o->attributes[i].key, o->attributes[i].value);
	jw_close(&w, ']');
	jw_close(&w, '}');
	jw_open(&w, "scopeSpans", '[');
	jw_open(&w, NULL, '{');
	jw_open(&w, "scope", '{');
	jw_str(&w, "name", "agentbox");
	jw_str(&w, "version", AGENTBOX_VERSION);
	jw_close(&w, '}');
	jw_open(&w, "spans", '[');
}

static const char end_of_body[] = "]}]}]}";

static void make_spans(void *ctx, const struct store_run *x)
{
	struct traces *t = ctx;
	if (x->result)
		t->spans = spans_new(x);
}

static void begin_reading(struct traces *t, struct told *x)
{
	struct err e;
	if (store_run(t->daemon->store, x->run, make_spans, t, &e) < 0 || !t->spans) {
		give_up(t, x); /* it is gone */
		return;
	}
	t->reading = x;
	t->cursor = (struct eventlog_cursor){.seq = x->seq};
	memcpy(t->cursor.session, x->session, sizeof(t->cursor.session));
}

/* false: its last line was among them. */
static bool take_lines(struct traces *t, const struct buf *lines)
{
	const char *p = lines->p, *stop = lines->p + lines->len;
	size_t id = strlen(t->reading->run);
	while (p < stop) {
		const char *nl = memchr(p, '\n', (size_t)(stop - p));
		size_t n = (size_t)((nl ? nl : stop) - p);
		struct logline_head h;
		if (logline_head(p, n, &h) && h.run_len == id &&
		        memcmp(h.run, t->reading->run, id) == 0 && !spans_line(t->spans, &h, p, n))
			return false;
		p += n + 1;
	}
	return true;
}

/* What a client says of its trace is in each span, so a run may take more than is left: it is read
 * again for the next body, or dropped where it fits none. */
static void end_reading(struct traces *t, struct told *x)
{
	size_t before = t->body.len;
	if (t->nspans)
		buf_putc(&t->body, ',');
	unsigned n = spans_write(t->spans, &t->body);
	if (!t->body.failed && t->body.len + sizeof(end_of_body) <= t->body.limit) {
		t->nspans += n;
		t->daemon->stats.trace_spans_dropped += spans_dropped(t->spans);
		drop_reading(t);
		put(x, &t->flies);
		return;
	}
	t->body.failed = 0;
	t->body.len = before;
	t->full = t->nspans > 0;
	drop_reading(t);
	if (!t->full)
		give_up(t, x);
}

/* Some of the log; true: the run is in the body, waits for the next one, or is given up. */
static bool read_on(struct traces *t, int *budget)
{
	struct err e;
	struct told *x = t->reading;
	auto_buf struct buf lines = BUF_INIT(LIMIT_EVENT + READ_MAX);
	while (*budget > 0) {
		--*budget;
		buf_clear(&lines);
		int64_t n = eventlog_read(t->daemon->log, &t->cursor, &lines, READ_MAX, &e);
		if (n > 0 && take_lines(t, &lines))
			continue;
		/* What cannot be read is missing; the record alone must do. */
		end_reading(t, x);
		return true;
	}
	return false;
}

/* ---- an attempt ---- */

struct asking {
	struct traces *traces;
	uint64_t number;
};

/* Egress was told: nothing to do.  Else that is the answer. */
static void on_asked(void *ctx, const struct jail_reply *r, int fds[MSG_FDS])
{
	auto_free struct asking *a = ctx;
	(void)fds;
	if (r->err.code == 0)
		return;
	struct jail_hooked m = {
	        .delivery = a->number, .retry_after_ms = r->err.code == -ESTALE ? -1 : 0};
	(void)snprintf(m.reason, sizeof(m.reason), "%.120s", r->err.text);
	(void)traces_answered(a->traces, &m);
}

static void back(struct traces *t)
{
	while (!list_empty(&t->flies)) {
		struct told *x = container_of(t->flies.prev, struct told, link);
		list_remove(&x->link);
		list_prepend(&t->ready, &x->link);
	}
	t->number = 0;
	t->nspans = 0;
	buf_done(&t->body);
	wake(t);
}

static void send_body(struct traces *t)
{
	(void)buf_puts(&t->body, end_of_body);
	int fd =
	        t->body.failed ? t->body.failed : fd_sealed_memfd("traces", t->body.p, t->body.len);
	buf_done(&t->body);
	if (fd < 0) { /* no memory at the moment */
		back(t);
		t->next_ms = clock_mono_ms() + (int64_t)t->config.to.first_ms;
		return;
	}
	t->number = ++t->random | UINT64_C(1) << 63; /* webhooks' have it clear */
	t->deadline_ms = clock_mono_ms() + (int64_t)t->config.to.timeout_ms + GRACE_MS;
	struct asking *a = xnew(struct asking);
	*a = (struct asking){t, t->number};
	struct jail_hook m = {.delivery = t->number,
	        .policy_generation = t->generation,
	        .hook = JAIL_HOOK_TRACES,
	        .id = "traces"};
	jails_hook(t->daemon->jails, &m, fd, on_asked, a);
}

/* ---- answers ---- */

static void say(struct traces *t, const struct jail_hooked *m, const char *what)
{
	int64_t now = clock_mono_ms();
	if (now < t->quiet_ms && m->status == t->said)
		return;
	t->said = m->status;
	t->quiet_ms = now + SAY_AGAIN_MS;
	if (m->status)
		log_warn("traces: the collector says %u%s%s; %s", m->status,
		        m->reason[0] ? ": " : "", m->reason, what);
	else
		log_warn("traces: %s; %s", m->reason, what);
}

static void try_again(struct traces *t, const struct jail_hooked *m)
{
	int64_t wall = clock_wall_ms(), old = wall - (int64_t)t->config.to.keep_ms;
	t->failures++;
	t->daemon->stats.traces_retried++;
	t->next_ms = clock_mono_ms() + webhook_pause_ms(&t->config.to, t->failures,
	                                       backoff_random(), m->retry_after_ms);
	say(t, m, "they are sent again");
	back(t);
	list_for_each (x, &t->ready, struct told, link)
		if (x->since_ms < old)
			give_up(t, x);
}

/* What may be sent again is said by the protocol. */
static bool again(const struct jail_hooked *m)
{
	return m->status == 0 || m->status == 429 || (m->status >= 502 && m->status <= 504);
}

static void landed(struct traces *t, const struct jail_hooked *m)
{
	struct stats *s = &t->daemon->stats;
	bool taken = m->status >= 200 && m->status < 300;
	if (m->retry_after_ms < 0) { /* it was not sent at all */
		t->next_ms = clock_mono_ms() + SOON_MS;
		back(t);
		return;
	}
	if (again(m)) {
		try_again(t, m);
		return;
	}
	uint64_t lost = !taken ? t->nspans : m->rejected < t->nspans ? m->rejected : t->nspans;
	s->trace_spans_sent += t->nspans - lost;
	s->trace_spans_dropped += lost;
	if (!taken || m->rejected)
		say(t, m, taken ? "it has not taken all spans" : "they are dropped");
	t->failures = 0;
	t->next_ms = 0;
	t->number = 0;
	t->nspans = 0;
	list_for_each (x, &t->flies, struct told, link) {
		s->traces_dropped += !taken;
		let_go(t, x);
	}
	wake(t);
}

bool traces_answered(struct traces *t, const struct jail_hooked *m)
{
	if (!t->number || (m->delivery && m->delivery != t->number))
		return m->delivery >> 63; /* else of an earlier supervisor, or too late */
	landed(t, m);
	return m->delivery != 0;
}

/* ---- the turn ---- */

/* How long one that is ready waits for others. */
static int64_t due_ms(const struct traces *t, const struct told *x)
{
	int64_t waited = clock_wall_ms() - x->since_ms, delay = (int64_t)t->config.delay_ms;
	return waited < 0 || waited >= delay ? 0 : delay - waited;
}

/* Runs that are ready, into one body, until it is full. */
static void fill(struct traces *t)
{
	int budget = READS;
	if (!t->reading && !t->nspans)
		begin_body(t);
	while (budget > 0) {
		bool room =
		        !t->full && t->nspans < BATCH && t->body.len + BODY_ROOM < t->body.limit;
		struct told *next = list_first(&t->ready, struct told, link);
		if (!t->reading && (!room || !next)) {
			if (t->nspans)
				send_body(t);
			return;
		}
		if (!t->reading)
			begin_reading(t, next);
		if (t->reading && !read_on(t, &budget))
			break;
	}
	wake(t);
}

static void on_timer(struct op *op, int res, uint32_t flags)
{
	(void)res;
	(void)flags;
	wake(container_of(op, struct traces, timer));
}

static void arm(struct traces *t, int64_t at, int64_t now)
{
	if (t->timer.inflight) { /* when it comes, or is gone, there is another look */
		if (at < t->timer_ms) {
			t->timer_ms = at;
			loop_cancel(t->daemon->loop, &t->timer);
		}
		return;
	}
	t->timer_ms = at;
	loop_timeout(t->daemon->loop, &t->timer, at > now ? at - now : 0, on_timer);
}

static void turn(struct loop_hook *l)
{
	static const struct jail_hooked silent = {
	        .reason = "agentbox-egress has not said what came of it"};
	struct traces *t = container_of(l, struct traces, hook);
	int64_t now = clock_mono_ms();
	if (!t->dirty || t->stopped)
		return;
	t->dirty = false;
	if (t->number && now >= t->deadline_ms) {
		landed(t, &silent); /* which asks for another turn */
		return;
	}
	if (t->number) {
		arm(t, t->deadline_ms, now);
		return;
	}
	if (!t->reading && !t->nspans) {
		const struct told *first = list_first(&t->ready, struct told, link);
		if (!first)
			return;
		int64_t at = now + due_ms(t, first);
		at = at < t->next_ms ? t->next_ms : at;
		if (at > now) {
			arm(t, at, now);
			return;
		}
	}
	fill(t);
	if (t->number)
		arm(t, t->deadline_ms, now);
}

/* ---- life ---- */

void traces_configure(struct traces *t)
{
	const struct policy_set *set = policies_set(t->daemon->policies);
	const struct otlp *o = &set->config.otlp;
	if (memcmp(&t->config, o, sizeof(*o)) != 0) { /* mended, or moved */
		t->failures = 0;
		t->next_ms = t->quiet_ms = 0;
	}
	t->config = *o;
	t->on = o->to.url[0] != '\0';
	t->generation = set->generation;
	if (!t->on) {
		drop_reading(t);
		t->nspans = 0;
		buf_done(&t->body);
		t->number = 0;
		give_up_all(t, &t->waits, NULL);
		give_up_all(t, &t->ready, NULL);
		give_up_all(t, &t->flies, NULL);
	}
	wake(t);
}

void traces_stop(struct traces *t)
{
	t->stopped = true;
}

void traces_member(const struct traces *t, const char *run, const char *text, struct jw *w)
{
	struct trace trace;
	if (!t->on && !text)
		return;
	trace_of(run, text, &trace);
	jw_str(w, "traceId", trace.id);
}

struct traces *traces_new(struct daemon *d)
{
	struct traces *t = xnew(struct traces);
	t->daemon = d;
	list_init(&t->waits);
	list_init(&t->ready);
	list_init(&t->flies);
	(void)!getrandom(&t->random, sizeof(t->random), 0);
	t->random >>= 1;
	t->hook.run = turn;
	loop_hook(d->loop, &t->hook);
	return t;
}
