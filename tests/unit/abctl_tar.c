/* What tar.h writes, untar.h reads: names of all lengths, sizes around a block. */
#include "abctl/tar.h"
#include "abctl/untar.h"
#include "tests/t.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char got_name[2048];
static bool got_executable;
static uint64_t got_bytes;
static int got_files;

static int on_file(void *ctx, const char *name, bool executable, struct err *e)
{
	(void)ctx, (void)e;
	snprintf(got_name, sizeof(got_name), "%s", name);
	got_executable = executable;
	got_bytes = 0;
	return 0;
}

static int on_data(void *ctx, const void *p, size_t n, struct err *e)
{
	(void)ctx, (void)p, (void)e;
	got_bytes += n;
	return 0;
}

static int on_end(void *ctx, struct err *e)
{
	(void)ctx, (void)e;
	got_files++;
	return 0;
}

static const struct untar_calls calls = {.file = on_file, .data = on_data, .end = on_end};

/* Writes one file and reads it; whether it is the same. */
static bool passes(const char *name, bool executable, size_t bytes)
{
	static const char data[2048];
	char all[16384];
	struct err e;
	FILE *f = tmpfile();
	if (!f)
		return false;
	int fd = fileno(f);
	got_files = 0;
	bool ok = tar_file(fd, name, executable, bytes) == 0 &&
	          write(fd, data, bytes) == (ssize_t)bytes && tar_pad(fd, bytes) == 0 &&
	          tar_end(fd) == 0;
	ssize_t n = pread(fd, all, sizeof(all), 0);
	struct untar *u = untar_new(&calls, NULL);
	ok = ok && n > 0 && n % 512 == 0 && untar_feed(u, all, (size_t)n, &e) == 0 &&
	     untar_end(u, &e) == 0;
	untar_free(u);
	fclose(f);
	return ok && got_files == 1 && strcmp(got_name, name) == 0 &&
	       got_executable == executable && got_bytes == bytes;
}

static bool passes_length(size_t length)
{
	char name[1100];
	for (size_t i = 0; i < length; i++)
		name[i] = i % 50 == 49 && i + 1 < length ? '/' : (char)('a' + i % 26);
	name[length] = '\0';
	return passes(name, false, 3);
}

int main(void)
{
	static const size_t sizes[] = {0, 1, 511, 512, 513, 1024};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		ok(passes("a/b", i % 2, sizes[i]), "%zu bytes", sizes[i]);
	bool all = true;
	for (size_t n = 1; n <= UNTAR_NAME_MAX; n++)
		all = all && passes_length(n);
	ok(all, "names of 1 to %d bytes", UNTAR_NAME_MAX);
	ok(tar_file(-1, "", false, 0) == -ENAMETOOLONG, "no name");
	char name[UNTAR_NAME_MAX + 2];
	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	ok(tar_file(-1, name, false, 0) == -ENAMETOOLONG, "a name too long");
	return done();
}
