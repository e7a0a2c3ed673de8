/*
 * agentbox-egress: given the policies, the secrets and each jail's listeners, it tells what
 * it refused or let out; that is checked and passed on.  While no supervisor is there that has
 * been told of the jails, it is kept for the next one.
 *
 * One that is replaced by a new binary finishes what is open, beside its successor.
 */
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "jail/daemon.h"
#include "jail/purses.h"
#include "proto/egress.h"

#include <stdlib.h>
#include <string.h>

enum {
	/* They are the first to go when the supervisor is slow: they only inform. */
	EVENTS_WAITING_MAX = 1024,
	/* 400 KB.  A jail can send 20 a second (egress/report.h), a supervisor is back in one. */
	EVENTS_KEPT = 1024,
	/* A webhook is told again: it need not wait among what has to be heard. */
	HOOKS_WAITING_MAX = 64,
};

static struct daemon *of_egress(struct service *s)
{
	return s->owner;
}

static void order(struct service *s, enum egress_msg type)
{
	struct egress_simple m = {.head.type = (uint16_t)type};
	service_send(s, &m, sizeof(m), NULL, 0);
}

static int egress_fds(struct service *s, int *fds)
{
	(void)s;
	(void)fds;
	return 0;
}

void peers_tell_egress(struct daemon *d)
{
	const int fds[2] = {fd_dup(d->policies->memfd), fd_dup(d->secrets)};
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
		ret[i] = fd_dup(fds[i]);
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
	const struct kit *k = j->l.kit;
	int from[EGRESS_LISTENERS + 1], fds[EGRESS_LISTENERS + 1];
	int n = EGRESS_LISTENERS + (k->authority >= 0);
	memcpy(from, k->listeners, sizeof(k->listeners));
	from[EGRESS_LISTENERS] = k->authority;
	int r = dup_all(from, n, fds);
	if (r < 0)
		return err_set(e, r,
		        "layer egress: the listeners of jail %llu cannot be given away: %s",
		        (unsigned long long)j->id, strerror(-r));
	struct egress_jail m = {.head.type = EGRESS_JAIL,
	        .jail = j->id,
	        .policy_generation = d->policies->set->generation,
	        .flags = j->flags & JAIL_MAKE_NO_EGRESS,
	        .outlets = j->outlets};
	/* By name: after a reload the jail may have another index, or root took the policy away. */
	int index = policy_find(d->policies->set, j->policy);
	m.policy = index < 0 ? 0 : (uint32_t)index;
	m.flags |= index < 0 ? JAIL_MAKE_NO_EGRESS : 0;
	purses_fill(&d->ledger, j, index < 0 ? NULL : &d->policies->set->policies[index], &m);
	service_send(&d->egress, &m, sizeof(m), fds, n);
	j->has_egress = true;
	r = tell_ports(d, j);
	return r < 0 ? err_set(e, r,
	                       "layer egress: the ports of jail %llu cannot be given away: %s",
	                       (unsigned long long)j->id, strerror(-r))
	             : 0;
}

int peers_tell_hook(struct daemon *d, const struct jail_hook *asked, int body, struct err *e)
{
	if (!service_running(&d->egress) || d->egress.outbox.waiting > HOOKS_WAITING_MAX) {
		fd_close(body);
		return err_set(e, -EAGAIN, "agentbox-egress is not there, or does not read");
	}
	struct jail_hook m = *asked;
	m.head = (struct msg_head){.type = EGRESS_HOOK};
	service_send(&d->egress, &m, sizeof(m), &body, 1);
	return 0;
}

int peers_tell_object(struct daemon *d, const struct jail_object *asked, int fd, struct err *e)
{
	if (!service_running(&d->egress) || d->egress.outbox.waiting > HOOKS_WAITING_MAX) {
		fd_close(fd);
		return err_set(e, -EAGAIN, "agentbox-egress is not there, or does not read");
	}
	struct jail_object m = *asked;
	m.head = (struct msg_head){.type = EGRESS_OBJECT};
	service_send(&d->egress, &m, sizeof(m), &fd, fd < 0 ? 0 : 1);
	return 0;
}

static void tell_egress_jails(struct daemon *d)
{
	for (unsigned i = 0; i < LIMIT_JAILS; i++) {
		struct jail *j = d->jails.slots[i];
		struct err e;
		if (j && j->state == JAILS_LIVE && !j->resting && peers_tell_jail(d, j, &e) < 0)
			log_err("%s: it has no way out", e.text);
	}
}

static void egress_started(struct service *s)
{
	struct daemon *d = of_egress(s);
	peers_tell_egress(d);
	tell_egress_jails(d);
}

