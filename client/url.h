/*
 * url.h - parts of a request line, percent-encoded.
 */
#ifndef CLIENT_URL_H
#define CLIENT_URL_H

#include "base/buf.h"

/* path + the segment, percent-encoded; for segments and for query values. */
void url_encode(struct buf *to, const char *text);
/* As url_encode, but '/' stays: paths of files. */
void url_encode_path(struct buf *to, const char *text);

#endif
