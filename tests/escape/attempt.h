/*
 * attempt.h - what somebody in a jail tries, as a table, and what must come of it.
 *
 * Each row is one attempt: a row of the catalogue in docs/ISOLATION.md, what is tried, and the
 * layers that stop it.  In a jail every attempt must be stopped:
 *
 *	PROGRAM			TAP, one check a row
 *
 * and in a jail without those layers (tests/fakes/lax.c) it must go through, or the check above
 * says nothing:
 *
 *	PROGRAM --settings	the sets of layers that rows want left out, one a line
 *	PROGRAM --lax SET	TAP of the rows with that set: each went through
 *	PROGRAM --uncontrolled	rows for which no such place is safe or possible, and why
 *	PROGRAM --ids		the rows of the catalogue
 *
 * "--bait NUMBER" before any of that: what is planted outside, to be found, has that number in its
 * names, so that several may look at once on one host.
 *
 * An attempt runs in a child of its own, so that one that goes through changes nothing for the
 * next.  Where no layer stands it must still do no harm to the host: it names itself or what is
 * not there, or opens without writing.
 */
#ifndef TESTS_ESCAPE_ATTEMPT_H
#define TESTS_ESCAPE_ATTEMPT_H

#include "tests/t.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

/* MISSING: the kernel has no such thing, so there is nothing to stop. */
enum answer { STOPPED, THROUGH, MISSING, BROKEN };

#define KERNEL(major, minor) ((major)*1000 + (minor))

struct attempt {
	const char *id, *what;
	enum answer (*fn)(const struct attempt *a);
	const char *without;      /* the layers that stop it, as lax.c names them */
	const char *uncontrolled; /* instead: why it is not tried without them */
	int since;                /* KERNEL(): older ones have nothing to let through */
	/* what fn may want to know */
	int want, also; /* right errnos; also 0: one only */
	long nr;
	long arg[5];
	const char *path;
};

/* The answer of a call that must fail in one of the row's ways. */
static inline enum answer answer_of(long ret, const struct attempt *a)
{
	int code = errno;
	if (ret < 0 && (code == a->want || (a->also && code == a->also)))
		return STOPPED;
	if (ret < 0 && code == ENOSYS)
		return MISSING;
	printf("#   %s: %s\n", a->what, ret < 0 ? strerror(code) : "went through");
	return THROUGH;
}

static inline enum answer attempt_call(const struct attempt *a)
{
	errno = 0;
	return answer_of(
	        syscall(a->nr, a->arg[0], a->arg[1], a->arg[2], a->arg[3], a->arg[4], 0), a);
}

/* The path must not be there. */
static inline enum answer attempt_see(const struct attempt *a)
{
	errno = 0;
	return answer_of(access(a->path, F_OK), a);
}

/* The file may be there and must have nothing to say. */
static inline enum answer attempt_read(const struct attempt *a)
{
	char byte;
	int fd = open(a->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return MISSING;
	return fd < 0 || read(fd, &byte, 1) <= 0 ? STOPPED : THROUGH;
}

static inline enum answer attempt_open_to_write(const struct attempt *a)
{
	errno = 0;
	int fd = open(a->path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT && a->want != ENOENT)
		return MISSING;
	return answer_of(fd, a);
}

/* ---- what is planted outside ---- */

static int attempts_bait;

/* A name of it, also that of a process: 15 bytes at most. */
static inline void bait_name(char out[16])
{
	(void)snprintf(out, 16, "bait-%d", attempts_bait);
}

static inline socklen_t bait_abstract(struct sockaddr_un *name)
{
	*name = (struct sockaddr_un){.sun_family = AF_UNIX};
	bait_name(name->sun_path + 1);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name->sun_path + 1));
}

static inline uint16_t bait_port(void)
{
	return (uint16_t)(10000 + attempts_bait % 20000); /* below those that are given out */
}

