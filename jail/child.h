/*
 * child.h - starting one of our own programs from agentboxd.
 *
 * The child gets the descriptors asked for at 3, 4, ... and nothing else, an
 * environment of PATH and what the caller adds, default signals, a death signal should agentboxd
 * die, and optionally a network namespace of its own with nothing in it.  It
 * starts with agentboxd's ids and drops them itself (base/privs.h), unless a uid
 * is given.
 */
#ifndef JAIL_CHILD_H
#define JAIL_CHILD_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <sys/types.h>

enum { CHILD_FDS_MAX = 200 }; /* policyc gets one for each policy file of root */

struct child_spec {
	const char *path;        /* absolute */
	const char *const *argv; /* NULL-terminated */
	const int *fds;          /* become 3, 4, ...; borrowed */
	int nfds;
	int stdin_fd;           /* becomes 0; 0: /dev/null does */
	int stdout_fd;          /* becomes 1; 0: /dev/null does */
	int stderr_fd;          /* becomes 2; -1: agentboxd's; child_run has its own */
	bool own_group;         /* in a process group of its own */
	bool no_network;        /* in a network namespace of its own */
	const char *const *env; /* NULL-terminated "K=V" besides PATH; NULL: none */
	uid_t uid;              /* not 0: for programs that are not ours, without any capability */
	bool shut_in;           /* sees the host's programs and nothing else (jail/shut.h) */
	/* And with CAP_DAC_OVERRIDE alone, for what is mounted read-only.  Not DAC_READ_SEARCH,
	 * with which open_by_handle_at finds every file of a file system that one is open of. */
	bool reads_all;
};

struct poller;
struct watch;

struct child {
	pid_t pid;
	int pidfd; /* owned, -1: not running */
};
#define CHILD_NONE                                                                                 \
	{                                                                                          \
		.pid = 0, .pidfd = -1                                                              \
	}

/* Returns when the program was executed, or with the step that failed. */
MUST_USE int child_start(const struct child_spec *spec, struct child *ret, struct err *e);
void child_kill(const struct child *c); /* SIGKILL; not running: nothing */
/* Reaps within `ms` (< 0: without limit) and closes the pidfd.  The wait status (as of waitpid),
 * or -ETIME: still running. */
int child_reap(struct child *c, int ms);
/* From within the watch of its pidfd, without waiting.  The watch is taken out before the pidfd is
 * closed, for another child of ours may have a copy of that; it stays while -ETIME. */
int child_reap_watched(struct child *c, struct poller *p, struct watch *w);
/* Start to end within `ms`, then SIGKILL: the wait status, or -errno with *e (-ETIME: killed). What
 * it writes to stderr is appended to `said`, as much as there is room for. */
MUST_USE int child_run(const struct child_spec *spec, int ms, struct buf *said, struct err *e);
/* "exit code 3", "signal 9" for the log. */
void child_status_text(int status, char out[32]);

#endif
