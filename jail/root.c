/*
 * Theory of operation: before Linux 6.15 an overlay's layers, and what is cloned, must be attached
 * in the mount namespace of who asks.  So the parts are made in the template's namespace,
 * detached; then a copy of its bare one is entered, which has nothing but an empty directory, and
 * the parts are attached there, the first on top of that directory.  setns(2) into it
 * later leads to the topmost root.  Nothing is unmounted on the way: an unmount waits for the
 * kernel for up to a millisecond.
 */
#include "jail/root.h"
#include "base/fd.h"
#include "base/mem.h"
#include "jail/authority.h"
#include "jail/mounts.h"
#include "jail/overlay.h"
#include "jail/trust.h"
#include "policy/forms.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One mount of a jail's root. */
struct part {
	int fd; /* owned */
	const char *path;
	char name[NAME_MAX + 1]; /* the part is the directory that has this file; "": all of it */
};

/* Those of the file system `at`, a directory that is mounted here. */
static int own_inodes(const char *at, uint64_t attrs, struct err *e)
{
	static const char *const options[] = {"lowerdir", ".:" TEMPLATE_EMPTY, NULL};
	if (chdir(at) < 0)
		return err_errno(e, "%s", at);
	int fd = mounts_new("overlay", attrs, options, e);
	return fd < 0 ? err_wrap(e, "layer inodes: %s", at) : fd;
}

static int find_mount(const struct policy *p, const char *path)
{
	for (uint32_t i = 0; i < p->nmounts; i++)
		if (strcmp(p->mounts[i].target, path) == 0)
			return (int)i;
	return -1;
}

static int own_file(
        const struct policy *p, const struct template_mount *m, struct part *part, struct err *e)
{
	char parent[32], link[32];
	int index = find_mount(p, m->path);
	if (index < 0)
		return err_set(
		        e, -EBADMSG, "layer inodes: file %s is no mount of the policy", m->path);
	(void)snprintf(parent, sizeof(parent), TEMPLATE_PARENT, (unsigned)index);
	(void)snprintf(link, sizeof(link), TEMPLATE_NAME, (unsigned)index);
	ssize_t n = readlink(link, part->name, sizeof(part->name) - 1);
	if (n <= 0)
		return err_errno(e, "layer inodes: the name of %s", m->path);
	part->name[n] = '\0';
	return own_inodes(parent, m->attrs, e);
}

static int make_part(
        const struct policy *p, const struct template_mount *m, struct part *part, struct err *e)
{
	struct stat st;
	part->path = m->path;
	if (!(m->attrs & MOUNT_ATTR_RDONLY)) /* the policy lets it be written to */
		return mounts_clone(AT_FDCWD, m->path, m->attrs, -1, e);
	if (lstat(m->path, &st) < 0)
		return err_errno(e, "layer rootfs: %s", m->path);
	return S_ISDIR(st.st_mode) ? own_inodes(m->path, m->attrs, e) : own_file(p, m, part, e);
}

/* Behind what a jail attaches itself: a layer over an image, /run, the empty directory. */
static bool is_covered(const struct policy *p, const char *path)
{
	for (size_t i = 0; overlay_wanted(p) && overlay_tree(i); i++)
		if (path_within(path, overlay_tree(i)))
			return true;
	return path_within(path, TEMPLATE_EMPTY) || path_within(path, "/run");
}

/* -1 where there is none, or where it is part of a layer over the image. */
static int make_trust(const struct policy *p, int memfd, int *ret, struct err *e)
{
	struct authority a;
	*ret = -1;
	if (memfd < 0 || overlay_wanted(p))
		return 0;
	int r = authority_read(memfd, &a, e);
	if (r == 0)
		r = *ret = trust_layer(&a, e);
	explicit_bzero(&a, sizeof(a));
	return r < 0 ? r : 0;
}