/* Takes the option from the arguments. */
static inline void bait_option(int *argc, char ***argv)
{
	if (*argc < 3 || strcmp((*argv)[1], "--bait") != 0)
		return;
	attempts_bait = atoi((*argv)[2]);
	*argc -= 2;
	*argv += 2;
}

/* ---- running the table ---- */

static inline int kernel_version(void)
{
	struct utsname u;
	int major = 0, minor = 0;
	if (uname(&u) < 0 || sscanf(u.release, "%d.%d", &major, &minor) != 2)
		return 0;
	return KERNEL(major, minor);
}

static inline enum answer attempt_run(const struct attempt *a)
{
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		alarm(60);
		enum answer r = a->fn(a);
		fflush(stdout);
		_exit((int)r);
	}
	int status = 0;
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return BROKEN;
	if (WIFSIGNALED(status))
		printf("#   %s: the attempt died of signal %d\n", a->what, WTERMSIG(status));
	return WIFEXITED(status) ? (enum answer)WEXITSTATUS(status) : BROKEN;
}

static inline int attempts_in_jail(const struct attempt *rows, size_t n)
{
	struct utsname u;
	/* not by mistake on a host: every jail has this name */
	if (uname(&u) < 0 || strcmp(u.nodename, "jail") != 0) {
		ok(0, "this is a jail");
		return done();
	}
	for (size_t i = 0; i < n; i++) {
		enum answer r = attempt_run(&rows[i]);
		ok(r == STOPPED || r == MISSING, "%s: %s", rows[i].id, rows[i].what);
	}
	return done();
}

static inline int attempts_without(const struct attempt *rows, size_t n, const char *layers)
{
	for (size_t i = 0; i < n; i++) {
		const struct attempt *a = &rows[i];
		if (!a->without || strcmp(a->without, layers) != 0)
			continue;
		if (kernel_version() < a->since) {
			printf("# older than Linux %d.%d: %s: %s\n", a->since / 1000,
			        a->since % 1000, a->id, a->what);
			continue;
		}
		enum answer r = attempt_run(a);
		if (r == MISSING)
			printf("# not in this kernel: %s: %s\n", a->id, a->what);
		else
			ok(r == THROUGH, "%s: %s: goes through without %s", a->id, a->what, layers);
	}
	return done();
}

static inline int attempts_settings(const struct attempt *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t seen = 0;
		while (seen < i && (!rows[seen].without || !rows[i].without ||
		                           strcmp(rows[seen].without, rows[i].without) != 0))
			seen++;
		if (rows[i].without && seen == i)
			printf("%s\n", rows[i].without);
		if (!rows[i].without == !rows[i].uncontrolled) {
			printf("%s: %s: neither a control nor a reason\n", rows[i].id,
			        rows[i].what);
			return 1;
		}
	}
	return 0;
}

static inline int attempts_main(int argc, char **argv, const struct attempt *rows, size_t n)
{
	bait_option(&argc, &argv);
	const char *mode = argc > 1 ? argv[1] : "";
	if (strcmp(mode, "--lax") == 0 && argc > 2)
		return attempts_without(rows, n, argv[2]);
	if (strcmp(mode, "--settings") == 0)
		return attempts_settings(rows, n);
	for (size_t i = 0; i < n && strcmp(mode, "--ids") == 0; i++)
		printf("%s\n", rows[i].id);
	for (size_t i = 0; i < n && strcmp(mode, "--uncontrolled") == 0; i++)
		if (rows[i].uncontrolled)
			printf("%s\t%s\t%s\n", rows[i].id, rows[i].what, rows[i].uncontrolled);
	return *mode ? 0 : attempts_in_jail(rows, n);
}

#define ATTEMPTS_MAIN(rows)                                                                        \
	int main(int argc, char **argv)                                                            \
	{                                                                                          \
		return attempts_main(argc, argv, rows, sizeof(rows) / sizeof((rows)[0]));          \
	}

#endif
