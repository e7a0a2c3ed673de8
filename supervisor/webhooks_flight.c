/*
 * webhooks_flight.c - attempts: when one is made, what the receiver has said to it, and what comes
 * of that.
 *
 * A receiver that fails is left in peace: each of its deliveries waits longer and
 * longer, and when several in a row have failed only one goes at a time, with pauses
 * that are the receiver's and not the delivery's.  Its Retry-After holds for all.
 */
#include "supervisor/webhooks_private.h"

#include "base/backoff.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "supervisor/daemon.h"
#include "supervisor/jails.h"
#include "supervisor/webhook_news.h"
#include "supervisor/webhooks.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	FLIGHTS = 4,     /* of one webhook at once: a slow one takes no more of egress */
	LOOKS = 64,      /* of one webhook in a turn of the loop */
	GRACE_MS = 5000, /* what egress has beyond the attempt's own time */
	SOON_MS = 200,   /* policies were reloaded meanwhile */
};

/* ---- one attempt ---- */

int64_t webhooks_deadline(const struct hook *h)
{
	return clock_mono_ms() + (int64_t)h->config.timeout_ms + GRACE_MS;
}

struct asking {
	struct webhooks *webhooks;
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
	webhooks_answered(a->webhooks, &m);
}

void webhooks_send(
        struct webhooks *w, const struct hook *h, const char *id, uint64_t number, int fd)
{
	struct asking *a = xnew(struct asking);
	*a = (struct asking){w, number};
	struct jail_hook m = {
	        .delivery = number, .policy_generation = w->generation, .hook = h->index};
	(void)str_copy(m.id, sizeof(m.id), id); /* checked by agentboxd */
	jails_hook(w->daemon->jails, &m, fd, on_asked, a);
}

static void advance(
        struct webhooks *w, struct delivery *d, const struct eventlog_cursor *after, bool last)
{
	d->cursor = *after;
	d->failures = 0;
	if (last) {
		webhooks_end(w, d);
		return;
	}
	store_delivered(w->daemon->store, d->hook->config.name, d->run, after->seq);
	webhooks_ready(w, d, 0);
}

static bool too_old(const struct hook *h, const struct webhook_news *x)
{
	return clock_wall_ms() - x->at_ms > (int64_t)h->config.keep_ms;
}

static void give_up_event(struct webhooks *w, struct delivery *d, uint64_t seq, const char *why)
{
	log_warn("s=%s r=%s: webhook %s: event %llu is given up: %s", d->cursor.session, d->run,
	        d->hook->config.name, (unsigned long long)seq, why);
	webhooks_count_failed(w, d->hook);
}

static void fly(struct webhooks *w, struct delivery *d, const struct webhook_news *x)
{
	struct hook *h = d->hook;
	const struct webhook_about about = {h->config.name, d->user, d->goal, d->harness};
	auto_buf struct buf body = BUF_INIT(JAIL_HOOK_BODY);
	char id[JAIL_HOOK_ID];
	int r = webhook_news_body(x, &about, &body);
	int fd = r < 0 ? r : fd_sealed_memfd("webhook", body.p, body.len);
	if (fd < 0) { /* no memory at the moment */
		log_err("s=%s r=%s: webhook %s: %s", d->cursor.session, d->run, h->config.name,
		        strerror(-fd));
		webhooks_ready(w, d, clock_mono_ms() + (int64_t)h->config.first_ms);
		return;
	}
	(void)snprintf(id, sizeof(id), "%s-%llu", d->cursor.session, (unsigned long long)x->seq);
	list_remove(&d->link);
	list_append(&h->flying, &d->link);
	h->nflying++;
	w->nflying++;
	d->number = ++w->last_number;
	d->deadline_ms = webhooks_deadline(h);
	d->last = x->last;
	d->after = x->after;
	webhooks_send(w, h, id, d->number, fd);
}

