/*
 * Theory of operation: birth goes from what only root's files decide to what
 * strangers may reach.
 *
 *	lock the state directory, clear what a dead predecessor left,
 *	compile root's policies and read the secrets, wipe the environment,
 *	give up the capabilities that nothing below needs, try what the host has and
 *	prove it by a canary jail,
 *	open the control socket, start egress and then the supervisor;
 *	READY when the supervisor says HELLO.
 *
 * Death goes the other way: the supervisor is asked to end its runs (JAIL_STOP)
 * and has STOP_PATIENCE_MS; then it and the jails are killed.  When agentboxd
 * itself is killed, children see EOF on their socket and have a death signal.
 */
#include "jail/daemon.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "jail/handover.h"
#include "jail/privilege.h"
#include "jail/secrets.h"
#include "jail/sessions.h"
#include "jail/snapshots.h"
#include "jail/surroundings.h"
#include "jail/sweep.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

/* Cancelling a run, collecting artifacts and syncing the store, for the busiest supervisor. */
enum { STOP_PATIENCE_MS = 10000 };
/* From cgroup.kill to the last jail released. */
enum { KILL_PATIENCE_MS = 2000 };
/* Killing and reaping what a dead daemon left takes milliseconds unless a disk hangs. */
enum { SWEEP_MS = 5000 };
/* Killed children end at once, unless a disk hangs. */
enum { REAP_MS = 1000 };
enum { SAID_MAX = 8 << 10 };
/* As a nice value: three times the share of others, who still get theirs when agents' output keeps
 * the supervisor busy. */
enum { PRIORITY = -5 };

/* ---- small steps of birth ---- */

static int open_signals(struct daemon *d, struct err *e)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGPIPE);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return err_errno(e, "signal mask");
	sigdelset(&set, SIGPIPE); /* blocked for good: writes say EPIPE */
	/* Inherited as ignored, children would be reaped by the kernel under our hands. */
	(void)signal(SIGCHLD, SIG_DFL);
	d->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return d->signals < 0 ? err_errno(e, "signalfd") : 0;
}

/* A jail is about twenty descriptors here. */
static void raise_nofile(void)
{
	struct rlimit r = {0, 0};
	if (getrlimit(RLIMIT_NOFILE, &r) < 0)
		return;
	const rlim_t wanted = (rlim_t)LIMIT_JAILS * 24;
	const struct rlimit more = {wanted, r.rlim_max > wanted ? r.rlim_max : wanted};
	if (setrlimit(RLIMIT_NOFILE, &more) == 0)
		return;
	r.rlim_cur = r.rlim_max; /* no CAP_SYS_RESOURCE: what we may have */
	if (setrlimit(RLIMIT_NOFILE, &r) < 0)
		log_warn("RLIMIT_NOFILE stays as it is: %s", strerror(errno));
}

/* Before the jails, which give it up (enter.c).  Where root chose one it stays.  Where we may not
 * (no CAP_SYS_NICE in the unit's set), or are in a cgroup of our own, the weight of that does it
 * (cgroup.c). */
static void raise_priority(void)
{
	if (getpriority(PRIO_PROCESS, 0) == 0 && setpriority(PRIO_PROCESS, 0, PRIORITY) < 0)
		log_debug("priority stays as it is: %s", strerror(errno));
}

static int sweep(struct daemon *d, struct err *e)
{
	char name[32];
	sweep_tree_name(d->state.path, name);
	int r = cgroup_tree_open(name, &d->tree, e);
	if (r == 0)
		r = cgroup_tree_sweep(&d->tree, SWEEP_MS, e);
	if (r < 0)
		return r;
	cgroup_tree_io_device(&d->tree, d->state.sessions);
	int mounts = sweep_mounts(d->state.path, e);
	int loops = mounts < 0 ? mounts : sweep_loops(d->state.path, e);
	if (loops < 0)
		return loops;
	if (mounts + loops > 0)
		log_info("cleared %d mounts and %d loop devices of a former daemon", mounts, loops);
	return 0;
}

