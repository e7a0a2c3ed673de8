/*
 * agentbox-authority - makes the certificate authority of one jail.
 *
 *	agentbox-authority NAME...	(.NAME: all names below)
 *
 * Started by agentboxd for each jail whose policy terminates TLS, under an id of
 * its own and without a network; writes struct authority into descriptor 3 and
 * ends.  It reads nothing but its arguments.
 */
#include "base/fd.h"
#include "base/mem.h"
#include "base/sandbox.h"
#include "egress/certs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { OUT = 3, EXIT_USAGE = 100, EXIT_SYSTEM = 111 };

/* Making keys, the allocator, the answer, the end. */
static const int allowed[] = {SYS_write, SYS_getrandom, SYS_brk, SYS_mmap, SYS_munmap, SYS_mremap,
        SYS_mprotect, SYS_madvise, SYS_futex, SYS_clock_gettime, SYS_gettimeofday, SYS_getpid,
        SYS_gettid, SYS_close, SYS_exit, SYS_exit_group};

static int confine(struct err *e)
{
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_errno(e, "prctl");
	return sandbox_enter(allowed, ARRAY_LEN(allowed), NULL, 0, SANDBOX_DENY_EPERM, e);
}

static int make(const char *const *names, size_t n, struct err *e)
{
	struct authority a;
	int r = confine(e);
	if (r == 0)
		r = certs_make(names, n, &a, e);
	if (r < 0)
		return r;
	r = fd_write_all(OUT, &a, sizeof(a));
	explicit_bzero(&a, sizeof(a));
	return r < 0 ? err_set(e, r, "descriptor %d: %s", OUT, strerror(-r)) : 0;
}

int main(int argc, char **argv)
{
	struct err err;
	if (argc < 2) {
		fputs("usage: agentbox-authority NAME...\n", stderr);
		return EXIT_USAGE;
	}
	int r = make((const char *const *)(const void *)(argv + 1), (size_t)argc - 1, &err);
	if (r < 0)
		fprintf(stderr, "agentbox-authority: %s\n", err.text);
	/* Not a return: what runs at exit finds its calls refused. */
	_exit(r < 0 ? EXIT_SYSTEM : 0);
}
