/*
 * restore.h - a backup (supervisor/api_backup.c) into a state directory without a state.
 *
 * The archive is read by a confined process as the supervisor's user, into a directory beside the
 * one that it becomes by a rename once all of it is there and its digest is right.
 */
#ifndef ABCTL_RESTORE_H
#define ABCTL_RESTORE_H

#include "base/err.h"

/* -EBUSY: an agentboxd uses it; -ENOTEMPTY: it holds a state, or something else; -EBADMSG: the
 * archive is no backup, or not whole.  Then, and wherever it fails, nothing is changed. */
MUST_USE int restore_state(int from, const char *state, struct err *e);

#endif
