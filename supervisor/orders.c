#include "supervisor/orders.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "proto/children.h"
#include "supervisor/ahead.h"
#include "supervisor/checkout.h"
#include "supervisor/daemon.h"
#include "supervisor/drain.h"
#include "supervisor/evict.h"
#include "supervisor/http.h"
#include "supervisor/keeper.h"
#include "supervisor/loop.h"
#include "supervisor/plan.h"
#include "supervisor/policies.h"
#include "supervisor/retention.h"
#include "supervisor/routes.h"
#include "supervisor/runs.h"
#include "supervisor/space.h"
#include "supervisor/store.h"
#include "supervisor/traces.h"
#include "supervisor/uploads.h"
#include "supervisor/webhooks.h"

/* ---- stopping ---- */

static void stopped(void *ctx)
{
	struct daemon *d = ctx;
	loop_stop(d->loop);
}

static void on_stop(struct daemon *d)
{
	if (d->draining)
		return;
	log_info("stopping");
	d->draining = true;
	ahead_stop(d->ahead);
	webhooks_stop(d->webhooks);
	traces_stop(d->traces);
	uploads_stop(d->uploads);
	if (d->http)
		http_stop_accepting(d->http);
	runs_stop(d->runs, stopped, d);
}

/* ---- making room for the next supervisor ---- */

/* Jails that are being made come to where they can be left, answers go out. */
enum { HANDOVER_LOOK_MS = 2, HANDOVER_MS = 4000 };

static struct handover {
	struct op op;
	struct daemon *d;
	int64_t until_ms;
} handover;

static void look(struct op *op, int res, uint32_t flags)
{
	(void)res;
	(void)flags;
	struct handover *h = container_of(op, struct handover, op);
	bool quiet = runs_hand_over(h->d->runs) && http_quiet(h->d->http);
	if (quiet || clock_mono_ms() >= h->until_ms)
		loop_stop(h->d->loop);
	else
		loop_timeout(h->d->loop, &h->op, HANDOVER_LOOK_MS, look);
}

static void on_handover(struct daemon *d)
{
	log_info("making room for the next supervisor");
	ahead_stop(d->ahead);
	webhooks_stop(d->webhooks);
	traces_stop(d->traces);
	uploads_stop(d->uploads);
	if (!d->http) {
		loop_stop(d->loop);
		return;
	}
	http_stop_accepting(d->http);
	handover.d = d;
	handover.until_ms = clock_mono_ms() + HANDOVER_MS;
	loop_timeout(d->loop, &handover.op, 0, look);
}

/* ---- the rest ---- */

/* Whoever started us must see it: agentboxd starts another, later and later. */
static void give_up(struct daemon *d)
{
	d->failed = true;
	loop_stop(d->loop);
}

/* Without agentboxd there are no jails: its next start finds what was under way. */
static void on_lost(struct daemon *d, const char *why)
{
	log_err("%s", why);
	give_up(d);
}

/* The first policies, and what this host has for them: now what is left can be gone on with. */
static void on_policies(struct daemon *d)
{
	static bool asked;
	webhooks_configure(d->webhooks);
	traces_configure(d->traces);
	uploads_configure(d->uploads);
	space_reserve(d->space, policies_set(d->policies)->config.state_reserve);
	evict_configure(d->evict, &policies_set(d->policies)->config.sessions);
	retention_configure(d->retention, &policies_set(d->policies)->config.keep);
	if (!asked && !d->draining)
		jails_adopt(d->jails);
	keeper_end_all(d->keeper, "policies were read again");
	asked = true;
}

static void on_found(struct daemon *d, const struct jail_found *x, int fds[MSG_FDS])
{
	runs_found(d->runs, x, fds);
}

/* And now there is something to serve. */
static void on_adopted(struct daemon *d, enum jail_former former)
{
	struct err e;
	gid_t group = policies_set(d->policies)->config.socket_gid;
	if (d->draining)
		return;
	int rc = webhooks_load(d->webhooks, &e);
	if (rc == 0)
		rc = drain_load(d, former, &e);
	if (rc == 0)
		rc = runs_recover(d->runs, former, &e);
	/* Whoever asks first must not be told that what has just been ended still runs. */
	store_drain(d->store);
	if (rc < 0 || routes_serve(d, CHILD_LISTEN, CHILD_REMOTE, group, &e) < 0) {
		log_err("%s", e.text);
		give_up(d);
		return;
	}
	uploads_resume(d->uploads);
	ahead_begin(d->ahead);
}

/* ---- the disk ---- */

static bool on_space_busy(void *ctx)
{
	return runs_any(((struct daemon *)ctx)->runs);
}

static void on_space_low(void *ctx)
{
	runs_tell_low(((struct daemon *)ctx)->runs);
}

static void on_space_room(void *ctx)
{
	runs_schedule(((struct daemon *)ctx)->runs);
}

const struct space_calls orders_space = {
        .busy = on_space_busy, .low = on_space_low, .room = on_space_room};

static void on_hooked(struct daemon *d, const struct jail_hooked *x)
{
	if (!traces_answered(d->traces, x))
		webhooks_answered(d->webhooks, x);
}

static void on_objected(struct daemon *d, const struct jail_objected *x)
{
	uploads_answered(d->uploads, x);
}

const struct jails_calls orders_calls = {
        .policies = on_policies,
        .stop = on_stop,
        .handover = on_handover,
        .found = on_found,
        .adopted = on_adopted,
        .hooked = on_hooked,
        .objected = on_objected,
        .lost = on_lost,
};

/* ---- harnesses ---- */

int orders_check_harness(void *ctx, struct harness *h, struct err *e)
{
	const struct daemon *d = ctx;
	int rc = plan_check(ctx, h, &(struct limits){0}, e);
	return rc < 0 ? rc : checkout_admit(d->policies, h, NULL, e);
}
