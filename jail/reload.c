/*
 * Theory of operation: a reload has a slow half and a quick one.  The slow half
 * is a job (job.h): root's policies are compiled, commands print secrets, disks and
 * layers are tried, the canary looks; or, where agentboxd's own file has changed, the new
 * program is tried.  Meanwhile jails start and end as ever.  The quick half takes into use
 * what came of it.  Who asks while one is under way waits for another after it:
 * files may have changed since it read them.
 *
 * The job has a limit, and says in a shared byte where it is.  When that is over it is killed, what
 * is in use stays and who waits is told.  Where its disk hangs it does not end: until it does
 * its ids stay leased and no other is begun, so that there is never more than one of them.
 */
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "jail/daemon.h"

#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- in use ---- */

static void warn_of_restart(const struct daemon_config *a, const struct daemon_config *b)
{
	if (a->supervisor_uid != b->supervisor_uid || a->supervisor_gid != b->supervisor_gid ||
	        a->egress_uid != b->egress_uid || a->egress_gid != b->egress_gid ||
	        a->listener_uid != b->listener_uid || a->listener_gid != b->listener_gid ||
	        a->socket_gid != b->socket_gid ||
	        memcmp(a->exposed, b->exposed, sizeof(a->exposed)) != 0 ||
	        memcmp(a->harness_dirs, b->harness_dirs, sizeof(a->harness_dirs)) != 0)
		log_warn("users, groups, exposed variables and harness directories are taken from "
		         "the configuration at the next start only");
}

/* What the next jails get.  One that cannot be read leaves the one in use. */
static void renew_program(int *fd, const char *path)
{
	struct err e;
	int fresh = launch_load(AT_FDCWD, path, &e);
	if (fresh < 0) {
		log_err("the program in use stays: %s", e.text);
		return;
	}
	fd_close(*fd);
	*fd = fresh;
}

static void renew_programs(struct daemon *d)
{
	renew_program(&d->init, d->programs.init);
	renew_program(&d->worker, d->programs.worker);
	renew_program(&d->acp, d->programs.acp);
	daemon_renew(d);
}

/* ---- the slow half, in a child ---- */

enum { POLICIES_FD, SECRETS_FD, PROOF_FD };

static int proof_memfd(const struct proof *p, struct err *e)
{
	int fd = fd_sealed_memfd("proof", p, sizeof(*p));
	return fd < 0 ? err_set(e, fd, "self-test: %s", strerror(-fd)) : fd;
}

static int work_read(const void *arg, struct job_out *out, struct err *e)
{
	const struct daemon *d = arg;
	reload_at(d, RELOAD_PROGRAMS);
	int r = programs_same_build(&d->programs, e);
	if (r < 0)
		return r;
	reload_at(d, RELOAD_POLICIES);
	struct policies *p = daemon_load_policies(d, e);
	if (!p)
		return e->code;
	reload_at(d, RELOAD_SECRETS);
	out->fds[POLICIES_FD] = p->memfd;
	out->fds[SECRETS_FD] = secrets_reload(d, p->set, false, e);
	if (out->fds[SECRETS_FD] < 0)
		return out->fds[SECRETS_FD];
	/* The programs that the next jails get, in a copy of the daemon that is this child's. */
	struct daemon with = *d;
	renew_program(&with.init, d->programs.init);
	struct proof found = {.disks = {.state = &d->state}};
	prove_look(&with, p->set, d->reload.base, &found);
	out->fds[PROOF_FD] = proof_memfd(&found, e);
	return out->fds[PROOF_FD] < 0 ? out->fds[PROOF_FD] : 0;
}

struct attempt {
	const struct daemon *d;
	int memfd; /* owned: what would be carried over */
};

static int work_try(const void *arg, struct job_out *out, struct err *e)
{
	const struct attempt *a = arg;
	(void)out;
	reload_at(a->d, RELOAD_UPGRADE);
	return upgrade_try(a->d, a->d->reload.program, a->memfd, e);
}

/* ---- the quick half ---- */

static int failed(struct daemon *d, struct err *e)
{
	notify_ready(&d->notify, "serving; the last reload failed");
	if (d->reload.upgrade) {
		log_err("reload failed: %s", e->text);
		return e->code;
	}
	log_err("reload failed, generation %llu stays: %s", (unsigned long long)d->generation,
	        e->text);
	const struct err why = *e;
	return err_set(e, why.code, "the policies in use stay: %s", why.text);
}

