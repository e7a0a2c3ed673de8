#include "egress/control.h"

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "egress/certs.h"
#include "egress/hooks.h"
#include "egress/jails.h"
#include "egress/objects.h"
#include "egress/secrets.h"
#include "policy/policy.h"
#include "proto/egress.h"

#include <string.h>
#include <sys/stat.h>

enum { MESSAGES_PER_TURN = 64, ANY_FDS = -1 };

struct control {
	struct services *services; /* borrowed: process */
	struct watch watch;
	struct policy_set *set;                 /* owned; NULL until the first one */
	struct rulebook *books[LIMIT_POLICIES]; /* owned references, by the set's indexes */
};

static int copy_set(int memfd, struct policy_set **ret, struct err *e)
{
	struct stat st;
	size_t most = sizeof(struct policy_set) + LIMIT_POLICIES * sizeof(struct policy);
	if (fstat(memfd, &st) < 0)
		return err_errno(e, "policies: fstat");
	if (st.st_size < (off_t)sizeof(struct policy_set) || (size_t)st.st_size > most)
		return err_set(e, -EBADMSG, "policies: a set of %lld bytes", (long long)st.st_size);
	size_t n = (size_t)st.st_size;
	auto_free struct policy_set *set = xcalloc(1, n);
	if (fd_pread_full(memfd, set, n, 0) != (ssize_t)n)
		return err_set(e, -EIO, "policies: the memfd is shorter than it says");
	int r = policy_set_check(set, n, e);
	if (r < 0)
		return r;
	*ret = take(set);
	return 0;
}

/* The rules of the policy of that index and why they do not count, or "". */
static struct rulebook *book_for(
        const struct control *c, int index, const char *policy, uint32_t flags, const char **why)
{
	*why = "";
	if (index >= 0) {
		if (flags & JAIL_MAKE_NO_EGRESS)
			*why = "nothing goes out of this jail";
		return rulebook_ref(c->books[index]);
	}
	auto_free struct policy *none = xnew(struct policy);
	(void)str_copy(none->name, sizeof(none->name), policy);
	*why = "the policy is not known any more";
	return rulebook_new(none);
}

static void follow(struct control *c)
{
	list_for_each (j, &c->services->jails, struct jail, link) {
		const char *why, *policy = j->names.book->policy.name;
		struct rulebook *b =
		        book_for(c, policy_find(c->set, policy), policy, j->flags, &why);
		jails_follow(j, b, why);
		rulebook_unref(b);
	}
}

static void books_replace(struct control *c, const struct policy_set *next)
{
	for (uint32_t i = 0; c->set && i < c->set->count; i++)
		rulebook_unref(c->books[i]);
	for (uint32_t i = 0; next && i < next->count; i++)
		c->books[i] = rulebook_new(&next->policies[i]);
}

static void reply(struct control *c, uint16_t type, uint64_t jail)
{
	struct egress_simple m = {.head.type = type, .jail = jail};
	int r = msg_send(c->services->control, &m, sizeof(m), NULL, 0);
	if (r < 0)
		log_warn("agentboxd does not take an answer: %s", strerror(-r));
}

/* Both or nothing: a set whose secrets cannot be used is not taken into use either. */
static int on_policies(struct control *c, const void *msg, int fds[MSG_FDS], struct err *e)
{
	(void)msg;
	auto_free struct policy_set *set = NULL;
	int r = copy_set(fds[0], &set, e);
	if (r == 0)
		r = secrets_replace(c->services->secrets, fds[1], e);
	if (r < 0)
		return r;
	books_replace(c, set);
	free(c->set);
	c->set = take(set);
	log_use((enum log_format)c->set->config.log_format, (int)c->set->config.log_level);
	c->services->prices =
	        (struct price_list){.prices = c->set->config.prices, .n = c->set->config.nprices};
	follow(c);
	log_debug("policies of generation %llu in use", (unsigned long long)c->set->generation);
	reply(c, EGRESS_READY, 0);
	return 0;
}

