#include "supervisor/jails.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "supervisor/daemon.h"
#include "supervisor/egress_feed.h"
#include "supervisor/egress_news.h"
#include "supervisor/jails_private.h"
#include "supervisor/policies.h"
#include "supervisor/purses.h"

#include <string.h>

/* ---- those that live ---- */

static struct jail_live *live_new(struct jails *j, uint64_t jail, int64_t age_ms)
{
	struct jail_live *x = xnew(struct jail_live);
	x->jail = jail;
	x->made_ms = clock_wall_ms() - age_ms;
	list_append(&j->live, &x->link);
	j->daemon->stats.jails++;
	return x;
}

static void live_add(struct jails *j, const struct jail_make *m, uint64_t jail)
{
	struct jail_live *x = live_new(j, jail, 0);
	const struct policy_set *set = policies_set(j->daemon->policies);
	if (m->flags & JAIL_MAKE_SESSION)
		memcpy(x->session, m->session, sizeof(x->session));
	memcpy(x->run, m->run, sizeof(x->run));
	/* After a reload the index says nothing any more. */
	if (set && set->generation == m->policy_generation && m->policy < set->count)
		(void)str_copy(x->policy, sizeof(x->policy), set->policies[m->policy].name);
}

static void live_claimed(struct jails *j, const struct jail_claim *m)
{
	list_for_each (x, &j->live, struct jail_live, link)
		if (x->jail == m->jail)
			memcpy(x->run, m->run, sizeof(x->run));
}

static void live_veil(struct jails *j, uint64_t jail, const struct veil *v)
{
	list_for_each (x, &j->live, struct jail_live, link)
		if (x->jail == jail && v->nforms && veil_ok(v))
			x->veil = *v;
}

static void live_remove(struct jails *j, uint64_t jail)
{
	list_for_each (x, &j->live, struct jail_live, link)
		if (x->jail == jail) {
			list_remove(&x->link);
			free(x);
			j->daemon->stats.jails--;
			return;
		}
}

/* ---- watches ---- */

/* A callback may remove any watch and free its owner: the jail's watches are moved to a list of
 * their own, and each goes back to its bucket before it is called. */
#define TELL(j, number, member, message)                                                           \
	do {                                                                                       \
		struct list mine_;                                                                 \
		list_init(&mine_);                                                                 \
		list_for_each (                                                                    \
		        w_, &(j)->buckets[(number) % JAILS_BUCKETS], struct jail_watch, link)      \
			if (w_->jail == (number)) {                                                \
				list_remove(&w_->link);                                            \
				list_append(&mine_, &w_->link);                                    \
			}                                                                          \
		while (!list_empty(&mine_)) {                                                      \
			struct jail_watch *w_ = list_entry(mine_.next, struct jail_watch, link);   \
			list_remove(&w_->link);                                                    \
			list_append(&(j)->buckets[(number) % JAILS_BUCKETS], &w_->link);           \
			if (w_->member)                                                            \
				w_->member(w_, message);                                           \
		}                                                                                  \
	} while (0)

/* ---- replies ---- */

/* Made for policies that agentboxd does not have any more: true where it is asked again.  The next
 * set comes before that reply. */
static bool made_anew(struct jails *j, struct request *q, struct jail_reply *r)
{
	const struct policy *p;
	struct jail_make *m = jails_make_of(q);
	const struct policy_set *set = policies_set(j->daemon->policies);
	if (q->m->type != JAIL_MAKE || r->err.code != -ESTALE || !set ||
	        set->generation == m->policy_generation)
		return false;
	int index = policies_find(j->daemon->policies, q->policy, &p, &r->err);
	if (index < 0) /* which is the answer then */
		return false;
	m->policy = (uint32_t)index;
	m->policy_generation = set->generation;
	m->head.req = ++j->last_req;
	list_remove(&q->link);
	list_append(&j->outbox, &q->link);
	jails_flush(j);
	return true;
}

