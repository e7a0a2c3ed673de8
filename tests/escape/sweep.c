/*
 * Every system call, by number, against the golden table.
 *
 *	sweep FILE refused	TAP: what the filter refuses gets exactly its errno or signal
 *	sweep FILE allowed	one line for each call that it lets through: what the kernel said.
 *				The same lines must come without a filter (tests/fakes/lax.c)
 *	sweep FILE unfiltered	without a filter: how many of the refused answer as if there were
 *one
 */
#include "sweep.h"
#include "tests/t.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <linux/seccomp.h>

enum { SIGNALLED = 1000, OTHERWISE = 2000, PATIENCE_US = 400000 };

/* In line, so that a vfork finds its return address untouched. */
static inline __attribute__((always_inline)) long raw(uint64_t nr, const uint64_t a[6])
{
	long ret;
	register uint64_t r10 __asm__("r10") = a[3];
	register uint64_t r8 __asm__("r8") = a[4];
	register uint64_t r9 __asm__("r9") = a[5];
	__asm__ volatile("syscall"
	                 : "=a"(ret)
	                 : "a"(nr), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
	                 : "rcx", "r11", "memory");
	return ret;
}

static long int80(uint64_t nr)
{
	long ret;
	__asm__ volatile("int $0x80"
	                 : "=a"(ret)
	                 : "a"(nr), "b"(0), "c"(0), "d"(0), "S"(0), "D"(0)
	                 : "r8", "r9", "r10", "r11", "memory");
	return ret;
}

static _Noreturn void child(const struct sweep *s)
{
	static const uint64_t none[6];
	struct itimerval end = {.it_value = {0, PATIENCE_US}};
	uint32_t nr = (uint32_t)s->nr;
	pid_t self = getpid();
	(void)setitimer(ITIMER_REAL, &end, NULL);
	(void)signal(SIGHUP, SIG_IGN); /* what some flags of clone have a child send */
	long r = s->how == SWEEP_INT80 ? int80(s->nr) : raw(s->nr, s->args);
	if ((nr == SYS_fork || nr == SYS_vfork || nr == SYS_clone) && r == 0)
		(void)raw(SYS_exit_group, none);
	if (getpid() != self)
		_exit(0);
	_exit(r < 0 && r > -256 ? (int)-r : 0);
}

/* Errno (0: none), SIGNALLED + signal. */
static int answer(const struct sweep *s)
{
	if (s->how == SWEEP_HERE) {
		long r = raw(s->nr, s->args);
		if (r >= 0 && (uint32_t)s->nr == SYS_socket)
			close((int)r);
		return r < 0 ? (int)-r : 0;
	}
	pid_t pid = fork();
	if (pid == 0)
		child(s);
	int status = 0;
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return OTHERWISE;
	return WIFSIGNALED(status) ? SIGNALLED + WTERMSIG(status) : WEXITSTATUS(status);
}

/* What the verdict means, or -1: the kernel answers. */
static int meaning(uint32_t verdict)
{
	if (verdict == SECCOMP_RET_ALLOW)
		return -1;
	if (verdict == SECCOMP_RET_KILL_PROCESS)
		return SIGNALLED + SIGSYS;
	return (int)(verdict & SECCOMP_RET_DATA);
}

static void tell(const struct sweep *s, int code)
{
	printf("nr %llx how %u args", (unsigned long long)s->nr, s->how);
	for (int i = 0; i < 6; i++)
		printf(" %llx", (unsigned long long)s->args[i]);
	printf(": %d\n", code);
}

static unsigned long called, same;

static void refused(const struct sweep *s)
{
	int want = meaning(s->verdict), code;
	if (want < 0)
		return;
	called++;
	code = answer(s);
	same += code == want;
	if (code != want && called - same <= 20) {
		printf("# want %d: ", want);
		tell(s, code);
	}
}

/* Not seccomp(SET_MODE_STRICT), which is possible without a filter only. */
static void allowed(const struct sweep *s)
{
	if (meaning(s->verdict) < 0 && (uint32_t)s->nr != SYS_seccomp)
		tell(s, answer(s));
}

/* Not the sockets: a host without our filter loads modules for them. */
static void unfiltered(const struct sweep *s)
{
	int want = meaning(s->verdict);
	if (want < 0 || s->how != SWEEP_CHILD || want > SIGNALLED || (uint32_t)s->nr == SYS_socket)
		return;
	called++;
	same += answer(s) == want;
}

int main(int argc, char **argv)
{
	static struct sweep some[1024];
	if (argc < 3)
		return 100;
	FILE *f = fopen(argv[1], "re");
	/* 0 is the descriptor of calls without arguments: nothing, whatever it was */
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (!f || null < 0 || dup2(null, 0) < 0)
		return 111;
	void (*fn)(const struct sweep *) = strcmp(argv[2], "refused") == 0   ? refused
	                                   : strcmp(argv[2], "allowed") == 0 ? allowed
	                                                                     : unfiltered;
	for (size_t n; (n = fread(some, sizeof(some[0]), 1024, f)) > 0;) {
		fflush(stdout);
		for (size_t i = 0; i < n; i++)
			fn(&some[i]);
		fflush(stdout);
	}
	if (fn == refused) {
		ok(called > 200000, "%lu calls that are refused", called);
		ok(same == called, "each with its own errno or signal (%lu)", same);
		return done();
	}
	if (fn == unfiltered)
		printf("%lu of %lu\n", same, called);
	return 0;
}
