/*
 * Processes that make it hard to end them, and a few questions of an image without a shell.
 *
 *	stubborn crowd		many such processes, and itself waits with them
 *	stubborn crowd-and-go	the same, but it ends at once
 *	stubborn exists PATH...	"yes" or "no" for each
 *	stubborn device PATH	its numbers
 *	stubborn filesystem PATH  the magic of what it is on
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { EACH = 6 };

static void deaf(void)
{
	for (int sig = 1; sig < 65; sig++)
		(void)signal(sig, SIG_IGN);
	(void)prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
}

static _Noreturn void wait_for_ever(void)
{
	for (;;)
		pause();
}

/* A daemon of the old school: twice forked, a session of its own. */
static void daemonized(void)
{
	deaf();
	(void)setsid();
	if (fork() != 0)
		_exit(0);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	wait_for_ever();
}

static void stopped(void)
{
	deaf();
	(void)raise(SIGSTOP);
	wait_for_ever();
}

/* Its parent cannot be scheduled before the child is done, which is never. */
static void vforked(void)
{
	deaf();
	if (vfork() == 0)
		wait_for_ever();
	_exit(0);
}

static void misnamed(void)
{
	deaf();
	(void)prctl(PR_SET_NAME, ") R 1 1 \n", 0, 0, 0);
	wait_for_ever();
}

/* Always another process group. */
static void restless(void)
{
	deaf();
	for (;;) {
		(void)setpgid(0, 0);
		if (fork() != 0)
			_exit(0);
		(void)usleep(20000);
	}
}

static int crowd(int stay)
{
	static void (*const kinds[])(void) = {daemonized, stopped, vforked, misnamed, restless};
	for (int i = 0; i < EACH; i++)
		for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
			if (fork() == 0) {
				kinds[k]();
				_exit(0);
			}
	(void)sleep(1);
	if (stay)
		wait_for_ever();
	return 0;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	struct stat st;
	struct statfs fs;
	if (strncmp(mode, "crowd", 5) == 0)
		return crowd(mode[5] == '\0');
	for (int i = 2; i < argc; i++) {
		if (strcmp(mode, "exists") == 0)
			printf("%s\n", lstat(argv[i], &st) == 0 ? "yes" : "no");
		else if (strcmp(mode, "device") == 0 && stat(argv[i], &st) == 0)
			printf("%u:%u\n", major(st.st_rdev), minor(st.st_rdev));
		else if (strcmp(mode, "filesystem") == 0 && statfs(argv[i], &fs) == 0)
			printf("%lx\n", (unsigned long)fs.f_type);
	}
	return 0;
}
