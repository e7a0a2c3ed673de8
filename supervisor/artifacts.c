/*
 * Theory of operation.  LIST first, remembering the plain files that match a
 * glob; then, one after the other, OPEN, fstat, copy in slices of the loop,
 * digest.  The size is fixed when the file is opened: never more than that is
 * read, and what ends earlier is kept as long as it is.
 */
#include "supervisor/artifacts.h"

#include "base/digest.h"
#include "base/fd.h"
#include "base/glob.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/veil.h"
#include "supervisor/files.h"
#include "supervisor/guard.h"
#include "supervisor/loop.h"
#include "supervisor/syncs.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	SKIPPED_MAX = 64, /* named in the result; more are only counted by their absence */
	SYNCED_AT_ONCE = 32,
};

struct artifacts {
	struct loop *loop;
	struct files *files; /* owned */
	int root_fd;
	int dir_fd; /* owned: artifacts/<run> */
	char run[ID_MAX];
	char *const *globs;
	struct guard *guard;     /* borrowed, or NULL */
	const struct veil *veil; /* likewise */
	char *prefix;            /* owned: directory that every match is below, "" for all */
	char **paths;            /* owned: what matched */
	size_t npaths, paths_room, next;
	/* the file being copied */
	int from, to; /* owned */
	uint64_t left, copied;
	struct digest *digest; /* owned */
	char *slice;           /* owned: ARTIFACT_SLICE bytes */
	uint64_t total, room;  /* of the run: kept, and how much may be */
	struct op turn;        /* the next slice, or the end */
	struct artifacts_result result;
	struct err err;
	bool ending;
	artifacts_done_fn *done;
	void *ctx;
};

void artifacts_result_done(struct artifacts_result *r)
{
	for (size_t i = 0; i < r->nfiles; i++)
		free(r->files[i].path);
	for (size_t i = 0; i < r->nskipped; i++)
		free(r->skipped[i].path);
	free(r->files);
	free(r->skipped);
	memset(r, 0, sizeof(*r));
}

/* ---- names ---- */

/* Valid UTF-8, relative, no empty, "." or ".." part. */
static bool name_ok(const char *path)
{
	const unsigned char *p = (const unsigned char *)path;
	while (*p) {
		int follow = *p < 0x80 ? 0 : *p >= 0xf0 ? 3 : *p >= 0xe0 ? 2 : 1;
		if (*p >= 0x80 && (*p < 0xc2 || *p > 0xf4))
			return false;
		if ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) ||
		        (*p == 0xf0 && p[1] < 0x90) || (*p == 0xf4 && p[1] > 0x8f))
			return false;
		for (int i = 1; i <= follow; i++)
			if ((p[i] & 0xc0) != 0x80)
				return false;
		p += follow + 1;
	}
	for (const char *part = path;; part = strchr(part, '/') + 1) {
		size_t n = strcspn(part, "/");
		if (n == 0 || (n == 1 && part[0] == '.') ||
		        (n == 2 && part[0] == '.' && part[1] == '.'))
			return false;
		if (!part[n])
			return true;
	}
}

static void skipped(struct artifacts_result *r, const char *path, const char *reason)
{
	if (r->nskipped == SKIPPED_MAX)
		return;
	r->skipped = xrealloc(r->skipped, r->nskipped + 1, sizeof(*r->skipped));
	r->skipped[r->nskipped++] = (struct artifact_skip){xstrdup(path), reason};
}

static void skip(struct artifacts *a, const char *path, const char *reason)
{
	skipped(&a->result, path, reason);
}

void artifacts_lose(struct artifacts_result *r, const char *reason)
{
	for (size_t i = 0; i < r->nfiles; i++) {
		skipped(r, r->files[i].path, reason);
		free(r->files[i].path);
	}
	free(take(r->files));
	r->nfiles = 0;
}

/* The directories in front of the first pattern character, when all globs share them: "out" of
 * "out" + "/" + "**".  A listing of node_modules is spared. */
