/*
 * err.h - one error, as plain data.
 *
 * A code (negative errno) and the sentence a human reads.  No pointers, so it
 * crosses processes: the jail child writes it whole to its error pipe, and the
 * wire messages of proto/ carry it.  Functions that can fail for a reason worth
 * reading take `struct err *e` last and touch it only when they fail.  `e` may
 * be NULL: then only the code is returned.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <errno.h>
#include <stdint.h>

#define MUST_USE __attribute__((warn_unused_result))

/* Two causes with their paths, or a cause and its remedy, in full. */
enum { ERR_TEXT_MAX = 508 };

struct err {
	int32_t code; /* -errno */
	char text[ERR_TEXT_MAX];
};

/* Sets *e and returns `code`, so that `return err_set(e, -EINVAL, ...)` reads well. */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
#ifdef __clang_analyzer__ /* which does not see the body: what is returned */
#define err_set(e, code, ...) ((void)err_set(e, code, __VA_ARGS__), (code))
#endif

/* Puts "context: " in front of the text of *e.  Returns e->code (or -EIO for NULL). */
int err_wrap(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* err_set with ": strerror(errno)" appended; returns -errno.  errno is read first. */
int err_errno(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#ifdef __clang_analyzer__
#define err_errno(e, ...) ((void)err_errno(e, __VA_ARGS__), -EIO)
#endif

/* The kernel refused us, which is not the caller's doing: a code that would blame whoever asked
 * (EINVAL, EACCES, ENOENT ...) becomes -EIO, the text stays.  Returns the code. */
int err_not_theirs(struct err *e, int code);

/* HTTP status for a negative errno (the one table of the project). */
int err_http_status(int code);

#endif
