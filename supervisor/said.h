/*
 * said.h - what is said to an agent while it runs: an answer to a permission it
 * asked for, the text that answers a question, one more message.  As a value,
 * as bytes of the journal, and as members of the events that tell of it.  Pure.
 */
#ifndef SUPERVISOR_SAID_H
#define SUPERVISOR_SAID_H

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "drivers/driver.h"
#include "drivers/event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SAID_ID_MAX = 256,      /* of a permission or question; the longest seen is 36 */
	SAID_TEXT_MAX = 1 << 20 /* a message while it runs; files go into the workspace */
};

enum said_what { SAID_ANSWER, SAID_REPLY, SAID_INPUT };

struct said {
	enum said_what what;
	enum driver_answer answer; /* SAID_ANSWER */
	bool by_harness;           /* nobody said anything in time; else: */
	uint32_t uid;              /* who did, unless `remote`: then that is nobody's */
	bool remote;               /* over TCP */
	const char *key;           /* the name of the key that it came with, or NULL */
	const char *id;            /* of the permission or question, "" for an input */
	const char *text;          /* why the harness answers; the reply or message; NULL: none */
	size_t len;
};

int said_answer_by_name(const char *name); /* enum driver_answer, or -1 */

/* ---- in the journal ---- */
void said_pack(const struct said *s, struct buf *to);
/* The texts are borrowed from p.  -EBADMSG. */
MUST_USE int said_unpack(const char *p, size_t n, struct said *ret, struct err *e);

/* ---- in events ---- */
/* "by" and who that is, and why. */
void said_by(const struct said *s, struct jw *w);
/* Who that is, for a sentence: "uid 0", "key ci". */
void said_who(const struct said *s, char *to, size_t n);
/* Members of the driver's event about it, which knows of nobody but "user": retold with who it was.
 * `to` stays empty where they are none. */
void said_retell(const struct said *s, const char *members, size_t n, struct buf *to);

#endif
