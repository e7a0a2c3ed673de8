/*
 * agentbox-worker: files of one workspace, for a supervisor that never opens a
 * path there (proto/worker.h on fd 3).
 *
 * Theory of operation: agentboxd starts it in the jail's mount namespace under
 * the agent's uid without any capability (enter.c), so it can reach what the agent can
 * and nothing else.  It opens its two roots, locks itself into a filter of some
 * twenty calls, and answers one request at a time.  The agent may be alive and
 * racing: every path is resolved by openat2 without links and without leaving
 * the mount, and what is handed back is a descriptor that the reader checks
 * again.  A file is written under another name and renamed into place, so a
 * planted link is replaced and never followed.  No allocation.
 */
#include "proto/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>

enum {
	CONTROL = 3,
	DENTS = 16 << 10, /* bytes of directory entries read at once, per level */
	COPY = 64 << 10,
	RETRIES = 64, /* openat2 says EAGAIN while somebody renames; it does not for ever */
	TEMP_NAMES = 16,
	RENAME_NOREPLACE_FLAG = 1,
};

struct roots {
	int workspace, home;
};

/* ---- opening ---- */

static int open_beneath(int dir, const char *path, uint64_t flags, uint32_t mode)
{
	struct open_how how = {.flags = flags | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK,
	        .mode = mode,
	        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS |
	                   RESOLVE_NO_XDEV};
	if (flags & O_PATH)
		how.flags = flags | O_CLOEXEC | O_NOFOLLOW;
	for (int i = 0; i < RETRIES; i++) {
		long fd = syscall(SYS_openat2, dir, path, &how, sizeof(how));
		if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
			return fd < 0 ? -errno : (int)fd;
	}
	return -EAGAIN;
}

static const char *or_dot(const char *path)
{
	return *path ? path : ".";
}

/* ---- answers ---- */

static struct worker_reply reply;

