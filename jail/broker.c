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
#include "jail/keeps.h"
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
	        !msg_text_ok(m->snapshot, sizeof(m->snapshot)) ||
	        !msg_text_ok(m->template, sizeof(m->template)) ||
	        !msg_text_ok(m->purse.user, sizeof(m->purse.user)))
		return err_set(e, -EINVAL, "unterminated text");
	if (!keeps_ok(&m->keeps) || (m->keeps.n && !(m->flags & JAIL_MAKE_SESSION)))
		return err_set(e, -EINVAL, "paths to keep that are not plain, or no session");
	if (!outlets_ok(&m->outlets))
		return err_set(e, -EINVAL, "hosts or secrets beyond their bounds");
	bool session = m->flags & JAIL_MAKE_SESSION;
	if (session ? !id_valid(m->session, "ses") : m->session[0] != '\0')
		return err_set(e, -EINVAL, "not a session id");
	if (m->agent[0] && !name_valid(m->agent))
		return err_set(e, -EINVAL, "not an agent's name");
	if (m->snapshot[0] && (!session || !name_valid(m->snapshot)))
		return err_set(e, -EINVAL, "not a snapshot's name, or no session for it");
	if (m->template[0] && (!session || !name_valid(m->template)))
		return err_set(e, -EINVAL, "not a template's name, or no session for it");
	/* Its stdio outlives a supervisor, so it must be found again: by its session. */
	if (m->run[0] && (!session || !id_valid(m->run, "run")))
		return err_set(e, -EINVAL, "not a run of a session");
	to->run = m->run[0] ? m->run : NULL;
	to->session = session ? m->session : NULL;
	to->agent = m->agent[0] ? m->agent : NULL;
	to->snapshot = m->snapshot[0] ? m->snapshot : NULL;
	to->template = m->template[0] ? m->template : NULL;
	return 0;
}

static int check_exec_flags(uint32_t flags, uint32_t known, struct err *e)
{
	return flags & ~known ? err_set(e, -EINVAL, "unknown flags %#x", flags & ~known) : 0;
}

/* Whoever reads it later: it must not shrink under their hands, nor be something that is not
 * memory. */
static int check_memfd(int fd, const char *what, off_t least, off_t most, struct err *e)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return err_errno(e, "%s", what);
	int want = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;
	int seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 && errno != EINVAL && errno != EBADF) /* of other files, and of O_PATH */
		return err_errno(e, "%s", what);
	if (!S_ISREG(st.st_mode) || seals < 0 || (seals & want) != want)
		return err_set(e, -EINVAL, "%s: not a sealed memfd", what);
	if (st.st_size < least || st.st_size > most)
		return err_set(e, -E2BIG, "%s of %lld bytes", what, (long long)st.st_size);
	return 0;
}

static int check_exec_memfd(int fd, struct err *e)
{
	return check_memfd(fd, "exec request", (off_t)sizeof(struct exec_head),
	        (off_t)sizeof(struct exec_head) + LIMIT_EXEC_BLOB, e);
}

static int check_generation(const struct broker *b, uint64_t generation, struct err *e)
{
	if (generation == b->policies->generation)
		return 0;
	return err_set(e, -ESTALE, "policies were reloaded: generation %llu, not %llu",
	        (unsigned long long)b->policies->generation, (unsigned long long)generation);
}

static int check_policy(const struct broker *b, const struct jail_make *m, struct err *e)
{
	const struct policy_set *s = b->policies;
	int r = check_generation(b, m->policy_generation, e);
	if (r == 0 && m->policy >= s->count)
		r = err_set(e, -EINVAL, "policy %u of %u", m->policy, s->count);
	return r;
}