struct policies *daemon_load_policies(const struct daemon *d, struct err *e)
{
	const struct policies_source from = {.policyc = d->programs.policyc,
	        .config = d->options->config,
	        .config_required = d->options->config_named};
	auto_buf struct buf said = BUF_INIT(SAID_MAX);
	struct policies *p = policies_load(&from, d->generation + 1, &said, e);
	daemon_log_lines(p ? LOG_LEVEL_INFO : LOG_LEVEL_ERR, &said, p ? "" : e->text);
	return p;
}

/* The variables that root lets harnesses ask for; everything else ends here. */
static void keep_exposed(struct daemon *d)
{
	const struct daemon_config *c = &d->policies->set->config;
	size_t n = 0;
	for (uint32_t i = 0; i < c->nexposed; i++) {
		const char *value = getenv(c->exposed[i]);
		if (value)
			d->exposed[n++] = xasprintf("%s=%s", c->exposed[i], value);
	}
}

static int load(struct daemon *d, struct err *e)
{
	const char *credentials = getenv("CREDENTIALS_DIRECTORY");
	d->credentials = credentials ? xstrdup(credentials) : NULL;
	d->policies = daemon_load_policies(d, e);
	if (!d->policies && d->resumed) { /* they did hold when we were tried */
		log_err("the policies in use stay: %s", e->text);
		d->policies = policies_again(d->former_policies, d->generation + 1, e);
	}
	if (!d->policies)
		return e->code;
	fd_close(take_fd(d->former_policies));
	log_use((enum log_format)d->policies->set->config.log_format,
	        (int)d->policies->set->config.log_level);
	d->generation = d->policies->set->generation;
	int secrets = secrets_reload(d, d->policies->set, false, e);
	if (secrets < 0)
		return secrets;
	fd_close(d->secrets);
	d->secrets = secrets;
	keep_exposed(d);
	environment_wipe();
	const struct daemon_config *c = &d->policies->set->config;
	return state_give(&d->state, c->supervisor_uid, c->supervisor_gid, e);
}

/* What is not there is /dev/null for the supervisor: it may be made later, for the next start. */
static int open_harness_dir(const char *path, bool named, struct err *e)
{
	auto_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		int r = root_owned(fd, path, e);
		return r < 0 ? r : take_fd(fd);
	}
	if (errno != ENOENT)
		return err_errno(e, "%s", path);
	if (named)
		log_warn("harness_dirs: %s is not there", path);
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return fd < 0 ? err_errno(e, "/dev/null") : take_fd(fd);
}

/* Made here, so that the supervisor has it when the first agent is installed.  Whether what lies in
 * it is root's alone is looked at again by each run. */
static int open_agents(const char *path, struct err *e)
{
	bool made = mkdir(path, 0755) == 0;
	struct err why;
	auto_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && made && fchmod(fd, 0755) < 0) /* whatever the umask is */
		return err_errno(e, "chmod %s", path);
	if (fd >= 0 && root_owned(fd, path, &why) == 0)
		return take_fd(fd);
	log_warn("agents: %s", fd < 0 ? path : why.text);
	int none = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return none < 0 ? err_errno(e, "/dev/null") : none;
}

/* Where the configuration names none: harnesses/ beside it. */
static int open_directories(struct daemon *d, struct err *e)
{
	d->share = open(d->programs.share, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d->share < 0)
		return err_errno(e, "%s", d->programs.share);
	const struct daemon_config *c = &d->policies->set->config;
	const char *config = d->options->config;
	int dir = (int)(strrchr(config, '/') - config);
	auto_free char *beside = xasprintf("%.*s/harnesses", dir, config);
	d->templates = xasprintf("%.*s/templates", dir, config);
	for (int i = 0; i < HARNESS_DIRS; i++) {
		bool named = c->harness_dirs[i][0];
		const char *path = named ? c->harness_dirs[i] : i == 0 ? beside : "";
		d->harness_dirs[i] = open_harness_dir(path, named, e);
		if (d->harness_dirs[i] < 0)
			return err_wrap(e, "directory of harnesses");
	}
	d->agents = open_agents(d->options->agents, e);
	return d->agents < 0 ? d->agents : 0;
}

