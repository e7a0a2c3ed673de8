/*
 * projects.h - limits of a directory by project quota, where the file system
 * has it (ext4 and xfs mounted with prjquota).
 *
 * A session's directory is marked with a project number that everything made
 * below it inherits; the kernel counts bytes and inodes of the number and
 * refuses what is beyond its limits.  A number belongs to a directory for its life and is
 * stored nowhere else.
 */
#ifndef JAIL_PROJECTS_H
#define JAIL_PROJECTS_H

#include "base/err.h"

#include <stdint.h>

/* Makes a project below the directory `fd`, fills it as an unprivileged user, and sees whether the
 * kernel refuses.  0, or -errno with what is missing. */
MUST_USE int projects_probe(int fd, struct err *e);

/* The number of a directory, 0: none.  -errno: the file system knows of no projects. */
MUST_USE int projects_of(int dir, uint32_t *ret, struct err *e);
/* A number that counts nothing yet and has no limit. */
MUST_USE int projects_new(int fd, uint32_t *ret, struct err *e);
/* For what is made below it later, and for itself.  Also for a regular file. */
MUST_USE int projects_mark(int fd, uint32_t project);

struct projects_usage {
	uint64_t bytes, inodes;
};
/* 0: no limit. */
MUST_USE int projects_limit(
        int fd, uint32_t project, uint64_t bytes, uint64_t inodes, struct err *e);
MUST_USE int projects_usage(int fd, uint32_t project, struct projects_usage *ret, struct err *e);

#endif
