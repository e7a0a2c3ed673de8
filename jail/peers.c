/*
 * The children that live: what they are given at their start, what is told to
 * them, and what they say.  Here the supervisor, whose words go through the
 * broker, and what is for both; egress is in peers_egress.c.
 */
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "jail/daemon.h"
#include "jail/snapshots.h"
#include "jail/purses.h"
#include "jail/sessions.h"
#include "proto/build.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A supervisor that starts while jails of the former one still die would meet sessions that are
 * busy; their end takes milliseconds.  Half a second, so that it is back within one. */
enum { SUPERVISOR_WAITS_MS = 500 };
/* Jails without a supervisor that lives: nobody reads their output or minds their deadline. */
enum { ABANDON_MS = 60000 };
/* A run that would end whoever takes it up does so at once. */
enum { SETTLED_MS = 1000 };
/* What is being made comes to its point, answers go out, the store is closed: milliseconds. */
enum { HANDOVER_MS = 10000 };
enum { ARGV_LEVEL = 8, ARGV_FORMAT = 10 };

/* ---- supervisor ---- */

static struct daemon *of_supervisor(struct service *s)
{
	return s->owner;
}

static int supervisor_fds(struct service *s, int *fds)
{
	struct daemon *d = of_supervisor(s);
	int n = 0;
	fds[n++] = d->listener.fd;      /* CHILD_LISTEN */
	fds[n++] = d->state.supervisor; /* CHILD_STATE */
	fds[n++] = d->share;            /* CHILD_SHARE */
	for (int i = 0; i < HARNESS_DIRS; i++)
		fds[n++] = d->harness_dirs[i]; /* CHILD_HARNESS_DIRS */
	fds[n++] = d->agents;                  /* CHILD_AGENTS */
	fds[n++] = d->remote.pair[1];          /* CHILD_REMOTE */
	return n;
}
_Static_assert(CHILD_LISTEN == 4 && CHILD_STATE == 5 && CHILD_SHARE == 6 &&
                       CHILD_HARNESS_DIRS == 7 && CHILD_AGENTS + 1 == CHILD_REMOTE &&
                       CHILD_REMOTE + 1 == CHILD_FDS && CHILD_FDS - CHILD_LISTEN <= SERVICE_FDS,
        "supervisor_fds is in the order of enum child_fd");

static void tell_supervisor_policies(struct daemon *d)
{
	int fd = fd_dup(d->policies->memfd);
	if (fd < 0) {
		service_fail(&d->supervisor, "no descriptor left to give it the policies");
		return;
	}
	struct jail_simple m = {.head.type = JAIL_POLICIES};
	service_send(&d->supervisor, &m, sizeof(m), &fd, 1);
}

static bool supervisor_may_start(struct service *s)
{
	struct daemon *d = of_supervisor(s);
	if (upgrade_waits(d)) /* the next agentboxd starts it */
		return false;
	return jails_orphans(&d->jails) == 0 ||
	       clock_mono_ms() - d->supervisor_ended_ms >= SUPERVISOR_WAITS_MS;
}

static void supervisor_started(struct service *s)
{
	struct daemon *d = of_supervisor(s);
	broker_init(&d->broker, &requests_ops, d, d->policies->set);
	tell_supervisor_policies(d);
}

static void keep_for_next(struct daemon *d)
{
	if (!d->abandoning)
		alarm_set(&d->poller, &d->abandon_alarm, ABANDON_MS);
	d->abandoning = true;
}

