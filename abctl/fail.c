#include "abctl/fail.h"
#include "base/neutral.h"
#include "abctl/verb.h"
#include "base/buf.h"
#include "base/fd.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 16 << 10 }; /* a detail of problem+json can be long */

__attribute__((format(printf, 2, 0))) static void say(const char *kind, const char *fmt, va_list ap)
{
	char text[4096];
	int n = vsnprintf(text, sizeof(text), fmt, ap);
	if (n < 0)
		return;
	if (n >= (int)sizeof(text))
		n = (int)sizeof(text) - 1;
	auto_buf struct buf line = BUF_INIT(LINE_MAX_BYTES + 4096);
	buf_printf(&line, "abctl: %s", kind);
	neutral_line(&line, text, (size_t)n);
	buf_putc(&line, '\n');
	fflush(stdout); /* what was printed before stands before it */
	(void)!fd_write_all(STDERR_FILENO, line.p, line.len); /* nowhere left to report to */
}

int fail_usage(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	say("usage: ", fmt, ap);
	va_end(ap);
	return EXIT_USAGE;
}

int fail_system(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	say("system: ", fmt, ap);
	va_end(ap);
	return EXIT_SYSTEM;
}

void fail_note(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	say("notice: ", fmt, ap);
	va_end(ap);
}
