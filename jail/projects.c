#include "jail/projects.h"
#include "base/fd.h"
#include "base/ids.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/quota.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* quotactl(2): limits come in units of 1 KiB. */
enum { QUOTA_BLOCK = 1024 };
/* Numbers below are what administrators give in /etc/projid; the kernel takes 31 bits. */
#define FIRST ((uint32_t)0x40000000)
enum { TRIES = 64 };

/* quotactl_fd: 5.14+, and without the name of the device. */
static int quota(int fd, unsigned what, uint32_t project, struct if_dqblk *q)
{
	long r = syscall(SYS_quotactl_fd, fd, QCMD(what, PRJQUOTA), project, q);
	return r < 0 ? -errno : 0;
}

int projects_of(int dir, uint32_t *ret, struct err *e)
{
	struct fsxattr a;
	if (ioctl(dir, FS_IOC_FSGETXATTR, &a) < 0)
		return err_errno(e, "the file system has no projects");
	*ret = a.fsx_projid;
	return 0;
}

int projects_mark(int fd, uint32_t project)
{
	struct fsxattr a;
	struct stat st;
	if (fstat(fd, &st) < 0 || ioctl(fd, FS_IOC_FSGETXATTR, &a) < 0)
		return -errno;
	a.fsx_projid = project;
	if (S_ISDIR(st.st_mode))
		a.fsx_xflags |= FS_XFLAG_PROJINHERIT;
	return ioctl(fd, FS_IOC_FSSETXATTR, &a) < 0 ? -errno : 0;
}

int projects_limit(int fd, uint32_t project, uint64_t bytes, uint64_t inodes, struct err *e)
{
	struct if_dqblk q = {.dqb_bhardlimit = (bytes + QUOTA_BLOCK - 1) / QUOTA_BLOCK,
	        .dqb_ihardlimit = inodes,
	        .dqb_valid = QIF_LIMITS};
	int r = quota(fd, Q_SETQUOTA, project, &q);
	return r < 0 ? err_set(e, r, "limit of project %u: %s", project, strerror(-r)) : 0;
}

int projects_usage(int fd, uint32_t project, struct projects_usage *ret, struct err *e)
{
	struct if_dqblk q = {.dqb_valid = 0};
	int r = quota(fd, Q_GETQUOTA, project, &q);
	if (r == -ENOENT) /* xfs: nobody has ever used it */
		r = 0;
	if (r < 0)
		return err_set(e, r, "usage of project %u: %s", project, strerror(-r));
	*ret = (struct projects_usage){.bytes = q.dqb_curspace, .inodes = q.dqb_curinodes};
	return 0;
}

/* At random: what is in use is asked of the kernel, so there is no table that could be wrong. */
int projects_new(int fd, uint32_t *ret, struct err *e)
{
	for (int i = 0; i < TRIES; i++) {
		uint32_t n = 0;
		struct if_dqblk q = {.dqb_valid = 0};
		if (getrandom(&n, sizeof(n), 0) != (ssize_t)sizeof(n))
			return err_errno(e, "getrandom");
		n = FIRST | (n & (FIRST - 1));
		int r = quota(fd, Q_GETQUOTA, n, &q);
		if (r < 0 && r != -ENOENT)
			return err_set(e, r, "project quota is off: %s", strerror(-r));
		if (q.dqb_curspace || q.dqb_curinodes || q.dqb_bhardlimit || q.dqb_ihardlimit)
			continue;
		*ret = n;
		return 0;
	}
	return err_set(e, -EAGAIN, "no free project number was found");
}

/* ---- trying ---- */

enum { PROBE_INODES = 4, PROBE_FILES = 16 };
#define PROBE ".quota-probe"

static void names(int i, char out[16])
{
	(void)snprintf(out, 16, "%d", i);
}

/* As nobody in particular: root is not held to quotas on ext4. */
static int fill(int dir)
{
	if (setresuid(ID_STORE_BASE, ID_STORE_BASE, ID_STORE_BASE) < 0)
		return errno;
	for (int i = 0; i < PROBE_FILES; i++) {
		char name[16];
		names(i, name);
		int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0)
			return errno;
		fd_close(fd);
	}
	return 0;
}

static int try_filling(int dir, struct err *e)
{
	pid_t pid = fork();
	if (pid < 0)
		return err_errno(e, "fork");
	if (pid == 0)
		_exit(fill(dir));
	int status = 0;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
	if (code == EDQUOT || code == ENOSPC)
		return 0;
	return err_set(e, -EOPNOTSUPP, "quotas are kept and not enforced (%s)",
	        code ? strerror(code) : "mount with prjquota");
}

static int probe_in(int fd, int dir, struct err *e)
{
	uint32_t project;
	int r = projects_new(fd, &project, e);
	if (r < 0)
		return r;
	r = projects_mark(dir, project);
	if (r < 0)
		return err_set(e, r, "no project can be given: %s", strerror(-r));
	r = projects_limit(fd, project, 0, PROBE_INODES, e);
	if (r < 0)
		return r;
	r = fchown(dir, ID_STORE_BASE, ID_STORE_BASE) < 0 ? err_errno(e, "chown")
	                                                  : try_filling(dir, e);
	int lifted = projects_limit(fd, project, 0, 0, NULL);
	return r < 0 ? r : lifted < 0 ? err_set(e, lifted, "a limit cannot be lifted") : 0;
}

int projects_probe(int fd, struct err *e)
{
	if (mkdirat(fd, PROBE, 0700) < 0 && errno != EEXIST)
		return err_errno(e, "mkdir");
	auto_close int dir = openat(fd, PROBE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r = dir < 0 ? err_errno(e, PROBE) : probe_in(fd, dir, e);
	for (int i = 0; i < PROBE_FILES; i++) {
		char name[16];
		names(i, name);
		(void)unlinkat(dir, name, 0);
	}
	(void)unlinkat(fd, PROBE, AT_REMOVEDIR);
	return r;
}