static void supervisor_ended(struct service *s)
{
	struct daemon *d = of_supervisor(s);
	d->supervisor_ended_ms = clock_mono_ms();
	laters_drop(&d->laters);
	reload_forget(d);
	deletes_forget(d);
	snapshots_forget(d);
	if (d->broker.phase != BROKER_BOOT && d->former == FORMER_NONE)
		d->former = FORMER_SUPERVISOR;
	d->adopted = false;
	alarm_clear(&d->settled_alarm);
	alarm_clear(&d->handover_alarm);
	d->handing_over = d->renewing = false;
	unsigned before = d->jails.count - jails_orphans(&d->jails);
	unsigned kept = jails_orphan(&d->jails, d->stopping);
	if (before > kept)
		log_warn("%u jails of that supervisor are ended", before - kept);
	if (kept > 0) {
		log_info("%u jails are kept for the next one", kept);
		keep_for_next(d);
	}
	if (d->stopping)
		daemon_stop_next(d);
	else if (upgrade_waits(d))
		upgrade_go_on(d);
}

/* One that took the jails up and then lives for a moment is the one they were kept for. */
static void on_settled(struct alarm *a)
{
	struct daemon *d = container_of(a, struct daemon, settled_alarm);
	alarm_clear(&d->abandon_alarm);
	d->abandoning = false;
}

void daemon_adopted(struct daemon *d)
{
	d->former = FORMER_SUPERVISOR;
	d->adopted = true;
	alarm_set(&d->poller, &d->settled_alarm, SETTLED_MS);
}

static void on_abandoned(struct alarm *a)
{
	struct daemon *d = container_of(a, struct daemon, abandon_alarm);
	unsigned before = d->jails.count;
	d->abandoning = false;
	d->former = FORMER_ABANDONED;
	(void)jails_orphan(&d->jails, true);
	if (before > 0)
		log_err("no supervisor has lived for %d s: %u jails are ended", ABANDON_MS / 1000,
		        before);
}

/* ---- new binaries ---- */

static void on_handover(struct alarm *a)
{
	struct daemon *d = container_of(a, struct daemon, handover_alarm);
	if (d->handing_over) {
		service_fail(&d->supervisor, "it does not make room for its successor");
		return;
	}
	/* Only now, so that the answer to the request that led here goes first. */
	d->handing_over = true;
	struct jail_simple m = {.head.type = JAIL_HANDOVER};
	service_renew(&d->supervisor);
	service_send(&d->supervisor, &m, sizeof(m), NULL, 0);
	alarm_set(&d->poller, &d->handover_alarm, HANDOVER_MS);
}

void daemon_renew(struct daemon *d)
{
	bool upgrade = upgrade_waits(d);
	if (upgrade && !service_running(&d->supervisor)) {
		upgrade_go_on(d);
	} else if ((upgrade || service_outdated(&d->supervisor)) && !d->handing_over) {
		d->renewing = true;
		alarm_set(&d->poller, &d->handover_alarm, 0);
	}
	/* The next agentboxd speaks its language. */
	if (!upgrade && service_outdated(&d->egress))
		peers_drain_egress(d);
}

static void serve(struct daemon *d, const void *msg, size_t n, int *fds)
{
	struct service *s = &d->supervisor;
	unsigned type = ((const struct msg_head *)msg)->type;
	struct broker_call call;
	struct err e = {0};
	switch (broker_receive(&d->broker, msg, n, fds, &call, &e)) {
	case BROKER_VIOLATION: {
		char why[ERR_TEXT_MAX + 40];
		snprintf(why, sizeof(why), "protocol violation: %s", e.text);
		service_fail(s, why);
		break;
	}
	case BROKER_LATER:
		break;
	case BROKER_REPLY:
		if (call.reply.err.code < 0) /* its user is told by the supervisor */
			log_debug("%s: %s", broker_request_name(type), call.reply.err.text);
		service_send(s, &call.reply, sizeof(call.reply), call.fds, call.nfds);
		break;
	}
}

void peers_reply(struct daemon *d, uint64_t req, const struct err *e)
{
	peers_reply_with(d, req, e, -1);
}

void peers_reply_with(struct daemon *d, uint64_t req, const struct err *e, int fd)
{
	struct jail_reply m = {
	        .head = {.type = JAIL_REPLY, .req = req}, .err = *e, .renews = d->renewing};
	if (e->code < 0)
		log_debug("%s", e->text); /* its user is told by the supervisor */
	if (service_running(&d->supervisor))
		service_send(&d->supervisor, &m, sizeof(m), &fd, fd >= 0);
}

