/*
 * pattern.h - looks for patterns in bytes that a stranger chose: in time linear in
 * the bytes, in memory that is fixed, and in pieces as they come.
 *
 * The language is that of POSIX extended regular expressions, line by line as
 * grep has it (`.` and negated lists do not match a newline, `^` and `$` stand
 * at lines' ends), on bytes, without back-references and collating symbols;
 * with \d \D \w \W \s \S \b \B \n \r \t, and (?i) in front for ASCII letters of
 * either case.  What it cannot do is refused, never taken for something else.
 *
 * All patterns of a set are looked for at once.  Only whether one is there is
 * asked, never where: so an automaton does, whose states are made when they are
 * met, and forgotten when they are too many.
 */
#ifndef POLICY_PATTERN_H
#define POLICY_PATTERN_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

enum {
	PATTERN_TEXT_MAX = 512,  /* longer ones are lists, and better written as such */
	PATTERN_SIZE_MAX = 1000, /* steps of one, its repetitions written out */
	PATTERN_SET_MAX = 4000,  /* of all of a set */
	/* What looking may cost, in steps: so many at once, and so many a byte.  One that is made
	 * for it is met by patterns that are, too; and is beyond it soon. */
	PATTERN_COST = 2000000,
	PATTERN_COST_BYTE = 32,
};

struct patterns; /* the set */

/* 0; -EINVAL, -E2BIG: what is wrong with it.  One that is found in nothing at all is. */
MUST_USE int pattern_check(const char *text, struct err *e);

/* Returns owned; never NULL without *e.  The texts were checked one by one; -E2BIG: together they
 * are too many. */
struct patterns *patterns_new(const char *const *texts, size_t n, struct err *e);
void patterns_free(struct patterns *p);  /* NULL is fine */
void patterns_begin(struct patterns *p); /* another text */

enum { PATTERN_NONE = -1, PATTERN_COSTLY = -2 };
/* The next bytes of it.  Index of a pattern that was found, PATTERN_NONE so far, PATTERN_COSTLY;
 * once it is not NONE it stays that until another text is begun. */
MUST_USE int patterns_feed(struct patterns *p, const char *bytes, size_t n);
MUST_USE int patterns_end(struct patterns *p); /* that was all of it */
/* All of a text at once. */
MUST_USE int patterns_find(struct patterns *p, const char *bytes, size_t n);

#endif
