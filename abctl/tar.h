/*
 * tar.h - writes a tar archive: regular files, in the form that untar.h and every tar reads (ustar,
 * with pax attributes where a name or a size needs them).
 *
 * Order: tar_file, then exactly its bytes to the same descriptor, tar_pad; at last tar_end.
 */
#ifndef ABCTL_TAR_H
#define ABCTL_TAR_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* 0 or -errno; -ENAMETOOLONG. */
MUST_USE int tar_file(int fd, const char *name, bool executable, uint64_t bytes);
MUST_USE int tar_pad(int fd, uint64_t bytes);
MUST_USE int tar_end(int fd);

#endif
