#include "base/utf8.h"

#include <stdbool.h>

static bool continues(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

size_t utf8_floor(const char *p, size_t n)
{
	/* A character has at most three continuation bytes; more of them are no UTF-8, cut there.
	 */
	for (size_t back = 1; back <= 4 && back <= n; back++) {
		unsigned char c = (unsigned char)p[n - back];
		if (continues(p[n - back]))
			continue;
		size_t need = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
		return need > back ? n - back : n;
	}
	return n;
}

size_t utf8_rest(const char *p, size_t n)
{
	size_t k = 0;
	while (k < 3 && k < n && continues(p[k]))
		k++;
	return k;
}
