/*
 * fail.h - the last line on stderr, and the exit code that goes with it.
 *
 * A code that is abctl's own and not the command's comes with one of these
 * lines, so that a script can tell them apart.  Text from outside is made
 * harmless before it reaches the terminal.
 */
#ifndef ABCTL_FAIL_H
#define ABCTL_FAIL_H

#include "base/err.h"

/* "abctl: usage: ..."; returns EXIT_USAGE. */
int fail_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* "abctl: system: ..."; returns EXIT_SYSTEM. */
int fail_system(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* "abctl: notice: ...": something to know, not an end. */
void fail_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
