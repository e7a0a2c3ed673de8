/*
 * Theory of operation: a forked child unshares its mount namespace, puts a
 * tmpfs of ours over /proc (a directory that every host has and nothing below
 * is needed for), builds the root there, pivots into it and lets go of the
 * host's.  The parent opens the namespace through /proc/PID/ns/mnt and the child
 * exits; the descriptor keeps it.  Attach first, then build: mounting onto a
 * detached tree needs Linux 6.15.
 */
#include "jail/template.h"
#include "base/fd.h"
#include "base/mem.h"
#include "jail/etc.h"
#include "jail/mountinfo.h"
#include "jail/mounts.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/openat2.h>

#define BUILD_AT "/proc"

/* What stays readable to everyone in a full /proc and tells about the host or other jails, and
 * what only the kernel's own checks would keep closed. */
static const struct {
	const char *path;
	int dir;
} masks[] = {
        {"/proc/keys", 0},
        {"/proc/key-users", 0},
        {"/proc/kallsyms", 0},
        {"/proc/interrupts", 0},
        {"/proc/config.gz", 0},
        {"/proc/kcore", 0},
        {"/proc/timer_list", 0},
        {"/proc/kmsg", 0},
        {"/proc/sched_debug", 0},
        {"/proc/latency_stats", 0},
        {"/proc/locks", 0},
        {"/proc/cmdline", 0},
        {"/proc/diskstats", 0},
        /* counters of the whole machine, by which jails could tell what others do; a mask takes
         * 15 us of a launch, so those that tell little stay */
        {"/proc/softirqs", 0},
        {"/proc/vmstat", 0},
        {"/proc/zoneinfo", 0},
        {"/proc/buddyinfo", 0},
        {"/proc/cgroups", 0},
        {"/proc/schedstat", 0},
        {"/proc/sys/fs/file-nr", 0},
        {"/proc/sys/fs/inode-nr", 0},
        {"/proc/sys/fs/inode-state", 0},
        {"/proc/sys/fs/dentry-state", 0},
        {"/proc/sys/fs/quota", 1},
        {"/proc/sys/kernel/pty/nr", 0},
        /* a loop device is the disk of one session: its size, its journal's transactions */
        {"/proc/partitions", 0},
        {"/proc/fs", 1},
        {"/proc/pressure", 1},
        {"/proc/acpi", 1},
        {"/proc/scsi", 1},
        {"/proc/asound", 1},
};
_Static_assert(ARRAY_LEN(masks) < 64, "template.masks has 64 bits");

const char *template_mask(unsigned i, int *ret_dir)
{
	if (i >= ARRAY_LEN(masks))
		return NULL;
	*ret_dir = masks[i].dir;
	return masks[i].path;
}

static uint64_t masks_here(void)
{
	uint64_t bits = 0;
	for (unsigned i = 0; i < ARRAY_LEN(masks); i++) {
		struct stat st;
		if (lstat(masks[i].path, &st) == 0 && S_ISDIR(st.st_mode) == masks[i].dir)
			bits |= (uint64_t)1 << i;
	}
	return bits;
}

static int new_dir(int root, const char *name, mode_t mode, struct err *e)
{
	if (mkdirat(root, name, mode) < 0 && errno != EEXIST)
		return err_errno(e, "layer rootfs: /%s", name);
	return 0;
}

/* mkdir -p of all but the last component of a relative path; NULL-safe against "..": the caller's
 * paths come from a checked policy, and the tree is ours alone. */
static int new_parents(int root, const char *path, struct err *e)
{
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		auto_free char *part = xstrndup(path, (size_t)(slash - path));
		int r = new_dir(root, part, 0755, e);
		if (r < 0)
			return r;
	}
	return 0;
}

static int new_link(int root, const char *text, const char *name, struct err *e)
{
	return symlinkat(text, root, name) < 0 ? err_errno(e, "layer rootfs: /%s", name) : 0;
}

/* ---- the directories of programs ---- */

