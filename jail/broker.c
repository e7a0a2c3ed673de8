/*
 * Theory of operation: a datagram passes three gates, in this order.
 *
 *	1. the table row of its type: size, phase, once, number of descriptors;
 *	2. its fields (check_*): only compared with root's policies and the
 *	   syntax of names, nothing is looked up in the file system;
 *	3. the operation, which owns jails and paths.
 *
 * Gate 1 decides about the peer, gates 2 and 3 only about the request.
 */
#include "jail/broker.h"
#include "base/fd.h"
#include "base/mem.h"
#include "proto/exec.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef int handler_fn(struct broker *b, const void *msg, struct broker_call *c, struct err *e);

/* ---- fields ---- */

static bool below_n(const char *path, bool empty_ok)
{
	if (path[0] == '\0')
		return empty_ok;
	for (const char *p = path; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return false;
	for (const char *at = path;;) {
		size_t n = strcspn(at, "/");
		if (n == 0 || (n == 1 && at[0] == '.') || (n == 2 && at[0] == '.' && at[1] == '.'))
			return false;
		if (at[n] == '\0')
			return true;
		at += n + 1;
	}
}

bool broker_below_ok(const char *path)
{
	return below_n(path, true);
}

bool broker_target_ok(const char *path)
{
	static const char *const roots[] = {"/mnt/", "/workspace/"};
	for (size_t i = 0; i < ARRAY_LEN(roots); i++) {
		size_t n = strlen(roots[i]);
		if (strncmp(path, roots[i], n) == 0)
			return below_n(path + n, false);
	}
	return false;
}

/* One target inside another would make agentboxd create its mount point in a host directory. */
static bool targets_overlap(const char *a, const char *b)
{
	size_t n = strlen(a), k = strlen(b);
	size_t common = n < k ? n : k;
	if (strncmp(a, b, common) != 0)
		return false;
	return n == k || (n < k ? b[n] : a[k]) == '/';
}

static int check_bind(
        const struct policy *p, const struct jail_bind *bind, uint32_t i, struct err *e)
{
	if (!msg_text_ok(bind->below, sizeof(bind->below)) ||
	        !msg_text_ok(bind->target, sizeof(bind->target)))
		return err_set(e, -EINVAL, "bind %u: unterminated text", i);
	if (bind->index >= p->nbindable)
		return err_set(e, -EACCES, "bind %u: policy '%s' lists %u bindable sources, not %u",
		        i, p->name, p->nbindable, bind->index);
	if (bind->writable > 1)
		return err_set(e, -EINVAL, "bind %u: writable is neither 0 nor 1", i);
	if (bind->writable && !p->bindable[bind->index].writable)
		return err_set(e, -EACCES, "bind %u: policy '%s' gives %.100s read-only", i,
		        p->name, p->bindable[bind->index].source);
	if (!broker_below_ok(bind->below))
		return err_set(e, -EINVAL, "bind %u: path below the source is not plain", i);
	if (!broker_target_ok(bind->target))
		return err_set(e, -EINVAL,
		        "bind %u: target must be a plain path below /mnt or "
		        "/workspace",
		        i);
	return 0;
}

static int check_binds(const struct policy *p, const struct jail_make *m, struct err *e)
{
	if (m->nbinds > JAIL_BINDS)
		return err_set(e, -EINVAL, "%u binds, at most %d", m->nbinds, JAIL_BINDS);
	for (uint32_t i = 0; i < m->nbinds; i++) {
		int r = check_bind(p, &m->binds[i], i, e);
		if (r < 0)
			return r;
		for (uint32_t k = 0; k < i; k++)
			if (targets_overlap(m->binds[i].target, m->binds[k].target))
				return err_set(e, -EINVAL,
				        "binds %u and %u: one target is inside "
				        "the other",
				        k, i);
	}
	return 0;
}

static int check_names(const struct jail_make *m, struct broker_make *to, struct err *e)
{
	if (!msg_text_ok(m->session, sizeof(m->session)) || !msg_text_ok(m->run, sizeof(m->run)) ||
	        !msg_text_ok(m->agent, sizeof(m->agent)) ||
	        !msg_text_ok(m->purse.user, sizeof(m->purse.user)))
		return err_set(e, -EINVAL, "unterminated text");
	bool session = m->flags & JAIL_MAKE_SESSION;
	if (session ? !id_valid(m->session, "ses") : m->session[0] != '\0')
		return err_set(e, -EINVAL, "not a session id");
	if (m->agent[0] && !name_valid(m->agent))
		return err_set(e, -EINVAL, "not an agent's name");
	/* Its stdio outlives a supervisor, so it must be found again: by its session. */
	if (m->run[0] && (!session || !id_valid(m->run, "run")))
		return err_set(e, -EINVAL, "not a run of a session");
	to->run = m->run[0] ? m->run : NULL;
	to->session = session ? m->session : NULL;
	to->agent = m->agent[0] ? m->agent : NULL;
	return 0;
}

static int check_exec_flags(uint32_t flags, uint32_t known, struct err *e)
{
	return flags & ~known ? err_set(e, -EINVAL, "unknown flags %#x", flags & ~known) : 0;
}

/* PID 1 maps it: it must not shrink under its hands, nor be something that is not memory. */
static int check_exec_memfd(int fd, struct err *e)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return err_errno(e, "exec request");
	int want = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;
	int seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 && errno != EINVAL && errno != EBADF) /* of other files, and of O_PATH */
		return err_errno(e, "exec request");
	if (!S_ISREG(st.st_mode) || seals < 0 || (seals & want) != want)
		return err_set(e, -EINVAL, "exec request: not a sealed memfd");
	if (st.st_size < (off_t)sizeof(struct exec_head) ||
	        st.st_size > (off_t)sizeof(struct exec_head) + LIMIT_EXEC_BLOB)
		return err_set(e, -E2BIG, "exec request of %lld bytes", (long long)st.st_size);
	return 0;
}

