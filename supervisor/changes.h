/*
 * changes.h - what has become of a checkout, as the second program of repo.h says it: a patch and a
 * bundle become artifacts of the run.
 */
#ifndef SUPERVISOR_CHANGES_H
#define SUPERVISOR_CHANGES_H

#include "base/err.h"
#include "base/json.h"
#include "supervisor/artifacts.h"
#include "supervisor/repo.h"

#define CHANGES_PATCH  "changes.patch"
#define CHANGES_BUNDLE "changes.bundle"
/* What an agent has under one of these names and a glob of its harness takes, gets this. */
#define CHANGES_THEIRS ".workspace"

struct changes;

/* `kept`, as far as it goes, has the artifacts 0 to n - 1 of <root>/<run>; borrowed, as root_fd. */
struct changes *changes_new(int root_fd, const char *run, struct artifacts_result *kept);
void changes_free(struct changes *c); /* NULL is fine; what is not ended is removed */

/* -EBADMSG: not what that program says; -EFBIG; or why it could not be kept. */
MUST_USE int changes_feed(struct changes *c, const char *p, size_t n, struct err *e);
/* All has come: the files are added to `kept`.  -EBADMSG: it has not. */
MUST_USE int changes_end(struct changes *c, struct err *e);
/* Members "base", "head", "commit", "changed", "patchBytes", ...: after changes_end. */
void changes_members(const struct changes *c, struct jw *w);

#endif
