/*
 * trace.h - lets one system call of agentboxd or of a child of its fail, by ptrace.
 *
 * trace_attach() takes a running agentboxd; from then on all of its tasks stop at
 * each system call, until they exec another program than the jail's PID 1.  Between
 * two trace_arm() calls the calls are told apart by their *site*: the kind of task,
 * the number and the return addresses found on the stack.  The plan names a site, which occurrence
 * of it since trace_arm(), and what is to happen.  Nothing of this is in the traced programs.
 */
#ifndef FAULTS_TRACE_H
#define FAULTS_TRACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum kind {
	KIND_DAEMON,  /* agentboxd */
	KIND_USERS,   /* the child that holds a new user namespace */
	KIND_ENTER,   /* between clone3 and the exec of PID 1 or of a file worker */
	KIND_HELPER,  /* forks: a service before its exec, a template's builder, the trash */
	KIND_INIT,    /* PID 1 of a jail, or a file worker */
	KIND_PROGRAM, /* a child of PID 1 before its exec */
	KINDS,
};
const char *kind_name(enum kind k);

struct site {
	enum kind kind;
	int nr;
	uint64_t where; /* of the return addresses, relative to the program */
};

struct hit {
	struct site site;
	unsigned count; /* how often since trace_arm */
	int error;      /* what the last of them ended with by itself, 0: no error */
	char what[64];  /* its path, or "" */
};

enum { FAULT_NONE, FAULT_ERROR, FAULT_KILL, FAULT_KILL_DAEMON };
struct plan {
	struct site site;
	unsigned nth; /* from 1 */
	int fault;    /* FAULT_* */
	int error;    /* errno of FAULT_ERROR */
	int after;
};

enum { HITS_MAX = 2048 };
struct seen { /* since trace_arm */
	struct hit hits[HITS_MAX];
	unsigned nhits;
	bool fired;        /* the plan's place was reached */
	bool daemon_ended; /* agentboxd is gone; trace_attach anew */
	int daemon_status;
	int unknown;     /* a call without a row, or -1 */
	char early[160]; /* a uid block that was given back too early, or "" */
};

void trace_attach(pid_t daemon);
void trace_detach(void);
void trace_arm(const struct plan *p); /* NULL: only look */
/* Handles what the traced tasks do for at most `ms`.  True when the child `other` has ended, its
 * wait status in *ret. */
bool trace_run(int ms, pid_t other, int *ret);
extern struct seen seen;

#endif
