/*
 * runner_talk.h - what is said to an agent while it works: its stdin, answers to
 * what it asks, messages; and the waiting for answers.
 *
 * Whatever a driver is told from outside is in the journal first, in its place
 * among what the agent said, so that the next supervisor tells it again.
 */
#ifndef SUPERVISOR_RUNNER_TALK_H
#define SUPERVISOR_RUNNER_TALK_H

#include "base/err.h"
#include "supervisor/journal.h"

#include <stdbool.h>
#include <stddef.h>

struct run;
struct said;

/* Sends what the driver put into to_stdin; `eof`: and closes it. */
void runner_talk_feed(struct run *r, bool eof);
/* Before anything is made of the bytes: see journal.h. */
void runner_talk_keep(struct run *r, enum journal_type t, const void *p, size_t n);

/* -ENOENT: nothing of that id was asked; -EBUSY: too late, answered already, or the agent has no
 * way to hear it; -EINVAL: not among what it offers; -EAGAIN: it does not read. */
MUST_USE int runner_talk_say(struct run *r, const struct said *s, struct err *e);
/* After lines of the agent were told: new questions begin to wait. */
void runner_talk_mind(struct run *r);
/* The run is over: what is still open has no answer any more. */
void runner_talk_end(struct run *r);

/* Records of the journal.  0 or -EBADMSG. */
MUST_USE int runner_talk_say_again(struct run *r, const char *p, size_t n);
MUST_USE int runner_talk_asked_again(struct run *r, const char *p, size_t n);

#endif