/* Of a memfd (borrowed; -1: none).  Without one the jail begins all the same: what would be
 * terminated is refused there, with events. */
static struct certs *open_authority(int memfd, uint64_t jail)
{
	struct authority a;
	struct certs *c = NULL;
	struct err e;
	if (memfd < 0)
		return NULL;
	if (fd_pread_full(memfd, &a, sizeof(a), 0) == (ssize_t)sizeof(a))
		c = certs_open(&a, &e);
	else
		(void)err_set(&e, -EIO, "certificates: the memfd is shorter than an authority");
	explicit_bzero(&a, sizeof(a));
	if (!c)
		log_err("jail %llu: %s", (unsigned long long)jail, e.text);
	return c;
}

static int on_jail(struct control *c, const void *msg, int fds[MSG_FDS], struct err *e)
{
	const struct egress_jail *m = msg;
	if (m->head.nfds != EGRESS_LISTENERS && m->head.nfds != EGRESS_LISTENERS + 1)
		return err_set(e, -EBADMSG, "control: a jail with %u descriptors", m->head.nfds);
	if (jails_find(c->services, m->jail))
		return err_set(e, -EEXIST, "jail %llu began twice", (unsigned long long)m->jail);
	bool known =
	        c->set && m->policy_generation == c->set->generation && m->policy < c->set->count;
	/* A jail of unknown rules still begins: everything in it is refused, with events, instead
	 * of running into connections that nobody accepts. */
	const char *why;
	struct rulebook *b = book_for(c, known ? (int)m->policy : -1, "?", m->flags, &why);
	if (!known)
		log_warn("jail %llu names policy %u of generation %llu, which is not in use: "
		         "everything is refused",
		        (unsigned long long)m->jail, m->policy,
		        (unsigned long long)m->policy_generation);
	int r = jails_begin(
	        c->services, m, b, why, fds, open_authority(fds[EGRESS_LISTENERS], m->jail), e);
	rulebook_unref(b);
	return r;
}

/* fds: a listener for each of the ports. */
static int on_ports(struct control *c, const void *msg, int fds[MSG_FDS], struct err *e)
{
	const struct egress_ports *m = msg;
	struct jail *j = jails_find(c->services, m->jail);
	int r = 0;
	if (!j)
		return err_set(e, -ENOENT, "ports of jail %llu, which has not begun",
		        (unsigned long long)m->jail);
	if (m->n != m->head.nfds || m->n > POLICY_PORTS)
		return err_set(
		        e, -EBADMSG, "control: %u ports with %u descriptors", m->n, m->head.nfds);
	for (uint32_t i = 0; r == 0 && i < m->n; i++)
		r = jails_port(j, m->ports[i], &fds[i], e);
	return r;
}

static int on_jail_end(struct control *c, const void *msg, int fds[MSG_FDS], struct err *e)
{
	const struct egress_simple *m = msg;
	struct jail *j = jails_find(c->services, m->jail);
	(void)fds;
	if (!j && c->services->draining) /* it began after that */
		return 0;
	if (!j)
		reply(c, EGRESS_JAIL_ENDED, m->jail); /* an earlier process had it */
	if (!j)
		return err_set(e, -ENOENT, "jail %llu ended without having begun",
		        (unsigned long long)m->jail);
	jails_end(j);
	return 0;
}

/* Whatever becomes of it is its answer. */
static int on_hook(struct control *c, const void *msg, int fds[MSG_FDS], struct err *e)
{
	(void)e;
	hooks_begin(c->services->hooks, c->set, msg, fds[0]);
	return 0;
}

/* Likewise. */
static int on_object(struct control *c, const void *msg, int fds[MSG_FDS], struct err *e)
{
	(void)e;
	objects_begin(c->services->objects, c->set, msg, &fds[0]);
	return 0;
}

static int on_ping(struct control *c, const void *msg, int fds[MSG_FDS], struct err *e)
{
	(void)msg;
	(void)fds;
	(void)e;
	reply(c, EGRESS_ALIVE, 0);
	return 0;
}

