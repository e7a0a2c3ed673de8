/*
 * verify.h - the check of a run that succeeded: what became of the harness's
 * command, what is told of it, what it means for the run.
 *
 * runner_verify.h runs the command and fills this in; nothing here acts.
 */
#ifndef SUPERVISOR_VERIFY_H
#define SUPERVISOR_VERIFY_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct json;
struct jw;
struct pump;

enum { VERIFY_TAIL = 4000 /* bytes of what it printed that are kept: the last ones */ };

struct verify {
	bool required;  /* of the harness */
	bool done;      /* it came to an end that counts; all below is told then */
	bool exited;    /* with `code`, or by `sig` */
	bool timed_out; /* ended by us: it had its time */
	bool oom;
	int code, sig;
	struct err why; /* code < 0: it did not even begin */
	struct buf tail;
	uint64_t timeout_ms, took_ms;
	/* while it runs */
	int64_t begun_us;  /* monotonic */
	uint64_t exec;     /* its program's number in its jail */
	bool made, gone;   /* its jail */
	struct pump *pump; /* owned */
};

struct verify *verify_new(bool required, uint64_t timeout_ms);
void verify_free(struct verify *v); /* NULL is fine */

void verify_print(struct verify *v, const char *p, size_t n);
/* Nothing but an exit with 0 is one; NULL has not passed. */
bool verify_passed(const struct verify *v);
/* Does it fail the run?  `ret` says how: "verification failed (exit 1)". */
bool verify_fails(const struct verify *v, struct err *ret);
/* Members of verify.done and of `verification` in the result. */
void verify_members(const struct verify *v, struct jw *w);
/* What an earlier supervisor has told of: returns owned. */
struct verify *verify_from(const struct json *event);

#endif
