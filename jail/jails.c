#include "jail/jails.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"

#include <assert.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Two serve a jail (one lists while one opens); more is a supervisor that forgets them. */
enum { WORKERS_MAX = 4 };
/* Between PID 1's end and the last exit in its cgroup lie microseconds; this is for kernels whose
 * notification is late. */
enum { RECHECK_MS = 20 };
/* egress closes what a jail had open in one turn of its loop, and says so.  Events that come later
 * than this are not in the run's result. */
enum { SETTLE_MS = 250 };
/* One statfs or quotactl; a disk that is full for less than this may go unnoticed. */
enum { LOOK_MS = 250 };
/* PID 1 takes a request within microseconds, on a host that is beyond its means within a second. */
enum { TAKE_MS = 10000, TAKE_LOOK_MS = 1000 };
_Static_assert((LIMIT_JAILS & (LIMIT_JAILS - 1)) == 0, "the slot is the low bits of the id");

struct jails_worker {
	struct list link;       /* in jail.workers */
	struct jail *jail;      /* borrowed */
	struct launch_worker w; /* owned; its socket went to the supervisor */
	struct watch pidfd;
};

static struct poller *poller_of(struct jail *j)
{
	return j->table->poller;
}

/* ---- workers ---- */

static void jail_free(struct jail *j);
static void end_ballast(struct jail *j);

/* What is left of it is the reaper's. */
static void worker_free(struct jails_worker *w)
{
	struct child left = {.pid = w->w.pid, .pidfd = -1};
	left.pidfd = take_fd(w->w.pidfd);
	poller_remove(poller_of(w->jail), &w->pidfd);
	list_remove(&w->link);
	w->jail->nworkers--;
	reaper_give(w->jail->table->reaper, &left, w->jail->session);
	fd_close(w->w.socket);
	free(w);
}

static void worker_ended(struct watch *watch, uint32_t events)
{
	(void)events;
	struct jails_worker *w = container_of(watch, struct jails_worker, pidfd);
	struct jail *j = w->jail;
	worker_free(w);
	if (j->leaving && j->nworkers == 0)
		jail_free(j);
}

int jails_worker(struct jail *j, int worker_memfd, struct err *e)
{
	if (j->nworkers >= WORKERS_MAX)
		return err_set(e, -EBUSY, "jail %llu has %d file workers already",
		        (unsigned long long)j->id, WORKERS_MAX);
	struct launch_worker lw = {.socket = -1, .pidfd = -1};
	int r = launch_worker(&j->l, worker_memfd, &lw, e);
	if (r < 0)
		return r;
	struct jails_worker *w = xnew(struct jails_worker);
	w->jail = j;
	w->w = lw;
	list_append(&j->workers, &w->link);
	j->nworkers++;
	r = poller_add(poller_of(j), &w->pidfd, lw.pidfd, EPOLLIN, worker_ended, e);
	if (r < 0) {
		worker_free(w);
		return r;
	}
	return take_fd(w->w.socket);
}

bool jails_have_children(const struct jails *t)
{
	for (unsigned i = 0; i < LIMIT_JAILS; i++) {
		const struct jail *j = t->slots[i];
		if (j && (j->nworkers > 0 || j->ballast.child.pidfd >= 0))
			return true;
	}
	return false;
}

void jails_kill_children(struct jails *t)
{
	for (unsigned i = 0; i < LIMIT_JAILS; i++) {
		struct jail *j = t->slots[i];
		if (!j)
			continue;
		end_ballast(j);
		list_for_each (w, &j->workers, struct jails_worker, link)
			launch_worker_kill(&w->w);
	}
}

/* ---- the end of a jail ---- */

static void jail_free(struct jail *j)
{
	struct jails *t = j->table;
	uint32_t base = j->base;
	poller_remove(t->poller, &j->control);
	poller_remove(t->poller, &j->pidfd);
	poller_remove(t->poller, &j->events);
	alarm_clear(&j->recheck);
	alarm_clear(&j->look);
	alarm_clear(&j->take);
	list_for_each (w, &j->workers, struct jails_worker, link)
		worker_free(w);
	end_ballast(j);
	disk_done(&j->disk, j->l.kit->closer);
	launch_stdio_close(&j->kept);
	launched_free(&j->l);
	t->slots[j->id % LIMIT_JAILS] = NULL;
	t->count--;
	free(j);
	t->news->released(t->ctx, base);
}

/* Its block of ids is free only when its workers are gone, and one that waits for a disk takes its
 * time. */
