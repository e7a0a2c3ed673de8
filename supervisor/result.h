/*
 * result.h - the result of a run as JSON: what run.done carries and the store
 * keeps.
 */
#ifndef SUPERVISOR_RESULT_H
#define SUPERVISOR_RESULT_H

#include "base/buf.h"

struct run;

/* Replaces what `to` holds. */
void result_write(struct run *r, struct buf *to);
/* The result of a run that a crash cut short. */
void result_interrupted(const char *run, const char *session, const char *harness,
        const char *error, struct buf *to);

#endif
