/*
 * artifact_get.h - artifacts of a run into files: what a cut connection has left is gone on with,
 * and nothing takes the name it was asked for under before its SHA-256 is the one of the list.
 *
 * The list is data, too: its names are an agent's, and a daemon elsewhere may be anybody's.
 */
#ifndef ABCTL_ARTIFACT_GET_H
#define ABCTL_ARTIFACT_GET_H

#include "abctl/verb.h"
#include "base/json.h"

/* "/v1/runs/RUN/artifacts" and, with a path, that of one; owned, or NULL after having said why. */
char *artifact_url(const char *run, const char *path);

/* Each returns the exit code. */

/* *ret is owned. */
MUST_USE int artifact_list(const struct cli *cli, const char *run, struct json **ret);

/* Into the file `out`; "-": stdout; NULL: likewise, but text only where that is a terminal. */
MUST_USE int artifact_get(
        const struct cli *cli, const char *run, const char *path, const char *out);
/* All of them into a new directory, which is there as a whole or not at all. */
MUST_USE int artifact_get_all(const struct cli *cli, const char *run, const char *dir);
/* All of them as a tar archive; `out` as save_archive takes it. */
MUST_USE int artifact_get_tar(const struct cli *cli, const char *run, const char *out);

#endif
