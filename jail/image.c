#include "jail/image.h"
#include "base/fd.h"
#include "base/mem.h"
#include "jail/loops.h"
#include "jail/mounts.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)

enum {
	BLOCK = LOOPS_BLOCK,
	INODE = 256,
	/* Blocks of one group, and the most inodes it can have: one bitmap block each. */
	GROUP_BLOCKS = 8 * BLOCK,
	/* mke2fs fills the last block of each group's inode table. */
	ROUNDING = BLOCK / INODE,
	/* Ten reserved, lost+found, ballast. */
	OWN_INODES = 12,
	/* Directories that are there in any case: root, lost+found, workspace, home. */
	OWN_BLOCKS = 1 + 4 + 1 + 1,
};
/* ext4 keeps min(2 %, 4096 clusters) back for its own bookkeeping. */
#define KEPT_BACK ((uint64_t)4096 * BLOCK)
#define SMALL     (256 * MIB)

/* Everything the session's files may take, and what ext4 needs besides.  Generous: the file is
 * sparse, and the ballast takes what is too much. */
static uint64_t file_bytes(const struct image_size *s)
{
	uint64_t need =
	        s->bytes + s->bytes / 64 + (s->inodes + OWN_INODES) * INODE + KEPT_BACK + 24 * MIB;
	/* a group has room for one inode in each of its blocks at most */
	uint64_t least = (s->inodes + OWN_INODES + ROUNDING) * BLOCK;
	return need > least ? need : least;
}

void image_command(struct image_command *c, const struct image_size *size, bool tree)
{
	(void)snprintf(c->inodes, sizeof(c->inodes), "%llu",
	        (unsigned long long)size->inodes + OWN_INODES);
	(void)snprintf(c->journal, sizeof(c->journal), "size=%d", size->bytes < SMALL ? 4 : 16);
	(void)snprintf(c->blocks, sizeof(c->blocks), "%llu",
	        (unsigned long long)(file_bytes(size) / BLOCK));
	/* Features by name: /etc/mke2fs.conf does not decide.  lazy: tables that the sparse file
	 * has as zeros already are not written. */
	static const char features[] = "none,has_journal,ext_attr,dir_index,filetype,extent,64bit,"
	                               "flex_bg,sparse_super,large_file,huge_file,dir_nlink,"
	                               "extra_isize,metadata_csum";
	const char *const first[] = {"mke2fs", "-q", "-F", "-t", "ext4", "-O", features, "-b",
	        "4096", "-I", "256", "-m", "0", "-E",
	        "lazy_itable_init=1,lazy_journal_init=1,nodiscard", "-J", c->journal, "-N",
	        c->inodes};
	size_t n = 0;
	for (; n < ARRAY_LEN(first); n++)
		c->argv[n] = first[n];
	if (tree) {
		c->argv[n++] = "-d";
		c->argv[n++] = "/proc/self/fd/4";
	}
	c->argv[n++] = "/proc/self/fd/3";
	c->argv[n++] = c->blocks;
	c->argv[n] = NULL;
	_Static_assert(ARRAY_LEN(first) + 5 <= IMAGE_ARGS, "the command fits");
}

