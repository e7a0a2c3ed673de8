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

int report_usage(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	(void)fputs("agentbox-policyc: usage: ", stderr);
	(void)vfprintf(stderr, fmt, ap);
	(void)fputc('\n', stderr);
	va_end(ap);
	return POLICYC_USAGE;
}

int report_system(const struct err *e)
{
	(void)fprintf(stderr, "agentbox-policyc: system: %s\n", e->text);
	return POLICYC_SYSTEM;
}
