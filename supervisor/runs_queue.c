/*
 * The queue of runs around the scheduler: its limits from root's configuration,
 * what a run is promised, how long it may wait, what it is told meanwhile.
 *
 * While runs wait a timer goes: to the next one that has waited long enough, and once a
 * second to tell of places that have changed by half.
 */
#include "supervisor/runs.h"

#include "base/clock.h"
#include "base/limits.h"
#include "base/mem.h"
#include "supervisor/active.h"
#include "supervisor/daemon.h"
#include "supervisor/harnesses.h"
#include "supervisor/keeper.h"
#include "supervisor/policies.h"
#include "supervisor/runs_private.h"
#include "supervisor/space.h"

#include <stdio.h>
#include <sched.h>
#include <sys/sysinfo.h>

enum {
	LOOK_MS = 1000, /* between two looks at the places of those that wait */
	SOONEST_MS = 5, /* runs whose time is over are ended together */
};

/* ---- limits ---- */

/* Before the system call filter: it does not know all of this. */
void runs_learn_host(struct runs *rs)
{
	struct sysinfo si;
	cpu_set_t cpus;
	if (sysinfo(&si) == 0)
		rs->host.memory_bytes = (uint64_t)si.totalram * si.mem_unit;
	if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0)
		rs->host.cpu_milli = 1000 * (uint64_t)CPU_COUNT(&cpus);
}

static uint64_t total(uint64_t configured, uint64_t host)
{
	return configured == RUN_SHARES_HOST ? host : configured;
}

static size_t or (size_t n, size_t otherwise)
{
	return n ? n : otherwise;
}

/* Root's configuration comes with the policies and may change with them. */
void runs_take_limits(struct runs *rs)
{
	const struct policy_set *set = policies_set(rs->daemon->policies);
	if (!set || set->generation == rs->limits_of)
		return;
	const struct daemon_config *c = &set->config;
	size_t waiting = or (c->max_queued, LIMIT_QUEUED_RUNS);
	const struct sched_limits l = {
	        .running = or (c->max_runs, 1),
	        .waiting = waiting < LIMIT_QUEUED_RUNS ? waiting : LIMIT_QUEUED_RUNS,
	        .user_running = c->user_runs,
	        .user_waiting = c->user_queued,
	        .most = {total(c->runs_memory, rs->host.memory_bytes),
	                total(c->runs_cpu, rs->host.cpu_milli)},
	        .shares = c->shares,
	        .nshares = c->nshares,
	};
	rs->most = l.most;
	rs->queue_ms = c->queue_ms;
	rs->limits_of = set->generation;
	sched_set_limits(rs->sched, &l, clock_mono_us());
}

/* One without such a limit may take all. */
struct sched_need runs_need(const struct runs *rs, const struct limits *l)
{
	return (struct sched_need){
	        .memory_bytes = rs->most.memory_bytes && !l->memory_bytes ? rs->most.memory_bytes
	                                                                  : l->memory_bytes,
	        .cpu_milli =
	                rs->most.cpu_milli && !l->cpu_milli ? rs->most.cpu_milli : l->cpu_milli,
	};
}

struct sched_ask runs_ask(const struct run *r)
{
	return (struct sched_ask){r->session->user, r->job.priority, r->job.need};
}

/* ---- scheduling ---- */

static void mind_waiting(struct runs *rs)
{
	keeper_make_room(rs->daemon->keeper, runs_room_to_wait(rs));
}

static void count(struct runs *rs)
{
	rs->daemon->stats.runs_running = sched_running(rs->sched) + rs->saving;
	rs->daemon->stats.runs_queued = sched_waiting(rs->sched);
}

static bool may_begin(const struct runs *rs)
{
	return !daemon_closing(rs->daemon) && !space_low(rs->daemon->space) && !rs->stopping &&
	       !rs->held && policies_ready(rs->daemon->policies);
}

/* A step may end a run at once and call for the next: `scheduling` keeps that a loop. */
void runs_schedule(struct runs *rs)
{
	rs->again = true;
	if (rs->scheduling)
		return;
	rs->scheduling = true;
	runs_take_limits(rs);
	while (rs->again) {
		rs->again = false;
		struct sched_job *j;
		while (may_begin(rs) && (j = sched_next(rs->sched, clock_mono_us())) != NULL) {
			struct run *r = container_of(j, struct run, job);
			active_step(r, RUN_EVENT_SLOT);
			mind_waiting(rs);
		}
	}
	rs->scheduling = false;
	count(rs);
	if (sched_running(rs->sched))
		space_mind(rs->daemon->space);
}

/* ---- while they wait ---- */

static void tell_position(struct run *r, size_t position)
{
	char members[64];
	int n = snprintf(members, sizeof(members), "\"position\":%zu", position);
	r->position = position;
	active_emit(r, EVENT_RUN_QUEUED, members, (size_t)n);
}

/* When its time to wait is over, in ms of the monotonic clock; 0: never. */
static int64_t due_ms(const struct runs *rs, const struct run *r)
{
	uint64_t most = r->harness->queue_ms;
	if (rs->queue_ms && (!most || rs->queue_ms < most))
		most = rs->queue_ms;
	int64_t due = most ? (r->waits_us + 999) / 1000 + (int64_t)most : 0;
	int64_t over = r->over_us / 1000; /* limits.totalMs of one that has begun */
	return over && (!due || over < due) ? over : due;
}

