/*
 * loops.h - a file as a block device, for as long as somebody uses it.
 *
 * The device frees itself with its last user (LO_FLAGS_AUTOCLEAR): when the file
 * system on it is unmounted, also because everybody who saw it was killed.
 */
#ifndef JAIL_LOOPS_H
#define JAIL_LOOPS_H

#include "base/err.h"

enum { LOOPS_PATH = 32, LOOPS_BLOCK = 4096 };

/* `file` is open for reading and writing; the device keeps that very open file, locks included.
 * *path is the device's name.  Its fd (owned: close it once something is mounted) or -errno. */
MUST_USE int loops_attach(int file, char path[LOOPS_PATH], struct err *e);

#endif
