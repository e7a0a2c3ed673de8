/*
 * mask.h - keeps a secret out of what comes back from where it was sent.
 *
 * Each occurrence becomes as many asterisks, so lengths stay true.  Of a body
 * that comes in pieces the last bytes wait while they could be the beginning of
 * an occurrence.  What waits is decided by the bytes that came and never by the
 * secret: else somebody who can have bytes repeated would learn by the delay how
 * the secret begins.  Line ends never wait, so events of a stream pass at once.
 *
 * What is not the secret byte by byte is not found: parts of it, other encodings.
 */
#ifndef EGRESS_MASK_H
#define EGRESS_MASK_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

enum {
	MASK_MIN = 8, /* shorter secrets would be found in what is none, and are guessed anyway */
	MASK_PIECE = 1 << 20, /* the most that is passed at once */
};

struct mask {
	char *secret; /* owned; NULL: there is nothing to find */
	size_t n;
	bool word;      /* it has letters, digits and the marks of tokens alone */
	struct buf all; /* what was passed last, then what waits */
	size_t passed;
	size_t found;
};

void mask_begin(struct mask *m, const char *secret, size_t n); /* copies; m is zeros */
void mask_done(struct mask *m);                                /* wipes, and leaves zeros */

/* Of a whole text, in place. */
void mask_text(struct mask *m, char *p, size_t n);
/* What of p[n] and of that which waited may pass: until the next call, or `p` itself.  NULL: n is
 * more than MASK_PIECE. */
const char *mask_pass(struct mask *m, const char *p, size_t n, size_t *ret_n);
/* What waits, at the end of the body. */
const char *mask_rest(struct mask *m, size_t *ret_n);

#endif
