/*
 * Theory of operation.  The database is copied first (store_copy), then read with the rest as it is
 * then: logs of events and artifacts only grow, so what the copy knows of is there, and what came
 * behind it is what a supervisor that was killed would find, too.  Retention rests meanwhile.  The
 * last file is the digest of all names and bytes before it.
 */
#include "supervisor/api.h"

#include "base/clock.h"
#include "base/digest.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/ustar.h"
#include "base/version.h"
#include "proto/children.h"
#include "supervisor/daemon.h"
#include "supervisor/eventlog.h"
#include "supervisor/http.h"
#include "supervisor/problem.h"
#include "supervisor/store.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char copy_name[] = "backup.db"; /* below the state, until it is open */

enum part { PART_ABOUT, PART_DB, PART_EVENTS, PART_ARTIFACTS, PART_DIGEST, PART_END, PARTS };

struct backup {
	struct daemon *d;
	struct http_request *request; /* borrowed; NULL once the client left */
	enum part part;
	DIR *dir;         /* owned: of the part, or NULL */
	char run[ID_MAX]; /* whose artifacts are next, "": the next one's */
	unsigned n;       /* of that run */
	struct buf out;   /* headers, small files */
	size_t sent;
	int db;             /* owned */
	int fd;             /* owned: the file that is being sent, or -1 */
	off_t at;           /* in it */
	uint64_t left;      /* of it */
	uint64_t pad;       /* behind it */
	struct digest *sum; /* owned */
};

static void backup_free(void *ctx)
{
	struct backup *b = ctx;
	b->d->backups--;
	if (b->dir)
		closedir(b->dir);
	buf_done(&b->out);
	fd_close(b->db);
	fd_close(b->fd);
	digest_free(b->sum);
	free(b);
}

/* ---- files ---- */

/* What comes next is so many bytes of that name. */
static int begin(struct backup *b, const char *name, uint64_t size)
{
	char header[USTAR_BLOCK];
	if (!ustar_header(name, size, clock_wall_ms() / 1000, header)) {
		log_err("backup: %s is too large, or its name is", name);
		return -EFBIG;
	}
	digest_add(b->sum, name, strlen(name) + 1);
	buf_put(&b->out, header, sizeof(header));
	return 0;
}

static int put_text(struct backup *b, const char *name, const char *text)
{
	static const char zeros[USTAR_BLOCK];
	size_t n = strlen(text);
	int rc = begin(b, name, n);
	digest_add(b->sum, text, n);
	buf_puts(&b->out, text);
	buf_put(&b->out, zeros, ustar_padding(n));
	return rc;
}

/* Takes fd. */
static int put_file(struct backup *b, const char *name, int fd, uint64_t from, uint64_t to)
{
	b->fd = fd;
	b->at = (off_t)from;
	b->left = to > from ? to - from : 0;
	b->pad = ustar_padding(b->left);
	return begin(b, name, b->left);
}

/* ---- parts: 1: something is to be sent, 0: the part is over, or -errno ---- */

static int put_about(struct backup *b)
{
	char text[256], now[CLOCK_TEXT_MAX];
	clock_rfc3339(clock_wall_ms(), now);
	(void)snprintf(text, sizeof(text), "{\"format\":1,\"version\":\"%s\",\"at\":\"%s\"}\n",
	        AGENTBOX_VERSION, now);
	b->part++;
	return put_text(b, "agentbox-backup.json", text) < 0 ? -EFBIG : 1;
}

static int put_db(struct backup *b)
{
	struct stat st;
	b->part++;
	if (fstat(b->db, &st) < 0)
		return -errno;
	int rc = put_file(b, "db", take_fd(b->db), 0, (uint64_t)st.st_size);
	return rc < 0 ? rc : 1;
}

/* The next name in the part's directory that is an id with that suffix. */
static bool next_id(struct backup *b, const char *kind, const char *suffix, char ret[ID_MAX])
{
	for (struct dirent *it; b->dir && (it = readdir(b->dir));) {
		size_t n = strlen(it->d_name), s = strlen(suffix);
		if (n <= s || n - s >= ID_MAX || strcmp(it->d_name + n - s, suffix) != 0)
			continue;
		memcpy(ret, it->d_name, n - s);
		ret[n - s] = '\0';
		if (id_valid(ret, kind))
			return true;
	}
	return false;
}

