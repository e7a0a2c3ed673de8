/*
 * replay.c - runs a fuzz target over its seeds as an ordinary test.
 *
 * The corpus is fuzz/corpus/<target>/, <target> from this program's own name
 * (replay-<target>).  No seeds is a failure: a target without seeds tests nothing.
 */
#include "base/fd.h"
#include "base/mem.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SEED_MAX = 32 << 20 };

static int replay(const char *dir, const char *name, int count)
{
	auto_free char *path = xasprintf("%s/%s", dir, name);
	auto_free char *bytes = NULL;
	size_t n = 0;
	int r = file_slurp(path, SEED_MAX, &bytes, &n);
	if (r == 0)
		LLVMFuzzerTestOneInput((const uint8_t *)bytes, n);
	printf("%sok %d - %s\n", r == 0 ? "" : "not ", count, name);
	fflush(stdout);
	return r;
}

int main(int argc, char **argv)
{
	const char *self = strstr(argv[0], "replay-");
	if (argc < 1 || !self)
		return 100;
	auto_free char *dir = xasprintf("fuzz/corpus/%s", self + strlen("replay-"));
	LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
	DIR *d = opendir(dir);
	int count = 0, failed = 0;
	for (struct dirent *it; d && (it = readdir(d));)
		if (it->d_name[0] != '.')
			failed |= replay(dir, it->d_name, ++count);
	if (d)
		closedir(d);
	if (count == 0) {
		printf("not ok 1 - no seeds in %s\n1..1\n", dir);
		return 1;
	}
	printf("1..%d\n", count);
	return failed ? 1 : 0;
}
