#include "base/base64.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int base64_encode(const char *p, size_t n, struct buf *to)
{
	const unsigned char *u = (const unsigned char *)p;
	for (size_t i = 0; i < n; i += 3) {
		size_t have = n - i < 3 ? n - i : 3;
		uint32_t v = (uint32_t)u[i] << 16;
		if (have > 1)
			v |= (uint32_t)u[i + 1] << 8;
		if (have > 2)
			v |= u[i + 2];
		const char four[4] = {digits[v >> 18], digits[v >> 12 & 63],
		        have > 1 ? digits[v >> 6 & 63] : '=', have > 2 ? digits[v & 63] : '='};
		if (buf_put(to, four, sizeof(four)) < 0)
			return -ENOBUFS;
	}
	return 0;
}

/* -1: none. */
static int digit(char c)
{
	const char *at = c ? strchr(digits, c) : NULL;
	return at ? (int)(at - digits) : -1;
}

int base64_decode(const char *p, size_t n, struct buf *to)
{
	if (n % 4)
		return -EINVAL;
	for (size_t i = 0; i < n; i += 4) {
		size_t pad = i + 4 < n || p[i + 3] != '=' ? 0 : p[i + 2] != '=' ? 1 : 2;
		uint32_t v = 0;
		for (size_t k = 0; k < 4; k++) {
			int d = k < 4 - pad ? digit(p[i + k]) : 0;
			if (d < 0)
				return -EINVAL;
			v = v << 6 | (uint32_t)d;
		}
		const char three[3] = {(char)(v >> 16), (char)(v >> 8), (char)v};
		if (buf_put(to, three, 3 - pad) < 0)
			return -ENOBUFS;
	}
	return 0;
}