static void reply(struct jails *j, struct request *q, struct jail_reply *r, int fds[MSG_FDS])
{
	if (made_anew(j, q, r))
		return;
	list_remove(&q->link);
	if (q->m->type == JAIL_MAKE && r->err.code == 0) {
		live_add(j, jails_make_of(q), r->jail);
		j->daemon->stats.jails_made++;
		j->daemon->stats.pool_hits += r->pooled != 0;
		stats_observe(&j->daemon->stats.jail_make, r->make_us);
		if (q->watch)
			jails_watch(j, r->jail, q->watch);
	}
	if ((q->m->type == JAIL_MAKE || q->m->type == JAIL_EXEC) && r->err.code == 0)
		live_veil(j, r->jail, &r->veil);
	if (q->m->type == JAIL_CLAIM && r->err.code == 0)
		live_claimed(j, (const struct jail_claim *)(const void *)q->m);
	if (q->done)
		q->done(q->ctx, r, fds);
	else if (r->err.code && q->m->type != JAIL_SIGNAL && q->m->type != JAIL_KILL &&
	         q->m->type != JAIL_STDIN_END)
		log_warn("agentboxd: request %d: %s", q->m->type, r->err.text);
	jails_request_free(q);
}

static void got_reply(struct jails *j, struct jail_reply *r, int fds[MSG_FDS])
{
	list_for_each (q, &j->pending, struct request, link)
		if (q->m->req == r->head.req) {
			reply(j, q, r, fds);
			return;
		}
	log_warn("agentboxd: reply to an unknown request %llu", (unsigned long long)r->head.req);
}

static void got_host(void *ctx, const struct jail_reply *r, int fds[MSG_FDS])
{
	struct jails *j = ctx;
	(void)fds;
	if (r->err.code == 0) {
		policies_host(j->daemon->policies, r);
		j->calls.policies(j->daemon);
		return;
	}
	log_err("what this host has: %s", r->err.text);
	j->refused = true;
	jails_lose(j);
}

/* A later set that does not check leaves the one in use; without a first one there is nothing to
 * serve, and agentboxd must see that. */
static void got_policies(struct jails *j, int *fd)
{
	struct err e;
	if (policies_load(j->daemon->policies, take_fd(*fd), &e) == 0) {
		const struct daemon_config *c = &policies_set(j->daemon->policies)->config;
		log_use((enum log_format)c->log_format, (int)c->log_level);
		jails_doctor(j, got_host, j);
		return;
	}
	log_err("policies: %s", e.text);
	if (policies_ready(j->daemon->policies))
		return;
	j->refused = true;
	jails_lose(j);
}

/* To those who watch all jails, and refusals into the log. */
static void publish(struct jails *j, const struct jail_egress *x)
{
	static const struct jail_live unknown;
	const struct jail_live *from = jails_find(j, x->jail);
	from = from ? from : &unknown;
	if (x->verdict == EGRESS_DENIED)
		egress_news_log(x, from->session, from->run);
	char now[CLOCK_TEXT_MAX];
	clock_rfc3339(clock_wall_ms(), now);
	auto_buf struct buf b = BUF_INIT(EGRESS_NEWS_MAX);
	struct jw w = JW_INIT(&b);
	jw_open(&w, NULL, '{');
	jw_str(&w, "ts", now);
	jw_int(&w, "jail", (int64_t)x->jail);
	jw_str(&w, "session", from->session[0] ? from->session : NULL);
	jw_str(&w, "run", from->run[0] ? from->run : NULL);
	jw_str(&w, "type", egress_news_type(x));
	egress_news_members(x, &w);
	jw_close(&w, '}');
	if (j->daemon->egress)
		egress_feed_put(j->daemon->egress, b.p, b.len);
}

static void got_hooked(struct jails *j, struct jail_hooked *x)
{
	x->reason[sizeof(x->reason) - 1] = '\0';
	j->calls.hooked(j->daemon, x);
}

static void got_used(struct jails *j, const struct jail_used *x)
{
	purses_save(j->daemon, x);
	TELL(j, x->jail, used, x);
}

static void got_objected(struct jails *j, struct jail_objected *x)
{
	x->reason[sizeof(x->reason) - 1] = '\0';
	x->link[sizeof(x->link) - 1] = '\0';
	j->calls.objected(j->daemon, x);
}

/* Names that a jail asks for are its output, too: to clients, and into the log. */
static void veil_names(struct jails *j, struct jail_egress *x)
{
	const struct jail_live *from = jails_find(j, x->jail);
	(void)veil_text(from ? &from->veil : NULL, x->host, strlen(x->host));
	(void)veil_text(from ? &from->veil : NULL, x->reason, strlen(x->reason));
}