static int open_part(struct backup *b, const char *name)
{
	if (b->dir)
		closedir(take(b->dir));
	int fd = openat(CHILD_STATE, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	b->dir = fd < 0 ? NULL : fdopendir(fd);
	return b->dir ? 0 : -errno;
}

static int put_events(struct backup *b)
{
	char session[ID_MAX], name[ID_MAX + 16];
	struct err e;
	int rc = b->dir ? 0 : open_part(b, "events");
	if (rc < 0)
		return rc;
	while (next_id(b, "ses", ".jsonl", session)) {
		uint64_t from, to;
		int fd = eventlog_raw(b->d->log, session, &from, &to, &e);
		if (fd < 0)
			continue; /* deleted meanwhile */
		(void)snprintf(name, sizeof(name), "events/%s.jsonl", session);
		rc = put_file(b, name, fd, from, to);
		return rc < 0 ? rc : 1;
	}
	b->part++;
	return open_part(b, "artifacts");
}

static int put_artifacts(struct backup *b)
{
	char name[ID_MAX + 32];
	struct stat st;
	while (b->run[0] || next_id(b, "run", "", b->run)) {
		(void)snprintf(name, sizeof(name), "artifacts/%s/%u", b->run, b->n);
		int fd = openat(CHILD_STATE, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		if (fd >= 0 && fstat(fd, &st) == 0) {
			b->n++;
			int rc = put_file(b, name, fd, 0, (uint64_t)st.st_size);
			return rc < 0 ? rc : 1;
		}
		fd_close(fd);
		b->run[0] = '\0';
		b->n = 0;
	}
	b->part++;
	return 0;
}

static int put_digest(struct backup *b)
{
	char sum[DIGEST_TEXT], header[USTAR_BLOCK], rest[3 * USTAR_BLOCK] = "";
	digest_end(take(b->sum), sum);
	b->part++;
	(void)!ustar_header("DIGEST", DIGEST_TEXT - 1, clock_wall_ms() / 1000, header);
	memcpy(rest, sum, DIGEST_TEXT - 1);
	buf_put(&b->out, header, sizeof(header));
	buf_put(&b->out, rest, sizeof(rest)); /* filled to a block, and the two of the end */
	return 1;
}

static int put_end(struct backup *b)
{
	(void)b;
	return 0;
}

static int (*const parts[PARTS])(struct backup *b) = {
        [PART_ABOUT] = put_about,
        [PART_DB] = put_db,
        [PART_EVENTS] = put_events,
        [PART_ARTIFACTS] = put_artifacts,
        [PART_DIGEST] = put_digest,
        [PART_END] = put_end,
};

/* ---- sending ---- */

/* What has become shorter meanwhile was no result yet. */
static ssize_t send_file(struct backup *b, char *p, size_t max)
{
	size_t want = b->left < max ? (size_t)b->left : max;
	ssize_t n = fd_pread_full(b->fd, p, want, b->at);
	if (n < 0)
		return n;
	memset(p + n, 0, want - (size_t)n);
	digest_add(b->sum, p, want);
	b->at += (off_t)want;
	b->left -= want;
	if (b->left == 0)
		fd_close(take_fd(b->fd));
	return (ssize_t)want;
}

static ssize_t send_padding(struct backup *b, char *p, size_t max)
{
	size_t n = b->pad < max ? (size_t)b->pad : max;
	memset(p, 0, n);
	b->pad -= n;
	return (ssize_t)n;
}

static ssize_t pull(void *ctx, char *p, size_t max)
{
	struct backup *b = ctx;
	for (;;) {
		if (b->sent < b->out.len)
			return http_give(&b->out, &b->sent, p, max);
		buf_clear(&b->out);
		b->sent = 0;
		if (b->left) {
			ssize_t n = send_file(b, p, max);
			return n < 0 ? HTTP_ABORT : n;
		}
		fd_close(take_fd(b->fd));
		if (b->pad)
			return send_padding(b, p, max);
		if (b->part == PART_END)
			return HTTP_END;
		if (parts[b->part](b) < 0)
			return HTTP_ABORT;
	}
}

static void on_copied(void *ctx, int rc, const struct err *e)
{
	struct backup *b = ctx;
	struct http_request *r = b->request;
	struct err why = {0};
	if (rc == 0 && (b->db = openat(CHILD_STATE, copy_name, O_RDONLY | O_CLOEXEC)) < 0)
		rc = err_errno(&why, "the copy of the database");
	if (rc != -EBUSY)
		(void)unlinkat(CHILD_STATE, copy_name, 0);
	if (rc < 0 && r)
		problem_err(r, why.code ? &why : e, PROBLEM_INTERNAL);
	if (rc < 0 || !r) {
		backup_free(b);
		return;
	}
	struct http_source source = {.pull = pull, .gone = backup_free, .ctx = b};
	http_stream(r, 200, "application/x-tar", -1, &source);
}

static void on_client_gone(void *ctx)
{
	((struct backup *)ctx)->request = NULL;
}

void api_backup(struct daemon *d, struct http_request *r)
{
	struct backup *b = xnew(struct backup);
	b->d = d;
	b->request = r;
	b->db = b->fd = -1;
	b->out = (struct buf)BUF_INIT((size_t)8 * USTAR_BLOCK);
	b->sum = digest_new();
	if (d->backups++ == 0)
		(void)unlinkat(CHILD_STATE, copy_name, 0); /* of one that was killed */
	http_on_gone(r, on_client_gone, b);
	store_copy(d->store, copy_name, on_copied, b);
}
