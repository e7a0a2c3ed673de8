#include "supervisor/percent.h"

#include "base/mem.h"

static int hex(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
	                              : -1;
}

char *percent_decode(const char *s, size_t n)
{
	auto_free char *out = xcalloc(n + 1, 1);
	size_t k = 0;
	for (size_t i = 0; i < n; i++) {
		int c = (unsigned char)s[i];
		if (c == '%') {
			int hi = n - i > 2 ? hex(s[i + 1]) : -1;
			int lo = n - i > 2 ? hex(s[i + 2]) : -1;
			if (hi < 0 || lo < 0)
				return NULL;
			c = hi << 4 | lo;
			i += 2;
		}
		if (c == 0)
			return NULL;
		out[k++] = (char)c;
	}
	return take(out);
}
