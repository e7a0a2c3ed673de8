/*
 * download.h - the head of an answer that is a file of an agent's: what of it comes, under which
 * name and as what.
 *
 * Name and bytes are an attacker's.  A browser saves them and shows nothing of them as a page of
 * ours; the name it saves them under has no directory, no leading dot, nothing that steers a
 * terminal or turns around what a person reads.
 */
#ifndef SUPERVISOR_DOWNLOAD_H
#define SUPERVISOR_DOWNLOAD_H

#include "base/buf.h"
#include "supervisor/http.h"
#include "supervisor/range.h"

/* The headers of the answer, and the part of `bytes` that is to come: 200 or 206, for http_stream;
 * or 416, which has been answered. */
MUST_USE int download_head(struct http_request *r, const char *path, uint64_t bytes,
        const struct range *asked, uint64_t *ret_at, uint64_t *ret_n);
/* The same of bytes that never change under their SHA-256, which is their ETag; what the request
 * asks for is read here.  Also 304, which has been answered. */
MUST_USE int download_head_kept(struct http_request *r, const char *path, uint64_t bytes,
        const char *sha256, uint64_t *ret_at, uint64_t *ret_n);

/* Pure: Content-Disposition for it. */
void download_disposition(struct buf *to, const char *path);

#endif
