/*
 * dir.h - what is in a directory.
 */
#ifndef BASE_DIR_H
#define BASE_DIR_H

#include <stddef.h>

enum { DIR_NAME_SHOWN = 65 };

/* 1: an entry that is none of the `n` names (nor "." and ".."), in `ret`, cut; 0: there is none; or
 * -errno. */
int dir_stranger(int dirfd, const char *const *names, size_t n, char ret[DIR_NAME_SHOWN]);

#endif
