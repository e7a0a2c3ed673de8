/*
 * image.h - the files of one session as a file system of their own, in a file
 * of a fixed size: what is full inside is full, whatever room the host has.
 *
 * The file is sparse and ext4 inside; room that is given back inside is given
 * back to the host.  Directories `workspace` and `home` are in its root, and
 * root's `ballast`, which occupies what the limit in force leaves of the
 * capacity, so that a limit can change from run to run.  Inodes are fixed when the file is made.
 *
 * An attached file is locked (flock on the very open file that the loop device
 * holds): it is never mounted twice.
 */
#ifndef JAIL_IMAGE_H
#define JAIL_IMAGE_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* A file has 16 TiB at most on ext4; it holds the file system's own tables besides. */
#define IMAGE_BYTES_MAX ((uint64_t)15 << 40)
enum { IMAGE_INODES_MAX = 1 << 24 };

struct image_size {
	uint64_t bytes;  /* what the files may take */
	uint64_t inodes; /* how many there may be */
};

/* ---- making ---- */

enum { IMAGE_ARGS = 24 };
struct image_command {
	const char *argv[IMAGE_ARGS]; /* points into this struct */
	char inodes[24], journal[24], blocks[24];
};
/* What makes the file system in descriptor 3 of the child, with the tree of descriptor 4 in it if
 * `tree`. */
void image_command(struct image_command *c, const struct image_size *size, bool tree);

/* ---- use ---- */

/* The root of its file system as a detached mount (owned), or -errno: -EAGAIN while it is mounted
 * still. */
MUST_USE int image_mount(int dir, const char *name, struct err *e);
/* 1: it could hold `size`, and not many more inodes (0: does not matter); 0: not; or -errno. */
MUST_USE int image_fits(int root, const struct image_size *size, struct err *e);
/* From now on at most `bytes` (0: all there is).  1; or 0 where there is more already: it stays,
 * what is free is taken, and as files go the limit is to be set again.  -errno. */
MUST_USE int image_limit(int root, uint64_t bytes, struct err *e);

struct image_usage {
	uint64_t bytes, inodes;           /* used */
	uint64_t bytes_left, inodes_left; /* until ENOSPC */
};
MUST_USE int image_usage(int root, struct image_usage *ret, struct err *e);

#endif