static void jail_leave(struct jail *j)
{
	j->orphaned = true; /* nobody finds it any more */
	j->leaving = true;
	list_for_each (w, &j->workers, struct jails_worker, link)
		launch_worker_kill(&w->w);
	if (j->nworkers == 0)
		jail_free(j);
}

static void look_at_disk(struct jail *j)
{
	static const enum jail_limit_kind kinds[] = {JAIL_LIMIT_DISK, JAIL_LIMIT_INODES};
	uint32_t met = disk_look(&j->disk);
	j->limits_met |= met;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (met & kinds[i])
			j->table->news->limit(j->table->ctx, j, kinds[i],
			        kinds[i] == JAIL_LIMIT_DISK ? j->disk.bytes : j->disk.inodes);
}

static void on_ballast(struct watch *w, uint32_t events)
{
	(void)events;
	struct jail *j = container_of(w, struct jail, ballast_ended);
	int status = child_reap_watched(&j->ballast.child, poller_of(j), w);
	if (status == -ETIME)
		return;
	struct job_out out;
	struct err e;
	int r = job_end(&j->ballast, status, &out, &e);
	if (r < 0)
		log_warn("jail %llu: its limit of disk: %s", (unsigned long long)j->id, e.text);
	disk_tightened(&j->disk, r);
}

static void end_ballast(struct jail *j)
{
	poller_remove(poller_of(j), &j->ballast_ended);
	reaper_give(j->table->reaper, &j->ballast.child, j->session);
	job_forget(&j->ballast);
}

static void tighten(struct jail *j)
{
	struct err e;
	int r = disk_tighten(&j->disk, &j->ballast, &e);
	if (r == 0)
		r = poller_add(poller_of(j), &j->ballast_ended, j->ballast.child.pidfd, EPOLLIN,
		        on_ballast, &e);
	if (r == 0)
		return;
	end_ballast(j);
	log_warn("jail %llu: its limit of disk: %s", (unsigned long long)j->id, e.text);
}

static void on_look(struct alarm *a)
{
	struct jail *j = container_of(a, struct jail, look);
	look_at_disk(j);
	if (disk_is_loose(&j->disk) && j->ballast.child.pidfd < 0)
		tighten(j);
	alarm_set(poller_of(j), &j->look, LOOK_MS);
}

static void become_dead(struct jail *j)
{
	alarm_clear(&j->look);
	end_ballast(j);
	look_at_disk(j);
	struct jail_gone gone = {.head.type = JAIL_GONE, .jail = j->id};
	cgroup_usage(&j->l.kit->cgroup, &gone.resources, &gone.oom_kills);
	cgroup_refused(&j->l.kit->cgroup, &gone.forks_refused, &gone.cpu_held_us);
	jails_count(j, &gone.resources);
	/* What a cgroup without controllers does not count, wait4 did. */
	if (gone.resources.memory_peak_bytes == 0)
		gone.resources.memory_peak_bytes = j->l.rss_peak_bytes;
	if (gone.resources.cpu_us == 0)
		gone.resources.cpu_us = j->l.cpu_us;
	gone.end = gone.oom_kills > 0 ? JAIL_END_OOM
	           : j->killed        ? JAIL_END_KILLED
	                              : JAIL_END_INIT_DIED;
	j->state = JAILS_DEAD;
	j->gone = true;
	j->end = gone;
	poller_remove(poller_of(j), &j->events);
	alarm_clear(&j->recheck);
	j->table->news->gone(j->table->ctx, j, &gone);
	if (j->orphaned)
		jail_leave(j);
}

/* The cgroup takes all at once; PID 1 alone takes its pid namespace with it, should the write to
 * cgroup.kill fail. */
static void end_processes(struct jail *j)
{
	int r = cgroup_kill(&j->l.kit->cgroup, NULL);
	if (r < 0 && !j->reaped)
		(void)syscall(SYS_pidfd_send_signal, j->l.pidfd, SIGKILL, NULL, 0);
}

/* Its connections are cut now, and what they have moved is part of what it has used. */
static void settle(struct jail *j)
{
	j->settling = true;
	if (j->table->news->settling(j->table->ctx, j))
		alarm_set(poller_of(j), &j->recheck, SETTLE_MS);
	else
		become_dead(j);
}

/* ---- between two runs ---- */

static void rested(struct jail *j)
{
	if (!j->rest_waits)
		return;
	j->rest_waits = false;
	alarm_clear(&j->recheck);
	j->table->news->rested(j->table->ctx, j);
}

bool jails_rest(struct jail *j, uint64_t req)
{
	j->resting = true;
	j->rest_req = req;
	j->rest_waits = j->table->news->settling(j->table->ctx, j);
	j->has_egress = false;
	if (j->rest_waits)
		alarm_set(poller_of(j), &j->recheck, SETTLE_MS);
	return j->rest_waits;
}

