/*
 * Theory of operation.  One SOCK_SEQPACKET to agentboxd.  Requests are sent as
 * they are made while the socket takes them, else they wait in `outbox` until
 * it is writable.  Every request stays in `pending` until its reply.  When the
 * socket ends, every pending request gets one reply of -ECONNRESET from the
 * hook, so that callers have one path for all failures.
 *
 * A jail that was asked for while agentboxd read its policies again is asked for
 * once more, under the policy that has the name now.
 */
#include "supervisor/jails.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "proto/init.h"
#include "supervisor/daemon.h"
#include "supervisor/egress_feed.h"
#include "supervisor/egress_news.h"
#include "supervisor/loop.h"
#include "supervisor/policies.h"
#include "supervisor/purses.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

enum {
	BUCKETS = 512,  /* watches by jail number */
	RECV_BATCH = 64 /* datagrams a turn, so that agentboxd cannot hold the loop */
};

struct request {
	struct list link;   /* in jails.outbox until sent, then in jails.pending */
	struct msg_head *m; /* owned: the whole struct */
	size_t size;
	int fd;               /* owned until sent, of MAKE until the reply; or -1 */
	jails_reply_fn *done; /* may be NULL */
	void *ctx;
	struct jail_watch *watch;  /* of MAKE, or NULL */
	char policy[NAME_MAX_LEN]; /* of MAKE: the name of its index */
};

struct jails {
	struct daemon *daemon; /* borrowed */
	int sock;
	uint64_t last_req;
	struct list outbox, pending;
	struct list live;             /* jail_live.link */
	struct list buckets[BUCKETS]; /* jail_watch.link */
	struct op in, out;
	struct loop_hook hook;
	bool lost, told;
	bool refused; /* lost because of its policies */
	struct jails_calls calls;
	struct jails_root root;
};

static void tell_lost(struct loop_hook *h);

struct jails *jails_new(struct daemon *d, int sock, const struct jails_calls *calls)
{
	struct jails *j = xnew(struct jails);
	j->daemon = d;
	j->sock = sock;
	j->calls = *calls;
	list_init(&j->outbox);
	list_init(&j->pending);
	list_init(&j->live);
	for (size_t i = 0; i < BUCKETS; i++)
		list_init(&j->buckets[i]);
	j->hook.run = tell_lost;
	loop_hook(d->loop, &j->hook);
	return j;
}

static void request_free(struct request *q)
{
	list_remove(&q->link);
	fd_close(q->fd);
	free(q->m);
	free(q);
}

void jails_free(struct jails *j)
{
	if (!j)
		return;
	list_for_each (q, &j->outbox, struct request, link)
		request_free(q);
	list_for_each (q, &j->pending, struct request, link)
		request_free(q);
	list_for_each (x, &j->live, struct jail_live, link)
		free(x);
	free(j);
}

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

const struct jail_live *jails_find(const struct jails *j, uint64_t jail)
{
	list_for_each (x, &j->live, struct jail_live, link)
		if (x->jail == jail)
			return x;
	return NULL;
}

void jails_each(struct jails *j, void (*each)(void *ctx, const struct jail_live *x), void *ctx)
{
	list_for_each (x, &j->live, struct jail_live, link)
		each(ctx, x);
}

/* ---- sending ---- */

static void lose(struct jails *j)
{
	if (j->lost)
		return;
	j->lost = true;
	loop_again(j->daemon->loop);
}

static void writable(struct op *op, int res, uint32_t flags);

static void flush(struct jails *j)
{
	while (!j->lost && !list_empty(&j->outbox)) {
		struct request *q = list_first(&j->outbox, struct request, link);
		int rc = msg_send(j->sock, q->m, q->size, &q->fd, q->fd >= 0);
		if (rc == -EAGAIN) {
			if (!j->out.inflight)
				loop_poll(j->daemon->loop, &j->out, j->sock, POLLOUT, false,
				        writable);
			return;
		}
		if (rc < 0) {
			log_err("agentboxd: send: %s", strerror(-rc));
			lose(j);
			return;
		}
		if (q->m->type != JAIL_MAKE)
			fd_close(take_fd(q->fd));
		list_remove(&q->link);
		list_append(&j->pending, &q->link);
	}
}

static void writable(struct op *op, int res, uint32_t flags)
{
	(void)flags;
	struct jails *j = container_of(op, struct jails, out);
	if (res < 0)
		lose(j);
	else
		flush(j);
}

