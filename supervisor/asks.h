/*
 * asks.h - what an agent has asked and waits for: its permissions and questions
 * that are open, in the order in which they came, and which had an answer.
 *
 * Fed with the events of its driver, so a replay of the agent's output makes
 * the same.  Pure: when each was asked and until when it waits is stamped from
 * outside.
 */
#ifndef SUPERVISOR_ASKS_H
#define SUPERVISOR_ASKS_H

#include "base/json.h"
#include "base/list.h"
#include "drivers/event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	ASKS_OPEN_MAX = 64, /* at once; beyond it whoever asks is told no */
	/* Of their events together: people read them.  A tree takes forty times its text. */
	ASKS_BYTES_MAX = 1 << 20,
	/* Ids that had an answer, to tell "too late" from "never heard of". */
	ASKS_CLOSED_MAX = 1024,
};

struct ask {
	struct list link;   /* in asks.open */
	bool question;      /* else a permission */
	const char *id;     /* borrowed: from `event` */
	struct json *event; /* owned: its members */
	size_t bytes;       /* of them as text */
	int64_t asked_ms;   /* wall clock; 0: not stamped yet */
	int64_t due_us;     /* monotonic; 0: it waits as long as the run */
};

struct asks {
	struct list open; /* of struct ask */
	size_t nopen, bytes;
	char **closed; /* owned: ids, oldest first */
	size_t nclosed;
};

/* ---- life ---- */
void asks_init(struct asks *a);
void asks_done(struct asks *a);

/* ---- use ---- */

/* An event of the driver; others than of asking and answering are ignored. */
void asks_event(struct asks *a, enum event_type t, const char *members, size_t n);
bool asks_crowded(const struct asks *a); /* more is open than may be */
/* It waits no more, though no event of the driver says so. */
void asks_drop(struct asks *a, struct ask *q);
struct ask *asks_find(const struct asks *a, bool question, const char *id); /* NULL: not open */
bool asks_was(const struct asks *a, const char *id);                        /* it had an answer */
struct ask *asks_next_due(const struct asks *a); /* NULL: none waits for a moment */
/* May this be answered to it?  A permission names its options. */
bool asks_offers(const struct ask *q, const char *answer);
/* Objects in an array: what was asked, when, until when (now_*: both clocks now). */
void asks_show(const struct asks *a, struct jw *w, int64_t now_ms, int64_t now_us);

#endif