static char *common_prefix(char *const *globs)
{
	size_t n = 0;
	for (size_t i = 0; globs[i]; i++) {
		size_t k = strcspn(globs[i], "*?");
		while (k && globs[i][k] != '/')
			k--; /* back to the end of a whole directory name */
		if (i == 0)
			n = k;
		while (n && (n > k || strncmp(globs[i], globs[0], n) != 0 ||
		                    (globs[0][n] != '/' && globs[0][n] != '\0')))
			n--;
	}
	while (n && globs[0][n] != '/')
		n--;
	return xstrndup(globs[0] ? globs[0] : "", n);
}

static bool matches(char *const *globs, const char *path)
{
	for (size_t i = 0; globs[i]; i++)
		if (glob_match(globs[i], path))
			return true;
	return false;
}

/* ---- ending ---- */

static void close_file(struct artifacts *a)
{
	fd_close(take_fd(a->from));
	fd_close(take_fd(a->to));
	digest_free(take(a->digest));
}

static void turn(struct op *op, int res, uint32_t flags);

static void end(struct artifacts *a, int rc, const char *text)
{
	if (a->ending)
		return;
	a->ending = true;
	close_file(a);
	files_close(take(a->files));
	if (rc < 0)
		err_set(&a->err, rc, "%s: %s", text, strerror(-rc));
	if (!a->turn.inflight)
		loop_timeout(a->loop, &a->turn, 0, turn);
}

void artifacts_abort(struct artifacts *a)
{
	end(a, -ETIMEDOUT, "collecting artifacts");
}

static void bury(struct artifacts *a)
{
	struct artifacts_result r = a->result;
	a->done(a->ctx, &r, a->err.code ? &a->err : NULL);
	for (size_t i = 0; i < a->npaths; i++)
		free(a->paths[i]);
	free(a->paths);
	free(a->prefix);
	free(a->slice);
	fd_close(a->dir_fd);
	free(a);
}

/* ---- copying ---- */

static void next_file(struct artifacts *a);

static void keep(struct artifacts *a)
{
	struct artifacts_result *r = &a->result;
	r->files = xrealloc(r->files, r->nfiles + 1, sizeof(*r->files));
	struct artifact *f = &r->files[r->nfiles++];
	memset(f, 0, sizeof(*f));
	f->path = xstrdup(a->paths[a->next]);
	f->bytes = a->copied;
	digest_end(take(a->digest), f->sha256);
	a->total += a->copied;
}

/* What is there of it would take what the next one, or a result, could have. */
static void no_room(struct artifacts *a)
{
	skip(a, a->paths[a->next], "no room on the disk of the state directory");
	(void)!ftruncate(a->to, 0); /* the name is the next one's, or the run's to remove */
}

static void deny(struct artifacts *a)
{
	end(a, -EKEYREJECTED, "collecting artifacts");
}

/* One slice; false when the file is at its end or failed. */
static bool copy_slice(struct artifacts *a)
{
	size_t most = a->guard ? ARTIFACT_SLICE_LOOKED : ARTIFACT_SLICE;
	size_t want = a->left < most ? (size_t)a->left : most;
	ssize_t n = want ? read(a->from, a->slice, want) : 0;
	if (n < 0 && errno == EINTR)
		return true;
	if (n < 0) {
		skip(a, a->paths[a->next], "cannot be read");
		return false;
	}
	if (n == 0) {
		if (a->guard && guard_end(a->guard))
			deny(a);
		else
			keep(a);
		return false;
	}
	/* These very bytes are what is kept. */
	if (a->guard && guard_feed(a->guard, a->slice, (size_t)n)) {
		deny(a);
		return false;
	}
	int rc = fd_write_all(a->to, a->slice, (size_t)n);
	if (rc == -ENOSPC || rc == -EDQUOT) {
		no_room(a);
		return false;
	}
	if (rc < 0) {
		end(a, rc, "keeping artifacts");
		return false;
	}
	digest_add(a->digest, a->slice, (size_t)n);
	a->copied += (uint64_t)n;
	a->left -= (uint64_t)n;
	return true;
}

static void turn(struct op *op, int res, uint32_t flags)
{
	(void)res;
	(void)flags;
	struct artifacts *a = container_of(op, struct artifacts, turn);
	if (a->ending) {
		bury(a);
		return;
	}
	if (copy_slice(a)) {
		loop_timeout(a->loop, &a->turn, 0, turn);
		return;
	}
	if (a->ending)
		return; /* end() has armed the next turn */
	close_file(a);
	a->next++;
	next_file(a);
}

