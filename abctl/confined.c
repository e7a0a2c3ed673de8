#include "abctl/confined.h"

#include "base/fd.h"
#include "base/mem.h"
#include "base/privs.h"
#include "base/sandbox.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int confine(const struct confined_spec *s, struct err *e)
{
	static const int allowed[] = {SYS_read, SYS_write, SYS_openat, SYS_open, SYS_close,
	        SYS_mkdir, SYS_brk, SYS_mmap, SYS_munmap, SYS_exit_group, SYS_rt_sigreturn};
	const struct rlimit file = {s->file_max, s->file_max};
	umask(022);
	if (fchdir(s->tree) < 0 || chroot(".") < 0)
		return err_errno(e, "making the new directory the root");
	if (setrlimit(RLIMIT_FSIZE, &file) < 0)
		return err_errno(e, "setting limits");
	int r = privs_drop(s->uid, s->gid, e);
	return r < 0 ? r
	             : sandbox_enter(allowed, ARRAY_LEN(allowed), NULL, 0, SANDBOX_DENY_EPERM, e);
}

int confined_start(struct confined *c, const struct confined_spec *s, struct err *e)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_errno(e, "pipe");
	c->pid = fork();
	if (c->pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		struct err why = {0};
		int r = confine(s, &why);
		if (r == 0)
			r = s->work(s->ctx, &why);
		if (r < 0)
			(void)!fd_write_all(ends[1], &why, sizeof(why)); /* the status tells, too */
		_exit(r < 0);
	}
	fd_close(ends[1]);
	c->said = ends[0];
	if (c->pid > 0)
		return 0;
	int r = err_errno(e, "fork");
	fd_close(c->said);
	return r;
}

int confined_end(struct confined *c, struct err *e)
{
	struct err why;
	ssize_t n = fd_read_full(c->said, &why, sizeof(why));
	fd_close(c->said);
	int status = 0;
	while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
		;
	if (n == (ssize_t)sizeof(why)) {
		why.text[ERR_TEXT_MAX - 1] = '\0';
		return err_set(e, why.code < 0 ? why.code : -EIO, "%s", why.text);
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	return err_set(e, -EIO, "the process that takes the archive apart ended by status 0x%x",
	        (unsigned)status);
}
