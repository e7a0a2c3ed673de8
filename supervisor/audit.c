#include "supervisor/audit.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	PATH_TEXT = 512,
	/* Lines about refusals: so many at once, then so many a second. */
	REFUSALS_AT_ONCE = 200,
	REFUSALS_A_SECOND = 10,
	NAME_TEXT = 32,
};

struct audit {
	int dirfd, fd; /* owned; fd: of the file that is written */
	uint64_t most, first, number, bytes;
	uint64_t lost;
	bool failing;
	int64_t refusals, refusals_ms; /* how many more may be told, as of then */
	struct list readers;
};

static void name_of(uint64_t number, char to[NAME_TEXT])
{
	(void)snprintf(to, NAME_TEXT, "%010" PRIu64 ".jsonl", number);
}

/* ---- files ---- */

static int open_number(const struct audit *a, uint64_t number, int flags)
{
	char name[NAME_TEXT];
	name_of(number, name);
	int fd = openat(a->dirfd, name, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd < 0 ? -errno : fd;
}

/* The numbers that are there: from first to number. */
static int look(struct audit *a, struct err *e)
{
	int fd = openat(a->dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		int r = err_errno(e, "audit log");
		fd_close(fd);
		return r;
	}
	const struct dirent *x;
	while ((x = readdir(dir))) {
		char *end;
		uint64_t n = strtoull(x->d_name, &end, 10);
		if (end == x->d_name || strcmp(end, ".jsonl") != 0 || n == 0)
			continue;
		if (!a->first || n < a->first)
			a->first = n;
		if (n > a->number)
			a->number = n;
	}
	closedir(dir);
	return 0;
}

static void drop_oldest(struct audit *a)
{
	char name[NAME_TEXT];
	while (a->number - a->first >= AUDIT_FILES) {
		name_of(a->first++, name);
		if (unlinkat(a->dirfd, name, 0) < 0 && errno != ENOENT)
			log_warn("audit log: %s: %s", name, strerror(errno));
	}
}

static int begin_file(struct audit *a, uint64_t number)
{
	struct stat st;
	int fd = open_number(a, number, O_WRONLY | O_CREAT | O_APPEND);
	if (fd < 0)
		return fd;
	fd_close(take_fd(a->fd));
	a->fd = fd;
	a->number = number;
	a->bytes = fstat(fd, &st) == 0 ? (uint64_t)st.st_size : 0;
	if (!a->first)
		a->first = number;
	drop_oldest(a);
	return 0;
}

struct audit *audit_new(int dirfd, uint64_t most, struct err *e)
{
	if (dirfd < 0)
		return NULL;
	struct audit *a = xnew(struct audit);
	a->dirfd = dirfd;
	a->fd = -1;
	a->most = most;
	a->refusals = REFUSALS_AT_ONCE;
	list_init(&a->readers);
	int r = look(a, e);
	if (r == 0) {
		r = begin_file(a, a->number ? a->number : 1);
		if (r < 0)
			(void)err_set(e, r, "audit log: %s", strerror(-r));
	}
	if (r == 0)
		return a;
	audit_free(a);
	return NULL;
}

void audit_free(struct audit *a)
{
	if (!a)
		return;
	fd_close(a->fd);
	fd_close(a->dirfd);
	free(a);
}

/* ---- writing ---- */

static bool may_tell(struct audit *a, bool refused)
{
	int64_t now = clock_mono_ms(), more = (now - a->refusals_ms) * REFUSALS_A_SECOND / 1000;
	if (!refused)
		return true;
	if (more > 0) {
		a->refusals = more > REFUSALS_AT_ONCE ? REFUSALS_AT_ONCE : a->refusals + more;
		if (a->refusals > REFUSALS_AT_ONCE)
			a->refusals = REFUSALS_AT_ONCE;
		a->refusals_ms = now;
	}
	if (a->refusals <= 0)
		return false;
	a->refusals--;
	return true;
}

static void line_of(const struct audit *a, const struct audit_entry *x, struct buf *to)
{
	char ts[CLOCK_TEXT_MAX];
	struct jw w = JW_INIT(to);
	clock_rfc3339(clock_wall_ms(), ts);
	jw_open(&w, NULL, '{');
	jw_str(&w, "ts", ts);
	if (x->remote)
		jw_bool(&w, "remote", true);
	else
		jw_int(&w, "uid", x->uid);
	jw_str(&w, "key", x->key);
	jw_str(&w, "keyId", x->key_id);
	jw_str(&w, "tenant", x->tenant);
	jw_str(&w, "method", x->method);
	size_t n = strlen(x->path);
	jw_bytes(&w, "path", x->path, n < PATH_TEXT ? n : PATH_TEXT);
	jw_int(&w, "status", x->status);
	if (x->refused)
		jw_bool(&w, "refused", true);
	jw_str(&w, "run", x->run);
	jw_str(&w, "session", x->session);
	if (a->lost)
		jw_int(&w, "lost", (int64_t)a->lost);
	jw_close(&w, '}');
	buf_putc(to, '\n');
}

/* Whole or not at all: what a full disk has taken of a line is cut off again. */
static int append(struct audit *a, const struct buf *line)
{
	int r = a->bytes > 0 && a->bytes + line->len > a->most ? begin_file(a, a->number + 1) : 0;
	if (r == 0)
		r = fd_write_all(a->fd, line->p, line->len);
	if (r < 0) {
		(void)!ftruncate(a->fd, (off_t)a->bytes); /* else that line is broken */
		return r;
	}
	a->bytes += line->len;
	return 0;
}

void audit_write(struct audit *a, const struct audit_entry *x)
{
	auto_buf struct buf line = BUF_INIT(AUDIT_LINE);
	if (!may_tell(a, x->refused)) {
		a->lost++;
		return;
	}
	line_of(a, x, &line);
	int r = line.failed ? -ENOBUFS : append(a, &line);
	if (r < 0 && !a->failing)
		log_err("audit log: %s; lines are lost until it can be written again",
		        strerror(-r));
	a->failing = r < 0;
	a->lost = r < 0 ? a->lost + 1 : 0;
	list_for_each (f, &a->readers, struct audit_reader, link)
		f->wake(f);
}

/* ---- reading ---- */

static int open_from(const struct audit *a, uint64_t *number)
{
	int fd = -1;
	for (; *number <= a->number; (*number)++) {
		fd = open_number(a, *number, O_RDONLY);
		if (fd >= 0)
			return fd;
	}
	*number = a->number;
	return -1;
}

void audit_follow(struct audit *a, struct audit_reader *r)
{
	r->audit = a;
	r->number = a->first;
	r->fd = open_from(a, &r->number);
	list_append(&a->readers, &r->link);
}

void audit_leave(struct audit_reader *r)
{
	list_remove(&r->link);
	fd_close(r->fd);
	r->fd = -1;
}

ssize_t audit_read(struct audit_reader *r, char *p, size_t max)
{
	for (;;) {
		ssize_t n = r->fd < 0 ? 0 : read(r->fd, p, max);
		if (n != 0 || r->number >= r->audit->number)
			return n;
		fd_close(take_fd(r->fd));
		r->number++;
		r->fd = open_from(r->audit, &r->number);
		if (r->fd < 0)
			return 0;
	}
}
