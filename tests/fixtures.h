/*
 * fixtures.h - fixture files that say what they expect: a first comment line
 * "# want: LINE: TEXT", the line of the fault and how its message begins.
 */
#ifndef TESTS_FIXTURES_H
#define TESTS_FIXTURES_H

#include "base/fd.h"
#include "base/mem.h"
#include "tests/t.h"

#include <dirent.h>

/* Calls fn for each file of `dir` (a path from the root of the tree) in order of names. */
static inline int fixtures_each(
        const char *dir, void (*fn)(const char *path, const char *text, size_t n))
{
	struct dirent **list = NULL;
	int n = scandir(dir, &list, NULL, alphasort), done_ = 0;
	for (int i = 0; i < n; i++) {
		if (list[i]->d_name[0] != '.') {
			auto_free char *path = xasprintf("%s/%s", dir, list[i]->d_name);
			auto_free char *text = NULL;
			size_t len = 0;
			if (file_slurp(path, 1 << 20, &text, &len) == 0) {
				fn(path, text, len);
				done_++;
			}
		}
		free(list[i]);
	}
	free(list);
	return done_;
}

/* Does the message say "PATH:LINE: TEXT..." as the file wants? */
static inline void fixture_check(const char *path, const char *text, const char *message)
{
	const char *want = strstr(text, "# want: ");
	must(want != NULL, "%s says what it wants", path);
	want += strlen("# want: ");
	size_t n = strcspn(want, "\n");
	auto_free char *expected = xasprintf("%s:%.*s", path, (int)n, want);
	if (!ok(strncmp(message, expected, strlen(expected)) == 0, "%s", path))
		printf("# got:  %s\n# want: %s\n", message, expected);
}

#endif
