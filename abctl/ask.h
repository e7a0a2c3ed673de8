/*
 * ask.h - what the agent of a followed run asks, answered at this terminal or
 * elsewhere.
 *
 * At a terminal the oldest open permission is put to the person, and one key
 * answers it: y this call, a this tool from now on, n no, v shows what did not fit.  While
 * one is open the terminal gives keys instead of lines; signals are as ever.  Where there is no
 * terminal, and for questions that want a text, it says how to answer.
 */
#ifndef ABCTL_ASK_H
#define ABCTL_ASK_H

#include "abctl/verb.h"
#include "base/buf.h"
#include "base/json.h"

struct ask; /* opaque */

/* `cli` and `run` are borrowed for its life.  Returns owned. */
struct ask *ask_new(const struct cli *cli, const char *run);
void ask_free(struct ask *a); /* the terminal is as it was; NULL is fine */

void ask_event(struct ask *a, const struct json *event);
/* Something else was printed: what is open is put again, below it. */
void ask_covered(struct ask *a);
/* The events of now have been told: puts what is open to the person, by lines into `out` or on
 * stderr. */
void ask_put(struct ask *a, struct buf *out);
bool ask_wants_key(const struct ask *a); /* stdin is for ask_read */
/* stdin has something; what it shows goes to `out`. */
void ask_read(struct ask *a, struct buf *out);

#endif
