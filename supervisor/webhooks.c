/*
 * Theory of operation.  A delivery is ready (its next event is to be looked for, not
 * before due_ms), idle (that event is not there yet; the hub wakes it) or flying (asked,
 * and the answer is awaited until deadline_ms).  All is done in a hook of the loop's
 * turn, which whoever changes something asks for by webhooks_wake; a timer asks for it
 * when the next one is due.
 */
#include "supervisor/webhooks.h"

#include "base/log.h"
#include "base/mem.h"
#include "supervisor/daemon.h"
#include "supervisor/policies.h"
#include "supervisor/traces.h"
#include "supervisor/webhooks_private.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { BACKLOG = 10000 /* runs of one webhook: beyond, the oldest is given up */ };

/* ---- deliveries ---- */

static void delivery_free(struct webhooks *w, struct delivery *d)
{
	struct hook *h = d->hook;
	if (d->number) {
		h->nflying--;
		w->nflying--;
	}
	hub_unsubscribe(w->daemon->hub, &d->sub);
	list_remove(&d->link);
	h->n--;
	w->daemon->stats.webhooks_pending--;
	free(d->user);
	free(d->goal);
	free(d->harness);
	free(d);
}

/* Nothing is owed any more. */
void webhooks_end(struct webhooks *w, struct delivery *d)
{
	store_delivered_all(w->daemon->store, d->hook->config.name, d->run);
	delivery_free(w, d);
}

void webhooks_count_failed(struct webhooks *w, struct hook *h)
{
	h->failed++;
	w->daemon->stats.webhooks_failed++;
}

void webhooks_give_up(struct webhooks *w, struct delivery *d, const char *why)
{
	log_warn("s=%s r=%s: webhook %s: the rest of it is given up: %s", d->cursor.session, d->run,
	        d->hook->config.name, why);
	webhooks_count_failed(w, d->hook);
	webhooks_end(w, d);
}

void webhooks_ready(struct webhooks *w, struct delivery *d, int64_t due_ms)
{
	hub_unsubscribe(w->daemon->hub, &d->sub);
	list_remove(&d->link);
	list_append(&d->hook->ready, &d->link);
	d->due_ms = due_ms;
	webhooks_wake(w);
}

static void on_events(struct hub_sub *s)
{
	struct delivery *d = container_of(s, struct delivery, sub);
	webhooks_ready(d->hook->webhooks, d, 0);
}

void webhooks_idle(struct webhooks *w, struct delivery *d)
{
	list_remove(&d->link);
	list_append(&d->hook->idle, &d->link);
	hub_subscribe(w->daemon->hub, d->cursor.session, &d->sub);
}

static struct delivery *oldest(struct hook *h)
{
	struct list *all[] = {&h->ready, &h->idle, &h->flying};
	struct delivery *old = NULL;
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		list_for_each (d, all[i], struct delivery, link)
			if (!old || strcmp(d->run, old->run) < 0)
				old = d;
	return old;
}

void webhooks_follow(struct webhooks *w, const struct store_delivery *x)
{
	struct hook *h = webhooks_hook(w, x->webhook);
	if (traces_follow(w->daemon->traces, x))
		return;
	if (!h) {
		log_warn("s=%s r=%s: webhook %s is not configured any more: what it was to be told "
		         "is given up",
		        x->session, x->run, x->webhook);
		w->daemon->stats.webhooks_failed++;
		store_delivered_all(w->daemon->store, x->webhook, x->run);
		return;
	}
	if (h->n == BACKLOG)
		webhooks_give_up(w, oldest(h), "too many runs wait for the receiver");
	struct delivery *d = xnew(struct delivery);
	d->hook = h;
	d->sub.wake = on_events;
	list_init(&d->link);
	(void)str_copy(d->run, sizeof(d->run), x->run); /* ids */
	(void)str_copy(d->cursor.session, sizeof(d->cursor.session), x->session);
	d->cursor.seq = x->seq;
	d->user = xstrdup(x->user);
	d->goal = xstrdup(x->goal);
	d->harness = xstrdup(x->harness);
	d->over = x->over;
	h->n++;
	w->daemon->stats.webhooks_pending++;
	webhooks_ready(w, d, 0);
}

void webhooks_forget(struct webhooks *w, const char *session)
{
	list_for_each (h, &w->hooks, struct hook, link) {
		struct list *all[] = {&h->ready, &h->idle, &h->flying};
		for (size_t i = 0; i < ARRAY_LEN(all); i++)
			list_for_each (d, all[i], struct delivery, link)
				if (strcmp(d->cursor.session, session) == 0)
					webhooks_give_up(w, d, "the session is deleted");
	}
}

/* ---- root's configuration ---- */

struct hook *webhooks_hook(const struct webhooks *w, const char *name)
{
	list_for_each (h, &w->hooks, struct hook, link)
		if (strcmp(h->config.name, name) == 0)
			return h;
	return NULL;
}

static struct hook *hook_new(struct webhooks *w)
{
	struct hook *h = xnew(struct hook);
	h->webhooks = w;
	list_init(&h->ready);
	list_init(&h->idle);
	list_init(&h->flying);
	list_append(&w->hooks, &h->link);
	return h;
}

static void hook_drop(struct webhooks *w, struct hook *h)
{
	struct list *all[] = {&h->ready, &h->idle, &h->flying};
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		list_for_each (d, all[i], struct delivery, link)
			webhooks_give_up(w, d, "it is not configured any more");
	list_remove(&h->link);
	free(h);
}

void webhooks_configure(struct webhooks *w)
{
	const struct policy_set *set = policies_set(w->daemon->policies);
	list_for_each (h, &w->hooks, struct hook, link)
		h->configured = false;
	for (uint32_t i = 0; i < set->config.nwebhooks; i++) {
		const struct webhook *c = &set->config.webhooks[i];
		struct hook *h = webhooks_hook(w, c->name);
		h = h ? h : hook_new(w);
		/* Mended, or moved: what waits need not wait out its pause. */
		if (memcmp(&h->config, c, sizeof(*c)) != 0) {
			h->failures = 0;
			h->next_ms = 0;
			list_for_each (d, &h->ready, struct delivery, link)
				d->due_ms = 0;
		}
		h->config = *c;
		h->index = i;
		h->configured = true;
	}
	list_for_each (h, &w->hooks, struct hook, link)
		if (!h->configured)
			hook_drop(w, h);
	w->generation = set->generation;
	webhooks_trials_again(w);
	webhooks_wake(w);
}

static void load(void *ctx, const struct store_delivery *x)
{
	webhooks_follow(ctx, x);
}

int webhooks_load(struct webhooks *w, struct err *e)
{
	return store_deliveries(w->daemon->store, load, w, e);
}

void webhooks_stop(struct webhooks *w)
{
	w->stopped = true;
}

void webhooks_for(const struct webhooks *w, const struct harness *h, const char *user,
        struct store_webhooks *ret)
{
	ret->n = 0;
	list_for_each (x, &w->hooks, struct hook, link)
		if (webhook_takes(&x->config, h->name, user, h->webhooks))
			memcpy(ret->names[ret->n++], x->config.name, NAME_MAX_LEN);
}

struct webhooks *webhooks_new(struct daemon *d)
{
	struct webhooks *w = xnew(struct webhooks);
	w->daemon = d;
	list_init(&w->hooks);
	list_init(&w->trials);
	/* Another supervisor's numbers are others. */
	(void)!getrandom(&w->last_number, sizeof(w->last_number), 0);
	w->last_number >>= 1;
	w->hook.run = webhooks_turn;
	loop_hook(d->loop, &w->hook);
	return w;
}
