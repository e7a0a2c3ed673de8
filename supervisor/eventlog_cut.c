/*
 * Theory of operation.  Old events are a prefix of the file, and go by a hole that is punched into
 * it: in one call whatever their size, with no second copy of what stays, and every offset that a
 * reader holds stays right.  A hole reads as NULs, which no line begins with, so that a hole that a
 * power cut has left in pieces is passed over.
 */
#include "supervisor/eventlog.h"

#include "base/fd.h"
#include "base/mem.h"
#include "supervisor/eventlog_private.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOOK_BYTES = 4096 };

uint64_t eventlog_start(int fd)
{
	off_t at = lseek(fd, 0, SEEK_DATA);
	if (at <= 0)
		return 0; /* nothing has gone, or nothing is there, or holes are not told */
	for (;;) {
		char p[LOOK_BYTES];
		ssize_t n = fd_pread_full(fd, p, sizeof(p), at);
		if (n <= 0)
			return (uint64_t)at;
		size_t zeros = 0;
		while (zeros < (size_t)n && p[zeros] == '\0')
			zeros++;
		at += (off_t)zeros;
		if (zeros < (size_t)n)
			return (uint64_t)at;
	}
}

uint64_t eventlog_at(const struct log *l, uint64_t seq)
{
	uint64_t at = logline_index_find(&l->index, seq);
	return at > l->start ? at : l->start;
}

uint64_t eventlog_first(struct eventlog *g, const char *session)
{
	struct eventlog_cursor c;
	const struct log *l = eventlog_log(g, session);
	if (!l && eventlog_seek(g, session, 0, &c, NULL) == 0)
		l = eventlog_log(g, session);
	return l && l->first ? l->first : 1;
}

int eventlog_raw(struct eventlog *g, const char *session, uint64_t *ret_from, uint64_t *ret_to,
        struct err *e)
{
	char name[ID_MAX + 8];
	struct stat st;
	(void)snprintf(name, sizeof(name), "%.39s.jsonl", session);
	auto_close int fd = openat(g->dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(e, "events of %s", session);
	const struct log *l = eventlog_log(g, session);
	*ret_from = l ? l->start : eventlog_start(fd);
	*ret_to = l ? l->visible : (uint64_t)st.st_size;
	return take_fd(fd);
}

int eventlog_cut(struct eventlog *g, const char *session, uint64_t seq, struct err *e)
{
	struct eventlog_cursor c;
	int rc = eventlog_seek(g, session, seq, &c, e);
	struct log *l = rc < 0 ? NULL : eventlog_log(g, session);
	if (!l || l->first_hidden < l->nhidden)
		return rc;
	bool all = c.offset >= l->last;
	uint64_t to = all ? l->last : c.offset;
	if (to <= l->start)
		return 0;
	if (fallocate(l->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)to) < 0)
		return err_errno(e, "events of %s: give room back", session);
	l->start = to;
	l->first = all ? l->next - 1 : c.seq;
	return 0;
}
