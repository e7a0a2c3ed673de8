#include "jail/copy.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/ids.h"
#include "base/mem.h"
#include "jail/child.h"
#include "jail/layout.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define MARK "template"
enum {
	COPY_MS = 30 * 60 * 1000,
	SAID_MAX = 4096,
};
/* cp remembers each file that has several names; who makes millions of them gets no snapshot. */
#define COPY_MEMORY ((rlim_t)1 << 30)

static const char *find_cp(void)
{
	static const char *const places[] = {"/bin/cp", "/usr/bin/cp"};
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (access(places[i], X_OK) == 0)
			return places[i];
	return NULL;
}

static int judge(int status, const struct buf *said, struct err *e)
{
	char how[32];
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	child_status_text(status, how);
	if (WIFSIGNALED(status))
		return err_set(e, -EIO, "cp was killed (%s)", how);
	const char *text = said->p ? said->p : "";
	return err_set(e, -EIO, "cp: %s: %.*s", how, (int)strcspn(text, "\n"), text);
}

int copy_tree(int from, int to, struct err *e)
{
	static const char *const argv[] = {"cp", "-a", "--no-preserve=ownership", "--reflink=auto",
	        "--sparse=auto", "-T", "/proc/self/fd/3/.", "/proc/self/fd/4/.", NULL};
	auto_buf struct buf said = BUF_INIT(SAID_MAX);
	const int fds[] = {from, to};
	const struct child_spec spec = {.path = find_cp(),
	        .argv = argv,
	        .fds = fds,
	        .nfds = ARRAY_LEN(fds),
	        .shut_in = true,
	        .uid = ID_STORE_BASE + ID_INNER_AGENT,
	        .reads_all = true};
	if (!spec.path)
		return err_set(e, -ENOENT, "no cp (remedy: coreutils)");
#ifndef SANITIZED /* it is this process's limit too, and the sanitizers' runtime maps terabytes */
	const struct rlimit most = {COPY_MEMORY, COPY_MEMORY};
	if (setrlimit(RLIMIT_DATA, &most) < 0)
		return err_errno(e, "limit of memory");
#endif
	int status = child_run(&spec, COPY_MS, &said, e);
	return status < 0 ? status : judge(status, &said, e);
}

/* ---- templates ---- */

int template_choose(int dir, const char *name, struct err *e)
{
	if (unlinkat(dir, MARK, 0) < 0 && errno != ENOENT)
		return err_errno(e, MARK);
	if (!name[0])
		return 0;
	return symlinkat(name, dir, MARK) < 0 ? err_errno(e, MARK) : 0;
}

/* fd (owned) of what root wrote there. */
static int open_template(const char *path, const char *name, struct err *e)
{
	auto_close int top = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_close int fd =
	        top < 0 ? -errno
	                : fd_openat2(top, name, O_RDONLY | O_DIRECTORY,
	                          RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
	if (fd < 0)
		return err_set(e, fd, "%s/%s: %s (remedy: a directory of root's)", path, name,
		        strerror(-fd));
	int r = root_owned(top, path, e);
	if (r == 0)
		r = root_owned(fd, name, e);
	return r < 0 ? r : take_fd(fd);
}

int template_copy(int dir, const char *path, int workspace, struct err *e)
{
	char name[NAME_MAX_LEN];
	ssize_t n = readlinkat(dir, MARK, name, sizeof(name));
	if (n < 0)
		return errno == ENOENT ? 0 : err_errno(e, MARK);
	name[n < NAME_MAX_LEN ? n : 0] = '\0';
	if (!name_valid(name))
		return err_set(e, -EPERM, "its link " MARK " is none of ours");
	if (workspace < 0)
		return err_set(e, -EINVAL,
		        "workspace.template: its workspace is in memory, and gone with each jail");
	auto_close int from = open_template(path, name, e);
	int r = from < 0 ? from : copy_tree(from, workspace, e);
	if (r < 0)
		return err_wrap(e, "workspace.template");
	/* Whoever finds no mark finds all of it; and finds none once an agent was there. */
	if (syncfs(workspace) < 0 || unlinkat(dir, MARK, 0) < 0 || fsync(dir) < 0)
		return err_errno(e, "workspace.template");
	return 0;
}