static int begin_copy(struct artifacts *a, int fd)
{
	struct stat st;
	const char *path = a->paths[a->next];
	a->from = fd;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		skip(a, path, "not a plain file");
		return -EINVAL;
	}
	if ((uint64_t)st.st_size > ARTIFACT_FILE_MAX ||
	        (uint64_t)st.st_size > ARTIFACT_TOTAL_MAX - a->total) {
		skip(a, path, "too large");
		return -EFBIG;
	}
	if ((uint64_t)st.st_size > a->room - a->total) {
		skip(a, path, "no room on the disk of the state directory");
		return -ENOSPC;
	}
	char name[32];
	(void)snprintf(name, sizeof(name), "%zu", a->result.nfiles);
	a->to = openat(
	        a->dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (a->to < 0) {
		int rc = -errno;
		end(a, rc, "keeping artifacts");
		return rc;
	}
	if (a->guard)
		guard_begin(a->guard);
	a->left = (uint64_t)st.st_size;
	a->copied = 0;
	a->digest = digest_new();
	return 0;
}

/* Names are told, also of what is skipped. */
static bool names_denied(struct artifacts *a)
{
	bool no = false;
	for (size_t i = 0; a->guard && i < a->npaths && !no; i++)
		no = guard_denies(a->guard, a->paths[i], strlen(a->paths[i]));
	for (size_t i = 0; a->guard && i < a->result.nskipped && !no; i++) {
		const char *path = a->result.skipped[i].path;
		no = guard_denies(a->guard, path, strlen(path));
	}
	return no;
}

static void opened(void *ctx, int status, int fd, bool truncated)
{
	(void)truncated;
	struct artifacts *a = ctx;
	if (status == 0 && fd < 0)
		status = -EBADMSG;
	if (status < 0)
		skip(a, a->paths[a->next], "cannot be opened");
	if (status < 0 || begin_copy(a, fd) < 0) {
		if (a->ending)
			return;
		close_file(a);
		a->next++;
		next_file(a);
		return;
	}
	loop_timeout(a->loop, &a->turn, 0, turn);
}

static void next_file(struct artifacts *a)
{
	if (a->next < a->npaths)
		files_open(a->files, a->paths[a->next], opened, a);
	else
		end(a, 0, "");
}

/* ---- listing ---- */

static void entry(void *ctx, const struct worker_reply *w)
{
	struct artifacts *a = ctx;
	if (S_ISDIR(w->mode) || !matches(a->globs, w->path))
		return;
	auto_free char *shown = xstrdup(w->path);
	if (veil_text(a->veil, shown, strlen(shown))) {
		skip(a, shown, "its name has a secret in it");
	} else if (!name_ok(w->path)) {
		skip(a, w->path, "odd name");
	} else if (!S_ISREG(w->mode)) {
		skip(a, w->path, "not a plain file");
	} else if (a->npaths == LIMIT_ARTIFACTS) {
		skip(a, w->path, "too many");
	} else {
		if (a->npaths == a->paths_room) {
			a->paths_room = a->paths_room ? 2 * a->paths_room : 16;
			a->paths = xrealloc(a->paths, a->paths_room, sizeof(*a->paths));
		}
		a->paths[a->npaths++] = xstrdup(w->path);
	}
}

static int by_name(const void *x, const void *y)
{
	return strcmp(*(char *const *)x, *(char *const *)y);
}

static void listed(void *ctx, int status, int fd, bool truncated)
{
	struct artifacts *a = ctx;
	fd_close(fd);
	if (status < 0 && status != -ENOENT && status != -ENOTDIR) {
		end(a, status, "listing the workspace");
		return;
	}
	if (truncated)
		skip(a, a->prefix[0] ? a->prefix : ".", "too many files to list");
	if (a->npaths)
		qsort(a->paths, a->npaths, sizeof(*a->paths), by_name);
	if (names_denied(a))
		deny(a);
	else
		next_file(a);
}

/* ---- life ---- */