void jails_claim(struct jail *j, const struct jail_claim *m)
{
	j->resting = false;
	j->claimed = true;
	memcpy(j->run, m->run, sizeof(j->run));
	memcpy(j->user, m->purse.user, sizeof(j->user));
	j->budget = m->purse.run;
	j->tokens = (struct tokens){0};
	j->spent = (struct spending){0};
	j->limits_met = j->disk.told = 0;
}

void jails_settled(struct jails *t, uint64_t id)
{
	struct jail *j = t->slots[id % LIMIT_JAILS];
	if (!j || j->id != id)
		return;
	if (j->settling && j->state != JAILS_DEAD)
		become_dead(j);
	else
		rested(j);
}

void jails_settle_all(struct jails *t)
{
	for (unsigned i = 0; i < LIMIT_JAILS; i++)
		if (t->slots[i])
			jails_settled(t, t->slots[i]->id);
}

/* PID 1 is collected; what the cgroup still holds decides. */
static void look_for_end(struct jail *j)
{
	if (j->settling)
		return;
	rested(j);
	int left = cgroup_populated(&j->l.kit->cgroup);
	/* What cannot be read may hold anything; only a cgroup that is gone (ENODEV) is empty. */
	if (left == 1 || (left < 0 && left != -ENODEV)) {
		end_processes(j); /* again: something forked in between */
		alarm_set(poller_of(j), &j->recheck, RECHECK_MS);
		return;
	}
	settle(j);
}

static void on_recheck(struct alarm *a)
{
	struct jail *j = container_of(a, struct jail, recheck);
	if (j->settling)
		become_dead(j);
	else if (j->rest_waits)
		rested(j);
	else if (j->state != JAILS_LIVE)
		look_for_end(j);
}

static void on_cgroup_event(struct watch *w, uint32_t events)
{
	(void)events;
	struct jail *j = container_of(w, struct jail, events);
	/* Ready until it is read again, which cgroup_populated does. */
	int left = cgroup_populated(&j->l.kit->cgroup);
	if (j->reaped && left != 1)
		look_for_end(j);
}

/* ---- PID 1 ---- */

/* PID 1 shares the jail with the agent: what it says is checked like any stranger's word. */
static bool exited_ok(const struct jail *j, const void *msg, int n)
{
	const struct init_exited *m = msg;
	return n == (int)sizeof(*m) && m->head.type == INIT_EXITED && m->exec >= 1 &&
	       m->exec <= j->execs && j->exits < j->execs;
}

/* False at the end of the socket. */
static bool read_control(struct jail *j)
{
	_Alignas(8) char bytes[MSG_MAX];
	int fds[MSG_FDS];
	int n = msg_recv(j->l.control, bytes, fds);
	if (n < 0 && msg_later(n))
		return true;
	for (int i = 0; n > 0 && i < MSG_FDS; i++)
		fd_close(fds[i]);
	if (n <= 0 || !exited_ok(j, bytes, n))
		return false;
	j->exits++;
	const struct init_exited *m = (const struct init_exited *)(void *)bytes;
	if (m->exec == j->program && !j->exited) {
		j->exited = true;
		j->how = *m;
	}
	j->table->news->exited(j->table->ctx, j, m);
	return true;
}

static void on_control(struct watch *w, uint32_t events)
{
	(void)events;
	struct jail *j = container_of(w, struct jail, control);
	if (read_control(j))
		return;
	/* EOF, or a PID 1 that is not ours any more: either way this is the end of the jail. */
	poller_remove(poller_of(j), &j->control);
	if (j->state == JAILS_LIVE) {
		bool asked = j->killed;
		jails_kill(j);
		j->killed = asked;
	}
}

static void on_pidfd(struct watch *w, uint32_t events)
{
	(void)events;
	struct jail *j = container_of(w, struct jail, pidfd);
	if (launch_reap(&j->l) < 0)
		return;
	/* What PID 1 sent before it died still counts. */
	while (j->control.added && j->exits < j->execs) {
		uint64_t before = j->exits;
		if (!read_control(j) || j->exits == before)
			break;
	}
	poller_remove(poller_of(j), &j->control);
	poller_remove(poller_of(j), &j->pidfd);
	j->reaped = true;
	j->state = JAILS_DYING;
	look_for_end(j);
}

/* ---- a PID 1 that takes no request: stopped, frozen, or not ours any more ---- */

/* Whoever waits for these programs is told that there will be none; should PID 1 go on after all,
 * what it then starts is killed at once.  A run's own program has the run's time. */
