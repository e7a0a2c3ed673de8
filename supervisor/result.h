/*
 * result.h - the result of a run as JSON: what run.done carries and the store
 * keeps.
 */
#ifndef SUPERVISOR_RESULT_H
#define SUPERVISOR_RESULT_H

#include "base/buf.h"
#include "proto/jail.h"

#include <stdint.h>

struct run;

/* What is known of a run that a crash cut short.  The clock is the wall's, the only one that both
 * sides of a crash share; it ended when it was found. */
struct result_lost {
	const char *run, *session, *harness, *error;
	int64_t created_ms, started_ms, ended_ms; /* started_ms 0: it never did */
};

/* What its present attempt has used. */
struct jail_resources result_used(const struct run *r);
/* Replaces what `to` holds. */
void result_write(struct run *r, struct buf *to);
void result_interrupted(const struct result_lost *x, struct buf *to);

#endif
