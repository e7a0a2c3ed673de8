/*
 * What is left is files below descriptors it holds, its own sockets and memory:
 * no execve, no fork, no socket of any family, no connect, no ptrace, no
 * setting of ids.  Denied calls give EPERM rather than death, because a
 * library's optional call must not end every run; what a compromise needs is
 * denied either way.  The ring is outside of seccomp's sight and is
 * restricted to its opcodes by IORING_REGISTER_RESTRICTIONS instead (loop.c).
 */
#include "supervisor/filter.h"

#include "base/mem.h"
#include "base/sandbox.h"

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static const int allowed[] = {
        /* bytes */
        SYS_read,
        SYS_write,
        SYS_readv,
        SYS_writev,
        SYS_pread64,
        SYS_pwrite64,
        SYS_lseek,
        /* files below descriptors, and SQLite's by relative path */
        SYS_openat,
        SYS_open,
        SYS_close,
        SYS_close_range,
        SYS_fstat,
        SYS_fstatfs,
        SYS_stat,
        SYS_lstat,
        SYS_newfstatat,
        SYS_statx,
        SYS_getdents64,
        SYS_ftruncate,
        SYS_fallocate,
        SYS_fsync,
        SYS_fdatasync,
        SYS_unlink,
        SYS_unlinkat,
        SYS_mkdirat,
        SYS_access,
        SYS_faccessat,
        SYS_faccessat2,
        SYS_getcwd,
        SYS_fchmod,
        SYS_fchown,
        SYS_geteuid,
        SYS_getuid,
        SYS_getgid,
        SYS_getegid,
        SYS_readlink,
        SYS_fcntl,
        SYS_fadvise64,
        SYS_memfd_create,
        SYS_pipe2, /* to a file worker (files.c) */
        SYS_dup,
        /* the ring and waiting */
        SYS_io_uring_enter,
        SYS_io_uring_register,
        SYS_epoll_create1,
        SYS_epoll_ctl,
        SYS_epoll_wait,
        SYS_epoll_pwait,
        SYS_poll,
        SYS_ppoll,
        SYS_eventfd2,
        SYS_inotify_rm_watch,
        /* sockets that are there already */
        SYS_recvmsg,
        SYS_recvfrom,
        SYS_sendmsg,
        SYS_sendto,
        SYS_accept4,
        SYS_shutdown,
        SYS_getsockname,
        SYS_getpeername,
        SYS_getsockopt,
        SYS_setsockopt,
        /* memory and threads */
        SYS_brk,
        SYS_munmap,
        SYS_mremap,
        SYS_madvise,
        SYS_futex,
        SYS_rseq,
        SYS_set_robust_list,
        SYS_sched_yield,
        SYS_membarrier,
        /* time, chance, the end */
        SYS_clock_gettime,
        SYS_gettimeofday,
        SYS_clock_nanosleep,
        SYS_nanosleep,
        SYS_getrandom,
        SYS_rt_sigaction,
        SYS_rt_sigprocmask,
        SYS_rt_sigreturn,
        SYS_restart_syscall,
        SYS_getpid,
        SYS_gettid,
        SYS_tgkill,
        SYS_uname,
        SYS_sysinfo,
        SYS_exit,
        SYS_exit_group,
};

int filter_enter(struct err *e)
{
	/* Memory that can be written and executed is what an exploit makes next. */
	static const uint32_t plain[] = {PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE};
	static const uint32_t resize[] = {TIOCSWINSZ}; /* of a jail's terminal */
	static const struct sandbox_arg args[] = {
	        {SYS_mmap, 2, plain, ARRAY_LEN(plain)},
	        {SYS_mprotect, 2, plain, ARRAY_LEN(plain)},
	        {SYS_ioctl, 1, resize, ARRAY_LEN(resize)},
	};
	return sandbox_enter(
	        allowed, ARRAY_LEN(allowed), args, ARRAY_LEN(args), SANDBOX_DENY_EPERM, e);
}
