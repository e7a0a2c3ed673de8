#include "supervisor/jailed.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "proto/exec.h"
#include "supervisor/daemon.h"
#include "supervisor/jails.h"
#include "supervisor/loop.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

enum {
	READ_BYTES = 64 << 10, /* a pipe's capacity */
	REST_READS = 16, /* after its end, of a pipe that what it left behind may still fill */
};

struct stream {
	struct op op;
	struct jailed *owner;
	int fd; /* owned; -1: at its end */
};

struct jailed {
	struct daemon *d;
	struct jailed_spec spec; /* without what was borrowed for the call */
	struct jail_watch watch;
	bool own; /* the jail was made for it */
	uint64_t jail, exec;
	struct stream out, err;
	struct op timer;
	struct buf said;
	struct jail_exited exit;
	struct err why;               /* code 0: none */
	bool waits;                   /* for the reply of agentboxd */
	bool exited, gone, timed_out; /* what became of it */
	bool telling, told, closed;   /* what becomes of us */
};

static void settle(struct jailed *x);

static void close_stream(struct jailed *x, struct stream *s)
{
	if (s->op.inflight)
		loop_cancel(x->d->loop, &s->op); /* closed when that is told */
	else
		fd_close(take_fd(s->fd));
}

static void stop(struct jailed *x)
{
	if (x->own && x->jail && !x->gone)
		jails_kill(x->d->jails, x->jail);
	else if (!x->own) {
		close_stream(x, &x->out);
		close_stream(x, &x->err);
	}
}

/* ---- its end ---- */

static bool is_over(const struct jailed *x)
{
	if (x->waits)
		return false;
	bool dead =
	        x->jail == 0 || x->gone || (!x->own && (x->exited || x->timed_out || x->why.code));
	return dead && x->out.fd < 0 && x->err.fd < 0;
}

static void tell(struct jailed *x)
{
	char why[JAILS_WHY];
	if (x->exited && x->exit.error && !x->why.code) {
		jails_why(&x->exit, why);
		err_set(&x->why, -x->exit.error, "%s", why);
	}
	const struct jailed_end end = {
	        .err = x->why.code ? &x->why : NULL,
	        .code = x->exit.code,
	        .sig = x->exit.sig,
	        .timed_out = x->timed_out,
	        .lost = !x->exited && !x->timed_out,
	        .said = x->said.p ? x->said.p : "",
	        .nsaid = x->said.len,
	};
	x->told = x->telling = true;
	if (!x->closed)
		x->spec.done(x->spec.ctx, &end);
	x->telling = false;
}

static void bury(struct jailed *x)
{
	jails_unwatch(x->d->jails, &x->watch);
	if (x->timer.inflight) {
		loop_cancel(x->d->loop, &x->timer);
		return;
	}
	buf_done(&x->said);
	free(x);
}

/* Whatever has changed. */
static void settle(struct jailed *x)
{
	if (!is_over(x))
		return;
	if (x->own && x->jail) {
		jails_unwatch(x->d->jails, &x->watch);
		jails_release(x->d->jails, x->jail);
		x->jail = 0;
	}
	if (!x->told)
		tell(x);
	if (x->closed)
		bury(x);
}

void jailed_close(struct jailed *x)
{
	if (!x || x->closed)
		return;
	x->closed = true;
	if (x->telling)
		return;
	if (!x->own && !x->exited)
		x->timed_out = true; /* nobody waits for it any more */
	stop(x);
	settle(x);
}

/* ---- its output ---- */

static void keep_said(struct jailed *x, const char *p, size_t n)
{
	if (n > JAILED_SAID) {
		p += n - JAILED_SAID;
		n = JAILED_SAID;
	}
	(void)buf_put(&x->said, p, n); /* fits: the buffer holds twice that */
	if (x->said.len > JAILED_SAID)
		buf_consume(&x->said, x->said.len - JAILED_SAID);
}

static void take_bytes(struct jailed *x, const struct stream *s, const char *p, size_t n)
{
	if (x->closed || x->why.code)
		return;
	if (s == &x->err)
		keep_said(x, p, n);
	else if (x->spec.out(x->spec.ctx, p, n, &x->why) < 0)
		stop(x);
}

