/*
 * veil.h - finds secrets in what programs print, without having them.
 *
 * Of each form in which a value is usually printed (as it is, in JSON, base64,
 * percent-encoded, hexadecimal) there is its length and a fingerprint of 61 bits:
 * a polynomial over the bytes, at a point that is random and each veil's own.  A
 * window of that length runs over the words of the text; what has the fingerprint
 * becomes asterisks, as many as there were bytes.  Linear in the bytes for each length
 * (20 MB/s and more for the longest words and four values), no allocation.
 *
 * Who has a veil cannot read the value from it, but can try guesses.  Values that are
 * shorter than VEIL_LEAST would be found in what is none, and are guessed anyway.
 *
 * Plain data: made by agentboxd, which knows the values, and sent as it is.  All
 * zeroes is a veil that finds nothing.
 */
#ifndef BASE_VEIL_H
#define BASE_VEIL_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	VEIL_LEAST = 8,
	VEIL_MOST = 512,    /* of a value */
	VEIL_WINDOW = 1024, /* of a form: longer ones are not looked for */
	VEIL_FORMS = 160,
};

struct veil_form {
	uint64_t print;
	uint32_t n;
	uint32_t pad;
};

struct veil {
	uint64_t point;                     /* of the polynomials */
	uint64_t key[2];                    /* of veil_crypt */
	uint32_t nforms;                    /* 0: there is nothing to find */
	uint32_t spaced;                    /* a value has a space in it */
	struct veil_form forms[VEIL_FORMS]; /* the longest first */
};

/* ---- making one, of values that are known ---- */

MUST_USE int veil_begin(struct veil *v, struct err *e);
/* -ERANGE: too short or too long; -EINVAL: not printable ASCII; -E2BIG: too many forms. */
MUST_USE int veil_add(struct veil *v, const char *value, size_t n, struct err *e);
/* Counts and lengths are in their bounds. */
bool veil_ok(const struct veil *v);

/* ---- whole texts, in place: how many were found.  `v` may be NULL ---- */

size_t veil_text(const struct veil *v, char *p, size_t n);
/* Within the strings of a JSON text alone, so that it stays one. */
size_t veil_json(const struct veil *v, char *p, size_t n);

/* ---- texts that come in pieces ---- */

/* Of each piece the end waits while it could be the beginning of something: by the kind of the
 * bytes, never by the value, and VEIL_WINDOW bytes at most.  Line ends and, where no value has one,
 * spaces never wait. */
struct veil_stream {
	struct buf all; /* what was passed last, then what waits */
	size_t passed;
};
enum { VEIL_PIECE = 1 << 17 }; /* most bytes of a piece */
#define VEIL_STREAM_INIT                                                                           \
	{                                                                                          \
		.all = BUF_INIT(VEIL_PIECE + VEIL_WINDOW), .passed = 0                             \
	}
/* What may pass, until the next call; of a veil that finds nothing `p` itself. */
char *veil_pass(const struct veil *v, struct veil_stream *s, char *p, size_t n, size_t *ret_n);
/* What waits, at the end. */
char *veil_rest(struct veil_stream *s, size_t *ret_n);
/* The same, and it goes on waiting. */
const char *veil_waits(const struct veil_stream *s, size_t *ret_n);
/* So much of p[n] could pass now. */
size_t veil_passable(const struct veil *v, const char *p, size_t n);
void veil_stream_done(struct veil_stream *s);

/* Makes bytes that wait unreadable, and readable again, for whoever has no veil; `number` is
 * another one each time. */
void veil_crypt(const struct veil *v, uint64_t number, char *p, size_t n);

#endif
