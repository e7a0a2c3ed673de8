/* System calls that nobody in a jail needs, and the ones whose arguments decide. */
#include "escape.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

static const struct {
	const char *name;
	int nr, want;
} closed[] = {
        {"io_uring_setup", 425, ENOSYS},
        {"io_uring_enter", 426, ENOSYS},
        {"io_uring_register", 427, ENOSYS},
        {"userfaultfd", 323, ENOSYS},
        {"memfd_secret", 447, ENOSYS},
        {"keyctl", 250, ENOSYS},
        {"add_key", 248, ENOSYS},
        {"request_key", 249, ENOSYS},
        {"mq_open", 240, ENOSYS},
        {"uselib", 134, ENOSYS},
        {"lookup_dcookie", 212, ENOSYS},
        {"a call nobody knows", 999, ENOSYS},
        {"bpf", 321, EPERM},
        {"perf_event_open", 298, EPERM},
        {"kexec_file_load", 320, EPERM},
        {"init_module", 175, EPERM},
        {"finit_module", 313, EPERM},
        {"delete_module", 176, EPERM},
        {"iopl", 172, EPERM},
        {"ioperm", 173, EPERM},
        {"modify_ldt", 154, EPERM},
        {"syslog", 103, EPERM},
        {"settimeofday", 164, EPERM},
        {"clock_settime", 227, EPERM},
        {"adjtimex", 159, EPERM},
        {"mbind", 237, EPERM},
        {"set_mempolicy", 238, EPERM},
        {"move_pages", 279, EPERM},
        {"migrate_pages", 256, EPERM},
        {"process_vm_readv", 310, EPERM},
        {"process_vm_writev", 311, EPERM},
        {"kcmp", 312, EPERM},
        {"pidfd_getfd", 438, EPERM},
        {"splice", 275, EINVAL},
        {"tee", 276, EINVAL},
        {"vmsplice", 278, EINVAL},
};

/* A child that dies of SIGSYS has been told no in the hardest way. */
static void killed(void (*fn)(void), const char *what)
{
	pid_t pid = fork();
	if (pid == 0) {
		fn();
		_exit(0);
	}
	int status = 0;
	waitpid(pid, &status, 0);
	ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS, "%s: SIGSYS", what);
}

static void int80(void)
{
	long ret;
	__asm__ volatile("int $0x80" : "=a"(ret) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
}

static void x32(void)
{
	(void)syscall(0x40000000 + SYS_getpid);
}

static void arguments(void)
{
	FAILS(syscall(SYS_personality, 0x400000), EPERM, "personality(READ_IMPLIES_EXEC)");
	FAILS(syscall(SYS_prlimit64, getppid() > 1 ? getppid() : 1, 7, (uint64_t[]){9, 9}, NULL),
	        EPERM, "prlimit64 of another process");
	FAILS(syscall(SYS_reboot, 0, 0, 0, NULL), EPERM, "reboot");
	FAILS(sethostname("x", (size_t)-1), EPERM, "sethostname");
	FAILS(syscall(246, 0, 1 << 20, NULL, 0xffff), EPERM, "kexec_load");
	FAILS(ptrace(PTRACE_TRACEME, 0, NULL, NULL), EPERM, "ptrace");
}

int main(void)
{
	for (size_t i = 0; i < sizeof(closed) / sizeof(closed[0]); i++)
		FAILS(syscall(closed[i].nr, 0, 0, 0, 0, 0, 0), closed[i].want, "%s",
		        closed[i].name);
	arguments();
	killed(int80, "a 32-bit call");
	killed(x32, "an x32 call");
	return done();
}
