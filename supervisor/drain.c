#include "supervisor/drain.h"

#include "base/log.h"
#include "base/mem.h"
#include "supervisor/daemon.h"
#include "supervisor/keeper.h"
#include "supervisor/runs.h"
#include "supervisor/store.h"

#include <string.h>

static const char key[] = "drain";

int drain_load(struct daemon *d, enum jail_former former, struct err *e)
{
	char value[8] = "";
	int rc = store_meta(d->store, key, value, sizeof(value), e);
	if (rc < 0)
		return rc;
	d->drained = strcmp(value, "1") == 0 && former != FORMER_NONE;
	d->stats.draining = d->drained;
	if (!d->drained && *value)
		store_set_meta(d->store, key, "", NULL, NULL);
	if (d->drained)
		log_info("draining still: no new runs");
	return 0;
}

struct setting {
	struct daemon *d;
	bool on;
	drain_done_fn *done;
	void *ctx;
};

static void set(void *ctx, int rc, const struct err *e)
{
	auto_free struct setting *s = ctx;
	struct daemon *d = s->d;
	if (rc == 0 && d->drained != s->on) {
		d->drained = s->on;
		d->stats.draining = s->on;
		log_info(s->on ? "draining: no new runs" : "draining no more");
		if (s->on)
			keeper_end_all(d->keeper, "the daemon is being drained");
		runs_schedule(d->runs);
	}
	s->done(s->ctx, rc, e);
}

void drain_set(struct daemon *d, bool on, drain_done_fn *done, void *ctx)
{
	struct setting *s = xnew(struct setting);
	*s = (struct setting){d, on, done, ctx};
	store_set_meta(d->store, key, on ? "1" : "", set, s);
}