static void got_egress(struct jails *j, struct jail_egress *x)
{
	struct stats *s = &j->daemon->stats;
	x->host[sizeof(x->host) - 1] = '\0';
	x->policy[sizeof(x->policy) - 1] = '\0';
	x->rule[sizeof(x->rule) - 1] = '\0';
	x->reason[sizeof(x->reason) - 1] = '\0';
	if (x->verdict == EGRESS_DENIED)
		s->egress_denied += x->times;
	else
		s->egress_allowed += x->times;
	s->egress_bytes += x->bytes_out;
	veil_names(j, x);
	publish(j, x);
	TELL(j, x->jail, egress, x);
}

static void got_gone(struct jails *j, const struct jail_gone *x)
{
	live_remove(j, x->jail);
	TELL(j, x->jail, gone, x);
}

static void got_found(struct jails *j, struct jail_found *x, int fds[MSG_FDS])
{
	x->run[sizeof(x->run) - 1] = x->session[sizeof(x->session) - 1] = '\0';
	x->policy[sizeof(x->policy) - 1] = '\0';
	if (!(x->flags & FOUND_GONE)) {
		struct jail_live *l = live_new(j, x->jail, x->age_ms);
		memcpy(l->session, x->session, sizeof(l->session));
		memcpy(l->run, x->run, sizeof(l->run));
		memcpy(l->policy, x->policy, sizeof(l->policy));
		live_veil(j, x->jail, &x->veil);
	}
	j->calls.found(j->daemon, x, fds);
}

void jails_dispatch(struct jails *j, void *m, size_t n, int fds[MSG_FDS])
{
	const struct msg_head *h = m;
	static const size_t sizes[] = {
	        [JAIL_REPLY] = sizeof(struct jail_reply),
	        [JAIL_EXITED] = sizeof(struct jail_exited),
	        [JAIL_GONE] = sizeof(struct jail_gone),
	        [JAIL_POLICIES] = sizeof(struct jail_simple),
	        [JAIL_EGRESS] = sizeof(struct jail_egress),
	        [JAIL_STOP] = sizeof(struct jail_simple),
	        [JAIL_LIMIT] = sizeof(struct jail_limit),
	        [JAIL_HANDOVER] = sizeof(struct jail_simple),
	        [JAIL_FOUND] = sizeof(struct jail_found),
	        [JAIL_USED] = sizeof(struct jail_used),
	        [JAIL_BUDGET] = sizeof(struct jail_budget),
	        [JAIL_LOST] = sizeof(struct jail_lost),
	        [JAIL_HOOKED] = sizeof(struct jail_hooked),
	        [JAIL_OBJECTED] = sizeof(struct jail_objected),
	        [JAIL_PING] = sizeof(struct jail_simple),
	};
	if (h->type >= ARRAY_LEN(sizes) || sizes[h->type] != n) {
		log_warn("agentboxd: message of type %d with %zu bytes ignored", h->type, n);
		return;
	}
	switch (h->type) {
	case JAIL_REPLY:
		got_reply(j, m, fds);
		break;
	case JAIL_EXITED: {
		const struct jail_exited *x = m;
		TELL(j, x->jail, exited, x);
		break;
	}
	case JAIL_GONE:
		got_gone(j, m);
		break;
	case JAIL_POLICIES:
		got_policies(j, &fds[0]);
		break;
	case JAIL_EGRESS:
		got_egress(j, m);
		break;
	case JAIL_LIMIT: {
		const struct jail_limit *x = m;
		TELL(j, x->jail, limit, x);
		break;
	}
	case JAIL_USED:
		got_used(j, m);
		break;
	case JAIL_BUDGET: {
		const struct jail_budget *x = m;
		TELL(j, x->jail, budget, x);
		break;
	}
	case JAIL_LOST: {
		const struct jail_lost *x = m;
		TELL(j, x->jail, lost, x);
		break;
	}
	case JAIL_HOOKED:
		got_hooked(j, m);
		break;
	case JAIL_OBJECTED:
		got_objected(j, m);
		break;
	case JAIL_STOP:
		j->calls.stop(j->daemon);
		break;
	case JAIL_HANDOVER:
		j->calls.handover(j->daemon);
		break;
	case JAIL_FOUND:
		got_found(j, m, fds);
		break;
	case JAIL_PING:
		jails_alive(j);
		break;
	}
}