static struct jail_make *make_of(struct request *q)
{
	return (struct jail_make *)(void *)q->m;
}

static void note_policy(struct jails *j, struct request *q)
{
	const struct policy_set *set = policies_set(j->daemon->policies);
	const struct jail_make *m = make_of(q);
	if (set && m->policy < set->count)
		(void)str_copy(q->policy, sizeof(q->policy), set->policies[m->policy].name);
}

static void submit(struct jails *j, enum jail_msg type, const void *m, size_t size, int fd,
        jails_reply_fn *done, void *ctx, struct jail_watch *w)
{
	struct request *q = xnew(struct request);
	q->m = xcalloc(1, size);
	memcpy(q->m, m, size);
	q->m->type = (uint16_t)type;
	q->m->req = ++j->last_req;
	q->size = size;
	q->fd = fd;
	q->done = done;
	q->ctx = ctx;
	q->watch = w;
	if (type == JAIL_MAKE)
		note_policy(j, q);
	list_append(&j->outbox, &q->link);
	flush(j);
}

static void submit_simple(
        struct jails *j, enum jail_msg type, uint64_t jail, jails_reply_fn *done, void *ctx)
{
	struct jail_simple m = {.jail = jail};
	submit(j, type, &m, sizeof(m), -1, done, ctx, NULL);
}

void jails_make(struct jails *j, struct jail_make *m, int exec_fd, struct jail_watch *w,
        jails_reply_fn *done, void *ctx)
{
	submit(j, JAIL_MAKE, m, sizeof(*m), exec_fd, done, ctx, w);
}

void jails_exec(struct jails *j, uint64_t jail, uint32_t flags, int exec_fd, jails_reply_fn *done,
        void *ctx)
{
	struct jail_exec m = {.jail = jail, .flags = flags};
	submit(j, JAIL_EXEC, &m, sizeof(m), exec_fd, done, ctx, NULL);
}

void jails_signal(struct jails *j, uint64_t jail, uint64_t exec, int sig)
{
	struct jail_signal m = {.jail = jail, .exec = exec, .sig = sig};
	submit(j, JAIL_SIGNAL, &m, sizeof(m), -1, NULL, NULL, NULL);
}

void jails_kill(struct jails *j, uint64_t jail)
{
	submit_simple(j, JAIL_KILL, jail, NULL, NULL);
}

void jails_worker(struct jails *j, uint64_t jail, jails_reply_fn *done, void *ctx)
{
	submit_simple(j, JAIL_WORKER, jail, done, ctx);
}

void jails_release(struct jails *j, uint64_t jail)
{
	submit_simple(j, JAIL_RELEASE, jail, NULL, NULL);
}

void jails_stats(struct jails *j, uint64_t jail, jails_reply_fn *done, void *ctx)
{
	submit_simple(j, JAIL_STATS, jail, done, ctx);
}

void jails_doctor(struct jails *j, jails_reply_fn *done, void *ctx)
{
	submit_simple(j, JAIL_DOCTOR, 0, done, ctx);
}

void jails_reload(struct jails *j, jails_reply_fn *done, void *ctx)
{
	submit_simple(j, JAIL_RELOAD, 0, done, ctx);
}

static void got_adopted(void *ctx, const struct jail_reply *r, int fds[MSG_FDS])
{
	struct jails *j = ctx;
	(void)fds;
	if (r->err.code == 0) {
		j->calls.adopted(j->daemon, r->former);
		return;
	}
	log_err("what another supervisor left: %s", r->err.text);
	j->refused = true;
	lose(j);
}

void jails_adopt(struct jails *j)
{
	submit_simple(j, JAIL_ADOPT, 0, got_adopted, j);
}

void jails_stdin_end(struct jails *j, uint64_t jail)
{
	submit_simple(j, JAIL_STDIN_END, jail, NULL, NULL);
}

void jails_socket(
        struct jails *j, uint64_t jail, uint16_t port, bool v6, jails_reply_fn *done, void *ctx)
{
	struct jail_socket m = {.jail = jail, .port = port, .v6 = v6};
	submit(j, JAIL_SOCKET, &m, sizeof(m), -1, done, ctx, NULL);
}

