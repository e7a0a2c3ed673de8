#include "jail/listen.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static int socket_option(int fd, int what)
{
	int v = -1;
	socklen_t n = sizeof(v);
	return getsockopt(fd, SOL_SOCKET, what, &v, &n) < 0 ? -1 : v;
}

int listen_inherited(struct listener *ret, struct err *e)
{
	enum { FIRST = 3 }; /* sd_listen_fds(3): SD_LISTEN_FDS_START */
	const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
	if (!pid || !count || strtol(pid, NULL, 10) != (long)getpid())
		return 0;
	if (strcmp(count, "1") != 0)
		return err_set(e, -EINVAL,
		        "socket activation with LISTEN_FDS=%.20s: one is "
		        "expected, the control socket",
		        count);
	if (socket_option(FIRST, SO_DOMAIN) != AF_UNIX ||
	        socket_option(FIRST, SO_TYPE) != SOCK_STREAM ||
	        socket_option(FIRST, SO_ACCEPTCONN) != 1)
		return err_set(e, -EINVAL,
		        "socket activation: descriptor 3 is not a listening "
		        "Unix stream socket (ListenStream=PATH)");
	int fd = fcntl(FIRST, F_DUPFD_CLOEXEC, FIRST + 1);
	if (fd < 0)
		return err_errno(e, "socket activation");
	(void)close(FIRST);
	int r = fd_set_nonblock(fd, 1);
	if (r < 0) {
		fd_close(fd);
		return err_set(e, r, "socket activation: %s", strerror(-r));
	}
	*ret = (struct listener){.fd = fd};
	return 1;
}

/* Only a socket that nobody answers on is removed. */
static int clear_stale(const struct sockaddr_un *to, struct err *e)
{
	struct stat st;
	if (lstat(to->sun_path, &st) < 0)
		return errno == ENOENT ? 0 : err_errno(e, "%s", to->sun_path);
	if (!S_ISSOCK(st.st_mode))
		return err_set(e, -EEXIST, "%s is there and is not a socket", to->sun_path);
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_errno(e, "socket");
	if (connect(fd, (const struct sockaddr *)to, sizeof(*to)) == 0 || errno == EAGAIN)
		return err_set(e, -EADDRINUSE, "%s: another daemon answers there", to->sun_path);
	if (errno != ECONNREFUSED)
		return err_errno(e, "%s", to->sun_path);
	return unlink(to->sun_path) < 0 ? err_errno(e, "%s", to->sun_path) : 0;
}

static int bind_at(int fd, const struct sockaddr_un *to, gid_t gid, struct err *e)
{
	/* Nobody but root may connect until the group is right. */
	mode_t old = umask(0177);
	int r = bind(fd, (const struct sockaddr *)to, sizeof(*to)) < 0
	                ? err_errno(e, "%s", to->sun_path)
	                : 0;
	(void)umask(old);
	if (r < 0)
		return r;
	if (lchown(to->sun_path, 0, gid) < 0 || chmod(to->sun_path, 0660) < 0 ||
	        listen(fd, LIMIT_CONNECTIONS) < 0)
		return err_errno(e, "%s", to->sun_path);
	return 0;
}

int listen_make(struct listener *ret, const char *path, gid_t gid, struct err *e)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(to.sun_path))
		return err_set(e, -ENAMETOOLONG, "--socket: the path may have %zu bytes at most",
		        sizeof(to.sun_path) - 1);
	(void)str_copy(to.sun_path, sizeof(to.sun_path), path);
	int r = file_make_parent(path);
	if (r < 0)
		return err_set(e, r, "directory of %s: %s", path, strerror(-r));
	r = clear_stale(&to, e);
	if (r < 0)
		return r;
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_errno(e, "socket");
	r = bind_at(fd, &to, gid, e);
	if (r < 0)
		return r;
	struct stat st;
	if (lstat(path, &st) < 0)
		return err_errno(e, "%s", path);
	*ret = (struct listener){.fd = take_fd(fd),
	        .path = xstrdup(path),
	        .ino = st.st_ino,
	        .dev = st.st_dev,
	        .ctime = st.st_ctim};
	return 0;
}

static bool still_ours(const struct listener *l)
{
	struct stat st;
	return lstat(l->path, &st) == 0 && st.st_ino == l->ino && st.st_dev == l->dev &&
	       st.st_ctim.tv_sec == l->ctime.tv_sec && st.st_ctim.tv_nsec == l->ctime.tv_nsec;
}

void listen_close(struct listener *l)
{
	fd_close(l->fd);
	if (l->path && still_ours(l))
		(void)unlink(l->path); /* a leftover is cleared at the next start */
	free(l->path);
	*l = (struct listener)LISTENER_NONE;
}
