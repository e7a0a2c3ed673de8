#include "policy/report.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/neutral.h"
#include "policy/policyc.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_BYTES = 64 << 10 };

/* Names and values in it are those of a file that somebody else may have written, and this is read
 * on a terminal. */
static void put(FILE *to, const char *before, const char *text)
{
	auto_buf struct buf line = BUF_INIT(LINE_MAX_BYTES);
	neutral_line(&line, text, strlen(text));
	(void)fprintf(to, "%s%s\n", before, line.p ? line.p : "");
}

void report_note(void *ctx, const char *file, int line, const char *text)
{
	auto_free char *whole = xasprintf("%s:%d: %s", file, line, text);
	put(ctx, "note: ", whole);
}

void report_error(FILE *to, const struct err *e)
{
	put(to, "", e->text);
}

int report_unread(const struct err *e)
{
	switch (-e->code) {
	case EIO:
	case ENOMEM:
	case EMFILE:
	case ENFILE:
		return report_system(e);
	default: /* not there, not a file, not the caller's to read */
		return report_usage("%s", e->text);
	}
}

int report_usage(const char *fmt, ...)
{
	va_list ap;
	char *text = NULL;
	va_start(ap, fmt);
	int n = vasprintf(&text, fmt, ap);
	va_end(ap);
	auto_free char *before = xasprintf("%s: usage: ", program_invocation_short_name);
	put(stderr, before, n < 0 ? fmt : text);
	free(n < 0 ? NULL : text);
	return POLICYC_USAGE;
}

int report_system(const struct err *e)
{
	auto_free char *before = xasprintf("%s: system: ", program_invocation_short_name);
	put(stderr, before, e->text);
	return POLICYC_SYSTEM;
}