void jails_session_delete(struct jails *j, const char *session, jails_reply_fn *done, void *ctx)
{
	struct jail_session m = {0};
	(void)str_copy(m.session, sizeof(m.session), session); /* checked by agentboxd */
	submit(j, JAIL_SESSION_DELETE, &m, sizeof(m), -1, done, ctx, NULL);
}

/* ---- a process that could not be started ---- */

void jails_why(const struct jail_exited *x, char ret[JAILS_WHY])
{
	static const char *const stages[] = {
#define STAGE_NAME(sym, name) [INIT_STAGE_##sym] = (name),
	        INIT_STAGES(STAGE_NAME)
#undef STAGE_NAME
	};
	if (x->stage == INIT_STAGE_REQUEST && x->error == ETIMEDOUT) {
		(void)snprintf(ret, JAILS_WHY,
		        "PID 1 of the jail takes no request; is the jail stopped or frozen?");
		return;
	}
	bool known = x->stage >= 0 && x->stage < INIT_STAGE_COUNT;
	bool own = x->stage == INIT_STAGE_EXEC || x->stage == INIT_STAGE_NONE;
	(void)snprintf(ret, JAILS_WHY, "%s%s%s",
	        own     ? ""
	        : known ? stages[x->stage]
	                : "unknown step",
	        own ? "" : ": ", strerror(x->error));
}

int jails_start_code(const struct jail_exited *x)
{
	return x->error == ENOENT && x->stage == INIT_STAGE_EXEC ? 127 : 126;
}

/* ---- watching ---- */

void jails_resources(struct jw *w, const struct jail_resources *x)
{
	jw_open(w, "resources", '{');
	jw_int(w, "cpuMs", (int64_t)(x->cpu_us / 1000));
	jw_int(w, "memoryPeakBytes", (int64_t)x->memory_peak_bytes);
	jw_int(w, "pidsPeak", (int64_t)x->pids_peak);
	jw_int(w, "ioReadBytes", (int64_t)x->io_read_bytes);
	jw_int(w, "ioWriteBytes", (int64_t)x->io_write_bytes);
	jw_int(w, "egressBytes", (int64_t)x->egress_bytes);
	jw_int(w, "diskPeakBytes", (int64_t)x->disk_peak_bytes);
	jw_int(w, "inodesPeak", (int64_t)x->inodes_peak);
	jw_close(w, '}');
}

void jails_watch(struct jails *j, uint64_t jail, struct jail_watch *w)
{
	w->jail = jail;
	list_append(&j->buckets[jail % BUCKETS], &w->link);
}

void jails_unwatch(struct jails *j, struct jail_watch *w)
{
	(void)j;
	if (w->link.next)
		list_remove(&w->link);
}

/* A callback may remove any watch and free its owner: the jail's watches are moved to a list of
 * their own, and each goes back to its bucket before it is called. */
#define TELL(j, number, member, message)                                                           \
	do {                                                                                       \
		struct list mine_;                                                                 \
		list_init(&mine_);                                                                 \
		list_for_each (w_, &(j)->buckets[(number) % BUCKETS], struct jail_watch, link)     \
			if (w_->jail == (number)) {                                                \
				list_remove(&w_->link);                                            \
				list_append(&mine_, &w_->link);                                    \
			}                                                                          \
		while (!list_empty(&mine_)) {                                                      \
			struct jail_watch *w_ = list_entry(mine_.next, struct jail_watch, link);   \
			list_remove(&w_->link);                                                    \
			list_append(&(j)->buckets[(number) % BUCKETS], &w_->link);                 \
			if (w_->member)                                                            \
				w_->member(w_, message);                                           \
		}                                                                                  \
	} while (0)

/* ---- receiving ---- */

/* Made for policies that agentboxd does not have any more: true where it is asked again.  The next
 * set comes before that reply. */
static bool made_anew(struct jails *j, struct request *q, struct jail_reply *r)
{
	const struct policy *p;
	struct jail_make *m = make_of(q);
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
	flush(j);
	return true;
}

static void reply(struct jails *j, struct request *q, struct jail_reply *r, int fds[MSG_FDS])
{
	if (made_anew(j, q, r))
		return;
	list_remove(&q->link);
	if (q->m->type == JAIL_MAKE && r->err.code == 0) {
		live_add(j, make_of(q), r->jail);
		if (q->watch)
			jails_watch(j, r->jail, q->watch);
	}
	if (q->done)
		q->done(q->ctx, r, fds);
	else if (r->err.code && q->m->type != JAIL_SIGNAL && q->m->type != JAIL_KILL &&
	         q->m->type != JAIL_STDIN_END)
		log_warn("agentboxd: request %d: %s", q->m->type, r->err.text);
	request_free(q);
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
	lose(j);
}

