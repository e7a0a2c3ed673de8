/*
 * sessions.h - the directories of sessions, and their end.
 *
 * Every path is built here, below the state directory, from a checked id; it is
 * opened with openat2 and follows no link.  Workspaces and homes belong to an
 * id under which nothing ever runs (ID_STORE_BASE + 1000); a jail sees them
 * through an idmapped mount.
 *
 * Deleting is a rename into the trash (at once) and then a child that sees
 * nothing but the trash, has two capabilities and no network, and empties it
 * however an agent has shaped the tree.
 */
#ifndef JAIL_SESSIONS_H
#define JAIL_SESSIONS_H

#include "base/err.h"
#include "jail/job.h"
#include "jail/layout.h"

#include <stdbool.h>
#include <stdint.h>

enum { SESSION_NAME = 40 }; /* with NUL */
/* Under which name below sessions/ its directory is, or is to be: random, because a jail reads the
 * path of its workspace in mountinfo, and a session's id is not its business.  -ENOENT: none yet.
 */
MUST_USE int session_name(
        const struct state *s, const char *id, char ret[SESSION_NAME], struct err *e);
/* The session's directory (owned fd), made where it is missing.  `id` was checked with id_valid. */
MUST_USE int session_dir(const struct state *s, const char *id, struct err *e);
/* Workspace and home in it, or in the root of its own file system; made where they are missing.
 * Both fds are owned. */
MUST_USE int session_places(int dir, int *ret_workspace, int *ret_home, struct err *e);

/* For a child: marks everything below `dir` with the project, then itself.  Gives up all
 * capabilities but two. */
MUST_USE int session_adopt(int dir, uint32_t project, struct err *e);

/* No live jail uses it: the caller looked.  -ENOENT where there is none. */
MUST_USE int session_trash(const struct state *s, const char *id, struct err *e);

/* What dirfd/name is goes into the trash.  0 or -errno. */
MUST_USE int trash_put(const struct state *s, int dir, const char *name);
/* Something is in the trash. */
bool trash_waits(const struct state *s);
/* Starts the child that empties it; job_end says whether the trash is empty. */
MUST_USE int trash_empty(const struct state *s, struct job *ret, struct err *e);

/* The child's work on an open directory: removes everything below it, in bounded depth and with
 * a bounded number of descriptors.  0, or the first error (it goes on past it).  For tests too. */
MUST_USE int tree_empty(int dir);

#endif
