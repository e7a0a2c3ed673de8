/*
 * layout.h - where everything lies on this host: our programs, what is shipped
 * with them, and the state directory.
 *
 * Programs are looked for beside agentboxd's own binary (a build tree) and in
 * ../lib/agentbox (an installed one); what is shipped in the source root of a
 * build tree or in ../share/agentbox.  The state directory belongs to root; one
 * daemon at a time holds its lock.
 *
 *	STATE/agentboxd.lock	lock, with the pid of its holder
 *	STATE/supervisor/	the supervisor's own: db, events/, artifacts/
 *	STATE/sessions/		root's: <session>, a link to <random>/{workspace,home} or disk.img
 *	STATE/trash/		root's: sessions on their way out
 *	STATE/snapshots/	root's: what workspaces start from (layers.h)
 */
#ifndef JAIL_LAYOUT_H
#define JAIL_LAYOUT_H

#include "base/err.h"

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

/* ---- programs and what is shipped ---- */

struct programs {
	char *self; /* owned, absolute: agentboxd's own */
	/* Each owned, absolute. */
	char *policyc, *supervisor, *egress, *listener, *authority, *init, *worker, *acp, *canary;
	char *share; /* owned: has harnesses/ */
};

/* `libexec` and `share` override the search; may be NULL. */
MUST_USE int programs_find(
        struct programs *p, const char *libexec, const char *share, struct err *e);
void programs_done(struct programs *p);
/* Those that agentboxd talks to are of its build (proto/build.h); runs them. */
MUST_USE int programs_same_build(const struct programs *p, struct err *e);
/* The file at `path` is another than `was`.  Not there: no; an installation is under way, or has
 * failed, and what runs is better than that. */
bool program_changed(const char *path, const struct stat *was);

/* ---- state ---- */

struct state {
	char *path; /* owned, absolute */
	int dir;    /* owned, as all fds here */
	int lock;
	int supervisor; /* directory the supervisor gets */
	int sessions, trash, snapshots;
};
#define STATE_NONE                                                                                 \
	{                                                                                          \
		.dir = -1, .lock = -1, .supervisor = -1, .sessions = -1, .trash = -1,              \
		.snapshots = -1                                                                    \
	}

/* Makes what is missing.  -EPERM: not root's, or others may write; -EBUSY: another daemon. */
MUST_USE int state_open(struct state *s, const char *path, struct err *e);
/* Once the configuration is known: the supervisor's part belongs to it, and to nobody else. */
MUST_USE int state_give(struct state *s, uid_t uid, gid_t gid, struct err *e);
/* Whether it does, without a change. */
MUST_USE int state_given(const char *path, uid_t uid, gid_t gid, struct err *e);
/* The descriptors were carried over an exec. */
void state_resume(struct state *s, const char *path);
void state_close(struct state *s);

/* ---- trust ---- */

/* A file or directory whose content root decides: owned by root and not writable by group or
 * others.  `what` names it in the error. */
MUST_USE int root_owned(int fd, const char *what, struct err *e);

#endif