static int on_stop(struct control *c, const void *msg, int fds[MSG_FDS], struct err *e)
{
	(void)msg;
	(void)fds;
	(void)e;
	if (c->services->draining)
		jails_cut(
		        c->services, "cut: egress was replaced too often to keep all that is open");
	reactor_stop(c->services->reactor);
	return 0;
}

static int on_drain(struct control *c, const void *msg, int fds[MSG_FDS], struct err *e)
{
	(void)msg;
	(void)fds;
	(void)e;
	log_info("another egress takes over; what is open goes on here");
	jails_drain(c->services);
	return 0;
}

static const struct {
	uint16_t type;
	size_t size;
	int nfds;
	int (*handle)(struct control *c, const void *msg, int fds[MSG_FDS], struct err *e);
} messages[] = {
        {EGRESS_POLICIES, sizeof(struct egress_simple), 2, on_policies},
        {EGRESS_JAIL, sizeof(struct egress_jail), ANY_FDS, on_jail},
        {EGRESS_PORTS, sizeof(struct egress_ports), ANY_FDS, on_ports},
        {EGRESS_JAIL_END, sizeof(struct egress_simple), 0, on_jail_end},
        {EGRESS_HOOK, sizeof(struct jail_hook), 1, on_hook},
        {EGRESS_OBJECT, sizeof(struct jail_object), ANY_FDS, on_object},
        {EGRESS_PING, sizeof(struct egress_simple), 0, on_ping},
        {EGRESS_STOP, sizeof(struct egress_simple), 0, on_stop},
        {EGRESS_DRAIN, sizeof(struct egress_simple), 0, on_drain},
};

static int dispatch(struct control *c, const void *msg, size_t n, int fds[MSG_FDS], struct err *e)
{
	const struct msg_head *h = msg;
	for (size_t i = 0; i < ARRAY_LEN(messages); i++)
		if (messages[i].type == h->type) {
			if (n != messages[i].size ||
			        (messages[i].nfds != ANY_FDS && h->nfds != messages[i].nfds))
				break;
			return messages[i].handle(c, msg, fds, e);
		}
	return err_set(e, -EBADMSG, "control: message %u of %zu bytes with %u descriptors", h->type,
	        n, h->nfds);
}

static void on_ready(struct watch *w, uint32_t events)
{
	struct control *c = container_of(w, struct control, watch);
	(void)events;
	for (int i = 0; i < MESSAGES_PER_TURN; i++) {
		_Alignas(uint64_t) char msg[MSG_MAX];
		int fds[MSG_FDS];
		int n = msg_recv(c->services->control, msg, fds);
		if (n == -EAGAIN)
			return;
		if (n == 0 || (n < 0 && n != -EBADMSG)) {
			log_info("agentboxd is gone, ending");
			reactor_stop(c->services->reactor);
			return;
		}
		struct err err;
		int r = n < 0 ? err_set(&err, n, "control: a datagram that is none of ours")
		              : dispatch(c, msg, (size_t)n, fds, &err);
		for (int k = 0; n > 0 && k < MSG_FDS; k++)
			fd_close(fds[k]);
		if (r < 0)
			log_err("%s", err.text);
	}
}

struct control *control_new(struct services *s, struct err *e)
{
	struct control *c = xnew(struct control);
	c->services = s;
	c->watch = (struct watch){.fd = -1, .ready = on_ready};
	int r = fd_set_nonblock(s->control, 1);
	if (r == 0)
		r = reactor_watch(s->reactor, &c->watch, s->control, EPOLLIN);
	if (r < 0) {
		err_set(e, r, "control socket: %s", strerror(-r));
		free(c);
		return NULL;
	}
	return c;
}

void control_free(struct control *c)
{
	if (!c)
		return;
	reactor_unwatch(c->services->reactor, &c->watch);
	books_replace(c, NULL);
	free(c->set);
	free(c);
}
