/*
 * copy.h - a tree copied into another by cp: for jobs, which wait for it.
 *
 * cp sees the host's programs and those two directories, which it has open, and nothing else; it
 * runs as the id that workspaces are stored under, to which all belongs that it makes, and
 * with the right to read and write what modes forbid.  Links are copied as links.
 */
#ifndef JAIL_COPY_H
#define JAIL_COPY_H

#include "base/err.h"

/* What is there under the same name is replaced. */
MUST_USE int copy_tree(int from, int to, struct err *e);

/* A template: root's directory PATH/NAME, copied into the new workspace of a session.  The link
 * `template` in the session's directory says that it has to be, until that is complete: so it
 * happens once, before the first run, and again only where it was cut short. */
MUST_USE int template_choose(int dir, const char *name, struct err *e);
/* Copies into `workspace` what is still to be copied. */
MUST_USE int template_copy(int dir, const char *path, int workspace, struct err *e);

#endif
