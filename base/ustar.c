#include "base/ustar.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void put(char *to, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = bytes[i];
}

bool ustar_write(const struct ustar_entry *x, char ret[USTAR_BLOCK])
{
	enum {
		MODE_AT = 100,
		SIZE_AT = 124,
		MTIME_AT = 136,
		SUM_AT = 148,
		KIND_AT = 156,
		MAGIC_AT = 257
	};
	if (strlen(x->name) > USTAR_NAME_MAX || x->size > USTAR_SIZE_MAX || x->mtime_s < 0 ||
	        (uint64_t)x->mtime_s > USTAR_SIZE_MAX || x->mode > 07777)
		return false;
	memset(ret, 0, USTAR_BLOCK);
	put(ret, x->name, strlen(x->name));
	(void)snprintf(ret + MODE_AT, 8, "%07o", x->mode);
	put(ret + MODE_AT + 8,
	        "0000000\0"
	        "0000000",
	        16);
	(void)snprintf(ret + SIZE_AT, 12, "%011" PRIo64, x->size);
	(void)snprintf(ret + MTIME_AT, 12, "%011" PRIo64, (uint64_t)x->mtime_s);
	put(ret + SUM_AT, "        ", 8);
	ret[KIND_AT] = x->kind;
	put(ret + MAGIC_AT,
	        "ustar\0"
	        "00",
	        8);
	unsigned sum = 0;
	for (int i = 0; i < USTAR_BLOCK; i++)
		sum += (unsigned char)ret[i];
	(void)snprintf(ret + SUM_AT, 8, "%06o", sum);
	return true;
}

bool ustar_header(const char *name, uint64_t size, int64_t mtime_s, char ret[USTAR_BLOCK])
{
	const struct ustar_entry x = {name, size, mtime_s, 0600, '0'};
	return ustar_write(&x, ret);
}
