/*
 * The two children that live: what they are given at their start, what is told
 * to them, and what they say.
 *
 * The supervisor's words go through the broker.  egress only tells of what it
 * refused or let out; that is checked and passed on.
 */
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "jail/daemon.h"
#include "jail/purses.h"
#include "jail/sessions.h"
#include "proto/egress.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A supervisor that starts while jails of the former one still die would meet sessions that are
 * busy; their end takes milliseconds.  Half a second, so that it is back within one. */
enum { SUPERVISOR_WAITS_MS = 500 };
/* Events of egress are the first to go when the supervisor is slow: they only inform. */
enum { EVENTS_WAITING_MAX = 1024 };
/* Jails without a supervisor that lives: nobody reads their output or minds their deadline. */
enum { ABANDON_MS = 60000 };
/* A run that would end whoever takes it up does so at once. */
enum { SETTLED_MS = 1000 };
/* What is being made comes to its point, answers go out, the store is closed: milliseconds. */
enum { HANDOVER_MS = 10000 };

static int dup_fd(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

/* ---- supervisor ---- */

static struct daemon *of_supervisor(struct service *s)
{
	return container_of(s, struct daemon, supervisor);
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
	return n;
}
_Static_assert(CHILD_LISTEN == 4 && CHILD_STATE == 5 && CHILD_SHARE == 6 &&
                       CHILD_HARNESS_DIRS == 7 && CHILD_FDS - CHILD_LISTEN <= SERVICE_FDS,
        "supervisor_fds is in the order of enum child_fd");

static void tell_supervisor_policies(struct daemon *d)
{
	int fd = dup_fd(d->policies->memfd);
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
	return jails_orphans(&d->jails) == 0 ||
	       clock_mono_ms() - d->supervisor_ended_ms >= SUPERVISOR_WAITS_MS;
}

static void supervisor_started(struct service *s)
{
	struct daemon *d = of_supervisor(s);
	broker_init(&d->broker, &requests_ops, d, d->policies->set);
	tell_supervisor_policies(d);
}

static void supervisor_ended(struct service *s)
{
	struct daemon *d = of_supervisor(s);
	d->supervisor_ended_ms = clock_mono_ms();
	laters_drop(&d->laters);
	if (d->broker.phase != BROKER_BOOT && d->former == FORMER_NONE)
		d->former = FORMER_SUPERVISOR;
	alarm_clear(&d->settled_alarm);
	alarm_clear(&d->handover_alarm);
	d->handing_over = false;
	unsigned before = d->jails.count - jails_orphans(&d->jails);
	unsigned kept = jails_orphan(&d->jails, d->stopping);
	if (before > kept)
		log_warn("%u jails of that supervisor are ended", before - kept);
	if (kept > 0) {
		log_info("%u jails are kept for the next one", kept);
		if (!d->abandoning)
			alarm_set(&d->poller, &d->abandon_alarm, ABANDON_MS);
		d->abandoning = true;
	}
	if (d->stopping)
		daemon_stop_next(d);
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
	if (service_outdated(&d->supervisor) && !d->handing_over)
		alarm_set(&d->poller, &d->handover_alarm, 0);
	if (service_outdated(&d->egress)) {
		struct egress_simple m = {.head.type = EGRESS_STOP};
		service_renew(&d->egress);
		service_send(&d->egress, &m, sizeof(m), NULL, 0);
	}
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

static const struct service_ops supervisor_ops = {
        .fds = supervisor_fds,
        .may_start = supervisor_may_start,
        .started = supervisor_started,
        .message = supervisor_message,
        .ended = supervisor_ended,
};

/* ---- egress ---- */

static struct daemon *of_egress(struct service *s)
{
	return container_of(s, struct daemon, egress);
}

static int egress_fds(struct service *s, int *fds)
{
	(void)s;
	(void)fds;
	return 0;
}

static void tell_egress_policies(struct daemon *d)
{
	const int fds[2] = {dup_fd(d->policies->memfd), dup_fd(d->secrets)};
	if (fds[0] < 0 || fds[1] < 0) {
		fd_close(fds[0]);
		fd_close(fds[1]);
		service_fail(&d->egress, "no descriptor left to give it the policies");
		return;
	}
	struct egress_simple m = {.head.type = EGRESS_POLICIES};
	service_send(&d->egress, &m, sizeof(m), fds, 2);
}

/* Copies of fds[n] for a message.  0, or -errno with none left open. */
static int dup_all(const int *fds, int n, int *ret)
{
	for (int i = 0; i < n; i++) {
		ret[i] = dup_fd(fds[i]);
		if (ret[i] >= 0)
			continue;
		int r = -errno;
		while (i > 0)
			fd_close(ret[--i]);
		return r;
	}
	return 0;
}

static int tell_ports(struct daemon *d, const struct jail *j)
{
	const struct net_ports *p = &j->l.kit->ports;
	for (uint32_t done = 0; done < p->n;) {
		uint32_t n = p->n - done < MSG_FDS ? p->n - done : MSG_FDS;
		struct egress_ports m = {.head.type = EGRESS_PORTS, .jail = j->id, .n = n};
		int fds[MSG_FDS], r = dup_all(p->fd + done, (int)n, fds);
		if (r < 0)
			return r;
		memcpy(m.ports, p->port + done, n * sizeof(m.ports[0]));
		service_send(&d->egress, &m, sizeof(m), fds, (int)n);
		done += n;
	}
	return 0;
}

int peers_tell_jail(struct daemon *d, struct jail *j, struct err *e)
{
	int fds[EGRESS_LISTENERS];
	int r = dup_all(j->l.kit->listeners, EGRESS_LISTENERS, fds);
	if (r < 0)
		return err_set(e, r,
		        "layer egress: the listeners of jail %llu cannot be given away: %s",
		        (unsigned long long)j->id, strerror(-r));
	struct egress_jail m = {.head.type = EGRESS_JAIL,
	        .jail = j->id,
	        .policy_generation = d->policies->set->generation,
	        .flags = j->flags & JAIL_MAKE_NO_EGRESS};
	/* By name: after a reload the jail may have another index, or root took the policy away. */
	int index = policy_find(d->policies->set, j->policy);
	m.policy = index < 0 ? 0 : (uint32_t)index;
	m.flags |= index < 0 ? JAIL_MAKE_NO_EGRESS : 0;
	purses_fill(&d->ledger, j, index < 0 ? NULL : &d->policies->set->policies[index], &m);
	service_send(&d->egress, &m, sizeof(m), fds, EGRESS_LISTENERS);
	j->has_egress = true;
	r = tell_ports(d, j);
	return r < 0 ? err_set(e, r,
	                       "layer egress: the ports of jail %llu cannot be given away: %s",
	                       (unsigned long long)j->id, strerror(-r))
	             : 0;
}

static void tell_egress_jails(struct daemon *d)
{
	for (unsigned i = 0; i < LIMIT_JAILS; i++) {
		struct jail *j = d->jails.slots[i];
		struct err e;
		if (j && j->state == JAILS_LIVE && peers_tell_jail(d, j, &e) < 0)
			log_err("%s: it has no way out", e.text);
	}
}

static void egress_started(struct service *s)
{
	struct daemon *d = of_egress(s);
	tell_egress_policies(d);
	tell_egress_jails(d);
}

static void egress_ended(struct service *s)
{
	/* The listeners are kept here; the next one gets them. */
	jails_settle_all(&of_egress(s)->jails);
}

static bool egress_event_ok(const struct jail_egress *m, size_t n)
{
	return n == sizeof(*m) && m->verdict <= EGRESS_ALLOWED && m->port <= 65535 &&
	       m->protocol < EGRESS_PROTOCOL_COUNT && m->remedy < EGRESS_REMEDY_COUNT &&
	       m->times > 0 && msg_text_ok(m->host, sizeof(m->host)) &&
	       msg_text_ok(m->policy, sizeof(m->policy)) && msg_text_ok(m->rule, sizeof(m->rule)) &&
	       msg_text_ok(m->reason, sizeof(m->reason));
}

static void egress_event(struct daemon *d, struct jail_egress *m)
{
	struct jail *j;
	if (jails_find(&d->jails, m->jail, &j, NULL) < 0)
		return; /* it ended meanwhile */
	if (m->verdict == EGRESS_ALLOWED)
		j->egress_bytes += m->bytes_in + m->bytes_out;
	if (d->supervisor.outbox.waiting > EVENTS_WAITING_MAX)
		return;
	m->head = (struct msg_head){.type = JAIL_EGRESS};
	service_send(&d->supervisor, m, sizeof(*m), NULL, 0);
}

static void egress_usage(struct daemon *d, const struct jail_usage *m)
{
	struct jail *j = NULL;
	struct jail_used to;
	if (jails_find(&d->jails, m->jail, &j, NULL) < 0)
		j = NULL;
	purses_take(&d->ledger, j, m, &to);
	service_send(&d->supervisor, &to, sizeof(to), NULL, 0);
}

static void egress_budget(struct daemon *d, struct jail_budget *m)
{
	struct jail *j;
	if (jails_find(&d->jails, m->jail, &j, NULL) < 0 || j->orphaned)
		return;
	m->head = (struct msg_head){.type = JAIL_BUDGET};
	service_send(&d->supervisor, m, sizeof(*m), NULL, 0);
}

static void egress_message(struct service *s, void *msg, size_t n, int *fds)
{
	for (int i = 0; i < MSG_FDS; i++)
		fd_close(fds[i]);
	const struct msg_head *h = msg;
	if (h->type == EGRESS_EVENT && egress_event_ok(msg, n))
		egress_event(of_egress(s), msg);
	else if (h->type == EGRESS_USAGE && purses_usage_ok(msg, n))
		egress_usage(of_egress(s), msg);
	else if (h->type == EGRESS_BUDGET && purses_budget_ok(msg, n))
		egress_budget(of_egress(s), msg);
	else if (h->type == EGRESS_JAIL_ENDED && n == sizeof(struct egress_simple))
		jails_settled(&of_egress(s)->jails, ((const struct egress_simple *)msg)->jail);
	else if (h->type == EGRESS_READY && n == sizeof(struct egress_simple))
		log_debug("egress has taken the policies into use");
	else
		service_fail(s, "protocol violation");
}

static const struct service_ops egress_ops = {
        .fds = egress_fds,
        .started = egress_started,
        .message = egress_message,
        .ended = egress_ended,
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
	struct egress_simple end = {.head.type = EGRESS_JAIL_END, .jail = j->id};
	if (!j->has_egress || !service_running(&d->egress))
		return false;
	service_send(&d->egress, &end, sizeof(end), NULL, 0);
	return true;
}

static void on_gone(void *ctx, struct jail *j, const struct jail_gone *m)
{
	struct daemon *d = ctx;
	struct jail_gone to = *m;
	struct jail_used used;
	if (!j->orphaned && purses_used(j, &used))
		service_send(&d->supervisor, &used, sizeof(used), NULL, 0);
	if (!j->orphaned)
		service_send(&d->supervisor, &to, sizeof(to), NULL, 0);
}

static void on_limit(void *ctx, struct jail *j, enum jail_limit_kind kind, uint64_t value)
{
	struct daemon *d = ctx;
	struct jail_limit m = {
	        .head.type = JAIL_LIMIT, .jail = j->id, .kind = (uint32_t)kind, .value = value};
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
        .limit = on_limit,
        .released = on_released,
};

/* ---- both ---- */

static void fill_argv(
        struct daemon_argv *a, const char *name, uint32_t uid, uint32_t gid, const char *level)
{
	snprintf(a->uid, sizeof(a->uid), "%u", uid);
	snprintf(a->gid, sizeof(a->gid), "%u", gid);
	const char *const argv[8] = {name, "--uid", a->uid, "--gid", a->gid, "--log-level", level};
	memcpy(a->argv, argv, sizeof(argv));
}

void peers_init(struct daemon *d)
{
	d->laters.again = ask_again;
	d->laters.promised = promised;
	d->laters.ctx = d;
	const struct daemon_config *c = &d->policies->set->config;
	const char *level = log_level_name(d->options->log_level);
	fill_argv(&d->supervisor_argv, "agentbox-supervisor", c->supervisor_uid, c->supervisor_gid,
	        level);
	fill_argv(&d->egress_argv, "agentbox-egress", c->egress_uid, c->egress_gid, level);
	alarm_init(&d->settled_alarm, on_settled);
	alarm_init(&d->abandon_alarm, on_abandoned);
	alarm_init(&d->handover_alarm, on_handover);
	d->supervisor.name = "supervisor";
	d->supervisor.program = d->programs.supervisor;
	d->supervisor.argv = d->supervisor_argv.argv;
	d->supervisor.env = (const char *const *)d->exposed;
	d->supervisor.ops = &supervisor_ops;
	d->supervisor.poller = &d->poller;
	d->egress.name = "egress";
	d->egress.program = d->programs.egress;
	d->egress.argv = d->egress_argv.argv;
	d->egress.ops = &egress_ops;
	d->egress.poller = &d->poller;
}

void peers_tell_policies(struct daemon *d)
{
	if (service_running(&d->supervisor))
		tell_supervisor_policies(d);
	/* egress finds the policies of the jails it has by their names. */
	if (service_running(&d->egress))
		tell_egress_policies(d);
}

void peers_tell_secrets(struct daemon *d)
{
	if (service_running(&d->egress))
		tell_egress_policies(d);
}