/* A later set that does not check leaves the one in use; without a first one there is nothing to
 * serve, and agentboxd must see that. */
static void got_policies(struct jails *j, int *fd)
{
	struct err e;
	if (policies_load(j->daemon->policies, take_fd(*fd), &e) == 0) {
		jails_doctor(j, got_host, j);
		return;
	}
	log_err("policies: %s", e.text);
	if (policies_ready(j->daemon->policies))
		return;
	j->refused = true;
	lose(j);
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

static void got_egress(struct jails *j, const struct jail_egress *x)
{
	struct stats *s = &j->daemon->stats;
	if (x->verdict == EGRESS_DENIED)
		s->egress_denied += x->times;
	else
		s->egress_allowed += x->times;
	s->egress_bytes += x->bytes_out;
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
	}
	j->calls.found(j->daemon, x, fds);
}

static void dispatch(struct jails *j, void *m, size_t n, int fds[MSG_FDS])
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
	case JAIL_EGRESS: {
		struct jail_egress *x = m;
		x->host[sizeof(x->host) - 1] = '\0';
		x->policy[sizeof(x->policy) - 1] = '\0';
		x->rule[sizeof(x->rule) - 1] = '\0';
		x->reason[sizeof(x->reason) - 1] = '\0';
		got_egress(j, x);
		break;
	}
	case JAIL_LIMIT: {
		const struct jail_limit *x = m;
		TELL(j, x->jail, limit, x);
		break;
	}
	case JAIL_USED: {
		const struct jail_used *x = m;
		purses_save(j->daemon, x);
		TELL(j, x->jail, used, x);
		break;
	}
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
	case JAIL_STOP:
		j->calls.stop(j->daemon);
		break;
	case JAIL_HANDOVER:
		j->calls.handover(j->daemon);
		break;
	case JAIL_FOUND:
		got_found(j, m, fds);
		break;
	}
}

static void readable(struct op *op, int res, uint32_t flags)
{
	(void)flags;
	struct jails *j = container_of(op, struct jails, in);
	if (res < 0) {
		lose(j);
		return;
	}
	for (int i = 0; i < RECV_BATCH; i++) {
		_Alignas(8) char m[MSG_MAX];
		int fds[MSG_FDS];
		int n = msg_recv(j->sock, m, fds);
		if (n == -EAGAIN)
			break;
		if (n == -EBADMSG)
			continue;
		if (n <= 0) {
			lose(j);
			return;
		}
		dispatch(j, m, (size_t)n, fds);
		for (int k = 0; k < MSG_FDS; k++)
			fd_close(fds[k]);
	}
	loop_poll(j->daemon->loop, &j->in, j->sock, POLLIN, false, readable);
}

static void got_hello(void *ctx, const struct jail_reply *r, int fds[MSG_FDS])
{
	struct jails *j = ctx;
	(void)fds;
	struct jails_root *root = &j->root;
	if (msg_text_ok(r->version, sizeof(r->version)))
		memcpy(root->version, r->version, sizeof(root->version));
	if (msg_text_ok(r->stays, sizeof(r->stays)))
		memcpy(root->stays, r->stays, sizeof(root->stays));
	root->since_ms = r->since_ms;
}

const struct jails_root *jails_root(const struct jails *j)
{
	return &j->root;
}

void jails_start(struct jails *j)
{
	int rc = fd_set_nonblock(j->sock, 1);
	if (rc < 0) {
		log_err("agentboxd: %s", strerror(-rc));
		lose(j);
		return;
	}
	loop_poll(j->daemon->loop, &j->in, j->sock, POLLIN, false, readable);
	submit_simple(j, JAIL_HELLO, 0, got_hello, j);
}

/* The hook: nothing to do until the socket ended.  Requests stay without a reply then: one that
 * said "failed" would become a run's result, while the next start says that it was interrupted. */
static void tell_lost(struct loop_hook *h)
{
	struct jails *j = container_of(h, struct jails, hook);
	if (!j->lost || j->told)
		return;
	j->told = true;
	const char *why = j->refused ? "there are no policies to serve"
	                             : "the connection to agentboxd has ended";
	j->calls.lost(j->daemon, why);
}