static void look(struct webhooks *w, struct delivery *d)
{
	struct err e;
	auto_webhook_news struct webhook_news x = {0};
	int r = webhook_news_next(
	        w->daemon->log, &d->cursor, d->run, d->hook->config.events, &x, &e);
	if (r == WEBHOOK_FOUND && too_old(d->hook, &x)) {
		give_up_event(w, d, x.seq, d->hook->last[0] ? d->hook->last : "it is too old");
		advance(w, d, &x.after, x.last);
	} else if (r == WEBHOOK_FOUND) {
		fly(w, d, &x);
	} else if (r == WEBHOOK_AGAIN) {
		webhooks_ready(w, d, 0);
	} else if (r == WEBHOOK_OVER) {
		webhooks_end(w, d);
	} else if (r == -ENOMEM || r == -ENOBUFS || r == -EMFILE || r == -ENFILE) {
		webhooks_ready(w, d, clock_mono_ms() + (int64_t)d->hook->config.first_ms);
	} else if (r < 0) {
		webhooks_give_up(w, d, e.text);
	} else if (d->over) {
		webhooks_give_up(w, d, "the log has no end of the run");
	} else {
		webhooks_idle(w, d);
	}
}

/* ---- answers ---- */

static bool taken(const struct jail_hooked *m)
{
	return m->status >= 200 && m->status < 300;
}

/* No other attempt could end otherwise: not understood, gone, too large. */
static bool refused(const struct jail_hooked *m)
{
	return m->status == 400 || m->status == 410 || m->status == 413 || m->status == 422;
}

static void note(struct hook *h, const struct jail_hooked *m)
{
	h->answered_ms = clock_wall_ms();
	if (m->reason[0])
		(void)snprintf(h->last, sizeof(h->last), "%s", m->reason);
	else if (m->status >= 300 && m->status < 400)
		(void)snprintf(
		        h->last, sizeof(h->last), "status %u, which is not followed", m->status);
	else
		(void)snprintf(h->last, sizeof(h->last), "status %u", m->status);
}

static void try_again(struct webhooks *w, struct delivery *d, const struct jail_hooked *m)
{
	struct hook *h = d->hook;
	int64_t now = clock_mono_ms();
	d->failures++;
	h->failures++;
	h->retried++;
	w->daemon->stats.webhooks_retried++;
	int64_t pause =
	        webhook_pause_ms(&h->config, d->failures, backoff_random(), m->retry_after_ms);
	if (h->failures >= FLIGHTS) {
		int64_t all = webhook_pause_ms(
		        &h->config, h->failures - FLIGHTS + 1, backoff_random(), m->retry_after_ms);
		h->next_ms = now + all;
	} else if (m->retry_after_ms > 0) {
		h->next_ms = now + pause;
	}
	if (h->failures == 1 || h->failures == FLIGHTS)
		log_warn("s=%s r=%s: webhook %s: %s; %s", d->cursor.session, d->run, h->config.name,
		        h->last,
		        h->failures == 1 ? "it is tried again"
		                         : "from now on one attempt at a time");
	webhooks_ready(w, d, now + pause);
}

static struct delivery *in_flight(const struct webhooks *w, uint64_t number)
{
	list_for_each (h, &w->hooks, struct hook, link)
		list_for_each (d, &h->flying, struct delivery, link)
			if (d->number == number)
				return d;
	return NULL;
}

static void landed(struct webhooks *w, struct delivery *d, const struct jail_hooked *m)
{
	struct hook *h = d->hook;
	d->number = 0;
	h->nflying--;
	w->nflying--;
	if (m->retry_after_ms < 0) { /* it was not sent at all */
		webhooks_ready(w, d, clock_mono_ms() + SOON_MS);
		return;
	}
	note(h, m);
	if (!taken(m) && !refused(m)) {
		try_again(w, d, m);
		return;
	}
	if (taken(m) && h->failures >= FLIGHTS)
		log_info("webhook %s is there again", h->config.name);
	h->failures = 0;
	h->next_ms = 0;
	if (taken(m)) {
		h->delivered++;
		w->daemon->stats.webhooks_delivered++;
	} else {
		give_up_event(w, d, d->cursor.seq, h->last);
	}
	advance(w, d, &d->after, d->last);
}

