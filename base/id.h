/*
 * id.h - identifiers: what may be one, and new ones.
 *
 * Run, session and jail ids are 26 characters of Crockford base32, lower case:
 * 48 bits of milliseconds and 80 random bits, so they sort by time and do not
 * collide.  With a prefix they read "run_01jd...".
 */
#ifndef BASE_ID_H
#define BASE_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	ID_MAX = 40,      /* longest id with prefix and NUL */
	NAME_MAX_LEN = 64 /* names of harnesses, policies, agents, with NUL */
};

/* out = prefix + "_" + 26 characters. */
void id_new(const char *prefix, char out[ID_MAX]);
/* The least id of that millisecond: those before it were made earlier. */
void id_from(const char *prefix, int64_t wall_ms, char out[ID_MAX]);
/* When a valid one was made. */
int64_t id_ms(const char *id);
/* prefix + "_" + 26 base32 characters, nothing else. */
bool id_valid(const char *id, const char *prefix);
/* ^[a-z0-9][a-z0-9._-]*$, at most NAME_MAX_LEN - 1 characters. */
bool name_valid(const char *name);

#endif