static void egress_ended(struct service *s)
{
	struct daemon *d = of_egress(s);
	/* The listeners are kept here; the next one gets them. */
	if (s != &d->egress)
		return;
	jails_settle_all(&d->jails);
	struct jail_hooked lost = {
	        .head.type = JAIL_HOOKED, .reason = "agentbox-egress ended meanwhile"};
	service_send(&d->supervisor, &lost, sizeof(lost), NULL, 0);
	struct jail_objected cut = {.head.type = JAIL_OBJECTED,
	        .outcome = JAIL_OBJECT_AGAIN,
	        .reason = "agentbox-egress ended meanwhile"};
	service_send(&d->supervisor, &cut, sizeof(cut), NULL, 0);
}

static bool egress_event_ok(const struct jail_egress *m, size_t n)
{
	return n == sizeof(*m) && m->verdict <= EGRESS_ALLOWED && m->port <= 65535 &&
	       m->protocol < EGRESS_PROTOCOL_COUNT && m->remedy < EGRESS_REMEDY_COUNT &&
	       m->times > 0 && msg_text_ok(m->host, sizeof(m->host)) &&
	       msg_text_ok(m->policy, sizeof(m->policy)) && msg_text_ok(m->rule, sizeof(m->rule)) &&
	       msg_text_ok(m->reason, sizeof(m->reason));
}

/* ---- what it tells of ---- */

static void tell_event(struct daemon *d, struct jail *j, const struct jail_egress *event)
{
	if (d->supervisor.outbox.waiting > EVENTS_WAITING_MAX) {
		j->events_lost++;
		return;
	}
	peers_tell_lost(d, j);
	struct jail_egress m = *event;
	m.head = (struct msg_head){.type = JAIL_EGRESS};
	service_send(&d->supervisor, &m, sizeof(m), NULL, 0);
}

void peers_tell_lost(struct daemon *d, struct jail *j)
{
	if (j->events_lost == 0)
		return;
	struct jail_lost m = {.head.type = JAIL_LOST, .jail = j->id, .events = j->events_lost};
	service_send(&d->supervisor, &m, sizeof(m), NULL, 0);
	j->events_lost = 0;
}

void peers_keep_event(struct daemon *d, const struct jail_egress *m)
{
	struct kept_event *k = xnew(struct kept_event);
	k->m = *m;
	list_append(&d->events, &k->link);
	d->nevents++;
}

/* A jail that is no run's ends with its supervisor: nobody will ask. */
static void keep_event(struct daemon *d, struct jail *j, const struct jail_egress *m)
{
	if (!j->run[0])
		return;
	if (d->nevents < EVENTS_KEPT)
		peers_keep_event(d, m);
	else
		j->events_lost++;
}

void peers_forget_events(struct daemon *d)
{
	list_for_each (k, &d->events, struct kept_event, link) {
		list_remove(&k->link);
		free(k);
	}
	d->nevents = 0;
}

void peers_tell_kept(struct daemon *d)
{
	list_for_each (k, &d->events, struct kept_event, link) {
		struct jail *j;
		if (jails_find(&d->jails, k->m.jail, &j, NULL) < 0)
			continue; /* it was released meanwhile */
		struct jail_egress m = k->m;
		m.head = (struct msg_head){.type = JAIL_EGRESS};
		service_send(&d->supervisor, &m, sizeof(m), NULL, 0);
	}
	peers_forget_events(d);
	for (unsigned i = 0; i < LIMIT_JAILS; i++)
		if (d->jails.slots[i] && !d->jails.slots[i]->orphaned)
			peers_tell_lost(d, d->jails.slots[i]);
}

