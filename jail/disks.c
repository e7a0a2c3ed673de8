/*
 * Theory of operation: a session's directory is opened in the state it is in.
 * What it lacks is the work of a child (a job), after which it is opened again:
 *
 *	image, right size	mount it, set the ballast
 *	image, wrong size	job: a new one with the old one's tree, renamed over it
 *	no image, quota here	marked: set the limits
 *				empty: mark it; else job: mark what is there, itself last
 *	no image, image here	job: a new one with the directories as they are
 *
 * The new image has no name (O_TMPFILE) until it is complete, so that a daemon
 * that dies leaves nothing and loses nothing.
 */
#include "jail/disks.h"
#include "base/fd.h"
#include "base/ids.h"
#include "base/mem.h"
#include "jail/image.h"
#include "jail/mounts.h"
#include "jail/projects.h"
#include "jail/sessions.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define IMAGE     "disk.img"
#define NEW_IMAGE "disk.new"
#define GIB       ((uint64_t)1 << 30)

enum {
	/* Where the policy does not count files: one for each 16 KiB, as mke2fs does. */
	BYTES_PER_INODE = 16384,
	MIN_INODES = 16384,
	/* Of the host's disk: a twentieth, or this if that is less, stays free. */
	RESERVE_SHARE = 20,
};
#define RESERVE_MAX GIB

/* ---- of the host ---- */

static const char *find_mke2fs(void)
{
	static const char *const places[] = {"/sbin/mke2fs", "/usr/sbin/mke2fs"};
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (access(places[i], X_OK) == 0)
			return places[i];
	return NULL;
}