static void supervisor_message(struct service *s, void *msg, size_t n, int *fds)
{
	serve(of_supervisor(s), msg, n, fds);
}

static void ask_again(void *ctx, const struct jail_make *m, int exec_fd)
{
	struct daemon *d = ctx;
	int fds[MSG_FDS];
	memset(fds, -1, sizeof(fds));
	fds[0] = exec_fd;
	serve(d, m, sizeof(*m), fds);
	if (trash_waits(&d->state)) /* what was copied */
		daemon_empty_trash(d);
}

static uint64_t promised(void *ctx)
{
	struct daemon *d = ctx;
	return jails_promised(&d->jails);
}

static bool used(void *ctx, const char *session)
{
	struct daemon *d = ctx;
	return jails_with_session(&d->jails, session) != NULL;
}

static void ping_supervisor(struct service *s)
{
	struct jail_simple m = {.head.type = JAIL_PING};
	service_send(s, &m, sizeof(m), NULL, 0);
}

static const struct service_ops supervisor_ops = {
        .fds = supervisor_fds,
        .may_start = supervisor_may_start,
        .started = supervisor_started,
        .ping = ping_supervisor,
        .message = supervisor_message,
        .ended = supervisor_ended,
};

/* ---- news of the jails ---- */

struct jail_exited peers_exited(const struct jail *j, const struct init_exited *m)
{
	return (struct jail_exited){.head.type = JAIL_EXITED,
	        .jail = j->id,
	        .exec = m->exec,
	        .error = m->error,
	        .stage = m->stage,
	        .code = m->code,
	        .sig = m->sig};
}

static void on_exited(void *ctx, struct jail *j, const struct init_exited *m)
{
	struct daemon *d = ctx;
	struct jail_exited to = peers_exited(j, m);
	if (!j->orphaned)
		service_send(&d->supervisor, &to, sizeof(to), NULL, 0);
}

static bool on_settling(void *ctx, struct jail *j)
{
	struct daemon *d = ctx;
	return peers_end_jail(d, j);
}

static void on_gone(void *ctx, struct jail *j, const struct jail_gone *m)
{
	struct daemon *d = ctx;
	struct jail_gone to = *m;
	struct jail_used used;
	if (!j->orphaned && purses_used(j, &used))
		service_send(&d->supervisor, &used, sizeof(used), NULL, 0);
	if (d->adopted && !j->orphaned)
		peers_tell_lost(d, j);
	if (!j->orphaned)
		service_send(&d->supervisor, &to, sizeof(to), NULL, 0);
}

static void on_rested(void *ctx, struct jail *j)
{
	struct daemon *d = ctx;
	struct jail_reply m = {.head = {.type = JAIL_REPLY, .req = j->rest_req}, .jail = j->id};
	jails_use(j, &m);
	if (d->adopted)
		peers_tell_lost(d, j);
	service_send(&d->supervisor, &m, sizeof(m), NULL, 0);
}

static void on_limit(void *ctx, struct jail *j, enum jail_limit_kind kind, uint64_t value)
{
	struct daemon *d = ctx;
	struct jail_limit m = {
	        .head.type = JAIL_LIMIT, .jail = j->id, .kind = (uint32_t)kind, .value = value};
	if (kind == JAIL_LIMIT_DISK)
		m.left = j->disk.left_bytes;
	if (!j->orphaned)
		service_send(&d->supervisor, &m, sizeof(m), NULL, 0);
}

static void on_released(void *ctx, uint32_t base)
{
	struct daemon *d = ctx;
	struct err e;
	if (pool_end_lease(&d->pool, base, &e) < 0)
		log_warn("%s", e.text);
	if (d->stopping && d->jails.count == 0)
		daemon_stop_next(d);
}

