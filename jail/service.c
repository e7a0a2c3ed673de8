#include "jail/service.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "jail/layout.h"
#include "proto/msg.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/* The first delay after the restart that is made at once. */
enum { BACKOFF_FIRST_MS = 100, ASK_AGAIN_MS = 10 };
/* Some thousand replies of 5 KB.  The default (212992) holds forty. */
enum { SOCKET_BYTES = 4 << 20 };

/* Of its patience.  Looks are counted and not milliseconds: where all of us were stopped for an
 * hour, nobody was silent. */
enum { LOOKS = 4 };

static void try_restart(struct alarm *a);
static void on_look(struct alarm *a);

void service_init(struct service *s)
{
	s->child = (struct child)CHILD_NONE;
	s->sock = -1;
	alarm_init(&s->restart, try_restart);
	alarm_init(&s->look, on_look);
}

bool service_running(const struct service *s)
{
	return s->child.pidfd >= 0;
}

/* ---- messages ---- */

static void watch_output(struct service *s)
{
	uint32_t events = EPOLLIN | (outbox_waits(&s->outbox) ? EPOLLOUT : 0);
	poller_change(s->poller, &s->control, events);
}

static void on_its_way_out(struct service *s)
{
	if (!s->stopping && !s->renewing)
		child_kill(&s->child); /* or as good as */
}

/* A message that never comes would be waited for: the next of its kind begins with a state that is
 * told whole. */
static void not_sent(struct service *s, int r)
{
	log_debug("%s: %s", s->name, strerror(-r));
	if (r == -EPIPE || r == -ECONNRESET)
		on_its_way_out(s);
	else
		service_fail(s, r == -ENOBUFS ? "it does not read what is sent to it"
		                              : "what is sent to it does not go out");
}

void service_send(struct service *s, void *msg, size_t n, const int *fds, int nfds)
{
	if (!service_running(s) || s->sock < 0) {
		for (int i = 0; i < nfds; i++)
			fd_close(fds[i]);
		return;
	}
	int r = outbox_send(&s->outbox, msg, n, fds, nfds);
	if (r < 0)
		not_sent(s, r);
	watch_output(s);
}

static void look_again(struct service *s)
{
	s->minded = s->patience_ms > 0 && !s->stopping;
	if (s->minded)
		alarm_set(s->poller, &s->look, (int64_t)(s->patience_ms / LOOKS));
}

static void look_away(struct service *s)
{
	s->minded = false;
	alarm_clear(&s->look);
}

/* One that is told to end has an end to its time already. */
static void on_look(struct alarm *a)
{
	struct service *s = container_of(a, struct service, look);
	if (s->silent++ >= LOOKS && !s->renewing) {
		service_fail(s, "it hangs: it has not answered for too long");
		return;
	}
	s->ops->ping(s);
	look_again(s);
}

/* Before its first word it starts, which may take any time. */
static void heard(struct service *s)
{
	s->silent = 0;
	if (!s->minded)
		look_again(s);
}

static void on_control(struct watch *w, uint32_t events)
{
	struct service *s = container_of(w, struct service, control);
	if (events & EPOLLOUT) {
		int r = outbox_flush(&s->outbox);
		if (r < 0)
			not_sent(s, r);
		watch_output(s);
	}
	if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		return;
	_Alignas(16) char bytes[MSG_MAX];
	int fds[MSG_FDS];
	int n = msg_recv(s->sock, bytes, fds);
	if (n < 0 && msg_later(n))
		return;
	if (n > 0) {
		heard(s);
		s->ops->message(s, bytes, (size_t)n, fds);
		return;
	}
	poller_remove(s->poller, &s->control);
	if (n == -EBADMSG)
		service_fail(s, "it sent something that is no message");
	else
		on_its_way_out(s);
}

/* ---- life ---- */

static void close_socket(struct service *s)
{
	poller_remove(s->poller, &s->control);
	look_away(s);
	outbox_done(&s->outbox);
	fd_close(take_fd(s->sock));
}

static void schedule(struct service *s)
{
	int64_t lived = clock_mono_ms() - s->started_ms;
	if (lived >= SERVICE_STEADY_MS || s->renewing)
		s->backoff_ms = 0;
	s->renewing = false;
	alarm_set(s->poller, &s->restart, s->backoff_ms);
	s->backoff_ms = s->backoff_ms ? s->backoff_ms * 2 : BACKOFF_FIRST_MS;
	if (s->backoff_ms > SERVICE_BACKOFF_MAX_MS)
		s->backoff_ms = SERVICE_BACKOFF_MAX_MS;
}

