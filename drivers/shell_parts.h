/*
 * shell_parts.h - takes a shell command apart into its simple commands.
 *
 * Not a shell parser: it understands quotes, separators and harmless
 * redirections (2>&1, >/dev/null), and gives up on everything else, because
 * what it gives out decides whether a command may run.
 */
#ifndef DRIVERS_SHELL_PARTS_H
#define DRIVERS_SHELL_PARTS_H

#include <stdbool.h>
#include <stddef.h>

/* Called for each part, trimmed, never empty; false stops. */
typedef bool shell_part_fn(void *ctx, const char *part, size_t n);

/* true: the command was understood and fn said true to each of its parts (at least one). */
bool shell_parts(const char *command, shell_part_fn *fn, void *ctx);

#endif
