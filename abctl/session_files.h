/*
 * session_files.h - `abctl session ls | cp | mkdir | rm`: the files of a session's workspace.
 *
 * What a workspace holds was made by an agent: links in it are not followed and not copied, and no
 * name of it leads out of the directory it is copied into.
 */
#ifndef ABCTL_SESSION_FILES_H
#define ABCTL_SESSION_FILES_H

#include "client/client.h"
#include "abctl/verb.h"

#include <stdbool.h>
#include <stdint.h>

/* Each returns the exit code. */
MUST_USE int session_files_ls(const struct cli *cli, const char *session, const char *path);
MUST_USE int session_files_mkdir(const struct cli *cli, const char *session, const char *path);
MUST_USE int session_files_rm(
        const struct cli *cli, const char *session, const char *path, bool recursive);
/* One of them is SESSION:PATH; '-' is stdin or stdout, a directory is copied with all below. */
MUST_USE int session_files_cp(const struct cli *cli, const char *from, const char *to);

/* ---- for what goes through all of a tree; exit codes are returned ---- */

/* Borrowed. */
struct session_tree {
	const struct cli *cli;
	const char *id;   /* the session's */
	const char *part; /* of its path in the API: "files" or "home" */
};

/* Each file and directory of one directory; others are left out, and that is said.  What the
 * function cannot do (EXIT_USAGE) does not end it: EXIT_FAILED at last. */
typedef int session_file_fn(void *ctx, const char *name, bool directory, int depth);
MUST_USE int session_files_each(const struct session_tree *t, const char *path, int depth,
        session_file_fn *each, void *ctx);
/* The answer, whose body is the file's bytes or, where it is a directory, a list.  *ret is owned.
 */
MUST_USE int session_files_get(const struct session_tree *t, const char *path, struct client **ret);
bool session_files_is_listing(const struct client *c);
/* n bytes of fd. */
MUST_USE int session_files_put(
        const struct session_tree *t, const char *path, bool executable, int fd, uint64_t n);
char *session_files_join(const char *dir, const char *name); /* owned */

#endif
