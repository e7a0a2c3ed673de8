/* A workspace on a layer: written apart, what is deleted stays deleted, and as nobody with more
 * rights than that takes. */
#include "jail/merge.h"
#include "base/fd.h"
#include "base/ids.h"
#include "base/mem.h"
#include "jail/mounts.h"
#include "jail/userns.h"
#include "tests/t.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	STORE_ID = ID_STORE_BASE + ID_INNER_AGENT,
	BASE = ID_STORE_BASE + 7 * ID_BLOCK,
	AGENT = BASE + ID_INNER_AGENT,
	IMAGE_MIB = 64,
};
static char root[] = "/tmp/agentbox-merge-XXXXXX";

static int sh(const char *line)
{
	auto_free char *all = xasprintf("cd %s && { %s; } >/dev/null 2>&1", root, line);
	return system(all); /* NOLINT(cert-env33-c): a test's own words */
}

/* As the agent of a jail, with no capability. */
static int as_agent(int dir, const char *line)
{
	pid_t pid = fork();
	if (pid == 0) {
		if (fchdir(dir) < 0 || setgroups(0, NULL) < 0 ||
		        setresgid(AGENT, AGENT, AGENT) < 0 || setresuid(AGENT, AGENT, AGENT) < 0)
			_exit(99);
		execl("/bin/sh", "sh", "-c", line, (char *)NULL);
		_exit(98);
	}
	int status = 0;
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

struct place {
	int lower, parts; /* owned directories */
};

static int mount_it(const struct place *p, int idmap, int mntns, uint32_t id, struct err *e)
{
	auto_close int upper = mounts_clone(p->parts, "", MOUNTS_NSD, idmap, e);
	const struct merge m = {
	        .lower = p->lower, .upper = upper, .idmap = idmap, .mntns = mntns, .id = id};
	return upper < 0 ? upper : merge_mount(&m, e);
}

static void caps_of(struct __user_cap_data_struct ret[2])
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	must(syscall(SYS_capget, &h, ret) == 0, "own capabilities");
}

static void test_isolation(const struct place *p, int idmap, int mntns)
{
	struct err e = {0};
	struct __user_cap_data_struct before[2], after[2];
	caps_of(before);
	int fds = fd_count();
	auto_close int top = mount_it(p, idmap, mntns, AGENT, &e);
	must(top >= 0, "merged: %s", e.text);
	caps_of(after);
	ok(memcmp(before, after, sizeof(before)) == 0, "capabilities are what they were");
	struct stat st;
	auto_close int mine = open(root, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	ok(mine >= 0 && fstat(mine, &st) == 0 && st.st_uid == 0 && st.st_gid == 0,
	        "and so is who makes a file");
	ok(as_agent(top, "grep -q low a && echo more >>a && echo new >n && rm -r d && mkdir d && "
	                 "ln a hard && mv n moved && ! test -e d/b") == 0,
	        "an agent writes, deletes and renames");
	ok(as_agent(top, "mknod w c 0 0") != 0, "and makes no whiteout");
	fd_close(take_fd(mine));
	fd_close(take_fd(top));
	ok(fd_count() == fds, "no descriptor is left");
	top = mount_it(p, idmap, mntns, AGENT, &e);
	ok(top >= 0 && as_agent(top, "test -z \"$(ls d)\" && grep -q more a && test -e moved") == 0,
	        "another mount shows what was done, and nothing that was deleted");
	ok(sh("grep -qx low low/a && test -e low/d/b && test $(ls low | wc -l) = 2") == 0,
	        "the layer is as it was");
	ok(fstatat(p->parts, "upper/moved", &st, 0) == 0 && st.st_uid == STORE_ID,
	        "what is new is stored under the store's id");
}

static void test_strangers(const struct place *p, int idmap, int mntns)
{
	struct err e = {0};
	int fds = fd_count();
	int r = mount_it(p, idmap, mntns, 0, &e);
	ok(r == -EROFS, "as an id that is not in the map it is refused, not read-only: %s", e.text);
	fd_close(r);
	ok(fd_count() == fds, "no descriptor is left");
}

/* Blocks that a file system keeps for who has CAP_SYS_RESOURCE, who has no quota either. */
static void test_reserve(const struct place *low, int idmap, int mntns)
{
	struct err e = {0};
	auto_free char *disk = xasprintf("%s/disk", root);
	auto_free char *make = xasprintf("truncate -s %dM img && mkfs.ext4 -q -m 25 img && "
	                                 "mkdir disk && mount -o loop img disk && mkdir disk/parts",
	        IMAGE_MIB);
	if (sh(make) != 0) {
		skip_one("reserved blocks", "no loop device or no mkfs.ext4");
		return;
	}
	auto_free char *path = xasprintf("%s/parts", disk);
	auto_close int parts = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(merge_prepare(parts, STORE_ID, &e) == 0, "prepared: %s", e.text);
	const struct place p = {.lower = low->lower, .parts = parts};
	auto_close int top = mount_it(&p, idmap, mntns, AGENT, &e);
	must(top >= 0, "merged: %s", e.text);
	ok(as_agent(top, "dd if=/dev/zero of=f bs=64k 2>/dev/null; test $? != 0") == 0,
	        "a disk that is full is full");
	struct statvfs fs;
	must(statvfs(disk, &fs) == 0, "what is left");
	ok((uint64_t)fs.f_bfree * fs.f_frsize >= (uint64_t)IMAGE_MIB << 18,
	        "with the blocks that are root's still free: %llu MiB",
	        (unsigned long long)fs.f_bfree * fs.f_frsize >> 20);
	fd_close(take_fd(top));
	fd_close(take_fd(parts));
	(void)umount2(disk, MNT_DETACH);
}

int main(void)
{
	struct err e = {0};
	if (geteuid() != 0)
		skip_all("needs root");
	must(unshare(CLONE_NEWNS) == 0 && mounts_private(&e) == 0, "own mounts");
	must(mkdtemp(root) && chmod(root, 0755) == 0, "a directory");
	auto_free char *make =
	        xasprintf("mkdir -p low/d parts && echo low >low/a && echo b >low/d/b "
	                  "&& chown -R %d:%d low",
	                (int)STORE_ID, (int)STORE_ID);
	must(sh(make) == 0, "a layer");
	auto_free char *low = xasprintf("%s/low", root);
	auto_free char *parts = xasprintf("%s/parts", root);
	struct place p = {.lower = open(low, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
	        .parts = open(parts, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
	must(merge_prepare(p.parts, STORE_ID, &e) == 0, "prepared: %s", e.text);
	ok(merge_prepare(p.parts, STORE_ID, &e) == 0, "twice is fine");
	const struct userns_map map = {ID_STORE_BASE, BASE, ID_BLOCK};
	auto_close int idmap = userns_make(&map, &map, false, &e);
	auto_close int mntns = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	must(idmap >= 0 && mntns >= 0, "an id map: %s", e.text);
	test_isolation(&p, idmap, mntns);
	test_strangers(&p, idmap, mntns);
	test_reserve(&p, idmap, mntns);
	fd_close(p.lower);
	fd_close(p.parts);
	auto_free char *rm = xasprintf("cd / && rm -rf %s", root);
	ok(sh("true") == 0 && system(rm) == 0, "cleaned up"); /* NOLINT(cert-env33-c) */
	return done();
}
