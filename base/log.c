#include "base/log.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	TEXT_MAX = 2048,
	/* Each byte as \u0000, and what stands around it: a record is never cut within. */
	RECORD_MAX = 6 * TEXT_MAX + 512,
};

static const char *log_program = "agentbox";
static enum log_level log_begun = LOG_LEVEL_INFO, log_max = LOG_LEVEL_INFO;
static enum log_format log_form = LOG_TEXT;
static bool log_journal;

void log_init(const char *program, enum log_level level)
{
	log_program = program;
	log_begun = log_max = level;
	log_journal = getenv("JOURNAL_STREAM") != NULL;
}

void log_use(enum log_format format, int level)
{
	log_form = format;
	log_max = level ? (enum log_level)level : log_begun;
}

/* ---- one record ---- */

/* What came from outside must not forge a second line, nor speak to a terminal. */
static void flatten(char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)p[i],
		              next = i + 1 < n ? (unsigned char)p[i + 1] : 0;
		if (c == 0xc2 && next >= 0x80 && next < 0xa0) /* C1: U+009B is as good as ESC [ */
			p[i] = p[i + 1] = ' ';
		else if (c < 0x20 || c == 0x7f)
			p[i] = ' ';
	}
}

static void put_text(enum log_level level, const char *text, size_t n)
{
	char line[TEXT_MAX + 64];
	int k = log_journal ? snprintf(line, sizeof(line), "<%d>", level)
	                    : snprintf(line, sizeof(line), "%.30s: %s", log_program,
	                              level == LOG_LEVEL_ERR    ? "error: "
	                              : level == LOG_LEVEL_WARN ? "warning: "
	                                                        : "");
	memcpy(line + k, text, n);
	n += (size_t)k;
	flatten(line, n);
	line[n++] = '\n';
	(void)!write(STDERR_FILENO, line, n); /* nowhere left to report to */
}

/* An id in front of the text, "s=ID": its length, 0 where there is none. */
static size_t id_len(const char *p, char letter)
{
	if (p[0] != letter || p[1] != '=')
		return 0;
	return strspn(p + 2, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-");
}

/* Takes "s=ID r=ID: " off the front of a text whose format begins with it. */
static const char *put_ids(struct jw *w, const char *text)
{
	static const struct {
		char letter;
		const char *name;
	} ids[] = {{'s', "session"}, {'r', "run"}};
	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		size_t n = id_len(text, ids[i].letter);
		if (!n)
			continue;
		jw_bytes(w, ids[i].name, text + 2, n);
		text += 2 + n;
		text += strspn(text, ": ");
	}
	return text;
}

static void put_json(enum log_level level, const char *text, size_t n, bool has_ids)
{
	auto_buf struct buf line = BUF_INIT(RECORD_MAX);
	const char *end = text + n;
	char at[CLOCK_TEXT_MAX];
	if (log_journal)
		buf_printf(&line, "<%d>", level);
	clock_rfc3339(clock_wall_ms(), at);
	struct jw w = JW_INIT(&line);
	jw_open(&w, NULL, '{');
	jw_str(&w, "ts", at);
	jw_str(&w, "level", log_level_name(level));
	jw_str(&w, "program", log_program);
	jw_int(&w, "pid", getpid());
	if (has_ids)
		text = put_ids(&w, text);
	jw_bytes(&w, "msg", text, (size_t)(end - text));
	jw_close(&w, '}');
	buf_putc(&line, '\n');
	if (!line.failed)
		(void)!write(STDERR_FILENO, line.p, line.len);
	else /* no memory: better so than not at all */
		put_text(level, text, (size_t)(end - text));
}

void log_at(enum log_level level, const char *fmt, ...)
{
	if (level > log_max)
		return;
	int saved = errno;
	char text[TEXT_MAX];
	va_list ap;
	va_start(ap, fmt);
	int k = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	size_t n = k < 0 ? 0 : strnlen(text, sizeof(text));
	/* The format's word counts: a text from outside that looks like ids is none. */
	bool has_ids = strncmp(fmt, "s=%s", 4) == 0 || strncmp(fmt, "r=%s", 4) == 0;
	if (log_form == LOG_JSON)
		put_json(level, text, n, has_ids);
	else
		put_text(level, text, n);
	errno = saved;
}

/* ---- words ---- */

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

const char *const log_format_names[] = {[LOG_TEXT] = "text", [LOG_JSON] = "json", NULL};

int log_format_by_name(const char *name)
{
	for (int i = 0; log_format_names[i]; i++)
		if (strcmp(log_format_names[i], name) == 0)
			return i;
	return -1;
}
