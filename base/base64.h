/*
 * base64.h - bytes as text (RFC 4648, with padding) and back.
 */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include "base/buf.h"

/* Appends; 0 or -ENOBUFS. */
MUST_USE int base64_encode(const char *p, size_t n, struct buf *to);
/* Likewise; -EINVAL for what is no such text. */
MUST_USE int base64_decode(const char *p, size_t n, struct buf *to);

#endif