struct artifacts *artifacts_collect(struct loop *l, int worker_fd, int root_fd, const char *run,
        char *const *globs, uint64_t room, struct guard *guard, const struct veil *veil,
        artifacts_done_fn *done, void *ctx)
{
	struct artifacts *a = xnew(struct artifacts);
	a->loop = l;
	a->files = files_new(l, worker_fd);
	a->root_fd = root_fd;
	a->from = a->to = a->dir_fd = -1;
	(void)str_copy(a->run, sizeof(a->run), run); /* an id of ours */
	a->globs = globs;
	a->guard = guard;
	a->veil = veil;
	a->prefix = common_prefix(globs);
	a->slice = xcalloc(1, ARTIFACT_SLICE);
	a->room = room;
	a->done = done;
	a->ctx = ctx;
	if (mkdirat(root_fd, a->run, 0700) == 0 || errno == EEXIST)
		a->dir_fd = openat(root_fd, a->run, O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (a->dir_fd < 0)
		end(a, -errno, "keeping artifacts");
	else
		files_list(a->files, a->prefix, 0, entry, listed, a);
	return a;
}

int artifacts_open(int root_fd, const char *run, size_t n, struct err *e)
{
	char path[ID_MAX + 32];
	(void)snprintf(path, sizeof(path), "%.39s/%zu", run, n);
	int fd = id_valid(run, "run") ? openat(root_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
	                              : -1;
	return fd < 0 ? err_set(e, -ENOENT, "artifact %zu of '%.40s' is not there", n, run) : fd;
}

static int sync_some(
        int root_fd, const char *run, size_t from, size_t n, struct syncs *s, struct err *e)
{
	struct sync_item items[SYNCED_AT_ONCE];
	size_t opened = 0;
	int rc = 0;
	for (; opened < n && rc == 0; opened += rc == 0) {
		items[opened].fd = artifacts_open(root_fd, run, from + opened, e);
		rc = items[opened].fd < 0 ? items[opened].fd : 0;
	}
	if (rc == 0)
		syncs_run(s, items, n);
	for (size_t i = 0; i < opened; i++) {
		if (rc == 0 && items[i].rc < 0)
			rc = err_set(e, items[i].rc, "artifact %zu of %s: sync: %s", from + i, run,
			        strerror(-items[i].rc));
		fd_close(items[i].fd);
	}
	return rc;
}

int artifacts_sync(int root_fd, const char *run, size_t n, struct syncs *s, struct err *e)
{
	for (size_t i = 0; i < n; i += SYNCED_AT_ONCE) {
		size_t some = n - i < SYNCED_AT_ONCE ? n - i : SYNCED_AT_ONCE;
		int rc = sync_some(root_fd, run, i, some, s, e);
		if (rc < 0)
			return rc;
	}
	auto_close int dir = openat(root_fd, run, O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (dir < 0 || fsync(dir) < 0 || fsync(root_fd) < 0)
		return err_errno(e, "artifacts of %s: sync", run);
	return 0;
}

int artifacts_remove_some(int root_fd, const char *run, size_t most, struct err *e)
{
	if (!id_valid(run, "run"))
		return err_set(e, -EINVAL, "'%.40s' is no run id", run);
	auto_close int dir = openat(root_fd, run, O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (dir < 0)
		return 0;
	/* Numbers from 0 on, without a gap: from the end, so that it stays so. */
	size_t n = 0, left = most;
	char name[32];
	do
		(void)snprintf(name, sizeof(name), "%zu", n);
	while (faccessat(dir, name, F_OK, 0) == 0 && ++n < LIMIT_ARTIFACTS);
	while (n && left) {
		(void)snprintf(name, sizeof(name), "%zu", --n);
		if (unlinkat(dir, name, 0) < 0)
			return err_errno(e, "artifacts of %s: remove", run);
		left--;
	}
	if (n)
		return 1;
	if (unlinkat(root_fd, run, AT_REMOVEDIR) < 0)
		return err_errno(e, "artifacts of %s: remove", run);
	return 0;
}

int artifacts_remove(int root_fd, const char *run, struct err *e)
{
	return artifacts_remove_some(root_fd, run, LIMIT_ARTIFACTS, e);
}