static int check_policy(const struct broker *b, const struct jail_make *m, struct err *e)
{
	const struct policy_set *s = b->policies;
	if (m->policy_generation != s->generation)
		return err_set(e, -ESTALE, "policies were reloaded: generation %llu, not %llu",
		        (unsigned long long)s->generation,
		        (unsigned long long)m->policy_generation);
	if (m->policy >= s->count)
		return err_set(e, -EINVAL, "policy %u of %u", m->policy, s->count);
	return 0;
}

static int check_make(struct broker *b, const struct jail_make *m, struct broker_call *c,
        struct broker_make *to, struct err *e)
{
	int r = check_policy(b, m, e);
	if (r == 0)
		r = check_exec_flags(m->flags,
		        JAIL_MAKE_EXEC | JAIL_MAKE_SESSION | JAIL_MAKE_TTY | JAIL_MAKE_ROOT |
		                JAIL_MAKE_NO_EGRESS,
		        e);
	if (r < 0)
		return r;
	bool exec = m->flags & JAIL_MAKE_EXEC;
	if (exec != (c->exec_fd >= 0) || (!exec && (m->flags & (JAIL_MAKE_TTY | JAIL_MAKE_ROOT))))
		return err_set(e, -EINVAL, "flags %#x and the exec request do not agree", m->flags);
	r = exec ? check_exec_memfd(c->exec_fd, e) : 0;
	if (r < 0)
		return r;
	const struct policy *p = &b->policies->policies[m->policy];
	r = check_names(m, to, e);
	if (r == 0)
		r = check_binds(p, m, e);
	if (r == 0)
		r = limits_narrow(&p->limits, &m->narrow, &to->limits, e);
	if (r < 0)
		return r;
	to->asked = m;
	to->policy = p;
	to->policy_index = m->policy;
	to->flags = m->flags;
	to->binds = m->binds;
	to->nbinds = m->nbinds;
	return 0;
}

/* ---- one handler a type ---- */

static int on_hello(struct broker *b, const void *msg, struct broker_call *c, struct err *e)
{
	(void)msg; /* carries nothing */
	int r = b->ops->hello(b->ctx, c, e);
	if (r == 0)
		b->phase = BROKER_SERVE;
	return r;
}

static int on_make(struct broker *b, const void *msg, struct broker_call *c, struct err *e)
{
	struct broker_make make = {0};
	int r = check_make(b, msg, c, &make, e);
	return r < 0 ? r : b->ops->make(b->ctx, &make, c, e);
}

static int on_exec(struct broker *b, const void *msg, struct broker_call *c, struct err *e)
{
	const struct jail_exec *m = msg;
	int r = check_exec_flags(m->flags, JAIL_MAKE_TTY | JAIL_MAKE_ROOT | JAIL_MAKE_PROGRAM, e);
	if (r == 0)
		r = check_exec_memfd(c->exec_fd, e);
	return r < 0 ? r : b->ops->exec(b->ctx, m, c, e);
}