static int check_make(struct broker *b, const struct jail_make *m, struct broker_call *c,
        struct broker_make *to, struct err *e)
{
	int r = check_policy(b, m, e);
	if (r == 0)
		r = check_exec_flags(m->flags,
		        JAIL_MAKE_EXEC | JAIL_MAKE_SESSION | JAIL_MAKE_TTY | JAIL_MAKE_ROOT |
		                JAIL_MAKE_NO_EGRESS | JAIL_MAKE_ACP | JAIL_MAKE_SECRETS,
		        e);
	if (r < 0)
		return r;
	bool exec = m->flags & JAIL_MAKE_EXEC;
	uint32_t of_exec = JAIL_MAKE_TTY | JAIL_MAKE_ROOT | JAIL_MAKE_ACP | JAIL_MAKE_SECRETS;
	if (exec != (c->exec_fd >= 0) || (!exec && (m->flags & of_exec)))
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
	int r = check_exec_flags(m->flags,
	        JAIL_MAKE_TTY | JAIL_MAKE_ROOT | JAIL_MAKE_PROGRAM | JAIL_MAKE_ACP |
	                JAIL_MAKE_SECRETS,
	        e);
	if (r == 0 && (m->flags & JAIL_MAKE_SECRETS) && !(m->flags & JAIL_MAKE_PROGRAM))
		r = err_set(e, -EINVAL, "secrets are for the program of a run");
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

static int on_rest(struct broker *b, const void *msg, struct broker_call *c, struct err *e)
{
	return b->ops->rest(b->ctx, ((const struct jail_simple *)msg)->jail, c, e);
}

static int on_claim(struct broker *b, const void *msg, struct broker_call *c, struct err *e)
{
	(void)c;
	const struct jail_claim *m = msg;
	if (!msg_text_ok(m->session, sizeof(m->session)) || !id_valid(m->session, "ses") ||
	        !msg_text_ok(m->run, sizeof(m->run)) || !id_valid(m->run, "run") ||
	        !msg_text_ok(m->purse.user, sizeof(m->purse.user)))
		return err_set(e, -EINVAL, "not a run of a session");
	return b->ops->claim(b->ctx, m, e);
}

static int on_snapshot(struct broker *b, const void *msg, struct broker_call *c, struct err *e)
{
	const struct jail_snapshot_ask *m = msg;
	if (!msg_text_ok(m->name, sizeof(m->name)) || !msg_text_ok(m->session, sizeof(m->session)))
		return err_set(e, -EINVAL, "unterminated text");
	if (m->op >= JAIL_SNAPSHOT_OPS || m->flags & ~(uint32_t)JAIL_SNAPSHOT_REPLACE)
		return err_set(e, -EINVAL, "operation %u, flags %#x", m->op, m->flags);
	bool all = m->op == JAIL_SNAPSHOT_LIST && !m->name[0];
	if (!all && !name_valid(m->name))
		return err_set(e, -EINVAL, "not a snapshot's name");
	bool create = m->op == JAIL_SNAPSHOT_CREATE;
	if (create ? !id_valid(m->session, "ses") : m->session[0] != '\0')
		return err_set(e, -EINVAL, "not a session id");
	return b->ops->snapshot(b->ctx, m, c, e);
}

static int on_hook(struct broker *b, const void *msg, struct broker_call *c, struct err *e)
{
	const struct jail_hook *m = msg;
	uint32_t n = b->policies->config.nwebhooks;
	bool traces = m->hook == JAIL_HOOK_TRACES && b->policies->config.otlp.to.url[0];
	int r = check_generation(b, m->policy_generation, e);
	if (r == 0 && m->hook >= n && !traces)
		r = err_set(e, -EINVAL, "webhook %u of %u", m->hook, n);
	if (r == 0 && !jail_hook_id_ok(m->id))
		r = err_set(e, -EINVAL, "not the id of an event");
	if (r == 0)
		r = check_memfd(c->exec_fd, "a webhook's body", 1, JAIL_HOOK_BODY, e);
	return r < 0 ? r : b->ops->hook(b->ctx, m, c, e);
}

/* A file that is only read, of at least so many bytes. */
static int check_artifact(int fd, uint64_t bytes, struct err *e)
{
	struct stat st;
	int flags = fcntl(fd, F_GETFL);
	if (fstat(fd, &st) < 0 || flags < 0)
		return err_errno(e, "an artifact");
	if (!S_ISREG(st.st_mode) || (flags & O_ACCMODE) != O_RDONLY)
		return err_set(e, -EINVAL, "an artifact is a file that is only read");
	return bytes <= (uint64_t)st.st_size
	               ? 0
	               : err_set(e, -EINVAL, "an artifact of %llu bytes has only %lld",
	                         (unsigned long long)bytes, (long long)st.st_size);
}

static int on_object(struct broker *b, const void *msg, struct broker_call *c, struct err *e)
{
	const struct jail_object *m = msg;
	int r = check_generation(b, m->policy_generation, e);
	if (r == 0 && !b->policies->config.bucket.on)
		r = err_set(e, -ESTALE, "agentboxd.yaml has no `artifacts.store: s3`");
	if (r == 0 && (m->op >= JAIL_OBJECT_OPS || m->number == 0 ||
	                      (m->op == JAIL_OBJECT_PUT) != (c->exec_fd >= 0)))
		r = err_set(e, -EINVAL, "not a request for an artifact");
	if (r == 0 && (!jail_object_key_ok(m->key) || !msg_text_ok(m->sha256, sizeof(m->sha256)) ||
	                      !msg_text_ok(m->type, sizeof(m->type)) || !form_printable(m->type)))
		r = err_set(e, -EINVAL, "not the key of an artifact");
	if (r == 0 && m->op == JAIL_OBJECT_PUT)
		r = check_artifact(c->exec_fd, m->bytes, e);
	return r < 0 ? r : b->ops->object(b->ctx, m, c, e);
}

/* That it has come is all there is to know. */
static int on_alive(struct broker *b, const void *msg, struct broker_call *c, struct err *e)
{
	(void)b, (void)msg, (void)c, (void)e;
	return 0;
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
        {JAIL_REST, "REST", sizeof(struct jail_simple), BROKER_SERVE, 0, 0, LATER, on_rest},
        {JAIL_CLAIM, "CLAIM", sizeof(struct jail_claim), BROKER_SERVE, 0, 0, 0, on_claim},
        {JAIL_SNAPSHOT, "SNAPSHOT", sizeof(struct jail_snapshot_ask), BROKER_SERVE, 0, 0, LATER,
                on_snapshot},
        {JAIL_HOOK, "HOOK", sizeof(struct jail_hook), BROKER_SERVE, 1, 1, 0, on_hook},
        {JAIL_OBJECT, "OBJECT", sizeof(struct jail_object), BROKER_SERVE, 0, 1, 0, on_object},
        {JAIL_ALIVE, "ALIVE", sizeof(struct jail_simple), SERVING, 0, 0, 0, on_alive},
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
