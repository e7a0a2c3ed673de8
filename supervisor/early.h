/*
 * early.h - an agent that is started before its run: its jail is made as the run's would be, cut
 * off from the network and given the files; then the keeper (keeper.h) has it.
 */
#ifndef SUPERVISOR_EARLY_H
#define SUPERVISOR_EARLY_H

#include "base/err.h"
#include "base/id.h"

#include <stdbool.h>

struct daemon;
struct harness;

struct early_spec {
	const char *session; /* id, of nobody's or held: nothing else of it has a jail */
	const char *user;    /* whose accounts its jail spends from; "": nobody's */
	const char *resume;  /* the conversation that it goes on with, or NULL */
	bool nobodys;        /* the first to come gets it with its session */
	bool seeds;          /* the harness's files are written, too, never over what is there */
	bool starts;         /* false: nothing is started, and the jail ends */
	/* Once, on the loop.  rc < 0: why not.  `left`: there is no jail of it that the keeper
	 * would tell the end of. */
	void (*done)(void *ctx, int rc, bool left, const struct err *e);
	void *ctx;
};

/* Borrows the harness and the texts for the call.  -errno: refused, and done() does not come. */
MUST_USE int early_begin(
        struct daemon *d, struct harness *h, const struct early_spec *spec, struct err *e);

#endif
