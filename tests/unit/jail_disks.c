/* What holds the files of a session: images with their limits, what is taken over, what is refused.
 */
#include "tests/t.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/ids.h"
#include "base/mem.h"
#include "jail/disks.h"
#include "jail/image.h"
#include "jail/sessions.h"

#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#define MIB ((uint64_t)1 << 20)

static char root[] = "/var/tmp/agentbox-disks-XXXXXX";
static struct state state;

static struct disks_ask asking(const char *id, const struct limits *l)
{
	struct disks_ask ask = {.limits = *l, .ceiling = *l, .required = true};
	(void)str_copy(ask.session, sizeof(ask.session), id);
	return ask;
}

/* Until the session is open; with `until` a step before that. */
static int ask_for(const struct disks *d, const struct disks_ask *ask, struct disk *k,
        struct err *e, struct disks_job *job, enum disks_step until)
{
	struct disks_opened o;
	int r = disks_session(d, ask, &o, job, e);
	for (int tries = 0; r == -EINPROGRESS && job->step != until; tries++) {
		if (tries == 2000)
			return err_set(e, -ETIME, "not ready after %d steps", tries);
		bool wait = job->step == DISKS_WAIT;
		if (wait)
			usleep(5000);
		r = disks_job_next(d, job, wait ? 0 : child_reap(&job->job.child, -1), &o, e);
	}
	if (r == 0)
		*k = o.disk;
	return r;
}

enum { OPEN = -1 }; /* no step */

static int session(const struct disks *d, const char *id, const struct limits *l, struct disk *k,
        struct err *e)
{
	struct disks_job job;
	struct disks_ask ask = asking(id, l);
	return ask_for(d, &ask, k, e, &job, (enum disks_step)OPEN);
}

/* As the agent would; what fitted. */
static uint64_t fill(int dir, const char *name, uint64_t bytes)
{
	static char block[65536];
	memset(block, 'x', sizeof(block));
	auto_close int fd = openat(dir, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	uint64_t n = 0;
	while (fd >= 0 && n < bytes) {
		ssize_t r = write(fd, block, sizeof(block));
		if (r <= 0)
			break;
		n += (uint64_t)r;
	}
	return n;
}

static unsigned names(int dir, unsigned most)
{
	unsigned n = 0;
	for (; n < most; n++) {
		char name[24];
		(void)snprintf(name, sizeof(name), "n%u", n);
		int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0)
			break;
		fd_close(fd);
	}
	return n;
}

static bool about(uint64_t got, uint64_t want)
{
	return got <= want && got + want / 50 + 65536 >= want;
}

static void sizes(const struct disks *d)
{
	static const struct {
		uint64_t mib, inodes;
	} rows[] = {{1, 64}, {40, 100}, {64, 50000}, {300, 0}, {2000, 200000}};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char id[ID_MAX];
		id_new("ses", id);
		struct limits l = {.disk_bytes = rows[i].mib * MIB, .inodes = rows[i].inodes};
		struct disk k = DISK_NONE;
		struct err e = {0};
		must(session(d, id, &l, &k, &e) == 0, "a session of %d MiB %s", (int)rows[i].mib,
		        e.text);
		ok(k.method == JAIL_DISK_IMAGE && k.used_bytes == 0, "an image, empty");
		struct stat st;
		ok(fstat(k.workspace, &st) == 0 && st.st_uid == ID_STORE_BASE + ID_INNER_AGENT,
		        "its workspace belongs to the store's id");
		if (rows[i].mib <= 300) {
			uint64_t n = fill(k.workspace, "f", l.disk_bytes * 2);
			ok(about(n, l.disk_bytes), "%llu bytes of %llu fit", (unsigned long long)n,
			        (unsigned long long)l.disk_bytes);
			ok(disk_look(&k) == JAIL_LIMIT_DISK && disk_look(&k) == 0, "told once");
			ok(about(k.peak_bytes, l.disk_bytes), "the peak is the limit");
			ok(unlinkat(k.workspace, "f", 0) == 0, "removed");
		}
		if (rows[i].inodes && rows[i].inodes < 1000) {
			unsigned n = names(k.home, 10000);
			ok(n >= l.inodes - 4 && n <= l.inodes + 64, "%u names of %d fit", n,
			        (int)l.inodes);
			ok(disk_look(&k) == JAIL_LIMIT_INODES && disk_look(&k) == 0, "told once");
		}
		disk_done(&k, NULL);
	}
}