static void readable(struct op *op, int res, uint32_t flags)
{
	struct stream *s = container_of(op, struct stream, op);
	struct jailed *x = s->owner;
	char p[READ_BYTES];
	(void)flags;
	ssize_t n = res < 0 ? 0 : read(s->fd, p, sizeof(p));
	if (n > 0)
		take_bytes(x, s, p, (size_t)n);
	bool more = n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
	bool wanted = x->own || !(x->closed || x->why.code || x->timed_out);
	if (more && wanted)
		loop_poll(x->d->loop, &s->op, s->fd, POLLIN, false, readable);
	else
		fd_close(take_fd(s->fd));
	settle(x);
}

static void open_stream(struct jailed *x, struct stream *s, int fd)
{
	s->fd = fd;
	loop_poll(x->d->loop, &s->op, fd, POLLIN, false, readable);
}

/* ---- what agentboxd tells ---- */

static void on_time(struct op *op, int res, uint32_t flags)
{
	struct jailed *x = container_of(op, struct jailed, timer);
	(void)flags;
	if (res == -ETIME && !x->told) {
		x->timed_out = !x->exited;
		stop(x);
	}
	if (x->told && x->closed)
		bury(x);
	else
		settle(x);
}

/* What it has written is in the pipe; the jail goes on, and so may who else holds it open. */
static void read_rest(struct jailed *x, struct stream *s)
{
	char p[READ_BYTES];
	ssize_t n = 1;
	for (int i = 0; i < REST_READS && n > 0 && s->fd >= 0; i++) {
		n = read(s->fd, p, sizeof(p));
		if (n > 0)
			take_bytes(x, s, p, (size_t)n);
	}
	close_stream(x, s);
}

static void on_exited(struct jail_watch *w, const struct jail_exited *m)
{
	struct jailed *x = container_of(w, struct jailed, watch);
	if (m->exec != x->exec || x->exited)
		return;
	x->exited = true;
	x->exit = *m;
	if (x->own) {
		jails_kill(x->d->jails, x->jail);
	} else {
		read_rest(x, &x->out);
		read_rest(x, &x->err);
	}
	settle(x);
}

static void on_gone(struct jail_watch *w, const struct jail_gone *m)
{
	struct jailed *x = container_of(w, struct jailed, watch);
	(void)m;
	x->gone = true;
	settle(x);
}

static void on_reply(void *ctx, const struct jail_reply *reply, int fds[MSG_FDS])
{
	struct jailed *x = ctx;
	x->waits = false;
	if (reply->err.code) {
		x->why = reply->err;
	} else {
		x->jail = reply->jail;
		x->exec = reply->exec;
		open_stream(x, &x->out, take_fd(fds[1]));
		open_stream(x, &x->err, take_fd(fds[2])); /* fds[0] is closed: no input */
		if (x->closed)
			stop(x);
	}
	settle(x);
}

/* ---- life ---- */

struct jailed *jailed_start(struct daemon *d, const struct jailed_spec *spec, struct err *e)
{
	const struct exec_spec what = {.argv = spec->argv, .env = spec->env, .cwd = spec->cwd};
	int exec = exec_pack(&what, e);
	if (exec < 0)
		return NULL;
	struct jailed *x = xnew(struct jailed);
	x->d = d;
	x->spec = *spec;
	x->own = spec->jail == 0;
	x->out = x->err = (struct stream){.owner = x, .fd = -1};
	x->said = (struct buf)BUF_INIT(2 * (size_t)JAILED_SAID + 1);
	list_init(&x->watch.link);
	x->watch.exited = on_exited;
	x->watch.gone = on_gone;
	x->waits = true;
	if (spec->limit_ms > 0)
		loop_timeout(d->loop, &x->timer, spec->limit_ms, on_time);
	if (x->own) {
		struct jail_make m = *spec->make;
		m.flags |= JAIL_MAKE_EXEC | spec->flags;
		jails_make(d->jails, &m, exec, &x->watch, on_reply, x);
	} else {
		x->jail = spec->jail;
		jails_watch(d->jails, spec->jail, &x->watch);
		jails_exec(d->jails, spec->jail, spec->flags, exec, on_reply, x);
	}
	return x;
}
