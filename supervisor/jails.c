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

#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "proto/init.h"
#include "supervisor/daemon.h"
#include "supervisor/jails_private.h"
#include "supervisor/loop.h"
#include "supervisor/policies.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

enum { RECV_BATCH = 64 }; /* datagrams a turn, so that agentboxd cannot hold the loop */

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
	for (size_t i = 0; i < JAILS_BUCKETS; i++)
		list_init(&j->buckets[i]);
	j->hook.run = tell_lost;
	loop_hook(d->loop, &j->hook);
	return j;
}

void jails_request_free(struct request *q)
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
		jails_request_free(q);
	list_for_each (q, &j->pending, struct request, link)
		jails_request_free(q);
	list_for_each (x, &j->live, struct jail_live, link)
		free(x);
	free(j);
}

/* ---- those that live ---- */

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

void jails_lose(struct jails *j)
{
	if (j->lost)
		return;
	j->lost = true;
	loop_again(j->daemon->loop);
}

static void writable(struct op *op, int res, uint32_t flags);

void jails_flush(struct jails *j)
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
			jails_lose(j);
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
		jails_lose(j);
	else
		jails_flush(j);
}

static void note_policy(struct jails *j, struct request *q)
{
	const struct policy_set *set = policies_set(j->daemon->policies);
	const struct jail_make *m = jails_make_of(q);
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
	jails_flush(j);
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

void jails_alive(struct jails *j)
{
	submit_simple(j, JAIL_ALIVE, 0, NULL, NULL);
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
	jails_lose(j);
}

void jails_adopt(struct jails *j)
{
	submit_simple(j, JAIL_ADOPT, 0, got_adopted, j);
}

void jails_stdin_end(struct jails *j, uint64_t jail)
{
	submit_simple(j, JAIL_STDIN_END, jail, NULL, NULL);
}

void jails_rest(struct jails *j, uint64_t jail, jails_reply_fn *done, void *ctx)
{
	submit_simple(j, JAIL_REST, jail, done, ctx);
}

void jails_claim(struct jails *j, struct jail_claim *m, jails_reply_fn *done, void *ctx)
{
	submit(j, JAIL_CLAIM, m, sizeof(*m), -1, done, ctx, NULL);
}

void jails_socket(
        struct jails *j, uint64_t jail, uint16_t port, bool v6, jails_reply_fn *done, void *ctx)
{
	struct jail_socket m = {.jail = jail, .port = port, .v6 = v6};
	submit(j, JAIL_SOCKET, &m, sizeof(m), -1, done, ctx, NULL);
}

void jails_hook(
        struct jails *j, const struct jail_hook *m, int body_fd, jails_reply_fn *done, void *ctx)
{
	submit(j, JAIL_HOOK, m, sizeof(*m), body_fd, done, ctx, NULL);
}

void jails_object(
        struct jails *j, const struct jail_object *m, int fd, jails_reply_fn *done, void *ctx)
{
	submit(j, JAIL_OBJECT, m, sizeof(*m), fd, done, ctx, NULL);
}

void jails_snapshot(struct jails *j, const struct jail_snapshot_ask *m, const char *name,
        jails_reply_fn *done, void *ctx)
{
	struct jail_snapshot_ask ask = *m;
	(void)str_copy(ask.name, sizeof(ask.name), name); /* checked by agentboxd */
	submit(j, JAIL_SNAPSHOT, &ask, sizeof(ask), -1, done, ctx, NULL);
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
	list_append(&j->buckets[jail % JAILS_BUCKETS], &w->link);
}

void jails_unwatch(struct jails *j, struct jail_watch *w)
{
	(void)j;
	if (w->link.next)
		list_remove(&w->link);
}

/* ---- receiving ---- */

static void readable(struct op *op, int res, uint32_t flags)
{
	(void)flags;
	struct jails *j = container_of(op, struct jails, in);
	if (res < 0) {
		jails_lose(j);
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
			jails_lose(j);
			return;
		}
		jails_dispatch(j, m, (size_t)n, fds);
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
	if (msg_text_ok(r->agents, sizeof(r->agents)))
		memcpy(root->agents, r->agents, sizeof(root->agents));
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
		jails_lose(j);
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
