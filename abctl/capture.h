/*
 * capture.h - what a function of ours prints, run in a child.
 */
#ifndef ABCTL_CAPTURE_H
#define ABCTL_CAPTURE_H

#include <stddef.h>

/* What fn writes to stdout (at most `max` bytes) becomes *ret (owned); the rest of its stdio is
 * ours.  What it returned (a signal: EXIT_SYSTEM), or an exit code after having said why; then *ret
 * stays as it was.  `what` is for messages: whose output. */
int capture(int (*fn)(const void *ctx), const void *ctx, const char *what, size_t max, char **ret);

#endif
