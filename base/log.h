/*
 * log.h - one line a message to stderr, with "<3>" priority prefixes when
 * journald reads them ($JOURNAL_STREAM), "program: " prefixes otherwise; or
 * one JSON object a line.
 *
 * A format that begins with "s=%s r=%s: " (either, or both) names a session and
 * a run: members of their own in JSON.  Whatever bytes a message has, it is one
 * line, and one record.
 *
 * Used by the mains and by whoever decides what to do about a failure; each
 * failure is logged once.  base/, policy/, drivers/ and the jail's children
 * return errors instead.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

enum log_level { LOG_LEVEL_ERR = 3, LOG_LEVEL_WARN = 4, LOG_LEVEL_INFO = 6, LOG_LEVEL_DEBUG = 7 };

enum log_format { LOG_TEXT, LOG_JSON, LOG_FORMAT_COUNT };

/* `program` is static.  Messages above `level` are dropped. */
void log_init(const char *program, enum log_level level);
/* Root's word, at any time.  `level`: of enum log_level; 0: as at log_init. */
void log_use(enum log_format format, int level);
void log_at(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The words of the command lines: err, warn, info, debug. */
const char *log_level_name(enum log_level level); /* "info" for what is none */
int log_level_by_name(const char *name);          /* enum log_level, or -1 */
extern const char *const log_format_names[];      /* text, json, NULL */
int log_format_by_name(const char *name);         /* enum log_format, or -1 */

#define log_err(...)   log_at(LOG_LEVEL_ERR, __VA_ARGS__)
#define log_warn(...)  log_at(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...)  log_at(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