static void all_landed(struct webhooks *w, const struct jail_hooked *m)
{
	list_for_each (h, &w->hooks, struct hook, link)
		list_for_each (d, &h->flying, struct delivery, link)
			landed(w, d, m);
	while (webhooks_tried(w, m))
		;
}

void webhooks_answered(struct webhooks *w, const struct jail_hooked *m)
{
	if (m->delivery == 0) {
		all_landed(w, m);
		return;
	}
	struct delivery *d = in_flight(w, m->delivery);
	if (d)
		landed(w, d, m);
	else
		(void)webhooks_tried(w, m); /* else of an earlier supervisor, or given up */
}

/* ---- the turn ---- */

static void late(struct webhooks *w, struct hook *h, int64_t now)
{
	static const struct jail_hooked silent = {
	        .reason = "agentbox-egress has not said what came of it"};
	list_for_each (d, &h->flying, struct delivery, link)
		if (now >= d->deadline_ms)
			landed(w, d, &silent);
}

static unsigned most(const struct hook *h)
{
	return h->failures >= FLIGHTS ? 1 : FLIGHTS;
}

static bool may_fly(const struct webhooks *w, const struct hook *h)
{
	return h->nflying < most(h) && w->nflying < JAIL_HOOKS;
}

static void begin(struct webhooks *w, struct hook *h, int64_t now)
{
	int looks = 0;
	list_for_each (d, &h->ready, struct delivery, link) {
		if (!may_fly(w, h) || now < h->next_ms)
			return;
		if (looks == LOOKS) {
			webhooks_wake(w);
			return;
		}
		if (d->due_ms > now)
			continue;
		looks++;
		look(w, d);
	}
}

/* When the webhook has to be looked at again; INT64_MAX: when something happens. */
static int64_t next_look(const struct webhooks *w, const struct hook *h)
{
	int64_t at = INT64_MAX;
	if (may_fly(w, h) && !list_empty(&h->ready)) {
		list_for_each (d, &h->ready, struct delivery, link)
			at = d->due_ms < at ? d->due_ms : at;
		at = at < h->next_ms ? h->next_ms : at;
	}
	list_for_each (d, &h->flying, struct delivery, link)
		at = d->deadline_ms < at ? d->deadline_ms : at;
	return at;
}

static void on_timer(struct op *op, int res, uint32_t flags)
{
	(void)res;
	(void)flags;
	webhooks_wake(container_of(op, struct webhooks, timer));
}

static void arm(struct webhooks *w, int64_t now)
{
	int64_t at = INT64_MAX;
	list_for_each (h, &w->hooks, struct hook, link) {
		int64_t next = next_look(w, h);
		at = next < at ? next : at;
	}
	list_for_each (t, &w->trials, struct trial, link)
		at = t->deadline_ms < at ? t->deadline_ms : at;
	if (at == INT64_MAX)
		return;
	if (w->timer.inflight) { /* when it comes, or is gone, there is another look */
		if (at < w->timer_ms) {
			w->timer_ms = at;
			loop_cancel(w->daemon->loop, &w->timer);
		}
		return;
	}
	w->timer_ms = at;
	loop_timeout(w->daemon->loop, &w->timer, at > now ? at - now : 0, on_timer);
}

void webhooks_turn(struct loop_hook *l)
{
	struct webhooks *w = container_of(l, struct webhooks, hook);
	int64_t now = clock_mono_ms();
	if (!w->dirty || w->stopped)
		return;
	w->dirty = false;
	webhooks_trials_late(w, now);
	list_for_each (h, &w->hooks, struct hook, link) {
		late(w, h, now);
		begin(w, h, now);
	}
	arm(w, now);
}

void webhooks_wake(struct webhooks *w)
{
	if (!w->dirty)
		loop_again(w->daemon->loop);
	w->dirty = true;
}