static void give_up(struct jail *j)
{
	struct err e;
	log_warn("jail %llu: PID 1 has taken no request for %d s", (unsigned long long)j->id,
	        TAKE_MS / 1000);
	uint64_t exec = j->untaken;
	j->untaken = 0;
	for (; exec <= j->execs; exec++) {
		if (exec == j->program)
			continue;
		struct init_exited m = {
		        .exec = exec, .stage = INIT_STAGE_REQUEST, .error = ETIMEDOUT, .code = -1};
		if (launch_signal(&j->l, exec, SIGKILL, &e) < 0)
			log_warn("jail %llu: %s", (unsigned long long)j->id, e.text);
		j->table->news->exited(j->table->ctx, j, &m);
	}
}

/* The kernel counts what the other end has not received yet. */
static bool all_taken(const struct jail *j)
{
	int left;
	return j->state != JAILS_LIVE || ioctl(j->l.control, SIOCOUTQ, &left) < 0 || left == 0;
}

static void on_take(struct alarm *a)
{
	struct jail *j = container_of(a, struct jail, take);
	if (all_taken(j))
		j->untaken = 0;
	else if (clock_mono_ms() - j->untaken_ms < TAKE_MS)
		alarm_set(poller_of(j), &j->take, TAKE_LOOK_MS);
	else
		give_up(j);
}

void jails_asked(struct jail *j)
{
	j->execs++;
	if (j->untaken)
		return;
	j->untaken = j->execs;
	j->untaken_ms = clock_mono_ms();
	alarm_set(poller_of(j), &j->take, TAKE_LOOK_MS);
}

/* ---- the table ---- */

void jails_init(struct jails *t, struct poller *p, struct reaper *r, const struct jails_news *news,
        void *ctx)
{
	memset(t, 0, sizeof(*t));
	t->poller = p;
	t->reaper = r;
	t->news = news;
	t->ctx = ctx;
}

void jails_done(struct jails *t)
{
	for (unsigned i = 0; i < LIMIT_JAILS; i++)
		if (t->slots[i])
			jail_free(t->slots[i]);
}

bool jails_full(const struct jails *t)
{
	return t->count == LIMIT_JAILS;
}

struct jail *jails_blank(struct jails *t)
{
	struct jail *j = xnew(struct jail);
	j->table = t;
	j->kept = (struct launch_stdio)LAUNCH_STDIO_NONE;
	j->disk = (struct disk)DISK_NONE;
	j->ballast = (struct job)JOB_NONE;
	alarm_init(&j->recheck, on_recheck);
	alarm_init(&j->look, on_look);
	alarm_init(&j->take, on_take);
	list_init(&j->workers);
	return j;
}

static struct jail *new_jail(struct jails *t, struct launched *l)
{
	assert(!jails_full(t));
	while (t->slots[t->search])
		t->search = (t->search + 1) % LIMIT_JAILS;
	struct jail *j = jails_blank(t);
	j->id = ++t->serial * LIMIT_JAILS + t->search;
	j->l = *l;
	j->base = l->kit->base;
	j->made_ms = clock_mono_ms();
	t->slots[t->search] = j;
	t->search = (t->search + 1) % LIMIT_JAILS;
	t->count++;
	return j;
}

static int watch(struct jail *j, struct err *e)
{
	struct poller *p = poller_of(j);
	int r = 0;
	if (!j->reaped)
		r = poller_add(p, &j->control, j->l.control, EPOLLIN, on_control, e);
	if (r == 0 && !j->reaped)
		r = poller_add(p, &j->pidfd, j->l.pidfd, EPOLLIN, on_pidfd, e);
	if (r == 0 && j->state != JAILS_DEAD && j->l.kit->cgroup.events >= 0)
		r = poller_add(
		        p, &j->events, j->l.kit->cgroup.events, EPOLLPRI, on_cgroup_event, e);
	if (r < 0)
		return err_wrap(e, "watching the jail");
	if (j->state != JAILS_DEAD && (j->disk.bytes || j->disk.inodes))
		alarm_set(p, &j->look, LOOK_MS);
	return 0;
}

void jails_resume(struct jail *j)
{
	struct jails *t = j->table;
	assert(!t->slots[j->id % LIMIT_JAILS]);
	t->slots[j->id % LIMIT_JAILS] = j;
	t->count++;
	struct err e;
	if (watch(j, &e) < 0) {
		log_err("jail %llu is ended: %s", (unsigned long long)j->id, e.text);
		jail_free(j);
		return;
	}
	if (j->reaped && j->state == JAILS_DYING)
		alarm_set(t->poller, &j->recheck, 0);
}

