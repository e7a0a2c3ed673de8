#include "egress/confine.h"

#include "base/mem.h"
#include "base/privs.h"
#include "base/sandbox.h"

#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

/* What the loop, libcurl with OpenSSL, c-ares and the allocator call once they run. */
static const int allowed[] = {
        /* events and sockets */
        SYS_epoll_wait, SYS_epoll_pwait, SYS_epoll_ctl, SYS_poll, SYS_ppoll, SYS_accept4,
        SYS_connect, SYS_getsockname, SYS_getpeername, SYS_getsockopt, SYS_setsockopt, SYS_shutdown,
        SYS_recvfrom, SYS_recvmsg, SYS_sendto, SYS_sendmsg, SYS_read, SYS_write, SYS_readv,
        SYS_writev, SYS_close, SYS_fcntl, SYS_ioctl, SYS_splice, SYS_pipe2,
        /* memfds of agentboxd */
        SYS_fstat, SYS_newfstatat, SYS_pread64, SYS_lseek,
        /* memory */
        SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise, SYS_brk, SYS_mlock,
        SYS_munlock, SYS_futex,
        /* clocks, random numbers, ids, signals, the end */
        SYS_clock_gettime, SYS_gettimeofday, SYS_getrandom, SYS_getpid, SYS_gettid, SYS_geteuid,
        SYS_getuid, SYS_getgid, SYS_getegid, SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn,
        SYS_restart_syscall, SYS_tgkill, SYS_exit, SYS_exit_group};

static const uint32_t families[] = {AF_INET, AF_INET6};
static const struct sandbox_arg rules[] = {
        {SYS_socket, 0, families, ARRAY_LEN(families)},
};

/* Each connection is two descriptors and each jail five: as many as root's limit allows. */
static void raise_descriptors(void)
{
	struct rlimit r;
	if (getrlimit(RLIMIT_NOFILE, &r) < 0)
		return;
	r.rlim_cur = r.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &r); /* not more than allowed: cannot fail, and would only
	                                       mean fewer connections */
}

int confine_enter(uid_t uid, gid_t gid, struct err *e)
{
	raise_descriptors();
	int r = privs_drop(uid, gid, e);
	if (r < 0)
		return r;
	r = sandbox_enter(
	        allowed, ARRAY_LEN(allowed), rules, ARRAY_LEN(rules), SANDBOX_DENY_EPERM, e);
	return r < 0 ? err_wrap(e, "system call filter") : 0;
}