static int make_parts(const struct policy *p, const struct template *t, struct part *parts,
        size_t *ret_n, struct err *e)
{
	size_t n = 0;
	int r = 0;
	if (!(p->flags & POLICY_PRIVATE_FILES)) {
		r = open_tree(AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
		parts[n++] = (struct part){.fd = r, .path = "/"};
		r = r < 0 ? err_errno(e, "layer mountns: copying the template") : 0;
	} else {
		for (size_t i = 0; r == 0 && i < t->nmounts; i++) {
			if (is_covered(p, t->mounts[i].path))
				continue;
			parts[n].fd = make_part(p, &t->mounts[i], &parts[n], e);
			r = parts[n].fd < 0 ? parts[n].fd : 0;
			n += r == 0;
		}
	}
	*ret_n = n;
	return r;
}

/* From directories to the files in them. */
static int pick_file(struct part *part, struct err *e)
{
	char path[sizeof(TEMPLATE_PLACE "/") + NAME_MAX];
	(void)snprintf(path, sizeof(path), TEMPLATE_PLACE "/%s", part->name);
	int r = mounts_attach(take_fd(part->fd), AT_FDCWD, TEMPLATE_PLACE, e);
	if (r < 0)
		return r;
	part->fd = open_tree(
	        AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
	return part->fd < 0 ? err_errno(e, "layer inodes: file %s", part->path) : 0;
}

static int enter_root(int root, struct err *e)
{
	if (move_mount(root, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) < 0 || fchdir(root) < 0 ||
	        chroot(".") < 0)
		return err_errno(e, "layer mountns: the jail's root");
	return 0;
}

static int attach_all(
        struct part *parts, size_t nparts, const struct root_mount *mounts, size_t n, struct err *e)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < nparts; i++)
		if (parts[i].name[0])
			r = pick_file(&parts[i], e);
	for (size_t i = 0; r == 0 && i < nparts; i++)
		r = i == 0 ? enter_root(parts[i].fd, e)
		           : mounts_attach(take_fd(parts[i].fd), AT_FDCWD, parts[i].path, e);
	for (size_t i = 0; r == 0 && i < n; i++)
		if (move_mount(mounts[i].mount, "", AT_FDCWD, mounts[i].target,
		            MOVE_MOUNT_F_EMPTY_PATH) < 0)
			r = err_errno(e, "layer mountns: mount on %s", mounts[i].target);
	return r;
}

/* A new overlay looks each name up below it, once.  These are asked for by nearly every program
 * that starts, so its first run finds them known; what is absent is known to be. */
static void look_up(void)
{
	static const char *const names[] = {"/bin/sh", "/usr/local/sbin/sh", "/usr/local/bin/sh",
	        "/usr/sbin/sh", "/usr/bin/sh", "/usr/bin/bash", "/usr/bin/env",
	        "/lib64/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/libc.so.6",
	        "/lib64/libc.so.6", "/etc/ld.so.preload", "/etc/ld.so.cache", "/etc/passwd",
	        "/dev/null", "/opt/agent", "/home/agent", "/workspace"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		(void)!access(names[i], F_OK);
}

int root_make(const struct policy *p, const struct template *t, const struct root_mount *mounts,
        size_t n, int authority, struct err *e)
{
	auto_free struct part *parts = xcalloc(t->nmounts + 1, sizeof(*parts));
	size_t nparts = 0;
	struct mounts_visit v;
	int r = mounts_enter(&v, t->mntns, e), ns = -1, trust = -1;
	if (r < 0)
		return r;
	r = make_parts(p, t, parts, &nparts, e);
	if (r == 0)
		r = make_trust(p, authority, &trust, e);
	if (r == 0 && (setns(t->bare, CLONE_NEWNS) < 0 || unshare(CLONE_NEWNS) < 0))
		r = err_errno(e, "layer mountns: the jail's mount namespace");
	if (r == 0)
		r = attach_all(parts, nparts, mounts, n, e);
	if (r == 0 && trust >= 0)
		r = mounts_attach(take_fd(trust), AT_FDCWD, POLICY_TRUST_DIR, e);
	if (r == 0) {
		look_up();
		ns = mounts_here(&v);
		r = ns < 0 ? err_errno(e, "layer mountns: /proc/self/ns/mnt") : 0;
	}
	mounts_leave(&v);
	fd_close(trust);
	for (size_t i = 0; i < nparts; i++)
		fd_close(parts[i].fd);
	return r < 0 ? r : ns;
}
