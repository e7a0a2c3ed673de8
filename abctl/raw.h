/*
 * raw.h - what the agent of a run has printed, as it came: its stdout on ours, its
 * stderr on ours, so that each can be kept by itself.
 */
#ifndef ABCTL_RAW_H
#define ABCTL_RAW_H

#include "abctl/verb.h"

/* abctl's exit code. */
int raw_run(const struct cli *cli, const char *run, bool follow);

#endif