static int load_programs(struct daemon *d, struct err *e)
{
	d->init = launch_load(AT_FDCWD, d->programs.init, e);
	if (d->init < 0)
		return d->init;
	d->worker = launch_load(AT_FDCWD, d->programs.worker, e);
	if (d->worker < 0)
		return d->worker;
	d->acp = launch_load(AT_FDCWD, d->programs.acp, e);
	return d->acp < 0 ? d->acp : programs_same_build(&d->programs, e);
}

/* ---- birth ---- */

static void on_signal(struct watch *w, uint32_t events);
static bool on_idle(void *ctx);
static void on_stop_alarm(struct alarm *a);
static void on_idle_alarm(struct alarm *a);
static void on_watchdog(struct alarm *a);

static void blank(struct daemon *d, const struct options *o)
{
	memset(d, 0, sizeof(*d));
	d->options = o;
	d->since_ms = clock_wall_ms();
	d->listener = (struct listener)LISTENER_NONE;
	secrets_mind(d);
	d->poller.epfd = d->signals = d->secrets = d->init = d->worker = d->acp = -1;
	d->share = d->agents = -1;
	d->former_policies = -1;
	d->leases.fd = d->tree.dirfd = d->tree.workers = -1;
	d->state = (struct state)STATE_NONE;
	d->closer = (struct closer)CLOSER_NONE;
	for (int i = 0; i < HARNESS_DIRS; i++)
		d->harness_dirs[i] = -1;
	service_init(&d->supervisor);
	service_init(&d->egress);
	service_init(&d->listener_service);
	remote_init(&d->remote);
	for (int i = 0; i < EGRESS_PLACES; i++)
		service_init(&d->drains[i]);
	list_init(&d->events);
	list_init(&d->deletes);
	list_init(&d->hook_commands);
	alarm_init(&d->stop_alarm, on_stop_alarm);
	alarm_init(&d->refill_alarm, on_idle_alarm);
	alarm_init(&d->leftover_alarm, on_idle_alarm);
	alarm_init(&d->watchdog_alarm, on_watchdog);
	reaper_init(&d->reaper, &d->poller);
	daemon_init_trash(d);
	snapshots_init(d);
	upgrade_init(d);
	reload_init(d);
	pool_init(&d->pool, &d->leases, &d->tree);
	d->pool.closer = &d->closer;
	jails_init(&d->jails, &d->poller, &d->reaper, &peers_news, d);
	ledger_init(&d->ledger);
	laters_init(&d->laters, &d->poller, &d->disks, &d->reaper);
	d->laters.closer = &d->closer;
}

static int open_inside(struct daemon *d, struct err *e)
{
	int r = d->resumed ? 0 : state_open(&d->state, d->options->state, e);
	if (r == 0)
		r = programs_find(&d->programs, d->options->libexec, d->options->share, e);
	if (r == 0)
		r = upgrade_know_self(d, e);
	d->pool.authority = d->programs.authority;
	if (r == 0 && !d->resumed)
		r = leases_open(&d->leases, LEASE_FILE, e);
	if (r == 0 && !d->resumed)
		r = sweep(d, e);
	if (r == 0)
		r = load(d, e);
	if (r == 0) /* a fork: after load, which has wiped the environment */
		r = closer_start(&d->closer, e);
	if (r == 0)
		r = open_directories(d, e);
	if (r == 0)
		r = load_programs(d, e);
	if (r == 0)
		r = privilege_reduce(e);
	/* Where it fails nothing is served, and somebody must be there to say so. */
	struct err why = {0};
	if (r == 0 && daemon_prove(d, &why) < 0)
		log_warn("the API answers, `abctl doctor` tells more");
	return r;
}

