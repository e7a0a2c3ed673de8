/*
 * hash.h - FNV-1a of a text, for the bucket tables of ids and users.  Not
 * against hostile collisions: a bucket then degrades to a list as long as the
 * limits of base/limits.h allow.
 */
#ifndef SUPERVISOR_HASH_H
#define SUPERVISOR_HASH_H

#include <stdint.h>

static inline uint32_t hash_text(const char *p)
{
	uint32_t x = 2166136261u;
	for (; *p; p++)
		x = (x ^ (unsigned char)*p) * 16777619u;
	return x;
}

#endif
