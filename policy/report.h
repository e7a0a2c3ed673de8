/*
 * report.h - how agentbox-policyc speaks: "file:line: text" lines, notes
 * marked as such, on the stream of the verb.
 */
#ifndef POLICY_REPORT_H
#define POLICY_REPORT_H

#include "base/err.h"

#include <stdio.h>

/* A harness_note_fn and keys_ctx.note; ctx is a FILE *. */
void report_note(void *ctx, const char *file, int line, const char *text);
void report_error(FILE *to, const struct err *e);
/* Usage: "NAME: usage: ..." on stderr, NAME as we were called (abctl calls us by its own); returns
 * POLICYC_USAGE. */
int report_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* A file that was named and cannot be read, by the reading's code: the one or the other. */
int report_unread(const struct err *e);
/* The system's fault, on stderr; returns POLICYC_SYSTEM. */
int report_system(const struct err *e);

#endif
