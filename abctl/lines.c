#include "abctl/lines.h"

#include "base/err.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

void lines_done(struct lines *l)
{
	buf_done(&l->rest);
}

int lines_read(struct lines *l)
{
	char bytes[4096];
	ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));
	if (n < 0)
		return errno == EINTR || errno == EAGAIN ? 0 : -errno;
	l->ended = n == 0;
	return buf_put(&l->rest, bytes, (size_t)n);
}

const char *lines_peek(const struct lines *l, size_t *ret_len)
{
	const char *nl = l->rest.len ? memchr(l->rest.p, '\n', l->rest.len) : NULL;
	if (!nl && !(l->ended && l->rest.len))
		return NULL;
	*ret_len = nl ? (size_t)(nl - l->rest.p) : l->rest.len;
	return l->rest.p;
}

void lines_drop(struct lines *l)
{
	buf_clear(&l->rest);
}

void lines_take(struct lines *l)
{
	size_t n;
	if (lines_peek(l, &n))
		buf_consume(&l->rest, n < l->rest.len ? n + 1 : n);
}
