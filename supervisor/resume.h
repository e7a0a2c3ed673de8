/*
 * resume.h - what the agent of a run is told of the runs before it in the session.
 *
 * An agent that holds conversations goes on with its own: the driver gets the
 * agent's id of it (`native`).  What has happened since then under other agents,
 * or all of it where it has no conversation or has lost it, comes as text in front of its
 * prompt (transcript.h).  The harness's `resume` chooses.
 *
 * It is decided once, before the jail is asked for, and kept in the run's
 * journal: another supervisor tells the driver the same.
 */
#ifndef SUPERVISOR_RESUME_H
#define SUPERVISOR_RESUME_H

#include "base/buf.h"
#include "base/err.h"
#include "base/id.h"
#include "policy/harness.h"

#include <stdbool.h>
#include <stddef.h>

struct daemon;

struct resume {
	char *id;      /* owned: the agent's own conversation, or NULL */
	char *context; /* owned: stands in front of the prompt, or NULL */
	size_t context_len;
	char run[ID_MAX];           /* the last one that it knows of by either way, or "" */
	char backend[NAME_MAX_LEN]; /* whose that was, or "" */
	size_t runs;                /* in `context` */
	bool cut;                   /* older parts are not in it */
	bool lost;                  /* its own conversation was there and is gone */
};

struct resume_ask {
	const char *session, *run, *backend;
	enum harness_resume how;
	bool converses; /* the agent holds conversations: what it is told is for a model */
	bool lost;      /* its own one is gone, it said */
	size_t room;    /* bytes that the context may have */
};

/* Does this agent hold conversations?  False also where it is not there. */
bool resume_converses(struct daemon *d, const char *backend);
void resume_find(struct daemon *d, const struct resume_ask *q, struct resume *ret);
void resume_done(struct resume *x); /* zeroed is fine */
/* Is there anything to tell clients of? */
bool resume_any(const struct resume *x);
/* Members of session.resumed. */
void resume_members(const struct resume *x, struct buf *to);

/* ---- in the journal ---- */
void resume_pack(const struct resume *x, struct buf *to);
MUST_USE int resume_unpack(const char *p, size_t n, struct resume *ret, struct err *e);

#endif
