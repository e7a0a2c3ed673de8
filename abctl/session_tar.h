/*
 * session_tar.h - `abctl session export | import`: a session as a tar archive.
 *
 * session.json, runs.jsonl and events.jsonl say what was; workspace/ has the files.  An import
 * makes a new session of the files: runs and events are of the old one's ids, and stay in the
 * archive.  With the home there are home/ and conversations.json, by which an agent goes on with
 * its own conversation.  Bytes go through, and nothing is held whole but one file at a time, on
 * the disk.
 */
#ifndef ABCTL_SESSION_TAR_H
#define ABCTL_SESSION_TAR_H

#include "abctl/verb.h"

#include <stdbool.h>

/* `out`: a file, '-' or NULL: stdout.  The exit code. */
MUST_USE int session_export(const struct cli *cli, const char *session, const char *out, bool home);
/* `in`: a file, '-' or NULL: stdin. */
MUST_USE int session_import(const struct cli *cli, const char *session, const char *in, bool home);

#endif
