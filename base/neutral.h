/*
 * neutral.h - text from agents and servers, made harmless for a terminal.
 *
 * A terminal obeys what is written to it: an escape sequence can set its title,
 * answer as if typed, hide text.  So nothing that steers passes: C0 and DEL
 * become ^X, C1 and the invisible or direction-changing characters become
 * <U+XXXX>, bytes that are not UTF-8 become U+FFFD.  New line and tab pass in
 * neutral_text, and become spaces in neutral_line.
 */
#ifndef BASE_NEUTRAL_H
#define BASE_NEUTRAL_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

void neutral_text(struct buf *to, const char *s, size_t n);
void neutral_line(struct buf *to, const char *s, size_t n);

/* The same as one word of a command that a person may copy: quoted for a shell where it has to be,
 * "--" in front where it looks like an option.  false: it cannot be typed. */
bool neutral_word(struct buf *to, const char *s);

/* Can the bytes go into JSON unchanged?  UTF-8 and no NUL. */
bool neutral_is_text(const char *s, size_t n);

/* Columns that harmless text takes on a terminal (no new lines in it). */
size_t neutral_width(const char *s, size_t n);
/* Bytes of the longest beginning that takes at most `cols` columns. */
size_t neutral_fit(const char *s, size_t n, size_t cols);

#endif