static void send_reply(uint16_t type, uint64_t req, int fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {.bytes = {0}};
	reply.head = (struct msg_head){.magic = MSG_MAGIC,
	        .type = type,
	        .nfds = fd >= 0,
	        .size = sizeof(reply),
	        .req = req};
	struct iovec io = {&reply, sizeof(reply)};
	struct msghdr msg = {.msg_iov = &io, .msg_iovlen = 1};
	if (fd >= 0) {
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	while (sendmsg(CONTROL, &msg, MSG_NOSIGNAL) < 0) {
		if (errno != EINTR)
			_exit(1);
	}
}

static void set_reply(const struct stat *st, int status)
{
	reply.status = status;
	reply.mode = st ? st->st_mode : 0;
	bool sized = st && (S_ISREG(st->st_mode) || S_ISDIR(st->st_mode));
	reply.bytes = sized ? (uint64_t)st->st_size : 0;
	reply.nlink = st ? (uint32_t)st->st_nlink : 0;
	reply.changed_ms = st ? st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000 : 0;
	reply.truncated = 0;
}

/* ---- LIST ---- */

struct dirent64 {
	uint64_t ino;
	int64_t off;
	uint16_t reclen;
	uint8_t type;
	char name[];
};

static struct level {
	int fd;
	size_t path_len; /* of reply.path for this directory, with its slash */
	long have, at;   /* bytes in buf */
	char name[256];  /* in the level above, where that is needed */
	char buf[DENTS] __attribute__((aligned(8)));
} levels[WORKER_DEPTH_MAX];

/* The next name of the level, or NULL at its end. */
static const char *next_name(struct level *l)
{
	for (;;) {
		if (l->at >= l->have) {
			l->at = 0;
			l->have = syscall(SYS_getdents64, l->fd, l->buf, sizeof(l->buf));
			if (l->have <= 0)
				return NULL;
		}
		const struct dirent64 *d = (const void *)(l->buf + l->at);
		l->at += d->reclen;
		if (strcmp(d->name, ".") != 0 && strcmp(d->name, "..") != 0)
			return d->name;
	}
}

/* One entry below levels[depth]; true when it is a directory that is open as the next level. */
static bool list_entry(int depth, const char *name, const struct worker_request *r, bool *cut)
{
	struct level *l = &levels[depth];
	size_t n = strlen(name);
	if (l->path_len + n + 2 > sizeof(reply.path)) {
		*cut = true;
		return false;
	}
	struct stat st;
	if (fstatat(l->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false; /* gone meanwhile */
	memcpy(reply.path + l->path_len, name, n + 1);
	set_reply(&st, 0);
	send_reply(WORKER_ENTRY, r->head.req, -1);
	if (!S_ISDIR(st.st_mode) || (r->flags & WORKER_FLAT))
		return false;
	if (depth + 1 == WORKER_DEPTH_MAX) {
		*cut = true;
		return false;
	}
	struct level *sub = &levels[depth + 1];
	sub->fd = open_beneath(l->fd, name, O_RDONLY | O_DIRECTORY, 0);
	if (sub->fd < 0)
		return false; /* another mount, or closed to the agent itself */
	sub->path_len = l->path_len + n + 1;
	sub->have = sub->at = 0;
	reply.path[l->path_len + n] = '/';
	return true;
}

static void list(int root, const struct worker_request *r)
{
	bool cut = false;
	int depth = 0;
	levels[0] = (struct level){
	        .fd = open_beneath(root, or_dot(r->path), O_RDONLY | O_DIRECTORY, 0)};
	if (levels[0].fd < 0)
		depth = -1;
	int status = depth < 0 ? levels[0].fd : 0;
	size_t n = strlen(r->path);
	memcpy(reply.path, r->path, n);
	if (n && n + 1 < sizeof(reply.path) && r->path[n - 1] != '/')
		reply.path[n++] = '/';
	levels[0].path_len = n;
	for (int entries = 0; depth >= 0;) {
		const char *name = next_name(&levels[depth]);
		if (!name || entries == WORKER_ENTRIES_MAX) {
			cut |= name != NULL;
			close(levels[depth--].fd);
			continue;
		}
		entries++;
		depth += list_entry(depth, name, r, &cut);
	}
	set_reply(NULL, status);
	reply.truncated = cut;
	reply.path[0] = '\0';
	send_reply(WORKER_DONE, r->head.req, -1);
}

/* ---- OPEN ---- */

/* What is to be read: a descriptor of a regular file, or -errno. */
static int open_regular(int root, const struct worker_request *r, struct stat *ret)
{
	int fd = open_beneath(root, or_dot(r->path), O_RDONLY, 0);
	int status = fd < 0 ? fd : 0;
	if (fd >= 0 && fstat(fd, ret) < 0)
		status = -errno;
	else if (fd >= 0 && !S_ISREG(ret->st_mode))
		status = S_ISDIR(ret->st_mode) ? -EISDIR : -EINVAL;
	if (status < 0 && fd >= 0)
		close(fd);
	return status < 0 ? status : fd;
}

static void open_file(int root, const struct worker_request *r)
{
	struct stat st;
	int fd = open_regular(root, r, &st);
	set_reply(fd >= 0 ? &st : NULL, fd < 0 ? fd : 0);
	reply.path[0] = '\0';
	send_reply(WORKER_DONE, r->head.req, fd);
	if (fd >= 0)
		close(fd);
}

/* ---- bytes ---- */

static char copied[COPY];

static int put_all(int to, const char *p, size_t n)
{
	while (n) {
		ssize_t k = write(to, p, n);
		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return -errno;
		p += k;
		n -= (size_t)k;
	}
	return 0;
}

/* ---- READ ---- */

static int pour(int from, int to, uint64_t at, uint64_t n)
{
	while (n) {
		ssize_t k = pread(from, copied, n < COPY ? (size_t)n : COPY, (off_t)at);
		if (k <= 0)
			return k < 0 ? -errno : -ENODATA; /* it was cut meanwhile */
		int status = put_all(to, copied, (size_t)k);
		if (status < 0)
			return status;
		at += (uint64_t)k;
		n -= (uint64_t)k;
	}
	return 0;
}

static void read_file(int root, const struct worker_request *r, int to)
{
	struct stat st;
	int fd = open_regular(root, r, &st);
	int status = fd < 0 ? fd : 0;
	reply.path[0] = '\0';
	if (fd >= 0) {
		uint64_t size = (uint64_t)st.st_size, at = r->offset;
		if (r->flags & WORKER_TAIL)
			at = r->bytes < size ? size - r->bytes : 0;
		uint64_t there = at < size ? size - at : 0;
		set_reply(&st, 0);
		send_reply(WORKER_ENTRY, r->head.req, -1);
		status = pour(fd, to, at, r->bytes < there ? r->bytes : there);
		close(fd);
	}
	set_reply(NULL, status);
	send_reply(WORKER_DONE, r->head.req, -1);
}

/* ---- WRITE ---- */

/* All of a memfd, of which there may be at most `max`. */
static int copy_bytes(int from, int to, uint64_t max)
{
	uint64_t done = 0;
	for (;;) {
		ssize_t n = pread(from, copied, COPY, (off_t)done);
		if (n <= 0)
			return n < 0 ? -errno : 0;
		if (done + (uint64_t)n > max)
			return -EFBIG;
		int status = put_all(to, copied, (size_t)n);
		if (status < 0)
			return status;
		done += (uint64_t)n;
	}
}

/* Exactly n bytes of a pipe: one that ends earlier is of a client that left. */
static int copy_pipe(int from, int to, uint64_t n)
{
	while (n) {
		ssize_t k = read(from, copied, n < COPY ? (size_t)n : COPY);
		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return k < 0 ? -errno : -EPIPE;
		int status = put_all(to, copied, (size_t)k);
		if (status < 0)
			return status;
		n -= (uint64_t)k;
	}
	return 0;
}

/* Opens (with `make`: making what is missing) the directory that the last component of `path` is
 * in; *ret_name points at that component. */
static int open_parent(int root, char *path, bool make, const char **ret_name)
{
	int at = open_beneath(root, ".", O_PATH | O_DIRECTORY, 0);
	char *name = path;
	for (char *slash; at >= 0 && (slash = strchr(name, '/')); name = slash + 1) {
		*slash = '\0';
		if (!*name)
			continue;
		/* EEXIST and the like show when it is opened */
		if (make)
			(void)mkdirat(at, name, 0755);
		int next = open_beneath(at, name, O_PATH | O_DIRECTORY, 0);
		close(at);
		at = next;
	}
	*ret_name = name;
	return at;
}

/* A worker that was killed leaves what it wrote under such a name, and no lock on it. */
static void remove_left(int dir, const char *temp)
{
	int fd = open_beneath(dir, temp, O_RDONLY, 0);
	if (fd < 0)
		return;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		(void)unlinkat(dir, temp, 0);
	close(fd);
}

/* A new file that is locked: one that was made and had no lock yet may be gone already, removed by
 * another worker. */
static int open_temp(int dir, const char *temp)
{
	struct stat st;
	int fd = open_beneath(dir, temp, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (fd == -EEXIST) {
		remove_left(dir, temp);
		fd = open_beneath(dir, temp, O_WRONLY | O_CREAT | O_EXCL, 0600);
	}
	if (fd < 0 ||
	        (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0 && st.st_nlink == 1))
		return fd;
	close(fd);
	return -EEXIST;
}

static int write_into(int dir, const char *name, int from, const struct worker_request *r)
{
	char temp[32];
	int fd = -EEXIST;
	for (int i = 0; fd == -EEXIST && i < TEMP_NAMES; i++) {
		(void)snprintf(temp, sizeof(temp), ".agentbox-write-%d", i);
		fd = open_temp(dir, temp);
	}
	if (fd < 0)
		return fd;
	int status = r->flags & WORKER_PIPE ? copy_pipe(from, fd, r->bytes)
	                                    : copy_bytes(from, fd, r->bytes);
	if (status == 0 && fchmod(fd, r->mode & 0755) < 0)
		status = -errno;
	close(fd);
	unsigned flags = r->flags & WORKER_NO_REPLACE ? RENAME_NOREPLACE_FLAG : 0;
	if (status == 0 && syscall(SYS_renameat2, dir, temp, dir, name, flags) < 0)
		status = -errno;
	if (status < 0)
		(void)unlinkat(dir, temp, 0);
	return status;
}

static void answer(const struct worker_request *r, int status)
{
	set_reply(NULL, status);
	reply.path[0] = '\0';
	send_reply(WORKER_DONE, r->head.req, -1);
}

/* The directory that the last component of the path is in, with those above it: made where they are
 * missing, with `make`.  -EISDIR where the path is no name in a directory. */
static int find_parent(int root, struct worker_request *r, bool make, const char **ret_name)
{
	int dir = open_parent(root, r->path, make, ret_name);
	const char *name = *ret_name;
	if (dir < 0 || (*name && strcmp(name, ".") != 0 && strcmp(name, "..") != 0))
		return dir;
	close(dir);
	return -EISDIR;
}

static void write_file(int root, struct worker_request *r, int from)
{
	const char *name;
	int dir = find_parent(root, r, true, &name);
	int status = dir < 0 ? dir : write_into(dir, name, from, r);
	if (dir >= 0)
		close(dir);
	answer(r, status);
}

static void make_dir(int root, struct worker_request *r)
{
	const char *name;
	int dir = find_parent(root, r, true, &name);
	int status = dir < 0 ? dir : mkdirat(dir, name, 0755) < 0 ? -errno : 0;
	if (status == -EEXIST) {
		int there = open_beneath(dir, name, O_PATH | O_DIRECTORY, 0);
		status = there < 0 ? there : 0;
		if (there >= 0)
			close(there);
	}
	if (dir >= 0)
		close(dir);
	answer(r, status);
}

/* ---- REMOVE ---- */

/* Everything below levels[0], which it closes.  An agent that makes files as fast as they go is not
 * followed for ever. */
static int empty_tree(void)
{
	int depth = 0, status = 0;
	for (int entries = 0; depth >= 0; entries++) {
		struct level *l = &levels[depth];
		const char *name = entries < WORKER_ENTRIES_MAX ? next_name(l) : NULL;
		if (!name) {
			status = status == 0 && entries >= WORKER_ENTRIES_MAX ? -ENOTEMPTY : status;
			close(l->fd);
			depth--;
			if (depth >= 0 && unlinkat(levels[depth].fd, l->name, AT_REMOVEDIR) < 0 &&
			        status == 0)
				status = -errno;
			continue;
		}
		if (unlinkat(l->fd, name, 0) == 0 || errno == ENOENT)
			continue;
		int fd = -errno;
		if (fd == -EISDIR)
			fd = depth + 1 == WORKER_DEPTH_MAX
			             ? -ELOOP
			             : open_beneath(l->fd, name, O_RDONLY | O_DIRECTORY, 0);
		if (fd < 0) {
			status = status == 0 ? fd : status;
			continue;
		}
		struct level *sub = &levels[++depth];
		sub->fd = fd;
		sub->have = sub->at = 0;
		size_t n = strlen(name);
		memcpy(sub->name, name, n + 1);
	}
	return status;
}

static int remove_dir(int dir, const char *name, bool tree)
{
	if (unlinkat(dir, name, AT_REMOVEDIR) == 0)
		return 0;
	if (!tree || (errno != ENOTEMPTY && errno != EEXIST))
		return -errno;
	levels[0] = (struct level){.fd = open_beneath(dir, name, O_RDONLY | O_DIRECTORY, 0)};
	int status = levels[0].fd < 0 ? levels[0].fd : empty_tree();
	if (status == 0 && unlinkat(dir, name, AT_REMOVEDIR) < 0)
		status = -errno;
	return status;
}

static void remove_path(int root, struct worker_request *r)
{
	const char *name;
	int dir = find_parent(root, r, false, &name);
	int status = dir < 0 ? dir : unlinkat(dir, name, 0) < 0 ? -errno : 0;
	if (status == -EISDIR && dir >= 0)
		status = remove_dir(dir, name, r->flags & WORKER_TREE);
	if (dir >= 0)
		close(dir);
	answer(r, status);
}

/* ---- the filter ---- */

#define ALLOW(name)                                                                                \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1),                                     \
	        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* Nothing here makes a process, a socket, a mapping or a signal; x32 numbers match no row. */
static int lock(void)
{
	static struct sock_filter filter[] = {
	        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
	        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
	        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	        ALLOW(recvmsg),
	        ALLOW(sendmsg),
	        ALLOW(openat2),
	        ALLOW(close),
	        ALLOW(newfstatat),
	        ALLOW(fstat),
	        ALLOW(getdents64),
	        ALLOW(pread64),
	        ALLOW(read),
	        ALLOW(write),
	        ALLOW(mkdirat),
	        ALLOW(fchmod),
	        ALLOW(flock),
	        ALLOW(renameat2),
	        ALLOW(unlinkat),
	        ALLOW(restart_syscall),
	        ALLOW(exit_group),
	        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog prog = {.len = sizeof(filter) / sizeof(filter[0]), .filter = filter};
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog);
}

/* ---- requests ---- */

static void serve(const struct roots *roots, struct worker_request *r, int fd)
{
	int root = r->flags & WORKER_IN_HOME ? roots->home : roots->workspace;
	memset(&reply, 0, sizeof(reply));
	if (r->head.type == WORKER_LIST) {
		list(root, r);
	} else if (r->head.type == WORKER_OPEN) {
		open_file(root, r);
	} else if (r->head.type == WORKER_WRITE && fd >= 0) {
		write_file(root, r, fd);
	} else if (r->head.type == WORKER_READ && fd >= 0) {
		read_file(root, r, fd);
	} else if (r->head.type == WORKER_MKDIR) {
		make_dir(root, r);
	} else if (r->head.type == WORKER_REMOVE) {
		remove_path(root, r);
	} else {
		answer(r, -EINVAL);
	}
}

/* False at the end of the connection.  A malformed request ends it too: the supervisor never sends
 * one. */
static bool next_request(const struct roots *roots)
{
	static struct worker_request r;
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(MSG_FDS * sizeof(int))];
	} control;
	struct iovec io = {&r, sizeof(r)};
	struct msghdr msg = {.msg_iov = &io,
	        .msg_iovlen = 1,
	        .msg_control = &control,
	        .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(CONTROL, &msg, MSG_CMSG_CLOEXEC);
	if (n < 0 && errno == EINTR)
		return true;
	if (n != (ssize_t)sizeof(r) || r.head.magic != MSG_MAGIC || r.head.size != sizeof(r))
		return false;
	int fds[MSG_FDS], nfds = 0;
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
		nfds = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fds, CMSG_DATA(c), (size_t)nfds * sizeof(int));
	}
	r.path[sizeof(r.path) - 1] = '\0';
	serve(roots, &r, nfds > 0 ? fds[0] : -1);
	for (int i = 0; i < nfds; i++)
		close(fds[i]);
	return true;
}

int main(void)
{
	umask(022);
	/* A pipe whose other end is gone and a file beyond its limit are errors like others. */
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
	struct roots roots = {
	        .workspace = open("/workspace", O_PATH | O_DIRECTORY | O_CLOEXEC),
	        .home = open("/home/agent", O_PATH | O_DIRECTORY | O_CLOEXEC),
	};
	if (roots.workspace < 0 || roots.home < 0 || lock() < 0)
		return 1;
	while (next_request(&roots))
		;
	return 0;
}
