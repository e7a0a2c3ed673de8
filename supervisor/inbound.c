#include "supervisor/inbound.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "supervisor/daemon.h"
#include "supervisor/jails.h"
#include "supervisor/loop.h"
#include "supervisor/policies.h"
#include "supervisor/sessions.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { CONNECT_MS = 5000 }; /* a listener whose queue is full: some tries of the kernel */

struct inbound {
	struct list link; /* in daemon.inbounds */
	struct daemon *d;
	struct jail_watch watch;
	uint64_t jail;
	unsigned port;
	struct inbound_calls calls;
	int fd; /* owned, -1: none yet */
	bool v6;
	bool asked;  /* agentboxd has yet to answer */
	bool told;   /* `opened` was called */
	bool closed; /* nobody waits: freed when nothing of it is under way */
	struct op ready, late;
};

static void bury(struct inbound *c)
{
	if (!c->closed || c->asked)
		return;
	if (c->ready.inflight || c->late.inflight) {
		loop_cancel(c->d->loop, &c->ready);
		loop_cancel(c->d->loop, &c->late);
		return;
	}
	fd_close(c->fd);
	free(c);
}

static void tell(struct inbound *c, const struct err *e)
{
	if (c->told || c->closed)
		return;
	c->told = true;
	loop_cancel(c->d->loop, &c->late);
	loop_cancel(c->d->loop, &c->ready);
	c->calls.opened(c->calls.ctx, e ? -1 : c->fd, e);
}

static void ask(struct inbound *c);

/* One address after the other: programs listen on one of them, or on both. */
static void refused(struct inbound *c, int code)
{
	struct err e;
	if (!c->v6) {
		c->v6 = true;
		ask(c);
		return;
	}
	err_set(&e, -ECONNREFUSED,
	        "nothing in the jail listens on port %u: start the server there, on 127.0.0.1 or "
	        "0.0.0.0 (%s)",
	        c->port, strerror(code));
	tell(c, &e);
}

static void on_late(struct op *op, int res, uint32_t flags)
{
	struct inbound *c = container_of(op, struct inbound, late);
	struct err e;
	(void)flags;
	if (res == -ETIME && !c->told) {
		err_set(&e, -ECONNREFUSED, "port %u of the jail takes no connection within %d s",
		        c->port, CONNECT_MS / 1000);
		tell(c, &e);
	}
	bury(c);
}

static void on_ready(struct op *op, int res, uint32_t flags)
{
	struct inbound *c = container_of(op, struct inbound, ready);
	int code = 0;
	socklen_t n = sizeof(code);
	(void)flags;
	if (res >= 0 && !c->told && !c->closed) {
		if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &code, &n) < 0)
			code = errno;
		if (code)
			refused(c, code);
		else
			tell(c, NULL);
	}
	bury(c);
}

static void on_socket(void *ctx, const struct jail_reply *reply, int fds[MSG_FDS])
{
	struct inbound *c = ctx;
	c->asked = false;
	if (c->closed || c->told) {
		bury(c);
	} else if (reply->err.code == -EACCES || reply->err.code == -ESRCH || fds[0] < 0) {
		/* ::1 cannot be had where IPv6 is off: then 127.0.0.1 was all there is. */
		if (c->v6 && reply->err.code != -EACCES && reply->err.code != -ESRCH)
			refused(c, ECONNREFUSED);
		else
			tell(c, &reply->err);
	} else {
		fd_close(c->fd);
		c->fd = take_fd(fds[0]);
		loop_poll(c->d->loop, &c->ready, c->fd, POLLOUT, false, on_ready);
	}
}

static void ask(struct inbound *c)
{
	c->asked = true;
	jails_socket(c->d->jails, c->jail, (uint16_t)c->port, c->v6, on_socket, c);
}

static void lose(struct inbound *c)
{
	struct err e;
	jails_unwatch(c->d->jails, &c->watch);
	if (c->told) {
		c->calls.jail_gone(c->calls.ctx);
		return;
	}
	err_set(&e, -ESRCH, "the jail has ended");
	tell(c, &e);
}

static void on_gone(struct jail_watch *w, const struct jail_gone *x)
{
	(void)x;
	lose(container_of(w, struct inbound, watch));
}

void inbound_end_jail(struct daemon *d, uint64_t jail)
{
	list_for_each (c, &d->inbounds, struct inbound, link)
		if (c->jail == jail && !c->closed)
			lose(c);
}

/* Root's word of now, so that the answer can name it; agentboxd looks again. */
static int allowed(struct daemon *d, const char *policy, unsigned port, struct err *e)
{
	const struct policy *p;
	int r = policies_find(d->policies, policy, &p, e);
	if (r < 0 || policy_inbound(p, port))
		return r < 0 ? r : 0;
	auto_buf struct buf b = BUF_INIT(256);
	for (uint32_t i = 0; i < p->ninbound; i++)
		buf_printf(&b, "%s%u", i ? ", " : "", p->inbound[i]);
	return err_set(e, -EACCES,
	        "port %u of the jail is not to be reached: policy '%s' has `ports: [%s]`; remedy: "
	        "root adds it there and reloads",
	        port, p->name, b.p ? b.p : "");
}

static const struct jail_live *find_jail(struct daemon *d, const char *session, struct err *e)
{
	const struct session *live = sessions_live(d->sessions, session);
	const struct jail_live *jail = live && live->jail ? jails_find(d->jails, live->jail) : NULL;
	auto_buf struct buf known = BUF_INIT(64 << 10);
	if (!jail && (live || sessions_show(d->sessions, session, &known, e) == 0))
		err_set(e, -ESRCH, "session %s has no jail now: nothing runs in it", session);
	return jail;
}

static unsigned of_jail(const struct daemon *d, uint64_t jail)
{
	unsigned n = 0;
	list_for_each (c, &d->inbounds, struct inbound, link)
		n += c->jail == jail;
	return n;
}

struct inbound *inbound_open(struct daemon *d, const char *session, unsigned port,
        const struct inbound_calls *calls, struct err *e)
{
	const struct jail_live *live = find_jail(d, session, e);
	if (!live || allowed(d, live->policy, port, e) < 0)
		return NULL;
	if (of_jail(d, live->jail) >= LIMIT_INBOUND) {
		err_set(e, -EDQUOT, "%d connections to ports of this jail are open already",
		        LIMIT_INBOUND);
		return NULL;
	}
	struct inbound *c = xnew(struct inbound);
	c->d = d;
	c->jail = live->jail;
	c->port = port;
	c->calls = *calls;
	c->fd = -1;
	c->watch.gone = on_gone;
	list_append(&d->inbounds, &c->link);
	jails_watch(d->jails, c->jail, &c->watch);
	loop_timeout(d->loop, &c->late, CONNECT_MS, on_late);
	ask(c);
	return c;
}

void inbound_close(struct inbound *c)
{
	if (!c)
		return;
	c->closed = true;
	list_remove(&c->link);
	jails_unwatch(c->d->jails, &c->watch);
	bury(c);
}

int inbound_port(const char *text, unsigned *ret, struct err *e)
{
	size_t len = strspn(text, "0123456789");
	unsigned long n = len > 0 && len < 6 && !text[len] ? strtoul(text, NULL, 10) : 0;
	if (n < 1 || n > 65535)
		return err_set(e, -EINVAL, "'%.32s' is no port: a number from 1 to 65535", text);
	*ret = (unsigned)n;
	return 0;
}
