#include "jail/shut.h"
#include "base/fd.h"
#include "base/mem.h"
#include "jail/mounts.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define READ_ONLY (MOUNTS_NSD | MOUNT_ATTR_RDONLY)

static int own_namespaces(struct err *e)
{
	if (unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC) < 0)
		return err_errno(e, "own mounts");
	return mounts_private(e);
}

static int become_root(int tree, struct err *e)
{
	if (fchdir(tree) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
	        umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return err_errno(e, "own root");
	return 0;
}

static int attach(int tree, int dir, const char *at, struct err *e)
{
	if (syscall(SYS_move_mount, tree, "", dir, at, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_errno(e, "mounting %s", at);
	return 0;
}

int shut_tree(int tree, const char *at, struct err *e)
{
	int r = own_namespaces(e);
	if (r == 0)
		r = attach(tree, AT_FDCWD, at, e);
	return r < 0 ? r : become_root(tree, e);
}

/* A directory or a link of the host's root, as it is there; what is not there is not needed. */
static int put_programs(int root, const char *name, struct err *e)
{
	char path[16], link[64];
	struct stat st;
	(void)snprintf(path, sizeof(path), "/%s", name);
	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : err_errno(e, "%s", path);
	if (S_ISLNK(st.st_mode)) {
		ssize_t n = readlink(path, link, sizeof(link) - 1);
		link[n > 0 ? n : 0] = '\0';
		return n < 0 || symlinkat(link, root, name) < 0 ? err_errno(e, "%s", path) : 0;
	}
	auto_close int tree = mounts_clone(AT_FDCWD, path, READ_ONLY, -1, e);
	if (tree < 0)
		return tree;
	if (mkdirat(root, name, 0755) < 0)
		return err_errno(e, "%s", path);
	return attach(tree, root, name, e);
}

/* Of /proc this process alone, which has its name there also as somebody else. */
static int put_proc(int root, int self, struct err *e)
{
	if (mkdirat(root, "proc", 0755) < 0 || mkdirat(root, "proc/self", 0755) < 0)
		return err_errno(e, "/proc/self");
	return attach(self, root, "proc/self", e);
}

int shut_programs(struct err *e)
{
	static const char *const names[] = {"usr", "lib", "lib32", "lib64", "bin", "sbin"};
	static const char *const options[] = {
	        "size", "64k", "nr_inodes", "64", "mode", "0755", NULL};
	int r = own_namespaces(e);
	if (r < 0)
		return r;
	(void)umask(0022); /* agentboxd's would make the directories root's alone */
	char path[32];
	(void)snprintf(path, sizeof(path), "/proc/%d", (int)getpid());
	auto_close int self = mounts_clone(AT_FDCWD, path, READ_ONLY, -1, e);
	if (self < 0)
		return self;
	auto_close int root = mounts_new("tmpfs", MOUNTS_NSD, options, e);
	if (root < 0)
		return root;
	r = attach(root, AT_FDCWD, "/proc", e); /* a directory that is there */
	for (size_t i = 0; i < ARRAY_LEN(names) && r == 0; i++)
		r = put_programs(root, names[i], e);
	if (r == 0)
		r = put_proc(root, self, e);
	if (r == 0)
		r = mounts_restrict(root, MOUNT_ATTR_RDONLY, e);
	return r < 0 ? r : become_root(root, e);
}
