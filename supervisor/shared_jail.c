#include "supervisor/shared_jail.h"

#include "base/mem.h"
#include "supervisor/daemon.h"
#include "supervisor/jails.h"
#include "supervisor/loop.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

struct shared_jail {
	struct daemon *d;
	uint64_t jail; /* 0: not made */
	struct jail_watch watch;
	struct op clock; /* holds a reference in flight */
	int64_t wall_ms;
	unsigned refs, commands;
	bool killed, timed_out;
	void (*released)(void *ctx);
	void *ctx;
};

static void release(struct shared_jail *x)
{
	if (x->released)
		x->released(x->ctx);
	x->released = NULL;
}

void shared_jail_unref(struct shared_jail *x)
{
	if (!x || --x->refs > 0)
		return;
	release(x); /* it was never made */
	free(x);
}

static void kill_it(struct shared_jail *x)
{
	if (!x->jail || x->killed)
		return;
	x->killed = true;
	jails_kill(x->d->jails, x->jail);
}

static void on_clock(struct op *op, int res, uint32_t flags)
{
	struct shared_jail *x = container_of(op, struct shared_jail, clock);
	(void)flags;
	if (res == -ETIME && !x->killed) {
		x->timed_out = true;
		kill_it(x);
	}
	shared_jail_unref(x);
}

static void on_gone(struct jail_watch *w, const struct jail_gone *m)
{
	struct shared_jail *x = container_of(w, struct shared_jail, watch);
	(void)m;
	x->killed = true; /* it may have ended by itself */
	jails_unwatch(x->d->jails, &x->watch);
	jails_release(x->d->jails, x->jail);
	loop_cancel(x->d->loop, &x->clock);
	release(x);
	shared_jail_unref(x);
}

struct shared_jail *shared_jail_new(
        struct daemon *d, int64_t wall_ms, void (*released)(void *ctx), void *ctx)
{
	struct shared_jail *x = xnew(struct shared_jail);
	*x = (struct shared_jail){.d = d,
	        .wall_ms = wall_ms,
	        .refs = 1,
	        .commands = 1,
	        .released = released,
	        .ctx = ctx};
	list_init(&x->watch.link);
	x->watch.gone = on_gone;
	return x;
}

void shared_jail_made(struct shared_jail *x, uint64_t jail)
{
	x->jail = jail;
	x->refs++;
	jails_watch(x->d->jails, jail, &x->watch);
	if (x->wall_ms > 0) {
		x->refs++;
		loop_timeout(x->d->loop, &x->clock, x->wall_ms, on_clock);
	}
}

struct shared_jail *shared_jail_join(struct shared_jail *x)
{
	x->refs++;
	x->commands++;
	return x;
}

void shared_jail_leave(struct shared_jail *x)
{
	assert(x->commands > 0);
	if (--x->commands == 0)
		kill_it(x);
}

unsigned shared_jail_commands(const struct shared_jail *x)
{
	return x->commands;
}

bool shared_jail_ends(const struct shared_jail *x)
{
	return x->killed;
}

bool shared_jail_timed_out(const struct shared_jail *x)
{
	return x->timed_out;
}
