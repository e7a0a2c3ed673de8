#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void vformat(char *to, size_t n, const char *fmt, va_list ap)
        __attribute__((format(printf, 3, 0)));
static void vformat(char *to, size_t n, const char *fmt, va_list ap)
{
	if (vsnprintf(to, n, fmt, ap) < 0)
		to[0] = '\0';
}

#undef err_set /* base/err.h: for the analyzer */
#undef err_errno
int err_set(struct err *e, int code, const char *fmt, ...)
{
	if (!e)
		return code;
	va_list ap;
	va_start(ap, fmt);
	e->code = code;
	vformat(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	return code;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
	if (!e)
		return -EIO;
	char context[ERR_TEXT_MAX], old[ERR_TEXT_MAX];
	va_list ap;
	va_start(ap, fmt);
	vformat(context, sizeof(context), fmt, ap);
	va_end(ap);
	memcpy(old, e->text, sizeof(old));
	/* A long context is cut, never the cause: the cause is what helps. */
	size_t cause = strnlen(old, sizeof(old) - 1);
	size_t room = sizeof(e->text) - 1 - cause;
	size_t keep = strnlen(context, sizeof(context));
	if (room < 3)
		return e->code;
	if (keep > room - 2)
		keep = room - 2;
	memcpy(e->text, context, keep);
	memcpy(e->text + keep, ": ", 2);
	memcpy(e->text + keep + 2, old, cause);
	e->text[keep + 2 + cause] = '\0';
	return e->code;
}

int err_errno(struct err *e, const char *fmt, ...)
{
	int saved = errno;
	if (!e)
		return -saved;
	char context[ERR_TEXT_MAX];
	va_list ap;
	va_start(ap, fmt);
	vformat(context, sizeof(context), fmt, ap);
	va_end(ap);
	char reason[64];
	e->code = -saved;
	/* The context is cut, not the cause. */
	snprintf(e->text, sizeof(e->text), "%.*s: %s", (int)(sizeof(e->text) - sizeof(reason) - 2),
	        context, strerror_r(saved, reason, sizeof(reason)));
	return -saved;
}

int err_not_theirs(struct err *e, int code)
{
	int status = err_http_status(code);
	if (status >= 400 && status < 422)
		code = -EIO;
	if (e)
		e->code = code;
	return code;
}

int err_http_status(int code)
{
	switch (-code) {
	case EINVAL:
		return 400;
	case EACCES:
	case EPERM:
		return 403;
	case ENOENT:
		return 404;
	case EBUSY:
	case EEXIST:
	case ESRCH: /* it was there a moment ago: a jail that has just ended */
		return 409;
	case E2BIG:
		return 413;
	case ENOEXEC: /* a harness or policy that cannot be met */
	case ENOPKG:  /* a layer that a policy requires and this host lacks */
		return 422;
	case EDQUOT:
	case EAGAIN:
		return 429;
	case ESHUTDOWN:
		return 503;
	case ENOSPC:
		return 507;
	default:
		return 500;
	}
}
