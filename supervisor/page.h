/*
 * page.h - lists in pages: ?limit=1..1000&cursor=ID, answered as
 * {"NAME":[...],"cursor":"ID"?}; the cursor is there when more is.
 *
 * Order: page_read, page_open, append the objects to page.json (separated by
 * commas), then page_reply or page_done.
 */
#ifndef SUPERVISOR_PAGE_H
#define SUPERVISOR_PAGE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/id.h"

struct http_request;

struct page {
	unsigned limit;
	const char *cursor; /* borrowed: as long as the request; NULL: from the start */
	struct buf json;
	char next[ID_MAX];
};

/* `prefix`: of the ids listed ("run"), which the cursor must be one of; NULL: it is any text, and
 * the answer is made by the caller. */
MUST_USE int page_read(struct http_request *r, const char *prefix, struct page *ret, struct err *e);
void page_open(struct page *p, const char *name);
void page_reply(struct http_request *r, struct page *p);
void page_done(struct page *p);

#endif