static int use_proof(struct daemon *d, int fd, struct err *e)
{
	struct proof p;
	if (fd_pread_full(fd, &p, sizeof(p), 0) != (ssize_t)sizeof(p))
		return err_set(e, -EIO, "self-test: what was found cannot be read");
	return prove_use(d, &p, e);
}

static int use_read(struct daemon *d, struct job_out *o, struct err *e)
{
	struct policies *p = policies_again(o->fds[POLICIES_FD], d->generation + 1, e);
	if (!p)
		return failed(d, e);
	warn_of_restart(&d->policies->set->config, &p->set->config);
	laters_follow(&d->laters, d->policies->set, p->set);
	pool_reset(&d->pool, p);
	policies_free(d->policies);
	d->policies = p;
	d->generation = p->set->generation;
	d->broker.policies = p->set;
	fd_close(d->secrets);
	d->secrets = take_fd(o->fds[SECRETS_FD]);
	secrets_follow(d);
	secrets_look_again(d); /* a file may have changed while the job was at work */
	renew_programs(d);
	log_info("reloaded: %u policies, generation %llu", p->set->count,
	        (unsigned long long)d->generation);
	int r = use_proof(d, o->fds[PROOF_FD], e);
	struct err listen = {0};
	if (peers_follow_listen(d, &listen) < 0 && r == 0) {
		*e = listen;
		r = listen.code;
	}
	peers_tell_policies(d); /* the supervisor then asks for what was found */
	notify_ready(&d->notify, r < 0 ? "serving nothing; the self-test failed" : "serving");
	return r;
}

static int use_upgrade(struct daemon *d, struct err *e)
{
	int r = upgrade_begin(d, take_fd(d->reload.program), e);
	if (r < 0)
		return failed(d, e);
	log_info("%s is as it should be; it takes over once the supervisor has made room",
	        d->programs.self);
	daemon_renew(d);
	return 0;
}

/* ---- the order ---- */

static int begin(struct daemon *d, struct err *e);

static void close_job(struct daemon *d)
{
	struct reload *l = &d->reload;
	alarm_clear(&l->alarm);
	l->late = false;
	if (l->step)
		(void)munmap((void *)(uintptr_t)l->step, 1);
	l->step = NULL;
	job_forget(&l->job);
	fd_close(take_fd(l->program));
	if (l->base)
		(void)lease_drop(&d->leases, l->base); /* if not, it is one of thousands */
	l->base = 0;
}

static void answer(struct daemon *d, const struct err *why)
{
	for (int i = 0; i < RELOAD_ASKERS; i++)
		if (d->reload.asked[i])
			peers_reply(d, d->reload.asked[i], why);
	memset(d->reload.asked, 0, sizeof(d->reload.asked));
}

static void go_again(struct daemon *d)
{
	struct reload *l = &d->reload;
	struct err e = {0};
	memcpy(l->asked, l->later, sizeof(l->asked));
	memset(l->later, 0, sizeof(l->later));
	if (begin(d, &e) < 0)
		answer(d, &e);
}

/* Of one that hangs.  -EBUSY where asking again later helps. */
static int hangs(const struct daemon *d, int code, struct err *e)
{
	static const char *const names[] = {
#define RELOAD_STEP_NAME(sym, name) name,
	        RELOAD_STEPS(RELOAD_STEP_NAME)
#undef RELOAD_STEP_NAME
	};
	unsigned at = *d->reload.step;
	return err_set(e, code, "%s %s within %d s; the disk that it needs may hang",
	        at < ARRAY_LEN(names) ? names[at] : "?",
	        code == -EBUSY ? "in a reload before has not ended" : "has not ended",
	        RELOAD_MS / 1000);
}

static void on_alarm(struct alarm *a)
{
	struct daemon *d = container_of(a, struct daemon, reload.alarm);
	struct reload *l = &d->reload;
	struct err e;
	l->late = true;
	child_kill(&l->job.child);
	(void)hangs(d, -ETIME, &e);
	(void)failed(d, &e);
	answer(d, &e);
	memcpy(l->asked, l->later, sizeof(l->asked));
	memset(l->later, 0, sizeof(l->later));
	answer(d, &e);
	l->again = false;
}