/* A kernel may refuse a write of dd as a whole: what it asked for is left then. */
static void a_write_that_leaves_room(const struct disks *d)
{
	static const uint64_t mib[] = {16, 32, 64, 300};
	for (size_t i = 0; i < ARRAY_LEN(mib); i++) {
		char id[ID_MAX];
		id_new("ses", id);
		struct limits l = {.disk_bytes = mib[i] * MIB};
		struct disk k = DISK_NONE;
		struct err e = {0};
		must(session(d, id, &l, &k, &e) == 0, "a session of %d MiB %s", (int)mib[i],
		        e.text);
		auto_close int fd = openat(k.workspace, "f", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		ok(posix_fallocate(fd, 0, (off_t)(l.disk_bytes - 4 * MIB)) == 0 &&
		                disk_look(&k) == 0,
		        "4 MiB of %d are left: not full", (int)mib[i]);
		ok(posix_fallocate(fd, 0, (off_t)(l.disk_bytes - MIB)) == 0 &&
		                disk_look(&k) == JAIL_LIMIT_DISK,
		        "1 MiB of %d: full", (int)mib[i]);
		disk_done(&k, NULL);
	}
}

/* Whoever may narrow a policy may ask for more names than any file system has: that is no way to
 * have no limit at all. */
static void too_many(const struct disks *d)
{
	char id[ID_MAX];
	id_new("ses", id);
	struct limits l = {.disk_bytes = 8 * MIB, .inodes = UINT64_MAX / 2};
	struct disk k = DISK_NONE;
	struct err e = {0};
	must(session(d, id, &l, &k, &e) == 0 && k.method == JAIL_DISK_IMAGE,
	        "more inodes than there can be %s", e.text);
	ok(about(fill(k.workspace, "f", 2 * l.disk_bytes), l.disk_bytes), "the disk has its limit");
	disk_done(&k, NULL);
	struct disks_job job;
	struct disks_ask ask = asking(id, &l);
	ok(ask_for(d, &ask, &k, &e, &job, DISKS_FILL) == 0 && k.method == JAIL_DISK_IMAGE,
	        "and it is not made anew for the next run");
	disk_done(&k, NULL);
}

/* Fewer files than there are. */
static void fewer(const struct disks *d)
{
	char id[ID_MAX];
	id_new("ses", id);
	struct limits l = {.disk_bytes = 20 * MIB, .inodes = 500};
	struct disk k = DISK_NONE;
	struct err e = {0};
	must(session(d, id, &l, &k, &e) == 0 && names(k.home, 300) == 300, "300 files %s", e.text);
	disk_done(&k, NULL);
	l.inodes = 100;
	must(session(d, id, &l, &k, &e) == 0, "are kept by a limit of 100 %s", e.text);
	ok(faccessat(k.home, "n299", F_OK, 0) == 0 && names(k.workspace, 100) < 40,
	        "and few can be added");
	for (unsigned i = 0; i < 300; i++) {
		char name[24];
		(void)snprintf(name, sizeof(name), "n%u", i);
		(void)unlinkat(k.home, name, 0);
	}
	disk_done(&k, NULL);
	must(session(d, id, &l, &k, &e) == 0, "once they are gone %s", e.text);
	unsigned n = names(k.home, 400);
	ok(n >= 60 && n < 150, "the limit holds (%u)", n);
	disk_done(&k, NULL);
}

/* Of the largest image that there is, a file can be made: ext4 has 16 TiB of blocks of 4 KiB. */
static void largest(void)
{
	const struct image_size size = {.bytes = IMAGE_BYTES_MAX, .inodes = IMAGE_INODES_MAX};
	struct image_command c;
	image_command(&c, &size, false);
	unsigned long long blocks = strtoull(c.blocks, NULL, 10);
	ok(blocks > IMAGE_BYTES_MAX / 4096 && blocks < (uint64_t)1 << 32, "%llu blocks", blocks);
}

static void same_session(const struct disks *d)
{
	char id[ID_MAX];
	id_new("ses", id);
	struct limits l = {.disk_bytes = 20 * MIB};
	struct disk k = DISK_NONE, second = DISK_NONE;
	struct err e = {0};
	must(session(d, id, &l, &k, &e) == 0, "a session %s", e.text);
	(void)fill(k.workspace, "f", 8 * MIB);
	struct disks_job job;
	struct disks_ask ask = asking(id, &l);
	ok(ask_for(d, &ask, &second, &e, &job, DISKS_WAIT) == -EINPROGRESS,
	        "one that is mounted is not mounted twice");
	disk_done(&k, NULL);
	l.disk_bytes = 4 * MIB;
	must(session(d, id, &l, &k, &e) == 0, "a limit below what is there %s", e.text);
	ok(k.above && fill(k.workspace, "g", MIB) == 0, "nothing can be written");
	ok(unlinkat(k.workspace, "f", 0) == 0, "removed");
	(void)disk_look(&k);
	ok(k.above && disk_is_loose(&k), "there is room again");
	struct job_out out;
	must(disk_tighten(&k, &job.job, &e) == 0, "it is taken %s", e.text);
	disk_tightened(&k, job_end(&job.job, child_reap(&job.job.child, -1), &out, &e));
	(void)disk_look(&k);
	ok(!disk_is_loose(&k) && !k.above && about(fill(k.workspace, "g", 8 * MIB), 4 * MIB),
	        "then the limit holds");
	disk_done(&k, NULL);
	l.disk_bytes = 0;
	must(session(d, id, &l, &k, &e) == 0 && k.tree >= 0, "no limit: the image stays");
	ok(fill(k.workspace, "f", 10 * MIB) >= 10 * MIB, "and has all its room");
	disk_done(&k, NULL);
	l.disk_bytes = 60 * MIB;
	must(session(d, id, &l, &k, &e) == 0, "more than the image has %s", e.text);
	struct stat st;
	ok(fstatat(k.workspace, "f", &st, 0) == 0 && (uint64_t)st.st_size >= 10 * MIB,
	        "another one with the same files");
	disk_done(&k, NULL);
}

static void taken_over(const struct disks *d)
{
	char id[ID_MAX];
	id_new("ses", id);
	struct limits l = {0};
	struct disk k = DISK_NONE;
	struct err e = {0};
	must(session(d, id, &l, &k, &e) == 0 && k.method == JAIL_DISK_NONE, "a plain session");
	(void)fill(k.workspace, "f", 3 * MIB);
	ok(mkdirat(k.home, "dir", 0700) == 0 && fchmodat(k.home, "dir", 0510, 0) == 0 &&
	                symlinkat("/etc/passwd", k.home, "link") == 0 &&
	                mkfifoat(k.home, "fifo", 0600) == 0,
	        "with all kinds of files");
	disk_done(&k, NULL);

	l.disk_bytes = 2 * MIB;
	l.inodes = 64;
	struct disks none = *d;
	none.mke2fs = "/bin/false";
	ok(session(&none, id, &l, &k, &e) == -EIO, "copying that fails says so: %s", e.text);
	l.disk_bytes = 30 * MIB;
	must(session(d, id, &l, &k, &e) == 0 && k.method == JAIL_DISK_IMAGE,
	        "taken over into an image %s", e.text);
	struct stat st;
	ok(fstatat(k.workspace, "f", &st, 0) == 0 && st.st_size == (off_t)(3 * MIB), "its file");
	ok(fstatat(k.home, "dir", &st, 0) == 0 && (st.st_mode & 07777) == 0510, "its mode");
	ok(fstatat(k.home, "link", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode) &&
	                fstatat(k.home, "fifo", &st, 0) == 0 && S_ISFIFO(st.st_mode),
	        "link and FIFO");
	auto_close int dir = session_dir(&state, id, &e);
	ok(faccessat(dir, "workspace", F_OK, 0) < 0 && trash_waits(&state),
	        "what was copied is in the trash");
	disk_done(&k, NULL);
}

static void refused(const struct disks *d)
{
	char id[ID_MAX];
	id_new("ses", id);
	struct statvfs fs;
	must(fstatvfs(state.sessions, &fs) == 0, "statvfs");
	struct limits l = {.disk_bytes = (uint64_t)fs.f_bavail * fs.f_frsize};
	struct disk k = DISK_NONE;
	struct err e = {0};
	ok(session(d, id, &l, &k, &e) == -ENOSPC, "all that is free: %s", e.text);
	struct disks_job job;
	l.disk_bytes = 16 * MIB;
	struct disks_ask ask = asking(id, &l);
	ask.promised = (uint64_t)fs.f_bavail * fs.f_frsize - 8 * MIB;
	ok(ask_for(d, &ask, &k, &e, &job, DISKS_FILL) == -ENOSPC, "what others may use yet counts");
	ask.promised = UINT64_MAX - 8 * MIB;
	ok(ask_for(d, &ask, &k, &e, &job, DISKS_FILL) == -ENOSPC, "however much that is");
	struct disks without = {.state = &state, .why = {.code = -EOPNOTSUPP, .text = "neither"}};
	ok(session(&without, id, &l, &k, &e) == -EOPNOTSUPP && strstr(e.text, "neither"),
	        "a host with neither: %s", e.text);
}

/* On a disk with more room than a file can have.  No mount of anybody else is seen or changed. */
static void large_disk(const struct disks *d)
{
	const char *at = root;
	struct state large;
	struct err e = {0};
	must(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	                mount("large", at, "tmpfs", 0, "size=40t,mode=0755") == 0,
	        "a disk of 40 TiB");
	auto_free char *path = xasprintf("%s/state", at);
	must(state_open(&large, path, &e) == 0, "a state directory on it %s", e.text);
	const struct disks on = {.state = &large, .method = d->method, .mke2fs = d->mke2fs};
	struct disk k = DISK_NONE;
	struct limits l = {.disk_bytes = IMAGE_BYTES_MAX + 4096};
	ok(session(&on, "ses_more", &l, &k, &e) == -E2BIG && strstr(e.text, "layer limit.disk") &&
	                strstr(e.text, "remedy"),
	        "more than an image can hold: %s", e.text);
	state_close(&large);
	ok(umount2(at, 0) == 0, "nothing holds it");
}

int main(void)
{
	if (geteuid() != 0)
		skip_all("needs root");
	struct err e = {0};
	(void)umask(0077); /* as agentboxd's: nobody else reads what is made here */
	must(mkdtemp(root) != NULL, "a directory");
	auto_free char *path = xasprintf("%s/state", root);
	must(state_open(&state, path, &e) == 0, "a state directory %s", e.text);
	struct disks d;
	disks_open(&d, &state);
	ok(d.method != JAIL_DISK_NONE, "this host holds sessions by %d %s", (int)d.method,
	        d.why.text);
	ok(faccessat(state.sessions, "disk.img", F_OK, 0) < 0, "trying leaves nothing");
	int fds = fd_count();
	d.method = JAIL_DISK_IMAGE;
	d.mke2fs = "/sbin/mke2fs";
	sizes(&d);
	a_write_that_leaves_room(&d);
	too_many(&d);
	fewer(&d);
	largest();
	same_session(&d);
	taken_over(&d);
	refused(&d);
	large_disk(&d);
	ok(fd_count() == fds, "no descriptor is left");
	state_close(&state);
	auto_free char *rm = xasprintf("rm -rf %s", root);
	const char *const argv[] = {"sh", "-c", rm, NULL};
	const struct child_spec spec = {.path = "/bin/sh", .argv = argv, .stderr_fd = -1};
	struct child c = CHILD_NONE;
	ok(child_start(&spec, &c, &e) == 0 && child_reap(&c, -1) == 0, "cleared");
	return done();
}
