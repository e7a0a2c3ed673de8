#include "base/id.h"
#include "base/clock.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <stdlib.h>

static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";

enum { ID_BODY = 26 };

/* Its time; the random part follows at the given place. */
static char *put_time(const char *prefix, uint64_t ms, char out[ID_MAX])
{
	int n = snprintf(out, ID_MAX - ID_BODY, "%s_", prefix);
	char *p = out + n;
	for (int i = 9; i >= 0; i--, ms >>= 5)
		p[i] = alphabet[ms & 31];
	return p + 10;
}

void id_new(const char *prefix, char out[ID_MAX])
{
	uint8_t rnd[10];
	if (getrandom(rnd, sizeof(rnd), 0) != (ssize_t)sizeof(rnd))
		abort(); /* cannot fail for 10 bytes once the pool is up */
	char *p = put_time(prefix, (uint64_t)clock_wall_ms(), out);
	for (int i = 0; i < 16; i++) {
		int bit = i * 5, byte = bit / 8, shift = bit % 8;
		unsigned v = rnd[byte] | (byte + 1 < 10 ? (unsigned)rnd[byte + 1] << 8 : 0);
		p[i] = alphabet[(v >> shift) & 31];
	}
	p[ID_BODY - 10] = '\0';
}

void id_from(const char *prefix, int64_t wall_ms, char out[ID_MAX])
{
	char *p = put_time(prefix, (uint64_t)wall_ms, out);
	memset(p, alphabet[0], ID_BODY - 10);
	p[ID_BODY - 10] = '\0';
}

int64_t id_ms(const char *id)
{
	const char *p = strchr(id, '_');
	int64_t ms = 0;
	for (int i = 1; i <= 10; i++) {
		const char *at = p ? strchr(alphabet, p[i]) : NULL;
		if (!at || !*at)
			return 0;
		ms = ms << 5 | (at - alphabet);
	}
	return ms;
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