static int image_probe(const struct disks *d, struct err *e)
{
	if (!d->mke2fs)
		return err_set(e, -ENOENT, "no mke2fs (e2fsprogs)");
	if (access("/dev/loop-control", R_OK | W_OK) < 0)
		return err_errno(e, "/dev/loop-control");
	auto_close int file = openat(d->state->sessions, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	return file < 0 ? err_errno(e, "files without a name") : 0;
}

static int start_image(
        const struct disks *d, const struct image_size *size, struct disks_job *job, struct err *e);
static void job_close(struct disks_job *job);

/* One is made and mounted for real. */
static int image_try(const struct disks *d, struct err *e)
{
	int r = image_probe(d, e);
	struct disks_job job = DISKS_JOB_NONE;
	const struct image_size size = {.bytes = GIB / 64, .inodes = MIN_INODES};
	auto_close int dir = openat(d->state->sessions, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	job.dir = dir < 0 ? -1 : fcntl(dir, F_DUPFD_CLOEXEC, 0);
	if (r == 0)
		r = job.dir < 0 ? err_errno(e, "sessions") : start_image(d, &size, &job, e);
	if (r < 0) {
		job_close(&job);
		return r;
	}
	(void)unlinkat(dir, IMAGE, 0); /* of a daemon that died here */
	job.work = DISKS_IMAGE;
	r = disks_job_end(&job, child_reap(&job.child, -1), e);
	if (r < 0)
		return r;
	auto_close int root = image_mount(dir, IMAGE, e);
	(void)unlinkat(dir, IMAGE, 0);
	int set = root < 0 ? root : image_limit(root, size.bytes, e);
	return set < 0 ? set : 0;
}

void disks_open(struct disks *d, const struct state *s)
{
	/* With quota too: sessions of other days have images. */
	*d = (struct disks){.state = s, .method = JAIL_DISK_QUOTA, .mke2fs = find_mke2fs()};
	struct err quota, image;
	if (projects_probe(s->sessions, &quota) == 0)
		return;
	d->method = JAIL_DISK_IMAGE;
	if (image_try(d, &image) == 0)
		return;
	d->method = JAIL_DISK_NONE;
	(void)err_set(&d->why, -EOPNOTSUPP, "quota: %s; image: %s", quota.text, image.text);
}

/* ---- room on the host ---- */

/* `more` beyond what is used already; 0: nothing is promised. */
static int check_room(const struct disks *d, uint64_t promised, uint64_t more, struct err *e)
{
	struct statvfs fs;
	if (more == 0)
		return 0;
	if (fstatvfs(d->state->sessions, &fs) < 0)
		return err_errno(e, "statvfs of the state directory");
	uint64_t all = (uint64_t)fs.f_blocks * fs.f_frsize,
	         free = (uint64_t)fs.f_bavail * fs.f_frsize;
	uint64_t reserve = all / RESERVE_SHARE < RESERVE_MAX ? all / RESERVE_SHARE : RESERVE_MAX;
	uint64_t kept = reserve < free ? reserve : free;
	if (more <= free - kept && promised <= free - kept - more)
		return 0;
	return err_set(e, -ENOSPC,
	        "the state's disk has %llu MiB free, of which running jails may "
	        "use %llu and %llu stay free; this one may use %llu (remedy: room on it, or a "
	        "lower limits.disk)",
	        (unsigned long long)(free >> 20), (unsigned long long)(promised >> 20),
	        (unsigned long long)(reserve >> 20), (unsigned long long)(more >> 20));
}

bool disks_room(const struct disks *d, uint64_t promised)
{
	return check_room(d, promised, 1, NULL) == 0;
}

/* ---- jobs ---- */

static void job_close(struct disks_job *job)
{
	fd_close(take_fd(job->dir));
	fd_close(take_fd(job->image));
	fd_close(take_fd(job->source));
	fd_close(take_fd(job->said));
}

void disks_job_abort(struct disks_job *job)
{
	child_kill(&job->child);
	if (job->child.pidfd >= 0)
		(void)child_reap(&job->child, -1);
	job_close(job);
}

static int start_image(
        const struct disks *d, const struct image_size *size, struct disks_job *job, struct err *e)
{
	if (!d->mke2fs)
		return err_set(e, -ENOENT, "no mke2fs (remedy: e2fsprogs)");
	job->image = openat(job->dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	job->said = memfd_create("mke2fs", MFD_CLOEXEC);
	/* mke2fs opens it by /proc/self/fd, as who it is */
	if (job->image < 0 || job->said < 0 || fchown(job->image, ID_IMAGES, ID_IMAGES) < 0)
		return err_errno(e, "a file for the image");
	struct image_command c;
	image_command(&c, size, job->source >= 0);
	const int fds[] = {job->image, job->source};
	const struct child_spec spec = {.path = d->mke2fs,
	        .argv = c.argv,
	        .fds = fds,
	        .nfds = job->source < 0 ? 1 : 2,
	        .stderr_fd = job->said,
	        .shut_in = true,
	        .uid = ID_IMAGES,
	        .reads_all = job->source >= 0};
	return child_start(&spec, &job->child, e);
}

/* The last line that the child wrote. */
static void said(int fd, char *out, size_t size)
{
	char text[1024];
	ssize_t n = fd_pread_full(fd, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	for (size_t k = strlen(text); k > 0 && text[k - 1] == '\n';)
		text[--k] = '\0';
	const char *line = strrchr(text, '\n');
	(void)str_copy(out, size, line ? line + 1 : text);
}

static int judge_child(const struct disks_job *job, int status, struct err *e)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	char how[32], why[ERR_TEXT_MAX / 2];
	child_status_text(status, how);
	if (job->work == DISKS_ADOPT)
		return err_set(e, -EIO,
		        "layer limit.disk: counting the files of session %s: %s (remedy: under a "
		        "policy without limits.disk and limits.inodes it has its files; fewer "
		        "levels of directories)",
		        job->session, WIFEXITED(status) ? strerror(WEXITSTATUS(status)) : how);
	said(job->said, why, sizeof(why));
	if (!job->session[0]) /* the probe */
		return err_set(e, -EIO, "mke2fs: %s: %s", how, why);
	return err_set(e, -EIO,
	        "layer limit.disk: making the image of session %s: mke2fs: %s: %s (remedy: "
	        "limits.disk and limits.inodes that its files fit in; under a policy without "
	        "them it has its files)",
	        job->session, how, why);
}

/* A name for the complete image.  What it was copied from goes only now. */
static int put_image(const struct disks_job *job, struct err *e)
{
	char path[64];
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", job->image);
	bool replace = job->work == DISKS_REPLACE;
	const char *name = replace ? NEW_IMAGE : IMAGE;
	if (fchown(job->image, 0, 0) < 0 || fsync(job->image) < 0)
		return err_errno(e, "%s", name);
	if (replace && unlinkat(job->dir, name, 0) < 0 && errno != ENOENT)
		return err_errno(e, "%s of a former daemon", name);
	if (linkat(AT_FDCWD, path, job->dir, name, AT_SYMLINK_FOLLOW) < 0)
		return err_errno(e, "naming %s", name);
	if (replace && renameat(job->dir, name, job->dir, IMAGE) < 0)
		return err_errno(e, "replacing " IMAGE);
	if (fsync(job->dir) < 0)
		return err_errno(e, "directory of the session");
	return 0;
}

int disks_job_end(struct disks_job *job, int status, struct err *e)
{
	int r = judge_child(job, status, e);
	if (r == 0 && job->work == DISKS_ADOPT) {
		r = projects_mark(job->dir, job->project);
		if (r < 0)
			(void)err_set(e, r, "marking the session: %s", strerror(-r));
	} else if (r == 0 && job->work != DISKS_WAIT) {
		r = put_image(job, e);
	}
	job_close(job);
	return r;
}

/* ---- one session ---- */

static int begin(struct disks_job *job, const struct disks_ask *ask, enum disks_work work, int dir,
        struct err *e)
{
	*job = (struct disks_job)DISKS_JOB_NONE;
	job->work = work;
	(void)str_copy(job->session, sizeof(job->session), ask->session);
	job->dir = fcntl(dir, F_DUPFD_CLOEXEC, 0);
	return job->dir < 0 ? err_errno(e, "session %s", ask->session) : 0;
}

static int begun(struct disks_job *job, int r)
{
	if (r < 0)
		job_close(job);
	return r < 0 ? r : -EINPROGRESS;
}

/* The names that a session's directory has, lost+found and the like not counted. */
static bool has_files(int dir)
{
	return faccessat(dir, "workspace", F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
	       faccessat(dir, "home", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool limited(const struct limits *l)
{
	return l->disk_bytes || l->inodes;
}

/* No image has more: a harness that may ask for any number must not get one that cannot be made. */
static uint64_t image_inodes(uint64_t limit, uint64_t files)
{
	uint64_t most = limit < IMAGE_INODES_MAX ? limit : IMAGE_INODES_MAX;
	return most > files || !limit ? most : files;
}

/* Bytes for the most that the policy gives, so that harnesses which take less do not have it made
 * anew; inodes cannot be occupied by a ballast, so they are what is asked, or the `files` there are
 * already: they stay, and none can be added. */
static int size_of(const struct disks *d, const struct disks_ask *ask, uint64_t files,
        struct image_size *ret, struct err *e)
{
	struct statvfs fs;
	if (fstatvfs(d->state->sessions, &fs) < 0)
		return err_errno(e, "statvfs of the state directory");
	uint64_t all = (uint64_t)fs.f_blocks * fs.f_frsize, ceiling = ask->ceiling->disk_bytes;
	if (ask->limits->disk_bytes > IMAGE_BYTES_MAX)
		return err_set(e, -E2BIG,
		        "no image holds more than %llu TiB (remedy: a lower limits.disk, or "
		        "project quota)",
		        (unsigned long long)(IMAGE_BYTES_MAX >> 40));
	ret->bytes = ceiling && ceiling < all ? ceiling : all;
	ret->bytes = ret->bytes < IMAGE_BYTES_MAX ? ret->bytes : IMAGE_BYTES_MAX;
	uint64_t some = ret->bytes / BYTES_PER_INODE;
	some = some < MIN_INODES ? MIN_INODES : some > IMAGE_INODES_MAX ? IMAGE_INODES_MAX : some;
	ret->inodes = ask->limits->inodes ? image_inodes(ask->limits->inodes, files) : some;
	return 0;
}

static int new_image(const struct disks *d, const struct disks_ask *ask, int dir, int tree,
        struct disks_job *job, struct err *e)
{
	struct image_size size;
	struct image_usage used = {.bytes = 0};
	int r = tree >= 0 ? image_usage(tree, &used, e) : 0;
	if (r == 0) /* the copy, and then what may be written besides */
		r = check_room(d, ask->promised,
		        used.bytes + disk_left(ask->limits->disk_bytes, used.bytes), e);
	if (r == 0)
		r = size_of(d, ask, used.inodes, &size, e);
	if (r == 0)
		r = begin(job, ask, tree >= 0 ? DISKS_REPLACE : DISKS_IMAGE, dir, e);
	if (r < 0)
		return r;
	if (tree >= 0) {
		/* the ballast is not to be copied */
		if (unlinkat(tree, "ballast", 0) < 0 && errno != ENOENT)
			r = err_errno(e, "ballast");
		if (r == 0)
			r = mounts_restrict(tree, MOUNT_ATTR_RDONLY, e);
		job->source = fcntl(tree, F_DUPFD_CLOEXEC, 0);
	} else if (has_files(dir)) {
		job->source = mounts_clone(dir, "", MOUNTS_NSD | MOUNT_ATTR_RDONLY, -1, e);
		r = job->source < 0 ? job->source : 0;
	}
	return begun(job, r < 0 ? r : start_image(d, &size, job, e));
}

/* The directories that were copied into the image. */
static int drop_originals(const struct disks *d, int dir, struct err *e)
{
	static const char *const names[] = {"workspace", "home"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		int r = trash_put(d->state, dir, names[i]);
		if (r < 0 && r != -ENOENT)
			return err_set(
			        e, r, "%s, copied into " IMAGE ": %s", names[i], strerror(-r));
	}
	return 0;
}

static int open_image(const struct disks *d, const struct disks_ask *ask, int dir, struct disk *k,
        struct disks_job *job, struct err *e)
{
	const struct limits *l = ask->limits;
	auto_close int root = image_mount(dir, IMAGE, e);
	if (root == -EAGAIN)
		return begun(job, begin(job, ask, DISKS_WAIT, dir, e));
	if (root < 0)
		return root;
	/* To pass through, as the session's directory on the host's file system is: 0700 of root.
	 */
	if (fchmodat(root, ".", 0700, 0) < 0 || fchownat(root, ".", 0, 0, 0) < 0)
		return err_errno(e, IMAGE);
	struct image_usage used;
	int r = image_usage(root, &used, e);
	if (r < 0)
		return r;
	const struct image_size need = {
	        .bytes = l->disk_bytes, .inodes = image_inodes(l->inodes, used.inodes)};
	bool fits = !limited(l) || image_fits(root, &need);
	if (!fits && !ask->as_it_is)
		return d->method == JAIL_DISK_NONE ? err_set(e, d->why.code, "%s", d->why.text)
		                                   : new_image(d, ask, dir, root, job, e);
	r = drop_originals(d, dir, e);
	int set = r < 0 ? r : image_limit(root, l->disk_bytes, e);
	r = set < 0 ? set : check_room(d, ask->promised, disk_left(l->disk_bytes, used.bytes), e);
	if (r == 0)
		r = session_places(root, &k->workspace, &k->home, e);
	if (r < 0)
		return r;
	k->method = fits ? JAIL_DISK_IMAGE : JAIL_DISK_NONE;
	k->above = set == 0;
	k->tree = take_fd(root);
	return 0;
}

static int mark_new(int dir, uint32_t *ret, struct err *e)
{
	int r = projects_new(dir, ret, e);
	if (r < 0)
		return r;
	r = projects_mark(dir, *ret);
	return r < 0 ? err_set(e, r, "no project number: %s", strerror(-r)) : 0;
}

static int adopt(const struct disks_ask *ask, int dir, struct disks_job *job, struct err *e)
{
	int r = begin(job, ask, DISKS_ADOPT, dir, e);
	if (r == 0)
		r = projects_new(dir, &job->project, e);
	return begun(job, r < 0 ? r : session_adopt(job->dir, job->project, &job->child, e));
}

static int open_quota(const struct disks *d, const struct disks_ask *ask, int dir, struct disk *k,
        struct disks_job *job, struct err *e)
{
	const struct limits *l = ask->limits;
	struct projects_usage used;
	int r = projects_of(dir, &k->project, e);
	if (r == 0 && !k->project) {
		if (has_files(dir))
			return adopt(ask, dir, job, e);
		r = mark_new(dir, &k->project, e);
	}
	if (r == 0)
		r = projects_limit(dir, k->project, l->disk_bytes, l->inodes, e);
	if (r == 0)
		r = projects_usage(dir, k->project, &used, e);
	if (r == 0)
		r = check_room(d, ask->promised, disk_left(l->disk_bytes, used.bytes), e);
	if (r == 0)
		r = session_places(dir, &k->workspace, &k->home, e);
	k->method = JAIL_DISK_QUOTA;
	k->state = d->state->sessions;
	return r;
}

/* Files from before there were limits, and none is wanted now. */
static bool stays_plain(const struct disks_ask *ask, int dir)
{
	uint32_t project = 0;
	return !limited(ask->limits) && has_files(dir) && projects_of(dir, &project, NULL) == 0 &&
	       !project;
}

static int open_one(const struct disks *d, const struct disks_ask *ask, int dir, struct disk *k,
        struct disks_job *job, struct err *e)
{
	if (faccessat(dir, IMAGE, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return open_image(d, ask, dir, k, job, e);
	/* without a limit too: one that gets a limit some day need not be taken over then */
	if (d->method == JAIL_DISK_QUOTA && !stays_plain(ask, dir))
		return open_quota(d, ask, dir, k, job, e);
	if (!limited(ask->limits) || ask->as_it_is)
		return session_places(dir, &k->workspace, &k->home, e);
	if (d->method == JAIL_DISK_IMAGE)
		return new_image(d, ask, dir, -1, job, e);
	if (ask->may_be_lost && !has_files(dir)) {
		k->method = JAIL_DISK_TMPFS; /* the kit's; no directories */
		return 0;
	}
	return err_set(e, d->why.code, "%s", d->why.text);
}

int disks_session(const struct disks *d, const struct disks_ask *ask, struct disk *ret,
        struct disks_job *job, struct err *e)
{
	struct disk k = DISK_NONE;
	auto_close int dir = session_dir(d->state, ask->session, e);
	if (dir < 0)
		return dir;
	int r = open_one(d, ask, dir, &k, job, e);
	if (r < 0) {
		disk_done(&k, NULL);
		const char *layer = limited(ask->limits) ? "layer limit.disk: " : "";
		return r == -EINPROGRESS ? r : err_wrap(e, "%ssession %s", layer, ask->session);
	}
	if (k.method != JAIL_DISK_NONE) {
		k.bytes = ask->limits->disk_bytes;
		k.inodes = ask->limits->inodes;
	}
	(void)disk_look(&k); /* what is full already is told by the first look in the run */
	k.told = 0;
	*ret = k;
	return 0;
}

void disks_forget(const struct disks *d, const char *session)
{
	auto_close int dir = openat(
	        d->state->sessions, session, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	uint32_t project;
	if (dir >= 0 && d->method == JAIL_DISK_QUOTA && projects_of(dir, &project, NULL) == 0 &&
	        project)
		(void)!projects_limit(dir, project, 0, 0, NULL); /* the files go in a moment */
}