static int open_outside(struct daemon *d, struct err *e)
{
	if (d->listener.fd < 0) {
		int made = listen_make(
		        &d->listener, d->options->socket, d->policies->set->config.socket_gid, e);
		if (made < 0)
			return made;
	}
	int r = remote_pair(&d->remote, e);
	if (r == 0)
		r = remote_bind(&d->remote, &d->policies->set->config, e);
	if (r < 0 && !d->resumed) /* else the jails would pay for it; peers_start says it */
		return r;
	pool_reset(&d->pool, d->policies);
	secrets_follow(d);
	d->poller.idle = on_idle;
	d->poller.ctx = d;
	peers_init(d);
	snapshots_sweep(d);
	if (trash_waits(&d->state))
		daemon_empty_trash(d);
	return poller_add(&d->poller, &d->signals_watch, d->signals, EPOLLIN, on_signal, e);
}

/* All that is missing, and not one after the other. */
static int look_around(struct err *e)
{
	auto_buf struct buf missing = BUF_INIT(SAID_MAX);
	int r = surroundings_check(&missing, e);
	if (missing.len > 0)
		log_err("what jails need is missing here:");
	daemon_log_lines(LOG_LEVEL_ERR, &missing, "");
	return r;
}

int daemon_open(struct daemon *d, const struct options *o, struct err *e)
{
	blank(d, o);
	if (geteuid() != 0)
		return err_set(e, -EPERM,
		        "must be started as root: it makes the jails and gives "
		        "everything else to unprivileged users");
	(void)umask(0077);
	notify_init(&d->notify);
	int r = listen_inherited(&d->listener, e);
	/* Whatever else the caller left open is none of our children's business. */
	if (r >= 0 && close_range(3, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
		r = err_errno(e, "close_range");
	if (r >= 0)
		r = poller_init(&d->poller, e);
	if (r == 0)
		r = open_signals(d, e);
	raise_nofile();
	raise_priority();
	if (r == 0)
		r = upgrade_take_over(d, e);
	d->resumed = r > 0;
	if (r == 0)
		r = look_around(e);
	if (r >= 0)
		r = open_inside(d, e);
	if (r == 0)
		r = open_outside(d, e);
	if (r < 0)
		daemon_close(d);
	return r;
}

/* ---- life ---- */

/* Nothing to do here: an alarm makes the loop call on_idle. */
static void on_idle_alarm(struct alarm *a)
{
	(void)a;
}

static bool on_idle(void *ctx)
{
	struct daemon *d = ctx;
	if (!d->ready || d->stopping)
		return false;
	int64_t again_ms = pool_clear_leftovers(&d->pool);
	if (again_ms >= 0)
		alarm_set(&d->poller, &d->leftover_alarm, again_ms);
	int64_t wait_ms = pool_refill_in(&d->pool);
	if (wait_ms > 0)
		alarm_set(&d->poller, &d->refill_alarm, wait_ms);
	if (wait_ms != 0)
		return false;
	struct err e = {0};
	int r = pool_refill(&d->pool, &e);
	if (r < 0)
		log_warn("making jails ahead: %s", e.text);
	return r != 0;
}

void daemon_became_ready(struct daemon *d)
{
	if (d->stopping)
		return;
	if (!d->ready)
		log_info("ready: %u policies, control socket %s", d->policies->set->count,
		        d->listener.path ? d->listener.path : "from the service manager");
	d->ready = true;
	notify_ready(&d->notify, "serving");
}

/* ---- death ---- */

static void begin_stop(struct daemon *d)
{
	log_info("stopping");
	d->stopping = true;
	notify_stopping(&d->notify);
	broker_drain(&d->broker);
	service_stop(&d->supervisor);
	service_stop(&d->egress);
	service_stop(&d->listener_service);
	alarm_set(&d->poller, &d->stop_alarm, STOP_PATIENCE_MS);
	struct jail_simple m = {.head.type = JAIL_STOP};
	service_send(&d->supervisor, &m, sizeof(m), NULL, 0);
	daemon_stop_next(d);
}

void daemon_stop_next(struct daemon *d)
{
	if (service_running(&d->supervisor)) {
		if (d->killing)
			service_kill(&d->supervisor); /* its end comes back here */
		return;
	}
	/* Its jails are orphaned: they are being killed. */
	if (!d->killing && d->jails.count > 0)
		alarm_set(&d->poller, &d->stop_alarm, KILL_PATIENCE_MS);
	d->killing = true;
	if (d->jails.count == 0)
		d->poller.stop = true;
}

static void on_stop_alarm(struct alarm *a)
{
	struct daemon *d = container_of(a, struct daemon, stop_alarm);
	if (d->killing) {
		log_err("%u jails do not end; leaving them to the next start", d->jails.count);
		d->poller.stop = true;
		return;
	}
	log_warn("the supervisor did not end its runs within %d s", STOP_PATIENCE_MS / 1000);
	d->killing = true;
	alarm_set(&d->poller, &d->stop_alarm, KILL_PATIENCE_MS);
	daemon_stop_next(d);
}

static void on_signal(struct watch *w, uint32_t events)
{
	(void)events;
	struct daemon *d = container_of(w, struct daemon, signals_watch);
	struct signalfd_siginfo si;
	if (read(d->signals, &si, sizeof(si)) != (ssize_t)sizeof(si))
		return;
	if (si.ssi_signo == SIGHUP) {
		if (!d->stopping)
			reload_asked(d);
	} else if (!d->stopping) {
		begin_stop(d);
	} else {
		log_warn("second signal: stopping at once");
		d->poller.stop = true;
	}
}

/* That this loop goes round; for its children see service.h. */
static void on_watchdog(struct alarm *a)
{
	struct daemon *d = container_of(a, struct daemon, watchdog_alarm);
	notify_alive(&d->notify);
	alarm_set(&d->poller, a, (int64_t)(d->notify.watchdog_us / 2000)); /* half of it, in ms */
}

int daemon_run(struct daemon *d, struct err *e)
{
	if (d->notify.watchdog_us > 0)
		on_watchdog(&d->watchdog_alarm);
	int r = peers_start(d, e);
	return r < 0 ? r : poller_run(&d->poller, e);
}

int daemon_check(struct daemon *d, const struct options *o, struct err *e)
{
	blank(d, o);
	int r = handover_check(o->handover, e);
	if (r == 0)
		r = programs_find(&d->programs, o->libexec, o->share, e);
	if (r == 0) {
		d->policies = daemon_load_policies(d, e);
		r = d->policies ? open_directories(d, e) : e->code;
	}
	if (r == 0)
		r = load_programs(d, e);
	if (r == 0)
		r = state_given(o->state, d->policies->set->config.supervisor_uid,
		        d->policies->set->config.supervisor_gid, e);
	return r; /* the process ends */
}

void daemon_close(struct daemon *d)
{
	service_stop(&d->supervisor);
	service_stop(&d->egress);
	service_stop(&d->listener_service);
	service_done(&d->listener_service);
	remote_done(&d->remote);
	service_done(&d->supervisor);
	laters_drop(&d->laters);
	jails_done(&d->jails);
	ledger_done(&d->ledger);
	service_done(&d->egress);
	for (int i = 0; i < EGRESS_PLACES; i++)
		service_done(&d->drains[i]);
	peers_forget_events(d);
	pool_done(&d->pool);
	closer_stop(&d->closer);
	upgrade_done(d);
	reload_done(d);
	deletes_done(d);
	snapshots_done(d);
	hook_commands_done(d);
	daemon_leave_trash(d); /* what is left is emptied at the next start */
	reaper_drop(&d->reaper, REAP_MS);
	listen_close(&d->listener);
	policies_free(d->policies);
	for (int i = 0; i < HARNESS_DIRS; i++)
		fd_close(d->harness_dirs[i]);
	for (size_t i = 0; d->exposed[i]; i++)
		free(d->exposed[i]);
	free(d->credentials);
	free(d->templates);
	fd_close(d->share);
	fd_close(d->agents);
	fd_close(d->init);
	fd_close(d->acp);
	fd_close(d->worker);
	secrets_forget(d);
	fd_close(d->secrets);
	fd_close(d->former_policies);
	cgroup_tree_close(&d->tree);
	leases_close(&d->leases);
	programs_done(&d->programs);
	state_close(&d->state);
	fd_close(d->signals);
	poller_done(&d->poller);
}
