#include "egress/dial.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

static void drop(struct dial *d)
{
	reactor_unwatch(d->reactor, &d->watch);
	fd_close(d->fd);
	d->fd = -1;
}

/* 0: under way. */
static int attempt(struct dial *d, const uint8_t mapped[16])
{
	struct sockaddr_storage a;
	socklen_t len = address_of(mapped, d->to.port, &a);
	int on = 1;
	if (!address_dialable(&d->reach, (const struct sockaddr *)&a)) {
		err_set(&d->last, -EACCES, "%.80s: the address is not public, or this host's own",
		        d->to.host);
		return -EACCES;
	}
	d->fd = socket(a.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (d->fd >= 0)
		(void)setsockopt(d->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	int r = d->fd < 0 ? -errno : 0;
	if (r == 0 && connect(d->fd, (const struct sockaddr *)&a, len) < 0 && errno != EINPROGRESS)
		r = -errno;
	if (r == 0)
		r = reactor_watch(d->reactor, &d->watch, d->fd, EPOLLOUT);
	if (r < 0) {
		err_set(&d->last, r, "%.80s:%u: %s", d->to.host, d->to.port, strerror(-r));
		drop(d);
	}
	return r;
}

static int next(struct dial *d)
{
	while (d->next < d->lookup.n && clock_mono_ms() < d->until_ms)
		if (attempt(d, d->lookup.addresses[d->next++]) == 0)
			return 0;
	return d->last.code;
}

static void failed(struct dial *d, int code, const char *why)
{
	err_set(&d->last, code, "%.80s:%u: %s", d->to.host, d->to.port, why);
	drop(d);
	if (next(d) < 0)
		d->done(d, -1, &d->last);
}

static void on_connected(struct watch *w, uint32_t events)
{
	struct dial *d = container_of(w, struct dial, watch);
	int code = 0;
	socklen_t len = sizeof(code);
	(void)events;
	if (getsockopt(d->fd, SOL_SOCKET, SO_ERROR, &code, &len) < 0)
		code = errno;
	if (code) {
		failed(d, -code, strerror(code));
		return;
	}
	reactor_unwatch(d->reactor, &d->watch);
	d->done(d, take_fd(d->fd), NULL);
}

static void on_addresses(struct lookup *l, const struct err *e)
{
	struct dial *d = container_of(l, struct dial, lookup);
	if (e) {
		d->last = *e;
		l->n = 0;
	}
	if (next(d) < 0)
		d->done(d, -1, &d->last);
}

void dial_late(struct dial *d)
{
	if (d->fd >= 0)
		failed(d, -ETIMEDOUT, "no answer to the connection");
}

void dial_init(
        struct dial *d, struct reactor *r, void (*done)(struct dial *, int, const struct err *))
{
	memset(d, 0, sizeof(*d));
	d->reactor = r;
	d->done = done;
	d->lookup.done = on_addresses;
	d->watch = (struct watch){.fd = -1, .ready = on_connected};
	d->fd = -1;
}

int dial_start(struct dial *d, struct resolver *r, const struct origin *to,
        const struct reach *reach, struct err *e)
{
	d->to = *to;
	d->reach = *reach;
	d->next = 0;
	d->until_ms = clock_mono_ms() + DIAL_MS;
	err_set(&d->last, -ETIMEDOUT, "%.80s:%u: no answer in time", to->host, to->port);
	int status = lookup_start(r, &d->to, &d->reach, &d->lookup, e);
	if (status <= 0)
		return status;
	status = next(d);
	if (status < 0)
		*e = d->last;
	return status;
}

void dial_cancel(struct dial *d)
{
	lookup_cancel(&d->lookup);
	drop(d);
}
