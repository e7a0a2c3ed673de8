#include "base/id.h"
#include "base/clock.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <stdlib.h>

static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";

enum { ID_BODY = 26 };

void id_new(const char *prefix, char out[ID_MAX])
{
	uint8_t rnd[10];
	if (getrandom(rnd, sizeof(rnd), 0) != (ssize_t)sizeof(rnd))
		abort(); /* cannot fail for 10 bytes once the pool is up */
	int n = snprintf(out, ID_MAX - ID_BODY, "%s_", prefix);
	uint64_t ms = (uint64_t)clock_wall_ms();
	char *p = out + n;
	for (int i = 9; i >= 0; i--, ms >>= 5)
		p[i] = alphabet[ms & 31];
	for (int i = 0; i < 16; i++) {
		int bit = i * 5, byte = bit / 8, shift = bit % 8;
		unsigned v = rnd[byte] | (byte + 1 < 10 ? (unsigned)rnd[byte + 1] << 8 : 0);
		p[10 + i] = alphabet[(v >> shift) & 31];
	}
	p[ID_BODY] = '\0';
}

bool id_valid(const char *id, const char *prefix)
{
	size_t n = strlen(prefix);
	if (strncmp(id, prefix, n) != 0 || id[n] != '_')
		return false;
	const char *body = id + n + 1;
	return strlen(body) == ID_BODY && strspn(body, alphabet) == ID_BODY;
}

bool name_valid(const char *name)
{
	static const char first[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	size_t n = strnlen(name, NAME_MAX_LEN);
	if (n == 0 || n >= NAME_MAX_LEN || !strchr(first, name[0]))
		return false;
	return strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789._-") == n;
}
