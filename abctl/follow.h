/*
 * follow.h - the events of one run, as they come, until it is over.
 */
#ifndef ABCTL_FOLLOW_H
#define ABCTL_FOLLOW_H

#include "abctl/lines.h"
#include "abctl/verb.h"

#include <stdint.h>

struct follow_options {
	const char *run;
	int64_t from;         /* first number wanted, 0: all */
	bool live;            /* wait for more until run.done; false: what there is */
	bool lines;           /* events as stored, one a line, instead of the rendering */
	bool cancels;         /* Ctrl-C cancels the run first; false: it only leaves */
	const char *pipeline; /* NULL, or the one that it is a step of: that is cancelled */
	bool asks;            /* what the agent asks is put to whoever follows: ask.h */
	/* Lines of the terminal go to the agent as messages; what it does not hear stays.  NULL:
	 * stdin is not for it. */
	struct lines *input;
};

/* abctl's exit code: 0 when the run succeeded (or nothing says otherwise yet), 1 when not. */
int follow_run(const struct cli *cli, const struct follow_options *o);

#endif
