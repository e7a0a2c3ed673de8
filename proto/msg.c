#include "proto/msg.h"
#include "base/fd.h"

#include <assert.h>
#include <string.h>
#include <sys/socket.h>

int msg_send(int sock, void *m, size_t size, const int *fds, int nfds)
{
	assert(nfds <= MSG_FDS);
	struct msg_head *h = m;
	h->magic = MSG_MAGIC;
	h->size = (uint32_t)size;
	h->nfds = (uint16_t)nfds;
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(MSG_FDS * sizeof(int))] = {0};
	struct iovec io = {m, size};
	struct msghdr msg = {.msg_iov = &io, .msg_iovlen = 1};
	if (nfds > 0) {
		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE((size_t)nfds * sizeof(int));
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		assert(c); /* there is room for one */
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN((size_t)nfds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, (size_t)nfds * sizeof(int));
	}
	ssize_t n;
	do {
		n = sendmsg(sock, &msg, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

static int collect_fds(struct msghdr *msg, int ret_fds[MSG_FDS])
{
	int n = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (n < MSG_FDS)
				ret_fds[n++] = fd;
			else
				fd_close(fd);
		}
	}
	return n;
}

int msg_recv(int sock, void *buf, int ret_fds[MSG_FDS])
{
	for (int i = 0; i < MSG_FDS; i++)
		ret_fds[i] = -1;
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(MSG_FDS * sizeof(int))];
	struct iovec io = {buf, MSG_MAX};
	struct msghdr msg = {.msg_iov = &io,
	        .msg_iovlen = 1,
	        .msg_control = control,
	        .msg_controllen = sizeof(control)};
	ssize_t n;
	do {
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	int nfds = collect_fds(&msg, ret_fds);
	if (n == 0 && nfds == 0)
		return 0;
	struct msg_head h;
	bool ok = (size_t)n >= sizeof(h) && !(msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC));
	if (ok) {
		memcpy(&h, buf, sizeof(h));
		ok = h.magic == MSG_MAGIC && h.size == (size_t)n && h.nfds == nfds;
	}
	if (ok)
		return (int)n;
	for (int i = 0; i < MSG_FDS; i++) {
		fd_close(ret_fds[i]);
		ret_fds[i] = -1;
	}
	return -EBADMSG;
}

bool msg_text_ok(const char *field, size_t size)
{
	return memchr(field, '\0', size) != NULL;
}