static void on_pidfd(struct watch *w, uint32_t events)
{
	(void)events;
	struct service *s = container_of(w, struct service, pidfd);
	int fd = w->fd;
	struct child copy = s->child;
	poller_remove(s->poller, &s->pidfd);
	int status = child_reap(&s->child, 0);
	if (status < 0) { /* held by a tracer: look again when it lets go */
		s->child = copy;
		struct err e;
		if (poller_add(s->poller, &s->pidfd, fd, EPOLLIN, on_pidfd, &e) < 0)
			log_err("%s: %s", s->name, e.text);
		return;
	}
	s->last_status = status;
	char how[32];
	child_status_text(status, how);
	if (s->stopping || (s->renewing && status == 0))
		log_info("%s (pid %d) ended with %s", s->name, copy.pid, how);
	else
		log_err("%s (pid %d) ended with %s; starting it again", s->name, copy.pid, how);
	close_socket(s);
	s->ops->ended(s);
	if (!s->stopping)
		schedule(s);
}

static int run(struct service *s, int theirs, struct err *e)
{
	int fds[1 + SERVICE_FDS] = {theirs};
	const struct child_spec spec = {.path = s->program,
	        .argv = s->argv,
	        .env = s->env,
	        .fds = fds,
	        .nfds = 1 + s->ops->fds(s, fds + 1),
	        .stderr_fd = -1};
	return child_start(&spec, &s->child, e);
}

static int watch(struct service *s, struct err *e)
{
	int r = poller_add(s->poller, &s->control, s->sock, EPOLLIN, on_control, e);
	if (r == 0)
		r = poller_add(s->poller, &s->pidfd, s->child.pidfd, EPOLLIN, on_pidfd, e);
	if (r < 0)
		service_done(s);
	return r;
}

int service_start(struct service *s, struct err *e)
{
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
		return err_errno(e, "socketpair");
	auto_close int ours = ends[0];
	auto_close int theirs = ends[1];
	/* FORCE: beyond net.core.wmem_max; needs CAP_NET_ADMIN.  Without it the outbox does. */
	const int bytes = SOCKET_BYTES;
	(void)setsockopt(ours, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes));
	(void)setsockopt(theirs, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes));
	s->started_ms = clock_mono_ms();
	if (stat(s->program, &s->file) < 0)
		return err_errno(e, "%s", s->program);
	int r = run(s, theirs, e);
	if (r < 0)
		return r;
	s->sock = take_fd(ours);
	outbox_init(&s->outbox, s->sock);
	r = watch(s, e);
	if (r < 0)
		return r;
	log_info("%s started (pid %d)", s->name, s->child.pid);
	s->ops->started(s);
	return 0;
}

static void try_restart(struct alarm *a)
{
	struct service *s = container_of(a, struct service, restart);
	if (s->stopping)
		return;
	if (s->ops->may_start && !s->ops->may_start(s)) {
		alarm_set(s->poller, &s->restart, ASK_AGAIN_MS);
		return;
	}
	struct err e;
	if (service_start(s, &e) < 0) {
		log_err("%s: %s; trying again", s->name, e.text);
		schedule(s);
	}
}

void service_start_soon(struct service *s)
{
	alarm_set(s->poller, &s->restart, 0);
}

static void resume(struct service *s)
{
	struct err e;
	if (watch(s, &e) == 0) {
		watch_output(s);
		return;
	}
	log_err("%s: %s", s->name, e.text);
	if (!s->stopping)
		schedule(s);
}

void service_resume(struct service *s)
{
	outbox_init(&s->outbox, s->sock);
	log_info("%s (pid %d) is taken over", s->name, s->child.pid);
	resume(s);
}

void service_retire(struct service *from, struct service *to)
{
	poller_remove(from->poller, &from->control);
	poller_remove(from->poller, &from->pidfd);
	look_away(from);
	service_init(to);
	to->name = from->name;
	to->program = from->program;
	to->ops = from->ops;
	to->poller = from->poller;
	to->owner = from->owner;
	to->child = from->child;
	to->sock = take_fd(from->sock);
	to->started_ms = from->started_ms;
	to->file = from->file;
	to->stopping = true;
	outbox_move(&from->outbox, &to->outbox);
	from->child = (struct child)CHILD_NONE;
	resume(to);
}

void service_fail(struct service *s, const char *why)
{
	log_err("%s (pid %d) is ended: %s", s->name, s->child.pid, why);
	poller_remove(s->poller, &s->control); /* nothing more of it is heard */
	look_away(s);
	child_kill(&s->child);
}

bool service_outdated(const struct service *s)
{
	return service_running(s) && program_changed(s->program, &s->file);
}

void service_renew(struct service *s)
{
	s->renewing = true;
}

void service_stop(struct service *s)
{
	s->stopping = true;
	alarm_clear(&s->restart);
}

void service_kill(struct service *s)
{
	child_kill(&s->child);
}

void service_done(struct service *s)
{
	alarm_clear(&s->restart);
	poller_remove(s->poller, &s->pidfd);
	if (service_running(s)) {
		child_kill(&s->child);
		child_reap(&s->child, -1);
	}
	close_socket(s);
}
