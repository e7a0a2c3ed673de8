#include "listener/serve.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/privs.h"
#include "base/sandbox.h"
#include "base/secure.h"
#include "listener/clients.h"
#include "proto/listener.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	EVENTS = 64,
	TICK_MS = 500,
	AGAIN_MS = 10, /* until the supervisor is tried again that took no client */
	ACCEPTS = 64,  /* of one listener in one turn */
};

struct place {
	struct watched watched;
	struct serve *serve;
	char address[LISTEN_TEXT];     /* "": unused */
	int fd;                        /* owned */
	struct secure_service *secure; /* owned; NULL: no TLS */
	bool paused;                   /* not watched: there are too many clients */
	bool named;                    /* since the last ALL */
};

struct serve {
	int epoll, control;
	struct watched control_watched;
	struct clients clients;
	struct place places[LISTENS];
	bool over;
};

/* ---- what it may still do ---- */

/* Loop, pairs, OpenSSL and the allocator.  No socket, no connect: what it has was given to it. */
static const int allowed[] = {SYS_epoll_wait, SYS_epoll_pwait, SYS_epoll_ctl, SYS_accept4,
        SYS_getsockopt, SYS_setsockopt, SYS_shutdown, SYS_recvfrom, SYS_recvmsg, SYS_sendto,
        SYS_sendmsg, SYS_read, SYS_write, SYS_close, SYS_fcntl, SYS_fstat, SYS_newfstatat,
        SYS_pread64, SYS_lseek, SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise,
        SYS_brk, SYS_futex, SYS_clock_gettime, SYS_gettimeofday, SYS_getrandom, SYS_getpid,
        SYS_gettid, SYS_geteuid, SYS_getuid, SYS_getgid, SYS_getegid, SYS_rt_sigaction,
        SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_restart_syscall, SYS_tgkill, SYS_exit,
        SYS_exit_group};
static const uint32_t pairs[] = {AF_UNIX};
static const struct sandbox_arg rules[] = {
        {SYS_socketpair, 0, pairs, ARRAY_LEN(pairs)},
};

static int confine(const struct serve_options *o, struct err *e)
{
	struct rlimit r;
	if (getrlimit(RLIMIT_NOFILE, &r) == 0) {
		r.rlim_cur = r.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &r); /* else fewer clients */
	}
	int rc = privs_drop(o->uid, o->gid, e);
	if (rc < 0)
		return rc;
	rc = sandbox_enter(
	        allowed, ARRAY_LEN(allowed), rules, ARRAY_LEN(rules), SANDBOX_DENY_EPERM, e);
	return rc < 0 ? err_wrap(e, "system call filter") : 0;
}

/* ---- accepting ---- */

static void describe(const struct sockaddr_storage *a, char to[LISTEN_TEXT])
{
	char host[INET6_ADDRSTRLEN] = "?";
	const struct sockaddr_in *v4 = (const void *)a;
	const struct sockaddr_in6 *v6 = (const void *)a;
	bool is6 = a->ss_family == AF_INET6;
	(void)inet_ntop(a->ss_family, is6 ? (const void *)&v6->sin6_addr : &v4->sin_addr, host,
	        sizeof(host));
	(void)snprintf(to, LISTEN_TEXT, is6 ? "[%s]:%u" : "%s:%u", host,
	        ntohs(is6 ? v6->sin6_port : v4->sin_port));
}

static void pause_place(struct place *p, bool paused)
{
	struct epoll_event ev = {.events = paused ? 0 : EPOLLIN, .data.ptr = &p->watched};
	if (p->paused != paused && epoll_ctl(p->serve->epoll, EPOLL_CTL_MOD, p->fd, &ev) == 0)
		p->paused = paused;
}

static void on_accept(struct watched *w, uint32_t events)
{
	struct place *p = container_of(w, struct place, watched);
	struct serve *s = p->serve;
	(void)events;
	for (int i = 0; i < ACCEPTS && p->fd >= 0; i++) {
		struct sockaddr_storage from = {0};
		socklen_t n = sizeof(from);
		char text[LISTEN_TEXT];
		if (!clients_room(&s->clients)) {
			pause_place(p, true);
			return;
		}
		int fd = accept4(p->fd, (struct sockaddr *)&from, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
			pause_place(p, true); /* until the next tick */
		if (fd < 0)
			return;
		describe(&from, text);
		clients_add(&s->clients, fd, text, p->secure);
	}
}

/* ---- what agentboxd says ---- */

static void close_place(struct place *p)
{
	secure_service_free(take(p->secure));
	/* Closing is not enough: agentboxd has the same socket. */
	if (p->fd >= 0)
		(void)epoll_ctl(p->serve->epoll, EPOLL_CTL_DEL, p->fd, NULL);
	fd_close(take_fd(p->fd));
	p->address[0] = '\0';
}

static struct place *place_of(struct serve *s, const char *address)
{
	struct place *none = NULL;
	for (int i = 0; i < LISTENS; i++) {
		if (strcmp(s->places[i].address, address) == 0)
			return &s->places[i];
		if (!none && !s->places[i].address[0])
			none = &s->places[i];
	}
	return none;
}

static struct secure_service *read_pem(int fd, struct err *e)
{
	struct stat st;
	if (fstat(fd, &st) < 0 || st.st_size < 1 || st.st_size > LISTENER_PEM_MAX) {
		(void)err_set(e, -EINVAL, "certificate and key: cannot be read");
		return NULL;
	}
	size_t n = (size_t)st.st_size;
	char *pem = xcalloc(n + 1, 1);
	struct secure_service *s = NULL;
	if (fd_pread_full(fd, pem, n, 0) == (ssize_t)n)
		s = secure_server(pem, n, e);
	else
		(void)err_set(e, -EIO, "certificate and key: cannot be read");
	explicit_bzero(pem, n);
	free(pem);
	return s;
}

static int use(struct serve *s, const struct listener_set *m, int fds[MSG_FDS], struct err *e)
{
	struct place *p = place_of(s, m->address);
	if (!p)
		return err_set(e, -E2BIG, "more than %d addresses", LISTENS);
	p->named = p->address[0] != '\0'; /* what it has stays where the new one is of no use */
	struct secure_service *secure = m->tls ? read_pem(fds[1], e) : NULL;
	if (m->tls && !secure)
		return e->code;
	close_place(p);
	p->secure = secure;
	p->fd = take_fd(fds[0]);
	p->paused = false;
	p->named = true;
	(void)str_copy(p->address, sizeof(p->address), m->address);
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = &p->watched};
	if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, p->fd, &ev) == 0)
		return 0;
	int r = err_errno(e, "epoll");
	close_place(p);
	return r;
}

