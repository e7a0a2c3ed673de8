#include "supervisor/problem.h"

#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>

static const struct {
	int status;
	const char *kind, *title;
} problems[] = {
#define PROBLEM_ROW(sym, status, kind, title) [PROBLEM_##sym] = {status, kind, title},
        PROBLEMS(PROBLEM_ROW)
#undef PROBLEM_ROW
};

enum {
	/* Details carry an error text and at most a path or a few names. */
	DETAIL_MAX = 1024,
	DOCUMENT_MAX = 16 << 10,
};

void problem_text(struct buf *to, enum problem p, const char *detail, const char *hint)
{
	char type[64];
	snprintf(type, sizeof(type), "urn:agentbox:error:%s", problems[p].kind);
	struct jw w = JW_INIT(to);
	jw_open(&w, NULL, '{');
	jw_str(&w, "type", type);
	jw_str(&w, "title", problems[p].title);
	jw_int(&w, "status", problems[p].status);
	jw_str(&w, "detail", detail);
	jw_str(&w, "hint", hint);
	jw_close(&w, '}');
	buf_putc(to, '\n');
}

enum { AGAIN_S = 2 }; /* a run takes seconds at least: sooner would be answered the same */

static void reply(struct http_request *r, enum problem p, const char *detail, const char *hint,
        unsigned seconds)
{
	char after[16];
	auto_buf struct buf b = BUF_INIT(DOCUMENT_MAX);
	problem_text(&b, p, detail, hint);
	(void)snprintf(after, sizeof(after), "%u", seconds);
	if (problems[p].status == 429 || problems[p].status == 503 || problems[p].status == 507)
		http_add_header(r, "Retry-After", after);
	http_reply(r, problems[p].status, "application/problem+json", &b);
}

void problem_reply(struct http_request *r, enum problem p, const char *hint, const char *fmt, ...)
{
	char detail[DETAIL_MAX];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(detail, sizeof(detail), fmt, ap);
	va_end(ap);
	reply(r, p, detail, hint, AGAIN_S);
}

void problem_retry(struct http_request *r, enum problem p, int64_t after_ms, const char *fmt, ...)
{
	char detail[DETAIL_MAX];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(detail, sizeof(detail), fmt, ap);
	va_end(ap);
	reply(r, p, detail, NULL, (unsigned)((after_ms + 999) / 1000));
}

enum problem problem_of(int code, enum problem unmet)
{
	if (code == -ENOEXEC)
		return unmet;
	if (code == -ENOPKG)
		return PROBLEM_POLICY_UNMET;
	if (code == -EDQUOT)
		return PROBLEM_QUOTA;
	if (code == -ECONNREFUSED)
		return PROBLEM_UNREACHABLE;
	int status = err_http_status(code);
	for (int p = 0; p < PROBLEM_COUNT; p++)
		if (problems[p].status == status)
			return (enum problem)p;
	return PROBLEM_INTERNAL;
}

void problem_err_after(
        struct http_request *r, const struct err *e, enum problem unmet, unsigned seconds)
{
	enum problem p = problem_of(e->code, unmet);
	if (p == PROBLEM_INTERNAL)
		log_err("%s %s: %s", http_method(r), http_path(r), e->text);
	/* What went wrong inside may name files of this host, which is not for a tenant's eyes. */
	bool tells = p != PROBLEM_INTERNAL || !http_actor(r)[0];
	reply(r, p, tells ? e->text : "something went wrong; the daemon's log says what", NULL,
	        seconds);
}

void problem_err(struct http_request *r, const struct err *e, enum problem unmet)
{
	problem_err_after(r, e, unmet, AGAIN_S);
}
