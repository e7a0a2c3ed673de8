/*
 * term.h - what the terminal can do, its size, and raw mode.
 */
#ifndef ABCTL_TERM_H
#define ABCTL_TERM_H

#include <stdbool.h>
#include <termios.h>

struct term {
	bool tty;       /* the descriptor is a terminal */
	bool smart;     /* ... that understands cursor movements (TERM is not dumb) */
	bool colour;    /* smart, and NO_COLOR is not set */
	bool utf8;      /* the locale says so */
	unsigned width; /* columns; 0 when it is no terminal */
};

struct term term_of(int fd);
/* 0, or -errno where fd has no size. */
int term_size(int fd, unsigned *ret_rows, unsigned *ret_cols);

/* Bytes pass as typed, without echo and signals.  0 or -errno; `saved` for term_restore. */
int term_raw(int fd, struct termios *saved);
/* Keys come one by one and without echo; signals as ever.  What was typed before is dropped: half a
 * line is no key. */
int term_keys(int fd, struct termios *saved);
void term_restore(int fd, const struct termios *saved);

#endif
