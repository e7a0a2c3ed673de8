#include "base/limits.h"
#include "base/mem.h"
#include "jail/acp.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 64 << 10 };

/* An absolute path; NULL: refused.  Owned. */
static char *path_of(struct acp *a, const char *id, struct span params)
{
	char *path = acp_text(params, "path", ACP_PATH_MAX);
	if (path && *path == '/')
		return path;
	free(path);
	acp_refuse(a, id, ACP_INVALID_PARAMS, "path must be an absolute path");
	return NULL;
}

/* Of a regular file only, and without waiting for what is none; -1: refused.  Owned. */
static int open_plain(struct acp *a, const char *id, const char *path, int flags)
{
	struct stat st;
	int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return fd;
	int error = fd < 0 ? errno : S_ISDIR(st.st_mode) ? EISDIR : 0;
	if (fd >= 0)
		close(fd);
	if (error) {
		acp_refuse_errno(a, id, error, path);
		return -1;
	}
	auto_free char *text = xasprintf("%s: not a regular file", path);
	acp_refuse(a, id, ACP_INTERNAL, text);
	return -1;
}

/* ---- fs/read_text_file ---- */

/* A member that may be missing or null; false: it is no count. */
static bool count_of(struct span params, const char *name, uint64_t *ret)
{
	struct span value;
	if (!scan_member(params, name, &value) || *value.p == 'n')
		return true;
	return scan_number(value, ret);
}

/* Lines `skip` to `skip + limit` of it, with their newlines.  0, or an errno. */
static int read_lines(int fd, uint64_t skip, uint64_t limit, struct buf *to)
{
	static char chunk[CHUNK];
	uint64_t all = 0;
	ssize_t n = 0;
	while (limit && (n = read(fd, chunk, sizeof(chunk))) > 0) {
		if ((all += (uint64_t)n) > ACP_SCAN_MAX)
			return EFBIG;
		for (const char *p = chunk, *end = chunk + n; p < end && limit;) {
			const char *nl = memchr(p, '\n', (size_t)(end - p));
			const char *next = nl ? nl + 1 : end;
			if (!skip && buf_put(to, p, (size_t)(next - p)) < 0)
				return EFBIG;
			if (nl && skip)
				skip--;
			else if (nl)
				limit--;
			p = next;
		}
	}
	return n < 0 ? errno : 0;
}

void acp_read_file(struct acp *a, const char *id, struct span params)
{
	uint64_t line = 1, limit = UINT64_MAX;
	if (!count_of(params, "line", &line) || !count_of(params, "limit", &limit)) {
		acp_refuse(a, id, ACP_INVALID_PARAMS, "line and limit must be counts");
		return;
	}
	auto_free char *path = path_of(a, id, params);
	int fd = path ? open_plain(a, id, path, O_RDONLY) : -1;
	if (fd < 0)
		return;
	auto_buf struct buf text = BUF_INIT(ACP_TEXT_MAX), b = BUF_INIT(ACP_QUEUE_MAX);
	int error = read_lines(fd, line ? line - 1 : 0, limit, &text);
	close(fd);
	if (error) {
		acp_refuse_errno(a, id, error, path);
		return;
	}
	struct jw w = acp_reply_open(&b, id);
	jw_bytes(&w, "content", text.p ? text.p : "", text.len);
	acp_reply_close(a, &w);
}

/* ---- fs/write_text_file ---- */

/* The directories above it, as editors make them; what is there already is fine. */
static void make_parents(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)mkdir(path, 0777); /* the open says why, where it could not be made */
		*slash = '/';
	}
}

static int write_whole(int fd, const char *p, size_t n)
{
	if (ftruncate(fd, 0) < 0)
		return errno;
	while (n) {
		ssize_t done = write(fd, p, n);
		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return errno;
		p += done;
		n -= (size_t)done;
	}
	return 0;
}

/* What the agent does here it does not do itself: the driver is told. */
static void note_write(struct acp *a, const char *path, bool added)
{
	auto_buf struct buf b = BUF_INIT(LIMIT_LINE);
	struct jw w = acp_note_open(&b, "_agentbox/wrote");
	jw_str(&w, "path", path);
	jw_str(&w, "change", added ? "add" : "edit");
	acp_note_close(a, &w);
}

void acp_write_file(struct acp *a, const char *id, struct span params)
{
	struct span content;
	auto_buf struct buf text = BUF_INIT(LIMIT_LINE);
	if (!scan_member(params, "content", &content) || !scan_text(content, &text)) {
		acp_refuse(a, id, ACP_INVALID_PARAMS, "content must be a text");
		return;
	}
	auto_free char *path = path_of(a, id, params);
	if (!path)
		return;
	make_parents(path);
	struct stat st;
	bool added = stat(path, &st) < 0 && errno == ENOENT;
	int fd = open_plain(a, id, path, O_WRONLY | O_CREAT);
	if (fd < 0)
		return;
	int error = write_whole(fd, text.p, text.len);
	if (close(fd) < 0 && !error)
		error = errno;
	if (error) {
		acp_refuse_errno(a, id, error, path);
		return;
	}
	note_write(a, path, added);
	acp_reply(a, id, "{}");
}