static int on_signal(struct broker *b, const void *msg, struct broker_call *c, struct err *e)
{
	(void)c;
	const struct jail_signal *m = msg;
	if (m->sig != JAIL_SIGNAL_RESIZE && (m->sig < 1 || m->sig > 64))
		return err_set(e, -EINVAL, "signal %d", m->sig);
	return b->ops->signal(b->ctx, m, e);
}

static int on_kill(struct broker *b, const void *msg, struct broker_call *c, struct err *e)
{
	(void)c;
	return b->ops->kill(b->ctx, ((const struct jail_simple *)msg)->jail, e);
}

static int on_worker(struct broker *b, const void *msg, struct broker_call *c, struct err *e)
{
	return b->ops->worker(b->ctx, ((const struct jail_simple *)msg)->jail, c, e);
}

static int on_release(struct broker *b, const void *msg, struct broker_call *c, struct err *e)
{
	(void)c;
	return b->ops->release(b->ctx, ((const struct jail_simple *)msg)->jail, e);
}

static int on_session_delete(
        struct broker *b, const void *msg, struct broker_call *c, struct err *e)
{
	const struct jail_session *m = msg;
	if (!msg_text_ok(m->session, sizeof(m->session)) || !id_valid(m->session, "ses"))
		return err_set(e, -EINVAL, "not a session id");
	return b->ops->session_delete(b->ctx, m->session, c, e);
}

static int on_doctor(struct broker *b, const void *msg, struct broker_call *c, struct err *e)
{
	(void)msg;
	return b->ops->doctor(b->ctx, c, e);
}

static int on_stats(struct broker *b, const void *msg, struct broker_call *c, struct err *e)
{
	return b->ops->stats(b->ctx, ((const struct jail_simple *)msg)->jail, c, e);
}

static int on_reload(struct broker *b, const void *msg, struct broker_call *c, struct err *e)
{
	(void)msg;
	return b->ops->reload(b->ctx, c, e);
}

static int on_adopt(struct broker *b, const void *msg, struct broker_call *c, struct err *e)
{
	(void)msg;
	return b->ops->adopt(b->ctx, c, e);
}

static int on_stdin_end(struct broker *b, const void *msg, struct broker_call *c, struct err *e)
{
	(void)c;
	return b->ops->stdin_end(b->ctx, ((const struct jail_simple *)msg)->jail, e);
}

static int on_socket(struct broker *b, const void *msg, struct broker_call *c, struct err *e)
{
	const struct jail_socket *m = msg;
	if (m->port == 0 || m->v6 > 1)
		return err_set(e, -EINVAL, "not a port of a loopback address");
	return b->ops->socket(b->ctx, m, c, e);
}

/* ---- the table ---- */

enum { ONCE = 1 << 0, LATER = 1 << 1 };

static const struct row {
	unsigned type;
	const char *name;
	size_t size;
	unsigned phases; /* where it is carried out */
	unsigned fds_min, fds_max;
	unsigned flags;
	handler_fn *handle;
} rows[] = {
#define SERVING (BROKER_SERVE | BROKER_DRAIN)
        {JAIL_HELLO, "HELLO", sizeof(struct jail_simple), BROKER_BOOT, 0, 0, ONCE, on_hello},
        {JAIL_MAKE, "MAKE", sizeof(struct jail_make), BROKER_SERVE, 0, 1, LATER, on_make},
        {JAIL_EXEC, "EXEC", sizeof(struct jail_exec), BROKER_SERVE, 1, 1, 0, on_exec},
        {JAIL_SIGNAL, "SIGNAL", sizeof(struct jail_signal), SERVING, 0, 0, 0, on_signal},
        {JAIL_KILL, "KILL", sizeof(struct jail_simple), SERVING, 0, 0, 0, on_kill},
        {JAIL_WORKER, "WORKER", sizeof(struct jail_simple), SERVING, 0, 0, 0, on_worker},
        {JAIL_RELEASE, "RELEASE", sizeof(struct jail_simple), SERVING, 0, 0, 0, on_release},
        {JAIL_SESSION_DELETE, "SESSION_DELETE", sizeof(struct jail_session), BROKER_SERVE, 0, 0,
                LATER, on_session_delete},
        {JAIL_DOCTOR, "DOCTOR", sizeof(struct jail_simple), SERVING, 0, 0, 0, on_doctor},
        {JAIL_STATS, "STATS", sizeof(struct jail_simple), SERVING, 0, 0, 0, on_stats},
        {JAIL_RELOAD, "RELOAD", sizeof(struct jail_simple), BROKER_SERVE, 0, 0, LATER, on_reload},
        {JAIL_ADOPT, "ADOPT", sizeof(struct jail_simple), BROKER_SERVE, 0, 0, ONCE, on_adopt},
        {JAIL_STDIN_END, "STDIN_END", sizeof(struct jail_simple), SERVING, 0, 0, 0, on_stdin_end},
        {JAIL_SOCKET, "SOCKET", sizeof(struct jail_socket), SERVING, 0, 0, 0, on_socket},
#undef SERVING
};