/* "bin" of a merged-usr system is a link to usr/bin, elsewhere a directory. */
static int add_tree(int root, int source, const char *name, struct err *e)
{
	struct stat st;
	if (fstatat(source, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_errno(e, "layer rootfs: /%s", name);
	if (S_ISLNK(st.st_mode)) {
		char text[64];
		ssize_t n = readlinkat(source, name, text, sizeof(text) - 1);
		if (n < 0)
			return err_errno(e, "layer rootfs: link /%s", name);
		text[n] = '\0';
		const char *to = text[0] == '/' ? text + 1 : text;
		if (strncmp(to, "usr/", 4) != 0 || strstr(to, ".."))
			return err_set(e, -EINVAL,
			        "layer rootfs: /%s links to '%s', which is not below usr/", name,
			        text);
		return new_link(root, to, name, e);
	}
	if (!S_ISDIR(st.st_mode))
		return err_set(e, -ENOTDIR, "layer rootfs: /%s is no directory", name);
	int r = new_dir(root, name, 0755, e);
	if (r < 0)
		return r;
	int mount = mounts_clone(source, name, MOUNTS_RO, -1, e);
	return mount < 0 ? mount : mounts_attach(mount, root, name, e);
}

static int add_programs(int root, int source, struct err *e)
{
	static const char *const names[] = {
	        "usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"};
	int r = 0;
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(names); i++)
		r = add_tree(root, source, names[i], e);
	return r;
}

/* An image's /opt, entry by entry, because /opt/agent is ours. */
static int add_opt(int root, int source, struct err *e)
{
	int fd = openat(source, "opt", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return 0;
	DIR *d = fdopendir(fd);
	int r = 0;
	for (struct dirent *entry; r == 0 && d && (entry = readdir(d));) {
		if (entry->d_name[0] == '.' || strcmp(entry->d_name, "agent") == 0 ||
		        entry->d_type != DT_DIR)
			continue;
		auto_free char *path = xasprintf("opt/%s", entry->d_name);
		r = add_tree(root, source, path, e);
	}
	if (d)
		closedir(d);
	return r;
}

int template_source(const struct policy *p, struct err *e)
{
	if (p->root == POLICY_ROOT_HOST_USR)
		return open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_close int fd = open(p->image, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st, host;
	if (fd < 0 || fstat(fd, &st) < 0 || stat("/", &host) < 0)
		return err_errno(e, "layer rootfs: image %s", p->image);
	/* Under whatever name: its ids would be mapped for inner root. */
	if (st.st_dev == host.st_dev && st.st_ino == host.st_ino)
		return err_set(e, -EACCES,
		        "layer rootfs: image %s is the host's own root; remedy: root: host, or a "
		        "directory made for jails",
		        p->image);
	if (st.st_uid != 0 || st.st_mode & (S_IWGRP | S_IWOTH))
		return err_set(e, -EACCES,
		        "layer rootfs: image %s is not root's alone; remedy: chown root, chmod "
		        "go-w",
		        p->image);
	return take_fd(fd);
}

/* ---- /dev ---- */

/* Where the host forbids to make nodes its own ones are shown. */
static int clone_node(int dev, const char *name, dev_t want, struct err *e)
{
	auto_free char *path = xasprintf("/dev/%s", name);
	auto_close int source = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	if (source < 0 || fstat(source, &st) < 0)
		return err_errno(e, "layer dev: %s", path);
	if (!S_ISCHR(st.st_mode) || st.st_rdev != want)
		return err_set(e, -ENODEV, "layer dev: %s is not the device it should be", path);
	auto_close int place = openat(dev, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (place < 0)
		return err_errno(e, "layer dev: place for %s", path);
	int mount = mounts_clone(source, "", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, -1, e);
	return mount < 0 ? mount : mounts_attach(mount, dev, name, e);
}

static int add_node(int dev, const char *name, dev_t want, bool own, struct err *e)
{
	if (mknodat(dev, name, S_IFCHR | 0666, want) == 0)
		return 0;
	if (errno != EPERM)
		return err_errno(e, "layer dev: /dev/%s", name);
	if (own)
		return err_set(e, -EPERM,
		        "layer dev: /dev/%s of its own cannot be made (filesystem.private); "
		        "remedy: CAP_MKNOD, and DeviceAllow= of agentboxd's unit with m",
		        name);
	return clone_node(dev, name, want, e);
}

static int fill_dev(int dev, bool own, struct err *e)
{
	static const struct {
		const char *name;
		unsigned major, minor;
	} nodes[] = {
	        {"null", 1, 3},
	        {"zero", 1, 5},
	        {"full", 1, 7},
	        {"random", 1, 8},
	        {"urandom", 1, 9},
	        {"tty", 5, 0},
	};
	static const char *const links[][2] = {
	        {"/proc/self/fd", "fd"},
	        {"/proc/self/fd/0", "stdin"},
	        {"/proc/self/fd/1", "stdout"},
	        {"/proc/self/fd/2", "stderr"},
	        {"pts/ptmx", "ptmx"},
	};
	int r = 0;
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(nodes); i++)
		r = add_node(dev, nodes[i].name, makedev(nodes[i].major, nodes[i].minor), own, e);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(links); i++)
		r = new_link(dev, links[i][0], links[i][1], e);
	if (r == 0)
		r = new_dir(dev, "pts", 0755, e);
	return r < 0 ? r : new_dir(dev, "shm", 0755, e);
}

static int add_dev(int root, bool own, struct err *e)
{
	static const char *const options[] = {
	        "size", "64k", "nr_inodes", "32", "mode", "0755", NULL};
	int mount = mounts_new("tmpfs", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, options, e);
	int r = mount < 0 ? mount : new_dir(root, "dev", 0755, e);
	if (r == 0)
		r = mounts_attach(mount, root, "dev", e);
	if (r < 0)
		return r;
	auto_close int dev = openat(root, "dev", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dev < 0)
		return err_errno(e, "layer dev: /dev");
	r = fill_dev(dev, own, e);
	return r < 0 ? r : mounts_restrict(dev, MOUNT_ATTR_RDONLY, e);
}

/* ---- what the policy shows ---- */

/* The directory that a file is in, for an overlay over it. */
static int add_parent(int root, const struct policy_mount *m, int index, struct err *e)
{
	auto_free char *real = realpath(m->source, NULL);
	if (!real)
		return err_errno(e, "layer rootfs: mount source %s", m->source);
	char *slash = strrchr(real, '/');
	char place[32], link[32];
	(void)snprintf(place, sizeof(place), TEMPLATE_PARENT, (unsigned)index);
	(void)snprintf(link, sizeof(link), TEMPLATE_NAME, (unsigned)index);
	int r = new_dir(root, place + 1, 0700, e);
	if (r == 0)
		r = new_link(root, slash + 1, link + 1, e);
	if (r < 0)
		return r;
	*slash = '\0';
	int mount = mounts_clone(AT_FDCWD, *real ? real : "/", MOUNTS_RO, -1, e);
	return mount < 0 ? mount : mounts_attach(mount, root, place + 1, e);
}

/* `index`: of the mount, where its inodes are to be the jail's own; else -1. */
static int add_mount(int root, const struct policy_mount *m, int index, struct err *e)
{
	auto_close int source = open(m->source, O_PATH | O_CLOEXEC);
	struct stat st;
	if (source < 0 || fstat(source, &st) < 0) {
		if (errno == ENOENT && m->optional)
			return 0;
		return err_errno(e, "layer rootfs: mount source %s", m->source);
	}
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return err_set(e, -EINVAL,
		        "layer rootfs: mount source %s is neither a directory nor a file",
		        m->source);
	const char *target = m->target + 1;
	int r = new_parents(root, target, e);
	if (r < 0)
		return r;
	if (S_ISDIR(st.st_mode)) {
		r = new_dir(root, target, 0755, e);
	} else {
		auto_close int place =
		        openat(root, target, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0444);
		if (place < 0)
			r = err_errno(e, "layer rootfs: place for %s", m->target);
	}
	if (r == 0 && S_ISREG(st.st_mode) && !m->writable && index >= 0)
		r = add_parent(root, m, index, e);
	if (r < 0)
		return err_wrap(e, "mount %s on %s", m->source, m->target);
	int mount = mounts_clone(source, "", m->writable ? MOUNTS_NSD : MOUNTS_RO, -1, e);
	return mount < 0 ? mount : mounts_attach(mount, root, target, e);
}

/* ---- the whole ---- */

static int add_empty(int root, struct err *e)
{
	static const char *const options[] = {"size", "4k", "nr_inodes", "1", "mode", "0555", NULL};
	int mount = mounts_new("tmpfs", MOUNTS_RO | MOUNT_ATTR_NOEXEC, options, e);
	return mount < 0 ? mount : mounts_attach(mount, root, &TEMPLATE_EMPTY[1], e);
}

static int add_dirs(int root, struct err *e)
{
	static const struct {
		const char *name;
		mode_t mode;
	} dirs[] = {
	        {"etc", 0755},
	        {"proc", 0555},
	        {"sys", 0555},
	        {"tmp", 0755},
	        {"run", 0755},
	        {"mnt", 0755},
	        {"root", 0755},
	        {"home", 0755},
	        {"home/agent", 0755},
	        {"workspace", 0755},
	        {"opt", 0755},
	        {"opt/agent", 0755},
	        {"var", 0755},
	        {"var/lib", 0755},
	        {"var/cache", 0755},
	        {"var/log", 0755},
	};
	int r = 0;
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(dirs); i++)
		r = new_dir(root, dirs[i].name, dirs[i].mode, e);
	if (r == 0)
		r = new_link(root, "/tmp", "var/tmp", e);
	return r < 0 ? r : new_link(root, "/run", "var/run", e);
}

static int build_root(const struct policy *p, int root, int source, struct err *e)
{
	bool own = p->flags & POLICY_PRIVATE_FILES;
	int r = add_dirs(root, e);
	if (r == 0)
		r = add_programs(root, source, e);
	if (r == 0 && p->root == POLICY_ROOT_IMAGE)
		r = add_opt(root, source, e);
	auto_close int etc = openat(root, "etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r == 0)
		r = etc < 0 ? err_errno(e, "layer rootfs: /etc") : etc_fill(etc, source, e);
	if (r == 0)
		r = add_dev(root, own, e);
	if (r == 0)
		r = add_empty(root, e);
	for (uint32_t i = 0; r == 0 && i < p->nmounts; i++)
		r = add_mount(root, &p->mounts[i], own ? (int)i : -1, e);
	return r < 0 ? r : mounts_restrict(root, MOUNT_ATTR_RDONLY, e);
}

static int enter_root(int root, struct err *e)
{
	if (fchdir(root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
	        umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return err_errno(e, "layer mountns: pivot_root");
	return mounts_private(e);
}

/* In the forked child, which may use libc: it has its own memory. */
static int build(const struct policy *p, struct err *e)
{
	umask(0);
	if (unshare(CLONE_NEWNS) < 0)
		return err_errno(e, "layer mountns: the kernel refuses a mount namespace");
	int r = mounts_private(e);
	if (r < 0)
		return r;
	auto_close int source = template_source(p, e);
	if (source < 0)
		return source;
	/* 8 MiB: /etc is below 1 MiB; 512 inodes: three times what is made here. */
	static const char *const options[] = {
	        "size", "8m", "nr_inodes", "512", "mode", "0755", NULL};
	int mount = mounts_new("tmpfs", MOUNTS_NSD, options, e);
	r = mount < 0 ? mount : mounts_attach(mount, AT_FDCWD, BUILD_AT, e);
	if (r < 0)
		return r;
	auto_close int root = open(BUILD_AT, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return err_errno(e, "layer rootfs: " BUILD_AT);
	r = build_root(p, root, source, e);
	return r < 0 ? r : enter_root(root, e);
}

static _Noreturn void child_main(const struct policy *p, int report, int hold)
{
	struct err e = {.code = 0};
	int r = build(p, &e);
	if (r == 0)
		e.code = 0;
	if (fd_write_all(report, &e, sizeof(e)) == 0 && r == 0) {
		char byte;
		(void)!read(hold, &byte, 1);
	}
	_exit(0);
}

/* ---- in agentboxd, while the builder waits ---- */

static uint64_t attrs_of(char *options)
{
	static const struct {
		const char *word;
		uint64_t attr;
	} known[] = {
	        {"ro", MOUNT_ATTR_RDONLY},
	        {"nosuid", MOUNT_ATTR_NOSUID},
	        {"nodev", MOUNT_ATTR_NODEV},
	        {"noexec", MOUNT_ATTR_NOEXEC},
	};
	uint64_t attrs = 0;
	options[strcspn(options, " ")] = '\0';
	char *save = NULL;
	for (char *w = strtok_r(options, ",", &save); w; w = strtok_r(NULL, ",", &save))
		for (size_t i = 0; i < ARRAY_LEN(known); i++)
			if (strcmp(w, known[i].word) == 0)
				attrs |= known[i].attr;
	return attrs;
}

/* Each mount that is there, so that none can be forgotten. */
static int list_mounts(pid_t builder, struct template *t, struct err *e)
{
	char path[64];
	auto_free char *text = NULL;
	(void)snprintf(path, sizeof(path), "/proc/%d/mountinfo", builder);
	int r = file_slurp(path, MOUNTINFO_MAX, &text, NULL);
	if (r < 0)
		return err_set(e, r, "layer mountns: %s: %s", path, strerror(-r));
	char *save = NULL;
	for (char *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
		char *options, *at = mountinfo_point(l, &options);
		if (!at)
			return err_set(e, -EBADMSG, "layer mountns: %s is not what it was", path);
		t->mounts = xrealloc(t->mounts, t->nmounts + 1, sizeof(*t->mounts));
		t->mounts[t->nmounts++] =
		        (struct template_mount){.path = xstrdup(at), .attrs = attrs_of(options)};
	}
	return 0;
}

static int enter_bare(struct err *e)
{
	static const char *const options[] = {"size", "4k", "nr_inodes", "2", "mode", "0555", NULL};
	if (unshare(CLONE_NEWNS) < 0)
		return err_errno(e, "layer mountns: the kernel refuses a mount namespace");
	int mount = mounts_new("tmpfs", MOUNTS_NSD | MOUNT_ATTR_NOEXEC, options, e);
	int r = mount < 0 ? mount : mounts_attach(mount, AT_FDCWD, TEMPLATE_PLACE, e);
	if (r < 0)
		return r;
	auto_close int root = open(TEMPLATE_PLACE, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return err_errno(e, "layer mountns: " TEMPLATE_PLACE);
	r = new_dir(root, &TEMPLATE_PLACE[1], 0700, e);
	if (r == 0)
		r = mounts_restrict(root, MOUNT_ATTR_RDONLY, e);
	return r < 0 ? r : enter_root(root, e);
}

static int make_bare(struct template *t, struct err *e)
{
	struct mounts_visit v;
	int r = mounts_enter(&v, t->mntns, e);
	if (r < 0)
		return r;
	r = enter_bare(e);
	if (r == 0) {
		t->bare = mounts_here(&v);
		r = t->bare < 0 ? err_errno(e, "layer mountns: /proc/self/ns/mnt") : 0;
	}
	mounts_leave(&v);
	return r;
}

static int take_answer(pid_t builder, int report, struct template *t, struct err *e)
{
	struct err answer;
	if (fd_read_full(report, &answer, sizeof(answer)) != (ssize_t)sizeof(answer))
		return err_set(e, -EIO, "layer rootfs: the template's builder died");
	if (answer.code != 0)
		return err_set(e, answer.code, "%s", answer.text);
	char path[64];
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/mnt", builder);
	t->mntns = open(path, O_RDONLY | O_CLOEXEC);
	if (t->mntns < 0)
		return err_errno(e, "layer mountns: %s", path);
	t->masks = masks_here();
	return list_mounts(builder, t, e);
}

int template_make(const struct policy *p, struct template *ret, struct err *e)
{
	int report[2], hold[2];
	if (pipe2(report, O_CLOEXEC) < 0)
		return err_errno(e, "pipe");
	auto_close int report_in = report[0], report_out = report[1];
	if (pipe2(hold, O_CLOEXEC) < 0)
		return err_errno(e, "pipe");
	auto_close int hold_in = hold[0], hold_out = hold[1];
	pid_t pid = fork();
	if (pid < 0)
		return err_errno(e, "fork");
	if (pid == 0) {
		fd_close(take_fd(hold_out));
		child_main(p, report_out, hold_in);
	}
	fd_close(take_fd(report_out));
	struct template t = TEMPLATE_NONE;
	int r = take_answer(pid, report_in, &t, e);
	fd_close(take_fd(hold_out));
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (r == 0)
		r = make_bare(&t, e);
	if (r < 0)
		template_done(&t);
	else
		*ret = t;
	return r;
}

void template_done(struct template *t)
{
	fd_close(take_fd(t->mntns));
	fd_close(take_fd(t->bare));
	for (size_t i = 0; i < t->nmounts; i++)
		free(t->mounts[i].path);
	free(t->mounts);
	t->mounts = NULL;
	t->nmounts = 0;
}
