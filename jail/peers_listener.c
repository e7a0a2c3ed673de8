/*
 * agentbox-listener: there where root's configuration has `listen`.  It is given the
 * bound sockets, with certificates and private keys, at its start and at each reload.
 */
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "jail/daemon.h"
#include "proto/listener.h"

#include <string.h>

static struct daemon *of_listener(struct service *s)
{
	return s->owner;
}

static int listener_fds(struct service *s, int *fds)
{
	fds[0] = of_listener(s)->remote.pair[0]; /* LISTENER_OUTLET */
	return 1;
}
_Static_assert(LISTENER_OUTLET == CHILD_CONTROL + 1, "listener_fds begins there");

static int tell_address(struct daemon *d, const struct listen_at *l, struct err *e)
{
	int sock = remote_socket(&d->remote, l);
	if (sock < 0)
		return err_set(e, -EADDRNOTAVAIL, "listen: %s is not bound", l->text);
	bool tls = listen_has_tls(l);
	auto_close int pem = tls ? remote_pem(l, e) : -1;
	if (tls && pem < 0)
		return pem;
	const int fds[2] = {fd_dup(sock), take_fd(pem)};
	if (fds[0] < 0) {
		fd_close(fds[1]);
		return err_set(e, -EMFILE, "listen: %s: no descriptor left", l->text);
	}
	struct listener_set m = {.head.type = LISTENER_SET, .tls = tls};
	(void)str_copy(m.address, sizeof(m.address), l->text);
	service_send(&d->listener_service, &m, sizeof(m), fds, tls ? 2 : 1);
	return 0;
}

/* One whose certificate cannot be read is told anew without it: the listener keeps what it has. */
static int tell_all(struct daemon *d, struct err *e)
{
	const struct daemon_config *c = &d->policies->set->config;
	struct err why;
	int rc = 0;
	for (uint32_t i = 0; i < c->nlistens; i++)
		if (tell_address(d, &c->listens[i], &why) < 0) {
			log_err("%s", why.text);
			*e = why;
			rc = why.code;
		}
	struct listener_simple all = {.head.type = LISTENER_ALL};
	if (rc == 0)
		service_send(&d->listener_service, &all, sizeof(all), NULL, 0);
	return rc;
}

static void listener_started(struct service *s)
{
	struct err e;
	(void)tell_all(of_listener(s), &e); /* it has said so */
}

static void listener_message(struct service *s, void *msg, size_t n, int *fds)
{
	const struct listener_told *m = msg;
	for (int i = 0; i < MSG_FDS; i++)
		fd_close(fds[i]);
	if (m->head.type != LISTENER_TOLD || n != sizeof(*m) ||
	        !msg_text_ok(m->address, sizeof(m->address)) ||
	        !msg_text_ok(m->why, sizeof(m->why)))
		service_fail(s, "protocol violation");
	else if (m->why[0])
		log_err("listen: %s: %s", m->address, m->why);
	else
		log_info("listening on %s", m->address);
}

static void listener_ended(struct service *s)
{
	(void)s;
}

static const struct service_ops listener_ops = {
        .fds = listener_fds,
        .started = listener_started,
        .message = listener_message,
        .ended = listener_ended,
};

void peers_init_listener(struct daemon *d)
{
	const struct daemon_config *c = &d->policies->set->config;
	struct service *s = &d->listener_service;
	peers_fill_argv(
	        d, &d->listener_argv, "agentbox-listener", c->listener_uid, c->listener_gid);
	s->name = "listener";
	s->program = d->programs.listener;
	s->argv = d->listener_argv.argv;
	s->ops = &listener_ops;
	s->poller = &d->poller;
	s->owner = d;
}

/* Before it is started: what cannot be read is root's to hear of now. */
static int try_pems(const struct daemon_config *c, struct err *e)
{
	for (uint32_t i = 0; i < c->nlistens; i++) {
		if (!listen_has_tls(&c->listens[i]))
			continue;
		auto_close int pem = remote_pem(&c->listens[i], e);
		if (pem < 0)
			return pem;
	}
	return 0;
}

static int start(struct daemon *d, int r, struct err *e)
{
	service_done(&d->listener_service); /* it may be about to be started anyway */
	int rc = try_pems(&d->policies->set->config, e);
	if (rc == 0)
		rc = service_start(&d->listener_service, e);
	return rc < 0 ? rc : r;
}

int peers_follow_listen(struct daemon *d, struct err *e)
{
	const struct daemon_config *c = &d->policies->set->config;
	struct service *s = &d->listener_service;
	struct err why = {0};
	int r = remote_bind(&d->remote, c, &why);
	if (r < 0) {
		log_err("%s", why.text);
		*e = why;
	}
	if (c->nlistens == 0) {
		if (service_running(s)) {
			s->stopping = true;
			service_done(s);
			s->stopping = false;
		}
		return r;
	}
	if (service_outdated(s)) /* clients are cut, and come back to the next one */
		service_done(s);
	if (!service_running(s))
		return start(d, r, e); /* and is told then */
	int told = tell_all(d, &why);
	if (told < 0)
		*e = why;
	return told < 0 ? told : r;
}
