#include "supervisor/page.h"

#include "supervisor/http.h"
#include "supervisor/problem.h"

#include <stdlib.h>

enum {
	PAGE_DEFAULT = 100,
	PAGE_MAX = 1000,
	/* 1000 objects with a result of LIMIT_FINAL_TEXT each would not be a page. */
	PAGE_BYTES = 64 << 20,
};

int page_read(struct http_request *r, const char *prefix, struct page *ret, struct err *e)
{
	const char *limit = http_query(r, "limit"), *cursor = http_query(r, "cursor");
	char *end = NULL;
	long n = limit ? strtol(limit, &end, 10) : PAGE_DEFAULT;
	/* strtol also takes blanks and signs. */
	if (limit && (limit[0] < '0' || limit[0] > '9' || *end || n < 1 || n > PAGE_MAX))
		return err_set(e, -EINVAL, "limit: must be 1 to %d", PAGE_MAX);
	if (cursor && prefix && !id_valid(cursor, prefix))
		return err_set(e, -EINVAL, "cursor: '%.64s' is not one that a list gave", cursor);
	*ret = (struct page){
	        .limit = (unsigned)n,
	        .cursor = cursor,
	        .json = BUF_INIT(PAGE_BYTES),
	};
	return 0;
}

void page_open(struct page *p, const char *name)
{
	buf_printf(&p->json, "{\"%s\":[", name);
}

void page_reply(struct http_request *r, struct page *p)
{
	buf_puts(&p->json, "]");
	if (p->next[0])
		buf_printf(&p->json, ",\"cursor\":\"%s\"", p->next);
	buf_puts(&p->json, "}");
	if (p->json.failed)
		problem_reply(r, PROBLEM_TOO_LARGE,
		        "ask for fewer with ?limit=", "the list is larger than %d bytes",
		        PAGE_BYTES);
	else
		http_reply(r, 200, "application/json", &p->json);
	page_done(p);
}

void page_done(struct page *p)
{
	buf_done(&p->json);
}
