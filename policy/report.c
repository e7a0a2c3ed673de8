#include "policy/report.h"
#include "policy/policyc.h"

#include <stdarg.h>

void report_note(void *ctx, const char *file, int line, const char *text)
{
	(void)fprintf(ctx, "note: %s:%d: %s\n", file, line, text);
}

void report_error(FILE *to, const struct err *e)
{
	(void)fprintf(to, "%s\n", e->text);
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
	va_start(ap, fmt);
	(void)fprintf(stderr, "%s: usage: ", program_invocation_short_name);
	(void)vfprintf(stderr, fmt, ap);
	(void)fputc('\n', stderr);
	va_end(ap);
	return POLICYC_USAGE;
}

int report_system(const struct err *e)
{
	(void)fprintf(stderr, "%s: system: %s\n", program_invocation_short_name, e->text);
	return POLICYC_SYSTEM;
}
