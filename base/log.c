#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *log_program = "agentbox";
static enum log_level log_max = LOG_LEVEL_INFO;
static bool log_journal;

void log_init(const char *program, enum log_level level)
{
	log_program = program;
	log_max = level;
	log_journal = getenv("JOURNAL_STREAM") != NULL;
}

void log_at(enum log_level level, const char *fmt, ...)
{
	if (level > log_max)
		return;
	int saved = errno;
	char line[2048];
	int n = log_journal ? snprintf(line, sizeof(line), "<%d>", level)
	                    : snprintf(line, sizeof(line), "%s: %s", log_program,
	                              level == LOG_LEVEL_ERR    ? "error: "
	                              : level == LOG_LEVEL_WARN ? "warning: "
	                                                        : "");
	va_list ap;
	va_start(ap, fmt);
	int k = vsnprintf(line + n, sizeof(line) - (size_t)n - 1, fmt, ap);
	va_end(ap);
	n = k < 0 ? n : n + k;
	if (n > (int)sizeof(line) - 2)
		n = (int)sizeof(line) - 2;
	/* What came from outside must not forge a second line. */
	for (int i = 0; i < n; i++)
		if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
			line[i] = ' ';
	line[n++] = '\n';
	(void)!write(STDERR_FILENO, line, (size_t)n); /* nowhere left to report to */
	errno = saved;
}

static const struct {
	const char *name;
	enum log_level level;
} log_levels[] = {
        {"err", LOG_LEVEL_ERR},
        {"warn", LOG_LEVEL_WARN},
        {"info", LOG_LEVEL_INFO},
        {"debug", LOG_LEVEL_DEBUG},
};

const char *log_level_name(enum log_level level)
{
	for (size_t i = 0; i < ARRAY_LEN(log_levels); i++)
		if (log_levels[i].level == level)
			return log_levels[i].name;
	return "info";
}

int log_level_by_name(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(log_levels); i++)
		if (strcmp(log_levels[i].name, name) == 0)
			return log_levels[i].level;
	return -1;
}
