#include "supervisor/space.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "supervisor/loop.h"

#include <inttypes.h>
#include <sys/vfs.h>

enum {
	TICK_MS = 500,
	/* Where there is plenty, so long as nobody fills what is left of it meanwhile. */
	FRESH_MS = 50,
	PLENTY = 4, /* reserves */
	PART = 16,  /* of a small disk */
	OUT = 4,    /* that part of the reserve */
};

struct space {
	struct loop *loop;               /* borrowed */
	int dirfd;                       /* borrowed */
	const struct space_calls *calls; /* borrowed */
	void *ctx;
	uint64_t asked, reserve; /* as configured, and of this disk */
	uint64_t left;
	int64_t looked_ms;
	bool low, told;
	struct op clock;
};

static void look(struct space *s)
{
	struct statfs f;
	if (fstatfs(s->dirfd, &f) < 0)
		return; /* what was found before stands */
	uint64_t block = (uint64_t)f.f_bsize, part = f.f_blocks * block / PART;
	s->looked_ms = clock_mono_ms();
	s->left = f.f_bavail * block;
	s->reserve = s->asked < part ? s->asked : part;
	s->low = s->left < s->reserve;
	if (s->low != s->told)
		space_mind(s);
}

static void tick(struct op *op, int res, uint32_t flags)
{
	struct space *s = container_of(op, struct space, clock);
	(void)res;
	(void)flags;
	look(s);
	bool changed = s->low != s->told;
	s->told = s->low;
	if (changed && s->low)
		log_warn("the disk of the state directory has %" PRIu64
		         " MiB left of a reserve of %" PRIu64 ": no new runs",
		        s->left >> 20, s->reserve >> 20);
	else if (changed)
		log_info("the disk of the state directory has room again");
	if (s->low)
		s->calls->low(s->ctx);
	else if (changed)
		s->calls->room(s->ctx);
	if (!op->inflight && (s->low || s->calls->busy(s->ctx)))
		loop_timeout(s->loop, op, TICK_MS, tick);
}

void space_mind(struct space *s)
{
	if (!s->clock.inflight)
		loop_timeout(s->loop, &s->clock, s->low == s->told ? TICK_MS : 0, tick);
}

struct space *space_new(struct loop *l, int dirfd, const struct space_calls *calls, void *ctx)
{
	struct space *s = xnew(struct space);
	s->loop = l;
	s->dirfd = dirfd;
	s->calls = calls;
	s->ctx = ctx;
	return s;
}

void space_free(struct space *s)
{
	free(s);
}

void space_reserve(struct space *s, uint64_t bytes)
{
	s->asked = bytes;
	look(s);
}

bool space_low(struct space *s)
{
	look(s);
	return s->low;
}

/* Asked with each read of each agent. */
bool space_out(struct space *s)
{
	bool plenty = s->left / PLENTY > s->reserve;
	if (!plenty || clock_mono_ms() - s->looked_ms > FRESH_MS)
		look(s);
	return s->left < s->reserve / OUT;
}

int space_check(struct space *s, struct err *e)
{
	if (!space_low(s))
		return 0;
	return err_set(e, -ENOSPC,
	        "the disk of the state directory has %" PRIu64 " MiB left, and the last %" PRIu64
	        " are the reserve of what runs (state.reserve): no new runs until there is room",
	        s->left >> 20, s->reserve >> 20);
}

uint64_t space_left(struct space *s)
{
	look(s);
	return s->left;
}

uint64_t space_for_results(struct space *s)
{
	look(s);
	uint64_t kept = s->reserve / 2;
	return s->left > kept ? s->left - kept : 0;
}

uint64_t space_reserved(const struct space *s)
{
	return s->reserve;
}
