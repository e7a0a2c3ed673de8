#include "supervisor/sched.h"

#include "supervisor/owner.h"
#include "supervisor/sched_private.h"

enum {
	PRIORITIES = 10,
	RETRY_MOST_S = 300,
	POSITIONS_MOST = 1000000, /* jobs x users: some milliseconds */
};

/* ---- room ---- */

static int fits_ever(const struct sched *s, const struct sched_need *n, struct err *e)
{
	const struct sched_need *most = &s->most.most;
	if (most->memory_bytes && n->memory_bytes > most->memory_bytes)
		return err_set(e, -ENOEXEC,
		        "limits.memory is %llu MiB, and all runs together may be promised %llu MiB "
		        "(runs.memory of agentboxd.yaml)",
		        (unsigned long long)(n->memory_bytes >> 20),
		        (unsigned long long)(most->memory_bytes >> 20));
	if (most->cpu_milli && n->cpu_milli > most->cpu_milli)
		return err_set(e, -ENOEXEC,
		        "limits.cpus is %g, and all runs together may be promised %g (runs.cpus of "
		        "agentboxd.yaml)",
		        (double)n->cpu_milli / 1000, (double)most->cpu_milli / 1000);
	return 0;
}

/* What waits is bounded; what is on its way may take a slot at once. */
static bool full(size_t waiting, size_t expected, size_t most, size_t running, size_t slots)
{
	size_t idle = slots > running ? slots - running : 0;
	return waiting >= most || waiting + expected >= most + idle;
}

static int party_room(const struct sched *s, const struct party *p, const char *what,
        const char *name, struct err *e)
{
	size_t slots = p->most_running ? p->most_running : s->most.running;
	if (!p->most_waiting || !full(p->waiting, p->expected, p->most_waiting, p->running, slots))
		return 0;
	return err_set(e, -EAGAIN, "too many runs of %s '%.60s' wait (limit %zu)", what, name,
	        p->most_waiting);
}

int sched_room(const struct sched *s, const struct sched_ask *q, struct err *e)
{
	int rc = fits_ever(s, &q->need, e);
	if (rc == 0 && full(s->waiting, s->expected, s->most.waiting, s->running, s->most.running))
		rc = err_set(e, -EAGAIN, "the queue of runs is full (limit %zu)", s->most.waiting);
	char tenant[NAME_MAX_LEN];
	owner_tenant(q->owner, tenant);
	const struct sched_tenant *t = rc == 0 ? sched_tenant_find(s, tenant) : NULL;
	const struct sched_user *u = t ? sched_user_find(s, q->owner) : NULL;
	if (t)
		rc = party_room(s, &t->p, "tenant", t->name, e);
	if (rc == 0 && u)
		rc = party_room(s, &u->p, "user", owner_user(u->owner), e);
	return rc;
}

static double gap_at(double gap_ms, int64_t start_us, int64_t now_us)
{
	double since = start_us ? (double)(now_us - start_us) / 1000 : 0;
	return since > gap_ms ? since : gap_ms; /* a rate that was, and is no more */
}

unsigned sched_retry_after(const struct sched *s, const char *owner, int64_t now_us)
{
	const struct sched_user *u = sched_user_find(s, owner);
	double ms = gap_at(s->gap_ms, s->start_us, now_us);
	if (u && u->p.most_waiting && u->p.waiting + u->p.expected >= u->p.most_waiting)
		ms = gap_at(u->p.gap_ms, u->p.start_us, now_us);
	unsigned seconds = ms < 1000.0 * RETRY_MOST_S ? (unsigned)(ms / 1000) + 1 : RETRY_MOST_S;
	return seconds < RETRY_MOST_S ? seconds : RETRY_MOST_S;
}

/* ---- looking ---- */

size_t sched_running(const struct sched *s)
{
	return s->running;
}

size_t sched_waiting(const struct sched *s)
{
	return s->waiting;
}

static double part(const struct sched_user *u)
{
	return u->tenant->p.share.weight * u->p.share.weight / u->tenant->clock.weights;
}

/* `rank` of its own go first, and of the others as many as have their turn meanwhile; where turns
 * are even, who came first. */
static size_t position(const struct sched *s, const struct sched_job *j, size_t rank)
{
	size_t n = rank;
	double turns = (double)rank / part(j->user);
	list_for_each (o, &s->everybody, struct sched_user, all) {
		const struct sched_job *first = list_first(&o->waiting, struct sched_job, mine);
		if (o != j->user && first)
			n += sched_smaller(o->p.waiting,
			        (uint64_t)(turns * part(o)) + (first->arrival < j->arrival));
	}
	return n;
}

size_t sched_position(const struct sched *s, const struct sched_job *j)
{
	size_t rank = 0;
	list_for_each (o, &j->user->waiting, struct sched_job, mine)
		rank += o != j && (o->priority > j->priority ||
		                          (o->priority == j->priority && o->arrival < j->arrival));
	return position(s, j, rank);
}

bool sched_positions(const struct sched *s, sched_each_fn *each, void *ctx)
{
	if ((uint64_t)s->waiting * s->nusers > POSITIONS_MOST)
		return false;
	list_for_each (u, &s->everybody, struct sched_user, all) {
		size_t of[PRIORITIES + 1] = {0}; /* how many are before the first of this one */
		list_for_each (j, &u->waiting, struct sched_job, mine)
			of[j->priority]++;
		for (size_t above = 0, p = PRIORITIES; p-- > 0;) {
			size_t n = of[p];
			of[p] = above;
			above += n;
		}
		list_for_each (j, &u->waiting, struct sched_job, mine)
			each(ctx, j, position(s, j, of[j->priority]++));
	}
	return true;
}