static void expire(struct runs *rs, struct run *r)
{
	int64_t ms = (clock_mono_us() - r->waits_us) / 1000;
	bool over = r->over_us && clock_mono_us() >= r->over_us;
	auto_free char *why =
	        over ? xasprintf("not done after %llu ms in all (limits.totalMs)",
	                       (unsigned long long)r->harness->total_ms)
	             : xasprintf("it has waited %lld ms for its session and a slot, longer than "
	                         "%s",
	                       (long long)ms,
	                       rs->queue_ms && (!r->harness->queue_ms ||
	                                               rs->queue_ms < r->harness->queue_ms)
	                               ? "runs.queue_timeout of agentboxd.yaml"
	                               : "limits.queueMs of its harness");
	active_emit_limit(r, over ? "wall" : "queue", over ? r->harness->total_ms : (uint64_t)ms);
	r->last_attempt = true;
	active_judge(r, RUN_TIMEOUT, why);
	sched_leave(rs->sched, &r->job, clock_mono_us());
	active_step(r, RUN_EVENT_END);
}

/* Ends those whose time is over; when the next one's is. */
static int64_t expire_all(struct runs *rs)
{
	int64_t now = clock_mono_ms(), next = 0;
	bool any = false;
	for (size_t i = 0; i < RUNS_BUCKETS; i++)
		list_for_each (r, &rs->active[i], struct run, link) {
			int64_t due = r->job.waiting ? due_ms(rs, r) : 0;
			if (!due)
				continue;
			if (due <= now) {
				expire(rs, r);
				any = true;
			} else if (!next || due < next) {
				next = due;
			}
		}
	if (any)
		runs_schedule(rs);
	return next;
}

/* Every second time it is half of what it was: some lines, however long the queue. */
static void look_at(void *ctx, struct sched_job *j, size_t position)
{
	(void)ctx;
	struct run *r = container_of(j, struct run, job);
	if (position <= r->position / 2 && position < r->position)
		tell_position(r, position);
}

static void ticked(struct op *op, int res, uint32_t flags);

static void tick_at(struct runs *rs, int64_t due)
{
	int64_t now = clock_mono_ms();
	rs->tick_ms = due > now + SOONEST_MS ? due : now + SOONEST_MS;
	loop_timeout(rs->daemon->loop, &rs->tick, rs->tick_ms - now, ticked);
}

static void ticked(struct op *op, int res, uint32_t flags)
{
	(void)res; /* cancelled: a sooner one is to be looked at */
	(void)flags;
	struct runs *rs = container_of(op, struct runs, tick);
	int64_t now = clock_mono_ms();
	if (rs->held)
		return; /* the next supervisor's */
	int64_t next = expire_all(rs);
	if (now >= rs->look_ms) {
		(void)sched_positions(rs->sched, look_at, NULL); /* too many: they ask */
		rs->look_ms = now + LOOK_MS;
	}
	if (sched_waiting(rs->sched))
		tick_at(rs, next && next < rs->look_ms ? next : rs->look_ms);
}

static void mind_time(struct runs *rs, const struct run *r)
{
	int64_t due = due_ms(rs, r);
	if (!rs->tick.inflight) {
		rs->look_ms = clock_mono_ms() + LOOK_MS;
		tick_at(rs, due && due < rs->look_ms ? due : rs->look_ms);
	} else if (due && due < rs->tick_ms) {
		rs->tick_ms = due; /* for all that come until it is back */
		loop_cancel(rs->daemon->loop, &rs->tick);
	}
}

struct sched_session *runs_lane(const struct run *r)
{
	return r->parent[0] ? session_lane(r->session) : &r->session->lane;
}

void runs_enqueue(struct runs *rs, struct run *r)
{
	int64_t now = clock_mono_us();
	struct sched_ask ask = runs_ask(r);
	/* One of an earlier supervisor has waited already. */
	int64_t waited_ms = clock_wall_ms() - r->created_ms;
	r->queued_us = r->waits_us = now - (waited_ms > 0 ? waited_ms : 0) * 1000;
	sched_add(rs->sched, &r->job, runs_lane(r), &ask, now);
	tell_position(r, sched_position(rs->sched, &r->job));
	runs_schedule(rs);
	if (r->job.waiting)
		mind_time(rs, r);
}

/* ---- between two attempts ---- */

void runs_paused(struct run *r)
{
	if (!r->job.running)
		return;
	r->slotless = r->state == RUN_STATE_SAVING;
	r->runs->saving += r->slotless;
	sched_pause(r->runs->sched, &r->job, clock_mono_us());
	runs_schedule(r->runs);
}

void runs_due(struct run *r)
{
	struct runs *rs = r->runs;
	int64_t now = clock_mono_us();
	r->waits_us = now;
	sched_wake(rs->sched, &r->job, now);
	tell_position(r, sched_position(rs->sched, &r->job));
	runs_schedule(rs);
	if (r->job.waiting)
		mind_time(rs, r);
}

void runs_pause_again(struct runs *rs, struct run *r)
{
	const struct sched_ask ask = runs_ask(r);
	sched_add_paused(rs->sched, &r->job, runs_lane(r), &ask, clock_mono_us());
	r->attempt--; /* that one is to come */
	active_step(r, RUN_EVENT_RETRY);
}

unsigned runs_retry_after(const struct runs *rs, const char *owner)
{
	return sched_retry_after(rs->sched, owner, clock_mono_us());
}