_Static_assert(sizeof(struct jail_make) <= MSG_MAX && sizeof(struct jail_reply) <= MSG_MAX,
        "every message fits one datagram");

static const struct row *find_row(unsigned type)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].type == type)
			return &rows[i];
	return NULL;
}

const char *broker_request_name(unsigned type)
{
	const struct row *row = find_row(type);
	return row ? row->name : "unknown";
}

/* Gate 1.  NULL with *e: a violation. */
static const struct row *admit(
        struct broker *b, const struct msg_head *h, size_t n, unsigned nfds, struct err *e)
{
	const struct row *row = find_row(h->type);
	if (!row) {
		(void)err_set(e, -EPERM, "unknown request %u", h->type);
		return NULL;
	}
	uint32_t bit = (uint32_t)1 << (row - rows);
	bool too_early = b->phase == BROKER_BOOT && !(row->phases & BROKER_BOOT);
	if (n != row->size)
		(void)err_set(e, -EPERM, "%s of %zu bytes, not %zu", row->name, n, row->size);
	else if (nfds < row->fds_min || nfds > row->fds_max)
		(void)err_set(e, -EPERM, "%s with %u descriptors", row->name, nfds);
	else if (b->once & bit)
		(void)err_set(e, -EPERM, "second %s", row->name);
	else if (too_early)
		(void)err_set(e, -EPERM, "%s before HELLO", row->name);
	else {
		b->once |= row->flags & ONCE ? bit : 0;
		return row;
	}
	return NULL;
}

static unsigned take_fds(int fds[MSG_FDS], struct broker_call *call)
{
	unsigned n = 0;
	for (int i = 0; i < MSG_FDS; i++) {
		if (fds[i] < 0)
			continue;
		if (n++ == 0)
			call->exec_fd = fds[i];
		else
			fd_close(fds[i]);
		fds[i] = -1;
	}
	return n;
}

void broker_init(struct broker *b, const struct broker_ops *ops, void *ctx,
        const struct policy_set *policies)
{
	*b = (struct broker){.ops = ops, .ctx = ctx, .policies = policies, .phase = BROKER_BOOT};
}

void broker_drain(struct broker *b)
{
	b->phase = BROKER_DRAIN;
}

enum broker_verdict broker_receive(struct broker *b, const void *msg, size_t n, int fds[MSG_FDS],
        struct broker_call *call, struct err *e)
{
	memset(call, 0, sizeof(*call));
	call->exec_fd = call->fds[0] = call->fds[1] = call->fds[2] = -1;
	unsigned nfds = take_fds(fds, call);
	const struct msg_head *h = msg;
	const struct row *row = admit(b, h, n, nfds, e);
	if (!row) {
		fd_close(take_fd(call->exec_fd));
		return BROKER_VIOLATION;
	}
	call->reply.head.type = JAIL_REPLY;
	call->reply.head.req = h->req;
	struct err why = {0};
	/* A request that crossed JAIL_STOP on its way is no fault of the supervisor. */
	int r = row->phases & b->phase
	                ? row->handle(b, msg, call, &why)
	                : err_set(&why, -ESHUTDOWN, "%s refused: agentbox is stopping", row->name);
	if (r < 0) {
		call->reply.err = why;
		call->reply.err.code = r;
	}
	fd_close(take_fd(call->exec_fd));
	return r == -EINPROGRESS && row->flags & LATER ? BROKER_LATER : BROKER_REPLY;
}