static void tell(struct serve *s, const char *address, const struct err *e)
{
	struct listener_told m = {.head.type = LISTENER_TOLD};
	(void)str_copy(m.address, sizeof(m.address), address);
	if (e->code < 0)
		(void)snprintf(m.why, sizeof(m.why), "%.*s", LISTENER_WHY - 1, e->text);
	if (msg_send(s->control, &m, sizeof(m), NULL, 0) < 0)
		log_warn("%s: %s", address, e->code < 0 ? e->text : "served");
}

static void forget_others(struct serve *s)
{
	for (int i = 0; i < LISTENS; i++) {
		if (s->places[i].address[0] && !s->places[i].named)
			close_place(&s->places[i]);
		s->places[i].named = false;
	}
}

static void on_control(struct watched *w, uint32_t events)
{
	struct serve *s = container_of(w, struct serve, control_watched);
	_Alignas(16) char bytes[MSG_MAX];
	int fds[MSG_FDS];
	(void)events;
	int n = msg_recv(s->control, bytes, fds);
	if (n < 0 && msg_later(n))
		return;
	if (n <= 0) { /* agentboxd is gone, or wants us gone */
		s->over = true;
		return;
	}
	const struct msg_head *h = (const void *)bytes;
	const struct listener_set *m = (const void *)bytes;
	if (h->type == LISTENER_SET && n == (int)sizeof(*m) && fds[0] >= 0 &&
	        msg_text_ok(m->address, sizeof(m->address)) && m->address[0] &&
	        (!m->tls || fds[1] >= 0)) {
		struct err e = {0};
		(void)use(s, m, fds, &e);
		tell(s, m->address, &e);
	} else if (h->type == LISTENER_ALL) {
		forget_others(s);
	} else {
		log_err("agentboxd says what is not known (%u)", h->type);
		s->over = true;
	}
	for (int i = 0; i < MSG_FDS; i++)
		fd_close(fds[i]);
}

/* ---- the loop ---- */

static void tick(struct serve *s, int64_t *next_ms)
{
	int64_t now = clock_mono_ms();
	if (now < *next_ms)
		return;
	*next_ms = now + TICK_MS;
	clients_tick(&s->clients, now);
	for (int i = 0; i < LISTENS; i++)
		if (s->places[i].address[0] && s->clients.n < s->clients.most)
			pause_place(&s->places[i], false);
}

static int loop(struct serve *s, struct err *e)
{
	struct epoll_event events[EVENTS];
	int64_t next_ms = 0;
	int wait = TICK_MS;
	while (!s->over) {
		int n = epoll_wait(s->epoll, events, EVENTS, wait);
		if (n < 0 && errno != EINTR)
			return err_errno(e, "epoll");
		for (int i = 0; i < n; i++) {
			struct watched *w = events[i].data.ptr;
			w->ready(w, events[i].events);
		}
		tick(s, &next_ms);
		wait = clients_again(&s->clients) ? TICK_MS : AGAIN_MS;
		clients_bury(&s->clients);
	}
	return 0;
}

int serve_run(const struct serve_options *o, struct err *e)
{
	static struct serve s;
	s.control = o->control;
	s.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s.epoll < 0)
		return err_errno(e, "epoll");
	clients_init(&s.clients, s.epoll, o->outlet);
	for (int i = 0; i < LISTENS; i++) {
		s.places[i].fd = -1;
		s.places[i].serve = &s;
		s.places[i].watched.ready = on_accept;
	}
	/* OpenSSL reads its configuration now, and nothing of the host's later. */
	struct secure_service *warm = secure_client("/dev/null", e);
	secure_service_free(warm);
	int r = confine(o, e);
	if (r < 0)
		return r;
	s.control_watched.ready = on_control;
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = &s.control_watched};
	if (epoll_ctl(s.epoll, EPOLL_CTL_ADD, s.control, &ev) < 0)
		return err_errno(e, "epoll");
	return loop(&s, e);
}
