#include "client/url.h"

#include <stdbool.h>
#include <string.h>

static void encode(struct buf *to, const char *text, const char *kept)
{
	static const char hex[] = "0123456789ABCDEF";
	for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
		bool safe = (*p >= '0' && *p <= '9') ||
		            ((*p | 0x20) >= 'a' && (*p | 0x20) <= 'z') || strchr(kept, *p);
		if (safe) {
			buf_putc(to, (char)*p);
			continue;
		}
		buf_putc(to, '%');
		buf_putc(to, hex[*p >> 4]);
		buf_putc(to, hex[*p & 15]);
	}
}

void url_encode(struct buf *to, const char *text)
{
	encode(to, text, "-._~");
}

void url_encode_path(struct buf *to, const char *text)
{
	encode(to, text, "-._~/");
}
