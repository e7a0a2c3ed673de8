/*
 * transcript.h - what was said and done in a session, in short, as text for the
 * model of another agent: prompts, what agents answered, which tools they called.
 *
 * Pure.  It is fed lines of the event log in their order and holds the newest
 * entries that fit; the oldest go first, and the text says how many did.  Memory
 * is bounded by that and by one clipped text, whatever the lines are.
 *
 * All of it may have been written by an attacker (an agent repeats what a web page
 * said).  Therefore each line of it begins with "| ", so that none can look like
 * our own words or the end mark; what a person would not see is taken out; and
 * the text says in front what it is and what it is not.
 */
#ifndef SUPERVISOR_TRANSCRIPT_H
#define SUPERVISOR_TRANSCRIPT_H

#include "base/id.h"
#include "supervisor/logline.h"

#include <stdbool.h>
#include <stddef.h>

struct transcript;

enum {
	TRANSCRIPT_MAX = 64 << 10,     /* some 16000 tokens: a tenth of a small context */
	TRANSCRIPT_TEXT_MAX = 8 << 10, /* of one text, its beginning and its end */
	TRANSCRIPT_MARKS = 2 << 10,    /* what our own words take beside the entries, at most */
	TRANSCRIPT_LABEL = 96,         /* who says an entry, at most */
};

/* What became of it. */
struct transcript_sum {
	char run[ID_MAX];           /* the last one that is told of */
	char backend[NAME_MAX_LEN]; /* its agent, or "" */
	size_t runs, entries;
	bool cut; /* older parts are left out */
};

/* Entries of at most `max` bytes together. */
struct transcript *transcript_new(size_t max);
void transcript_free(struct transcript *t); /* NULL is fine */

/* What follows is of this run; backend "": not known. */
void transcript_run(struct transcript *t, const char *run, const char *backend);
void transcript_prompt(struct transcript *t, const char *p, size_t n);
void transcript_answer(struct transcript *t, const char *p, size_t n); /* a final text */
void transcript_event(
        struct transcript *t, const struct logline_head *h, const char *line, size_t n);
/* All of it is known to who is going to read it. */
void transcript_clear(struct transcript *t);
/* There was more before, which was not looked at. */
void transcript_older(struct transcript *t);

/* The text (owned), to stand in front of a prompt; NULL: there is nothing to tell. */
char *transcript_text(struct transcript *t, size_t *ret_len, struct transcript_sum *ret);

#endif
