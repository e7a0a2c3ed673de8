/*
 * Theory of operation: a session is opened by a child (place.h).  Where it has
 * to be made ready first, that is the work of others, one after the other:
 *
 *	OPEN -> ready
 *	OPEN -> WAIT (a while) -> OPEN
 *	OPEN -> FILL (mke2fs) -> NAME -> OPEN
 *	OPEN -> COUNT -> OPEN
 *
 * What is there already and has no limit is opened by agentboxd itself: that reads three names,
 * and writes nothing where there is no quota.
 */
#include "jail/disks.h"
#include "base/fd.h"
#include "base/ids.h"
#include "base/mem.h"
#include "jail/image.h"
#include "jail/place.h"
#include "jail/projects.h"
#include "jail/sessions.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define GIB ((uint64_t)1 << 30)

enum {
	PROBE_INODES = 16384,
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
        const struct disks *d, struct disks_job *job, const struct image_size *size, struct err *e);
static int judge_mke2fs(const struct disks_job *job, int status, struct err *e);

/* One is made and mounted for real.  Waits for the disk. */
static int image_try(const struct disks *d, struct err *e)
{
	const struct image_size size = {.bytes = GIB / 64, .inodes = PROBE_INODES};
	auto_job struct disks_job job = DISKS_JOB_NONE;
	int r = image_probe(d, e);
	if (r < 0)
		return r;
	int dir = job.dir = openat(d->state->sessions, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_errno(e, "sessions");
	job.image = openat(dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (job.image < 0 || fchown(job.image, ID_IMAGES, ID_IMAGES) < 0)
		return err_errno(e, "a file for the image");
	r = start_image(d, &job, &size, e);
	if (r == 0)
		r = judge_mke2fs(&job, child_reap(&job.job.child, -1), e);
	(void)unlinkat(dir, DISKS_IMAGE, 0); /* of a daemon that died here */
	if (r == 0)
		r = place_put_image(dir, job.image, false, e);
	if (r < 0)
		return r;
	auto_close int root = image_mount(dir, DISKS_IMAGE, e);
	(void)unlinkat(dir, DISKS_IMAGE, 0);
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

int disks_check_room(const struct disks *d, uint64_t promised, uint64_t more, struct err *e)
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
	return disks_check_room(d, promised, 1, NULL) == 0;
}

/* ---- jobs ---- */

void disks_job_close(struct disks_job *job)
{
	job_forget(&job->job);
	fd_close(take_fd(job->dir));
	fd_close(take_fd(job->image));
	fd_close(take_fd(job->source));
	fd_close(take_fd(job->said));
}

void disks_job_abort(struct disks_job *job, struct reaper *r)
{
	reaper_give(r, &job->job.child, job->ask.session);
	disks_job_close(job);
}

static int start_image(
        const struct disks *d, struct disks_job *job, const struct image_size *size, struct err *e)
{
	if (!d->mke2fs)
		return err_set(e, -ENOENT, "no mke2fs (remedy: e2fsprogs)");
	job->said = memfd_create("mke2fs", MFD_CLOEXEC);
	if (job->said < 0)
		return err_errno(e, "memfd");
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
	return child_start(&spec, &job->job.child, e);
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

static int judge_mke2fs(const struct disks_job *job, int status, struct err *e)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	char how[32], why[ERR_TEXT_MAX / 2];
	child_status_text(status, how);
	said(job->said, why, sizeof(why));
	if (!job->ask.session[0]) /* the probe */
		return err_set(e, -EIO, "mke2fs: %s: %s", how, why);
	if (WIFSIGNALED(status)) /* that says nothing about what it was asked for */
		return err_set(e, -EIO,
		        "layer limit.disk: making the image of session %s: mke2fs was killed (%s)",
		        job->ask.session, how);
	return err_set(e, -EIO,
	        "layer limit.disk: making the image of session %s: mke2fs: %s: %s (remedy: "
	        "limits.disk and limits.inodes that its files fit in; under a policy without "
	        "them it has its files)",
	        job->ask.session, how, why);
}

/* ---- what a job does in its child ---- */

struct opening {
	const struct disks *d;
	const struct disks_ask *ask;
};

static int work_open(const void *arg, struct job_out *out, struct err *e)
{
	const struct opening *o = arg;
	struct place p;
	int r = place_open(o->d, o->ask, &p, e);
	if (r == 0)
		place_pack(&p, out);
	return r;
}

static int work_name(const void *arg, struct job_out *out, struct err *e)
{
	const struct disks_job *job = arg;
	(void)out;
	return place_put_image(job->dir, job->image, job->replaces, e);
}

static int work_count(const void *arg, struct job_out *out, struct err *e)
{
	const struct disks_job *job = arg;
	(void)out;
	return place_count(job->dir, e);
}

/* ---- the steps of one ---- */

static int step_open(const struct disks *d, struct disks_job *job, struct err *e)
{
	const int keep[] = {d->state->sessions, d->state->trash, d->state->snapshots};
	const struct opening o = {d, &job->ask};
	const struct job_spec spec = {work_open, &o, keep, ARRAY_LEN(keep)};
	job->step = DISKS_OPEN;
	return job_start(&spec, &job->job, e);
}

static int step_work(struct disks_job *job, enum disks_step step, job_fn *work, struct err *e)
{
	const int keep[] = {job->dir, job->image, job->source};
	const struct job_spec spec = {work, job, keep, ARRAY_LEN(keep)};
	job->step = step;
	int r = job_start(&spec, &job->job, e);
	/* Here nothing holds the old image any more: its unmounting is the child's. */
	fd_close(take_fd(job->dir));
	fd_close(take_fd(job->image));
	fd_close(take_fd(job->source));
	return r;
}

static int in_step(struct disks_job *job, int r)
{
	if (r < 0)
		disks_job_close(job);
	return r < 0 ? r : -EINPROGRESS;
}

static int opened(const struct disks *d, struct disks_job *job, struct place *p,
        struct disks_opened *ret, struct err *e)
{
	switch (p->state) {
	case PLACE_OPEN:
		*ret = (struct disks_opened){.disk = p->disk, .without = p->without};
		p->disk = (struct disk)DISK_NONE;
		return 0;
	case PLACE_BUSY:
		job->step = DISKS_WAIT;
		return -EINPROGRESS;
	case PLACE_BARE:
	case PLACE_COUNTED:
		break;
	}
	if (job->worked) /* were it never enough, it would be done for ever */
		return err_set(e, -EIO,
		        "layer limit.disk: what was made for the files of %s does not fit "
		        "(remedy: another limits.inodes)",
		        job->ask.session);
	job->worked = true;
	job->dir = take_fd(p->dir);
	job->image = take_fd(p->image);
	job->source = take_fd(p->source);
	job->replaces = p->replaces;
	if (p->state == PLACE_COUNTED)
		return in_step(job, step_work(job, DISKS_COUNT, work_count, e));
	job->step = DISKS_FILL;
	return in_step(job, start_image(d, job, &p->size, e));
}

static int end_open(const struct disks *d, struct disks_job *job, int status,
        struct disks_opened *ret, struct err *e)
{
	auto_job_out struct job_out out = JOB_OUT_NONE;
	auto_place struct place p = PLACE_NONE;
	int r = job_end(&job->job, status, &out, e);
	if (r == 0)
		r = place_unpack(&out, &p, e);
	return r < 0 ? r : opened(d, job, &p, ret, e);
}

static int end_work(const struct disks *d, struct disks_job *job, int status, struct err *e)
{
	struct job_out out;
	struct err why;
	int r = job_end(&job->job, status, &out, &why);
	if (r == 0)
		return in_step(job, step_open(d, job, e));
	if (job->step == DISKS_NAME)
		return err_set(e, r, "layer limit.disk: the image of session %s: %s",
		        job->ask.session, why.text);
	return err_set(e, -EIO,
	        "layer limit.disk: counting the files of session %s: %s (remedy: under a "
	        "policy without limits.disk and limits.inodes it has its files; fewer "
	        "levels of directories)",
	        job->ask.session, why.text);
}

static int end_step(const struct disks *d, struct disks_job *job, int status,
        struct disks_opened *ret, struct err *e)
{
	int r;
	switch (job->step) {
	case DISKS_WAIT:
		return in_step(job, step_open(d, job, e));
	case DISKS_OPEN:
		return end_open(d, job, status, ret, e);
	case DISKS_FILL:
		r = judge_mke2fs(job, status, e);
		return r < 0 ? r : in_step(job, step_work(job, DISKS_NAME, work_name, e));
	case DISKS_NAME:
	case DISKS_COUNT:
		return end_work(d, job, status, e);
	}
	return err_set(e, -EINVAL, "step %d", (int)job->step);
}

int disks_job_next(const struct disks *d, struct disks_job *job, int status,
        struct disks_opened *ret, struct err *e)
{
	int r = end_step(d, job, status, ret, e);
	if (r != -EINPROGRESS)
		disks_job_close(job);
	return r;
}

int disks_session(const struct disks *d, const struct disks_ask *ask, struct disks_opened *ret,
        struct disks_job *job, struct err *e)
{
	*job = (struct disks_job)DISKS_JOB_NONE;
	job->ask = *ask;
	if (d->method == JAIL_DISK_QUOTA || !place_is_there(d, ask))
		return in_step(job, step_open(d, job, e));
	auto_place struct place p = PLACE_NONE;
	int r = place_open(d, ask, &p, e);
	return r < 0 ? r : opened(d, job, &p, ret, e);
}

int disks_job_wait(struct disks_job *job, const struct disks_ask *ask)
{
	*job = (struct disks_job)DISKS_JOB_NONE;
	job->ask = *ask;
	job->step = DISKS_WAIT;
	return -EINPROGRESS;
}

/* ---- deleting ---- */

void disks_forget(const struct disks *d, const char *session)
{
	char name[SESSION_NAME];
	if (session_name(d->state, session, name, NULL) < 0)
		return;
	auto_close int dir =
	        openat(d->state->sessions, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	uint32_t project;
	if (dir >= 0 && d->method == JAIL_DISK_QUOTA && projects_of(dir, &project, NULL) == 0 &&
	        project)
		(void)!projects_limit(dir, project, 0, 0, NULL); /* the files go in a moment */
}
