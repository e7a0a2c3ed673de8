#include "jail/remote.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "jail/layout.h"
#include "proto/listener.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

void remote_init(struct remote *r)
{
	memset(r, 0, sizeof(*r));
	for (int i = 0; i < LISTENS; i++)
		r->fd[i] = -1;
	r->pair[0] = r->pair[1] = -1;
}

static void unbind(struct remote *r, int i)
{
	fd_close(take_fd(r->fd[i]));
	r->address[i][0] = '\0';
}

void remote_done(struct remote *r)
{
	for (int i = 0; i < LISTENS; i++)
		unbind(r, i);
	fd_close(take_fd(r->pair[0]));
	fd_close(take_fd(r->pair[1]));
}

int remote_pair(struct remote *r, struct err *e)
{
	if (r->pair[0] >= 0)
		return 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, r->pair) < 0)
		return err_errno(e, "socketpair");
	return 0;
}

/* ---- addresses ---- */

static int bind_socket(const struct listen_at *l, struct err *e)
{
	const int on = 1;
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(l->port)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(l->port)};
	memcpy(&v4.sin_addr, l->address, sizeof(v4.sin_addr));
	memcpy(&v6.sin6_addr, l->address, sizeof(v6.sin6_addr));
	auto_close int fd = socket(l->v6 ? AF_INET6 : AF_INET,
	        SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	        (l->v6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0) ||
	        bind(fd, l->v6 ? (const struct sockaddr *)&v6 : (const struct sockaddr *)&v4,
	                l->v6 ? sizeof(v6) : sizeof(v4)) < 0 ||
	        listen(fd, LIMIT_CONNECTIONS) < 0)
		return err_errno(e, "listen: %s", l->text);
	return take_fd(fd);
}

static int place_of(const struct remote *r, const char *address)
{
	for (int i = 0; i < LISTENS; i++)
		if (r->fd[i] >= 0 && strcmp(r->address[i], address) == 0)
			return i;
	return -1;
}

static bool wanted(const struct daemon_config *c, const char *address)
{
	for (uint32_t i = 0; i < c->nlistens; i++)
		if (strcmp(c->listens[i].text, address) == 0)
			return true;
	return false;
}

static int add(struct remote *r, const struct listen_at *l, struct err *e)
{
	int i = 0;
	while (r->fd[i] >= 0) /* those that are not wanted are closed: there is room */
		i++;
	int fd = bind_socket(l, e);
	if (fd < 0)
		return fd;
	r->fd[i] = fd;
	(void)str_copy(r->address[i], sizeof(r->address[i]), l->text);
	return 0;
}

int remote_bind(struct remote *r, const struct daemon_config *c, struct err *e)
{
	int rc = 0;
	struct err why;
	for (int i = 0; i < LISTENS; i++)
		if (r->fd[i] >= 0 && !wanted(c, r->address[i]))
			unbind(r, i);
	for (uint32_t i = 0; i < c->nlistens; i++)
		if (place_of(r, c->listens[i].text) < 0 && add(r, &c->listens[i], &why) < 0) {
			*e = why;
			rc = why.code;
		}
	return rc;
}

int remote_socket(const struct remote *r, const struct listen_at *l)
{
	int i = place_of(r, l->text);
	return i < 0 ? -1 : r->fd[i];
}

/* ---- certificates ---- */

/* `alone`: nobody but root may read it. */
static int add_file(struct buf *to, const char *path, bool alone, struct err *e)
{
	char part[4096];
	struct stat st;
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(e, "listen: %s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, -EINVAL, "listen: %s is not a regular file", path);
	int r = root_owned(fd, path, e);
	if (r < 0)
		return r;
	if (alone && (st.st_mode & 077))
		return err_set(e, -EPERM,
		        "listen: %s may be read by others (mode %04o): chmod go= it", path,
		        st.st_mode & 07777);
	ssize_t n;
	while ((n = fd_read_full(fd, part, sizeof(part))) > 0 && !to->failed)
		(void)buf_put(to, part, (size_t)n); /* the buffer remembers that it failed */
	explicit_bzero(part, sizeof(part));
	(void)buf_putc(to, '\n');
	if (n < 0)
		return err_set(e, (int)n, "listen: %s: %s", path, strerror((int)-n));
	return to->failed ? err_set(e, -E2BIG,
	                            "listen: %s and what goes with it is larger than %d "
	                            "bytes",
	                            path, LISTENER_PEM_MAX)
	                  : 0;
}

int remote_pem(const struct listen_at *l, struct err *e)
{
	auto_buf struct buf pem = BUF_INIT(LISTENER_PEM_MAX);
	int r = add_file(&pem, l->cert, false, e);
	if (r == 0)
		r = add_file(&pem, l->key, true, e);
	int fd = r < 0 ? r : fd_sealed_memfd("pem", pem.p, pem.len);
	if (pem.p)
		explicit_bzero(pem.p, pem.len);
	return r == 0 && fd < 0 ? err_set(e, fd, "listen: %s", strerror(-fd)) : fd;
}
