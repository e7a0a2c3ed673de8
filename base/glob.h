/*
 * glob.h - the artifact globs: `*` (not across /), `**`, `**` + `/`, `?`; all
 * else is literal.  Anchored at both ends.  Time is bounded by
 * length(pattern) x length(path), whatever the pattern.
 */
#ifndef BASE_GLOB_H
#define BASE_GLOB_H

#include <stdbool.h>

bool glob_match(const char *pattern, const char *path);

#endif