static void on_ended(struct watch *w, uint32_t events)
{
	(void)events;
	struct daemon *d = container_of(w, struct daemon, reload.ended);
	struct reload *l = &d->reload;
	int status = child_reap_watched(&l->job.child, &d->poller, w);
	if (status == -ETIME)
		return;
	if (l->late) {
		log_info("the reload that had to be given up has ended");
		close_job(d); /* what it has found is of another time */
		return;
	}
	auto_job_out struct job_out out = JOB_OUT_NONE;
	struct err e = {0};
	int r = job_end(&l->job, status, &out, &e);
	if (d->stopping)
		r = err_set(&e, -ESHUTDOWN, "agentbox is stopping");
	if (r < 0)
		(void)failed(d, &e);
	else if (l->upgrade)
		r = use_upgrade(d, &e);
	else
		r = use_read(d, &out, &e);
	close_job(d);
	if (r == 0)
		e.code = 0;
	answer(d, &e);
	bool again = l->again && !d->stopping;
	l->again = false;
	if (again)
		go_again(d);
}

/* What is in place may have other structs than we have: it reads the policies, not we. */
static int begin_try(struct daemon *d, struct err *e)
{
	struct attempt a = {.d = d};
	int r = upgrade_prepare(d, &d->reload.program, &a.memfd, e);
	if (r < 0)
		return r;
	const int keep[] = {a.memfd, d->reload.program};
	const struct job_spec spec = {work_try, &a, keep, ARRAY_LEN(keep)};
	r = job_start(&spec, &d->reload.job, e);
	fd_close(a.memfd);
	return r;
}

static int begin_read(struct daemon *d, struct err *e)
{
	int r = lease_take(&d->leases, &d->reload.base, e);
	if (r < 0)
		return err_wrap(e, "self-test");
	const int keep[] = {d->secrets, d->state.dir, d->state.sessions, d->tree.dirfd,
	        d->tree.workers, d->closer.socket};
	const struct job_spec spec = {work_read, d, keep, ARRAY_LEN(keep)};
	return job_start(&spec, &d->reload.job, e);
}

static int share_step(struct reload *l, struct err *e)
{
	void *p = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return err_errno(e, "memory");
	l->step = p;
	return 0;
}

void reload_at(const struct daemon *d, enum reload_step step)
{
	if (d->reload.step)
		*d->reload.step = (unsigned char)step;
}

static int begin(struct daemon *d, struct err *e)
{
	struct reload *l = &d->reload;
	notify_reloading(&d->notify);
	d->upgrade.why[0] = '\0';
	l->upgrade = upgrade_due(d);
	int r = share_step(l, e);
	if (r == 0)
		r = l->upgrade ? begin_try(d, e) : begin_read(d, e);
	if (r == 0)
		r = poller_add(&d->poller, &l->ended, l->job.child.pidfd, EPOLLIN, on_ended, e);
	if (r == 0) {
		alarm_set(&d->poller, &l->alarm, RELOAD_MS);
		return 0;
	}
	reaper_give(&d->reaper, &l->job.child, "");
	close_job(d);
	return failed(d, e);
}

void reload_init(struct daemon *d)
{
	d->reload = (struct reload){.job = JOB_NONE, .program = -1};
	alarm_init(&d->reload.alarm, on_alarm);
}

void reload_done(struct daemon *d)
{
	poller_remove(&d->poller, &d->reload.ended);
	reaper_give(&d->reaper, &d->reload.job.child, "");
	close_job(d);
}

bool reload_runs(const struct daemon *d)
{
	return d->reload.job.child.pidfd >= 0;
}

void reload_asked(struct daemon *d)
{
	struct err e;
	if (d->reload.late)
		log_err("reload failed: %s", (hangs(d, -EBUSY, &e), e.text));
	else if (reload_runs(d))
		d->reload.again = true;
	else if (begin(d, &e) < 0)
		log_debug("%s", e.text); /* told already */
}

int reload_request(struct daemon *d, uint64_t req, struct err *e)
{
	struct reload *l = &d->reload;
	if (l->late)
		return hangs(d, -EBUSY, e);
	bool runs = reload_runs(d);
	uint64_t *list = runs ? l->later : l->asked;
	for (int i = 0; i < RELOAD_ASKERS; i++) {
		if (list[i])
			continue;
		int r = runs ? 0 : begin(d, e);
		if (r < 0)
			return r;
		list[i] = req;
		l->again = runs;
		return -EINPROGRESS;
	}
	return err_set(e, -EBUSY, "%d reloads are asked for already", RELOAD_ASKERS);
}

void reload_forget(struct daemon *d)
{
	memset(d->reload.asked, 0, sizeof(d->reload.asked));
	memset(d->reload.later, 0, sizeof(d->reload.later));
}