const struct jails_news peers_news = {
        .exited = on_exited,
        .settling = on_settling,
        .gone = on_gone,
        .rested = on_rested,
        .limit = on_limit,
        .released = on_released,
};

/* ---- both ---- */

/* How the log is written can be another at the next start of a child: what it is told later it
 * takes from the policies, the listener excepted, which gets none. */
static void follow_log(struct daemon *d)
{
	const struct daemon_config *c = &d->policies->set->config;
	struct daemon_argv *all[] = {&d->supervisor_argv, &d->egress_argv, &d->listener_argv};
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		all[i]->argv[ARGV_FORMAT] = log_format_names[c->log_format];
	if (c->log_level)
		d->listener_argv.argv[ARGV_LEVEL] = log_level_name((enum log_level)c->log_level);
	else
		d->listener_argv.argv[ARGV_LEVEL] = log_level_name(d->options->log_level);
	log_use((enum log_format)c->log_format, (int)c->log_level);
}

void peers_fill_argv(
        const struct daemon *d, struct daemon_argv *a, const char *name, uint32_t uid, uint32_t gid)
{
	snprintf(a->uid, sizeof(a->uid), "%u", uid);
	snprintf(a->gid, sizeof(a->gid), "%u", gid);
	const char *const argv[ARRAY_LEN(a->argv)] = {name, "--build", build_id(), "--uid", a->uid,
	        "--gid", a->gid, "--log-level", log_level_name(d->options->log_level),
	        "--log-format", log_format_names[LOG_TEXT]};
	memcpy(a->argv, argv, sizeof(argv));
}

static void take_patience(struct daemon *d)
{
	d->supervisor.patience_ms = d->egress.patience_ms = d->policies->set->config.patience_ms;
}

void peers_init(struct daemon *d)
{
	d->laters.again = ask_again;
	d->laters.promised = promised;
	d->laters.used = used;
	d->laters.ctx = d;
	const struct daemon_config *c = &d->policies->set->config;
	peers_fill_argv(d, &d->supervisor_argv, "agentbox-supervisor", c->supervisor_uid,
	        c->supervisor_gid);
	alarm_init(&d->settled_alarm, on_settled);
	alarm_init(&d->abandon_alarm, on_abandoned);
	alarm_init(&d->handover_alarm, on_handover);
	d->supervisor.owner = d;
	d->supervisor.name = "supervisor";
	d->supervisor.program = d->programs.supervisor;
	d->supervisor.argv = d->supervisor_argv.argv;
	d->supervisor.env = (const char *const *)d->exposed;
	d->supervisor.ops = &supervisor_ops;
	d->supervisor.poller = &d->poller;
	peers_init_egress(d);
	take_patience(d);
	peers_init_listener(d);
	follow_log(d);
}

/* After another agentboxd: the supervisor has made room, egress is still there. */
static void go_on(struct daemon *d)
{
	peers_resume_egress(d);
	daemon_renew(d);
	d->supervisor_ended_ms = clock_mono_ms();
	if (d->jails.count > 0)
		keep_for_next(d);
	service_start_soon(&d->supervisor);
}

int peers_start(struct daemon *d, struct err *e)
{
	if (d->resumed) {
		go_on(d);
		if (peers_follow_listen(d, e) < 0)
			log_err("%s", e->text);
		return 0;
	}
	int r = service_start(&d->egress, e);
	if (r == 0)
		r = service_start(&d->supervisor, e);
	return r < 0 ? r : peers_follow_listen(d, e);
}

void peers_tell_policies(struct daemon *d)
{
	take_patience(d);
	follow_log(d);
	if (service_running(&d->supervisor))
		tell_supervisor_policies(d);
	/* egress finds the policies of the jails it has by their names. */
	if (service_running(&d->egress))
		peers_tell_egress(d);
}

void peers_tell_secrets(struct daemon *d)
{
	if (service_running(&d->egress))
		peers_tell_egress(d);
}