int image_mount(int dir, const char *name, struct err *e)
{
	auto_close int file = fd_openat2(dir, name, O_RDWR | O_NOFOLLOW,
	        RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
	if (file < 0)
		return err_set(e, file, "%s: %s", name, strerror(-file));
	/* -EAGAIN is -EWOULDBLOCK */
	if (flock(file, LOCK_EX | LOCK_NB) < 0)
		return err_errno(e, "%s: locking", name);
	char device[LOOPS_PATH];
	auto_close int loop = loops_attach(file, device, e);
	if (loop < 0)
		return loop == -EAGAIN ? err_set(e, -EIO, "%s", device) : loop;
	/* discard: room given back inside is a hole in the file.  noinit_itable: the kernel would
	 * write the inode tables, which are holes. */
	const char *const options[] = {
	        "source", device, "discard", "", "noinit_itable", "", "errors", "remount-ro", NULL};
	int mount = mounts_new("ext4", MOUNTS_NSD, options, e);
	if (mount >= 0)
		return mount;
	(void)err_wrap(e, "%s (remedy: e2fsck -f, with agentboxd stopped)", name);
	return mount == -EAGAIN ? -EIO : mount;
}

static int usable(int root, struct statfs *ret, uint64_t *ret_blocks, struct err *e)
{
	if (fstatfs(root, ret) < 0)
		return err_errno(e, "statfs of a session's disk");
	uint64_t kept_back = ret->f_bfree - ret->f_bavail + OWN_BLOCKS;
	*ret_blocks = ret->f_blocks > kept_back ? ret->f_blocks - kept_back : 0;
	return 0;
}

int image_fits(int root, const struct image_size *size, struct err *e)
{
	struct statfs fs;
	uint64_t blocks = 0;
	int r = usable(root, &fs, &blocks, e);
	if (r < 0)
		return r;
	/* f_blocks is without the inode tables, of which there can be more than of all else. */
	uint64_t groups = (fs.f_blocks + fs.f_files / ROUNDING) / GROUP_BLOCKS + 3;
	uint64_t inodes = size->inodes + OWN_INODES;
	if (blocks * BLOCK < size->bytes)
		return 0;
	return !size->inodes || (fs.f_files >= inodes && fs.f_files <= inodes + groups * ROUNDING);
}

static int ballast_open(int root, struct stat *ret, struct err *e)
{
	auto_close int fd =
	        openat(root, "ballast", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || fstat(fd, ret) < 0)
		return err_errno(e, "ballast");
	return take_fd(fd);
}

int image_limit(int root, uint64_t bytes, struct err *e)
{
	struct statfs fs;
	struct stat st;
	uint64_t blocks = 0;
	int r = usable(root, &fs, &blocks, e);
	if (r < 0)
		return r;
	auto_close int fd = ballast_open(root, &st, e);
	if (fd < 0)
		return fd;
	uint64_t have = (uint64_t)st.st_size, all = blocks * BLOCK;
	uint64_t want = bytes && all > bytes ? (all - bytes) / BLOCK * BLOCK : 0;
	/* Files that were there before a smaller limit leave less than that. */
	uint64_t most = have + (uint64_t)fs.f_bavail * BLOCK;
	uint64_t get = want < most ? want : most;
	if (get < have && ftruncate(fd, (off_t)get) < 0)
		return err_errno(e, "smaller ballast");
	if (get <= have)
		return get == want;
	if (fallocate(fd, 0, (off_t)have, (off_t)(get - have)) == 0)
		return get == want;
	/* Its extents need a block themselves now and then: it has grown by what there was. */
	return errno == ENOSPC ? 0 : err_errno(e, "larger ballast");
}

int image_usage(int root, struct image_usage *ret, struct err *e)
{
	struct statfs fs;
	struct stat st = {.st_blocks = 0};
	if (fstatfs(root, &fs) < 0)
		return err_errno(e, "statfs of a session's disk");
	if (fstatat(root, "ballast", &st, AT_SYMLINK_NOFOLLOW) < 0 && errno != ENOENT)
		return err_errno(e, "ballast");
	uint64_t used = (uint64_t)(fs.f_blocks - fs.f_bfree) * BLOCK;
	uint64_t not_theirs = (uint64_t)st.st_blocks * 512 + (uint64_t)OWN_BLOCKS * BLOCK;
	uint64_t files = fs.f_files - fs.f_ffree;
	*ret = (struct image_usage){.bytes = used > not_theirs ? used - not_theirs : 0,
	        .inodes = files > OWN_INODES ? files - OWN_INODES : 0,
	        .bytes_left = (uint64_t)fs.f_bavail * BLOCK,
	        .inodes_left = fs.f_ffree};
	return 0;
}
