/*
 * ustar.h - headers of tar archives (POSIX.1-1988): what a writer of them needs.
 */
#ifndef BASE_USTAR_H
#define BASE_USTAR_H

#include <stdbool.h>
#include <stdint.h>

enum { USTAR_BLOCK = 512, USTAR_NAME_MAX = 99 };
#define USTAR_SIZE_MAX ((UINT64_C(1) << 33) - 1) /* of one file: eleven octal digits */

struct ustar_entry {
	const char *name;
	uint64_t size;
	int64_t mtime_s;
	unsigned mode; /* permission bits */
	char kind;     /* '0': a regular file; 'x': pax attributes of the next entry */
};

/* It belongs to nobody.  false: its name or size does not fit. */
bool ustar_write(const struct ustar_entry *x, char ret[USTAR_BLOCK]);
/* A regular file of mode 0600. */
bool ustar_header(const char *name, uint64_t size, int64_t mtime_s, char ret[USTAR_BLOCK]);
/* What fills the last block of a file. */
static inline uint64_t ustar_padding(uint64_t size)
{
	return (USTAR_BLOCK - size % USTAR_BLOCK) % USTAR_BLOCK;
}

#endif
