#include "abctl/tar.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/ustar.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { NAME_MOST = 1024, PAX_MOST = 2 * NAME_MOST };

static const char zeros[2 * USTAR_BLOCK];

/* What does not fit is in the attributes in front of it. */
static int header(int fd, const char *name, char kind, bool executable, uint64_t bytes)
{
	char block[USTAR_BLOCK], start[USTAR_NAME_MAX + 1];
	(void)snprintf(start, sizeof(start), "%s", name);
	const struct ustar_entry x = {.name = start,
	        .size = bytes <= USTAR_SIZE_MAX ? bytes : 0,
	        .mode = executable ? 0755 : 0644,
	        .kind = kind};
	return ustar_write(&x, block) ? fd_write_all(fd, block, sizeof(block)) : -ENAMETOOLONG;
}

static size_t digits(size_t n)
{
	size_t d = 1;
	for (; n >= 10; n /= 10)
		d++;
	return d;
}

/* "LENGTH KEY=VALUE\n", the length being that of all of it. */
static size_t attribute(char *to, size_t room, const char *key, const char *value)
{
	size_t rest = strlen(key) + strlen(value) + 3, all = rest;
	while (all != rest + digits(all))
		all = rest + digits(all);
	return (size_t)snprintf(to, room, "%zu %s=%s\n", all, key, value);
}

static int attributes(int fd, const char *name, uint64_t bytes)
{
	char pax[PAX_MOST], number[24];
	size_t n = 0;
	if (strlen(name) > USTAR_NAME_MAX)
		n += attribute(pax, sizeof(pax), "path", name);
	if (bytes > USTAR_SIZE_MAX) {
		(void)snprintf(number, sizeof(number), "%llu", (unsigned long long)bytes);
		n += attribute(pax + n, sizeof(pax) - n, "size", number);
	}
	int r = n ? header(fd, "attributes", 'x', false, n) : 0;
	if (r == 0 && n)
		r = fd_write_all(fd, pax, n);
	return r == 0 && n ? tar_pad(fd, n) : r;
}

int tar_file(int fd, const char *name, bool executable, uint64_t bytes)
{
	if (!name[0] || strlen(name) > NAME_MOST)
		return -ENAMETOOLONG;
	int r = attributes(fd, name, bytes);
	return r < 0 ? r : header(fd, name, '0', executable, bytes);
}

int tar_pad(int fd, uint64_t bytes)
{
	return fd_write_all(fd, zeros, (size_t)ustar_padding(bytes));
}

int tar_end(int fd)
{
	return fd_write_all(fd, zeros, sizeof(zeros));
}