int jails_add(struct jails *t, struct launched *l, struct disk *k, struct jail **ret, struct err *e)
{
	struct jail *j = new_jail(t, l);
	j->disk = *k;
	*k = (struct disk)DISK_NONE;
	int r = watch(j, e);
	if (r < 0) {
		jail_free(j);
		return r;
	}
	*ret = j;
	return 0;
}

void jails_count(const struct jail *j, struct jail_resources *r)
{
	r->egress_bytes = j->egress_bytes;
	r->disk_peak_bytes = j->disk.peak_bytes;
	r->inodes_peak = j->disk.peak_inodes;
}

void jails_use(const struct jail *j, struct jail_reply *ret)
{
	cgroup_usage(&j->l.kit->cgroup, &ret->resources, NULL);
	jails_count(j, &ret->resources);
	ret->memory_bytes = cgroup_memory(&j->l.kit->cgroup);
}

uint64_t jails_promised(const struct jails *t)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < LIMIT_JAILS; i++) {
		const struct jail *j = t->slots[i];
		bool on_disk = j && j->state != JAILS_DEAD && j->disk.method != JAIL_DISK_TMPFS;
		if (on_disk && j->disk.bytes > j->disk.used_bytes)
			sum += j->disk.bytes - j->disk.used_bytes;
	}
	return sum;
}

int jails_find(struct jails *t, uint64_t id, struct jail **ret, struct err *e)
{
	struct jail *j = t->slots[id % LIMIT_JAILS];
	if (!j || j->id != id || j->orphaned)
		return err_set(e, -ENOENT, "no jail %llu", (unsigned long long)id);
	*ret = j;
	return 0;
}

struct jail *jails_with_session(struct jails *t, const char *session)
{
	for (unsigned i = 0; i < LIMIT_JAILS; i++) {
		struct jail *j = t->slots[i];
		if (j && j->state != JAILS_DEAD && strcmp(j->session, session) == 0)
			return j;
	}
	return NULL;
}

void jails_kill(struct jail *j)
{
	if (j->state == JAILS_DEAD)
		return;
	j->killed = true;
	j->state = JAILS_DYING;
	end_processes(j);
}

int jails_release(struct jail *j, struct err *e)
{
	if (j->state != JAILS_DEAD)
		return err_set(e, -EBUSY, "jail %llu is not gone yet", (unsigned long long)j->id);
	jail_leave(j);
	return 0;
}

void jails_discard(struct jail *j)
{
	j->orphaned = true;
	if (j->state == JAILS_DEAD)
		jail_leave(j);
	else
		jails_kill(j);
}

int jails_keep_program(struct jail *j, const struct launch_stdio *s, struct err *e)
{
	if (s->err < 0)
		return err_set(e, -EINVAL, "the program of a run has no terminal");
	struct launch_stdio kept = {
	        .in = fd_dup(s->in),
	        .out = fd_dup(s->out),
	        .err = fd_dup(s->err),
	};
	if (kept.in < 0 || kept.out < 0 || kept.err < 0) {
		int r = err_errno(e, "keeping the stdio of jail %llu", (unsigned long long)j->id);
		launch_stdio_close(&kept);
		return r;
	}
	j->kept = kept;
	j->program = j->execs;
	return 0;
}

/* What clients had started in a run's jail: nobody reads from it or writes to it any more. */
static void end_others(struct jail *j)
{
	struct err e;
	uint64_t running = j->execs - j->exits - (j->program && !j->exited ? 1 : 0);
	/* Which of them have ended is not known; a signal to those does nothing. */
	for (uint64_t exec = j->execs; running > 0 && exec > 0; exec--)
		if (exec != j->program && launch_signal(&j->l, exec, SIGKILL, &e) < 0) {
			log_warn("jail %llu: %s", (unsigned long long)j->id, e.text);
			return;
		}
}

unsigned jails_orphan(struct jails *t, bool all)
{
	unsigned kept = 0;
	for (unsigned i = 0; i < LIMIT_JAILS; i++) {
		struct jail *j = t->slots[i];
		if (!j || j->orphaned)
			continue;
		j->rest_waits = false; /* nobody waits for it */
		if (!all && j->run[0]) {
			kept++;
			if (j->state == JAILS_LIVE)
				end_others(j);
			continue;
		}
		jails_discard(j);
	}
	return kept;
}

unsigned jails_orphans(const struct jails *t)
{
	unsigned n = 0;
	for (unsigned i = 0; i < LIMIT_JAILS; i++)
		n += t->slots[i] && t->slots[i]->orphaned;
	return n;
}