static void egress_event(struct daemon *d, const struct jail_egress *m)
{
	struct jail *j;
	if (jails_find(&d->jails, m->jail, &j, NULL) < 0)
		return; /* it ended meanwhile */
	if (m->verdict == EGRESS_ALLOWED)
		j->egress_bytes += m->bytes_in + m->bytes_out;
	if (d->adopted)
		tell_event(d, j, m);
	else
		keep_event(d, j, m);
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

static bool hooked_ok(const struct jail_hooked *m, size_t n)
{
	return n == sizeof(*m) && m->status < 1000 && msg_text_ok(m->reason, sizeof(m->reason));
}

/* A supervisor that was not the asker does not know the number, and asks again. */
static void egress_hooked(struct daemon *d, struct jail_hooked *m)
{
	m->head = (struct msg_head){.type = JAIL_HOOKED};
	service_send(&d->supervisor, m, sizeof(*m), NULL, 0);
}

static bool objected_ok(const struct jail_objected *m, size_t n)
{
	return n == sizeof(*m) && m->number && m->outcome < JAIL_OBJECT_OUTCOMES &&
	       msg_text_ok(m->reason, sizeof(m->reason)) && msg_text_ok(m->link, sizeof(m->link));
}

static void egress_objected(struct daemon *d, struct jail_objected *m)
{
	m->head = (struct msg_head){.type = JAIL_OBJECTED};
	service_send(&d->supervisor, m, sizeof(*m), NULL, 0);
}

/* A draining one may still count when the jail is told gone: its accounts get that. */
static void egress_ended_jail(struct service *s, const struct egress_simple *m)
{
	struct daemon *d = of_egress(s);
	if (s == &d->egress)
		jails_settled(&d->jails, m->jail);
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
	else if (h->type == EGRESS_HOOKED && hooked_ok(msg, n))
		egress_hooked(of_egress(s), msg);
	else if (h->type == EGRESS_OBJECTED && objected_ok(msg, n))
		egress_objected(of_egress(s), msg);
	else if (h->type == EGRESS_JAIL_ENDED && n == sizeof(struct egress_simple))
		egress_ended_jail(s, msg);
	else if (h->type == EGRESS_READY && n == sizeof(struct egress_simple))
		log_debug("egress has taken the policies into use");
	else if (h->type == EGRESS_ALIVE && n == sizeof(struct egress_simple))
		return; /* that it has come is all there is to know */
	else
		service_fail(s, "protocol violation");
}

static void ping_egress(struct service *s)
{
	order(s, EGRESS_PING);
}

static const struct service_ops egress_ops = {
        .fds = egress_fds,
        .started = egress_started,
        .ping = ping_egress,
        .message = egress_message,
        .ended = egress_ended,
};

void peers_init_egress(struct daemon *d)
{
	const struct daemon_config *c = &d->policies->set->config;
	peers_fill_argv(d, &d->egress_argv, "agentbox-egress", c->egress_uid, c->egress_gid);
	d->egress.name = "egress";
	d->egress.program = d->programs.egress;
	d->egress.argv = d->egress_argv.argv;
	d->egress.ops = &egress_ops;
	d->egress.poller = &d->poller;
	d->egress.owner = d;
}

/* ---- one after another ---- */

bool peers_end_jail(struct daemon *d, const struct jail *j)
{
	struct egress_simple end = {.head.type = EGRESS_JAIL_END, .jail = j->id};
	if (!j->has_egress)
		return false;
	for (int i = 0; i < EGRESS_PLACES; i++)
		service_send(&d->drains[i], &end, sizeof(end), NULL, 0);
	if (!service_running(&d->egress))
		return false;
	service_send(&d->egress, &end, sizeof(end), NULL, 0);
	return true;
}

static struct service *free_place(struct daemon *d)
{
	for (int i = 0; i < EGRESS_PLACES; i++)
		if (!service_running(&d->drains[i]))
			return &d->drains[i];
	return NULL;
}

static struct service *oldest(struct daemon *d)
{
	struct service *old = NULL;
	for (int i = 0; i < EGRESS_PLACES; i++) {
		struct service *s = &d->drains[i];
		if (service_running(s) && (!old || s->started_ms < old->started_ms))
			old = s;
	}
	return old;
}

void peers_drain_egress(struct daemon *d)
{
	struct service *to = free_place(d);
	if (!to) { /* it was told to stop when the place before this was taken */
		to = oldest(d);
		log_warn("egress (pid %d) does not end and is killed", to->child.pid);
		service_done(to);
	}
	service_retire(&d->egress, to);
	order(to, EGRESS_DRAIN);
	service_start_soon(&d->egress);
	if (free_place(d))
		return;
	struct service *old = oldest(d);
	log_warn("egress (pid %d) is stopped: more than %d would be finishing what is open",
	        old->child.pid, EGRESS_PLACES - 1);
	order(old, EGRESS_STOP);
}

void peers_resume_egress(struct daemon *d)
{
	for (int i = 0; i < EGRESS_PLACES; i++) {
		struct service *s = &d->drains[i];
		if (!service_running(s))
			continue;
		s->name = d->egress.name;
		s->program = d->egress.program;
		s->ops = d->egress.ops;
		s->poller = d->egress.poller;
		s->owner = d;
		s->stopping = true;
		service_resume(s);
	}
	if (service_running(&d->egress))
		service_resume(&d->egress);
	else
		service_start_soon(&d->egress);
	if (service_running(&d->egress) && !service_outdated(&d->egress))
		peers_tell_egress(d); /* else the next one is told */
}
