#include "supervisor/webhooks.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/mem.h"
#include "supervisor/daemon.h"
#include "supervisor/webhooks_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRIALS_MAX = 8 };

/* ---- what there is ---- */

/* Host and port alone: the path of an URL often is as good as a key. */
static void host_member(struct jw *w, const char *url)
{
	const char *host = strstr(url, "://") + 3;
	jw_bytes(w, "host", host, strcspn(host, "/"));
}

static void list_member(struct jw *w, const char *key, const char texts[][NAME_MAX_LEN], uint32_t n)
{
	if (n == 0)
		return;
	jw_open(w, key, '[');
	for (uint32_t i = 0; i < n; i++)
		jw_str(w, NULL, texts[i]);
	jw_close(w, ']');
}

static void show(const struct hook *h, struct jw *w)
{
	const struct webhook *c = &h->config;
	jw_open(w, NULL, '{');
	jw_str(w, "name", c->name);
	if (c->nargs)
		jw_str(w, "command", c->command); /* its path; arguments are root's */
	else
		host_member(w, c->url);
	jw_open(w, "events", '[');
	for (int i = 0; i < WEBHOOK_EVENT_COUNT; i++)
		if (c->events & 1u << i)
			jw_str(w, NULL, webhook_event_names[i]);
	jw_close(w, ']');
	list_member(w, "harnesses", c->harnesses, c->nharnesses);
	list_member(w, "users", c->users, c->nusers);
	jw_bool(w, "namedOnly", c->named_only != 0);
	jw_int(w, "pending", h->n);
	jw_int(w, "delivered", (int64_t)h->delivered);
	jw_int(w, "retried", (int64_t)h->retried);
	jw_int(w, "failed", (int64_t)h->failed);
	jw_int(w, "failures", h->failures);
	if (h->answered_ms) {
		char at[CLOCK_TEXT_MAX];
		clock_rfc3339(h->answered_ms, at);
		jw_str(w, "lastAt", at);
		jw_str(w, "last", h->last);
	}
	jw_close(w, '}');
}

void webhooks_list(const struct webhooks *w, struct buf *json)
{
	struct jw out = JW_INIT(json);
	list_for_each (h, &w->hooks, struct hook, link)
		show(h, &out);
}

/* ---- trials ---- */

static void trial_end(struct webhooks *w, struct trial *t, const struct jail_hooked *m)
{
	list_remove(&t->link);
	w->ntrials--;
	t->done(t->ctx, m);
	free(t);
}

bool webhooks_tried(struct webhooks *w, const struct jail_hooked *m)
{
	list_for_each (t, &w->trials, struct trial, link)
		if (t->number == m->delivery || m->delivery == 0) {
			t->stale = m->delivery && m->retry_after_ms < 0;
			if (!t->stale)
				trial_end(w, t, m);
			else if (t->generation != w->generation)
				webhooks_trials_again(w);
			return true;
		}
	return false;
}

void webhooks_trials_late(struct webhooks *w, int64_t now)
{
	static const struct jail_hooked silent = {
	        .reason = "agentbox-egress has not said what came of it"};
	list_for_each (t, &w->trials, struct trial, link)
		if (now >= t->deadline_ms)
			trial_end(w, t, &silent);
}

static int trial_body(const struct hook *h)
{
	char now[CLOCK_TEXT_MAX];
	auto_buf struct buf b = BUF_INIT(4096);
	struct jw w = JW_INIT(&b);
	clock_rfc3339(clock_wall_ms(), now);
	jw_open(&w, NULL, '{');
	jw_str(&w, "type", "webhook.test");
	jw_str(&w, "webhook", h->config.name);
	jw_open(&w, "event", '{');
	jw_str(&w, "ts", now);
	jw_str(&w, "type", "webhook.test");
	jw_close(&w, '}');
	jw_close(&w, '}');
	return b.failed ? b.failed : fd_sealed_memfd("webhook", b.p, b.len);
}

static int trial_send(struct webhooks *w, const struct hook *h, struct trial *t)
{
	char id[ID_MAX];
	int fd = trial_body(h);
	if (fd < 0)
		return fd;
	t->stale = false;
	t->number = ++w->last_number;
	t->generation = w->generation;
	id_new("test", id);
	webhooks_send(w, h, id, t->number, fd);
	return 0;
}

void webhooks_trials_again(struct webhooks *w)
{
	static const struct jail_hooked none = {.reason = "it is not there any more"};
	list_for_each (t, &w->trials, struct trial, link) {
		const struct hook *h = webhooks_hook(w, t->name);
		if (t->stale && (!h || trial_send(w, h, t) < 0))
			trial_end(w, t, &none);
	}
}

int webhooks_try(
        struct webhooks *w, const char *name, webhooks_tried_fn *done, void *ctx, struct err *e)
{
	const struct hook *h = webhooks_hook(w, name);
	if (!h)
		return err_set(e, -ENOENT, "no webhook '%.64s'", name);
	if (w->ntrials == TRIALS_MAX)
		return err_set(e, -EAGAIN, "%d tests are under way already", TRIALS_MAX);
	struct trial *t = xnew(struct trial);
	*t = (struct trial){.deadline_ms = webhooks_deadline(h), .done = done, .ctx = ctx};
	memcpy(t->name, h->config.name, sizeof(t->name));
	int r = trial_send(w, h, t);
	if (r < 0) {
		free(t);
		return err_set(e, r, "webhook %s: %s", name, strerror(-r));
	}
	list_append(&w->trials, &t->link);
	w->ntrials++;
	webhooks_wake(w); /* for its deadline */
	return 0;
}
