#include "egress/client.h"

#include "base/clock.h"
#include "base/fd.h"
#include "egress/jails.h"

#include <sys/socket.h>

static void on_ready(struct watch *w, uint32_t events)
{
	struct client *c = container_of(w, struct client, watch);
	c->kind->ready(c, events);
}

static void bury(struct corpse *x)
{
	struct client *c = container_of(x, struct client, corpse);
	c->kind->free(c);
}

void client_begin(struct client *c, const struct client_kind *kind, struct jail *j, int fd,
        uint32_t events, int64_t in_ms)
{
	c->kind = kind;
	c->jail = j;
	c->reactor = j->services->reactor;
	c->fd = fd;
	c->watch = (struct watch){.fd = -1, .ready = on_ready};
	c->corpse.bury = bury;
	list_append(&j->clients, &c->link);
	j->nclients++;
	client_deadline(c, in_ms);
	if (reactor_watch(c->reactor, &c->watch, fd, events) < 0)
		client_end(c, true);
}

void client_deadline(struct client *c, int64_t in_ms)
{
	c->deadline_ms = clock_mono_ms() + in_ms;
}

int client_release(struct client *c)
{
	if (c->ended)
		return -1;
	c->ended = true;
	list_remove(&c->link);
	if (--c->jail->nclients == 0)
		jails_slack(c->jail->services);
	reactor_unwatch(c->reactor, &c->watch);
	reactor_bury(c->reactor, &c->corpse);
	return take_fd(c->fd);
}

void client_end(struct client *c, bool reset)
{
	int fd = client_release(c);
	if (fd >= 0 && reset) {
		struct linger now = {.l_onoff = 1, .l_linger = 0};
		(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	}
	fd_close(fd);
}
