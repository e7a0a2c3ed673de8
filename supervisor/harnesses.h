/*
 * harnesses.h - the task types and agents in use: loaded from the bundled
 * share/harnesses and the directories of root's configuration, and loaded again
 * when files change.
 *
 * A save that does not parse keeps the version before it and says so (log, and
 * `error` in the list).  A later directory wins over an earlier one of the same
 * harness name.  A run holds a reference to the version it began with.
 */
#ifndef SUPERVISOR_HARNESSES_H
#define SUPERVISOR_HARNESSES_H

#include "base/buf.h"
#include "base/err.h"
#include "policy/harness.h"

struct harnesses;
struct loop;
struct policies;
struct stats;

enum { HARNESSES_DIRS = 5, HARNESSES_DEBOUNCE_MS = 50 /* editors write in several steps */ };

/* `dirs` are borrowed for life; -1 where unused; the first is the bundled one.  Called while still
 * privileged, because watching a descriptor's directory goes through /proc/self/fd. */
struct harnesses *harnesses_new(
        const int *dirs, size_t ndirs, int agents_dir, struct stats *stats, struct err *e);
void harnesses_free(struct harnesses *h);
/* Reads everything now. */
void harnesses_load(struct harnesses *h);
/* From here on changes are taken up by the loop. */
void harnesses_watch(struct harnesses *h, struct loop *l);
/* Makes a load that is due now: who asks right after a save means what was saved.  Called before
 * anything of the turn is borrowed. */
void harnesses_catch_up(struct harnesses *h);

/* A new reference to the harness (harness_unref), -ENOENT with names that are near. */
MUST_USE int harnesses_get(
        struct harnesses *h, const char *name, struct harness **ret, struct err *e);
/* The agent of a backend name (borrowed: for the turn), -ENOENT. */
MUST_USE int harnesses_agent(
        struct harnesses *h, const char *backend, const struct agent **ret, struct err *e);
/* Calls fn for each agent, with why its file as it is now is not in use (else NULL); a NULL agent:
 * no version of it ever was. */
typedef void harnesses_agent_fn(
        void *ctx, const char *dir, const struct agent *a, const char *error);
void harnesses_agents(struct harnesses *h, harnesses_agent_fn *fn, void *ctx);
/* Each of those in use; the callback must not load any. */
void harnesses_each(struct harnesses *h, void (*each)(void *ctx, struct harness *x), void *ctx);
/* Called after each load from here on. */
void harnesses_on_load(struct harnesses *h, void (*loaded)(void *ctx), void *ctx);
size_t harnesses_count(const struct harnesses *h);

/* Whether this host and build can honour a harness (plan.h); asked for the lists. */
typedef int harnesses_check_fn(void *ctx, struct harness *h, struct err *e);
void harnesses_checker(struct harnesses *h, harnesses_check_fn *check, void *ctx);

/* ---- JSON for the API ---- */
/* For whom: a tenant sees those of its key, and of them what it needs to start them. */
struct harnesses_view {
	char *const *names; /* NULL: all */
	bool outside;       /* no files, no reasons, no system prompts */
};
/* Objects separated by commas. */
void harnesses_list(struct harnesses *h, const struct harnesses_view *v, struct buf *json);
MUST_USE int harnesses_show(struct harnesses *h, const struct harnesses_view *v, const char *name,
        struct buf *json, struct err *e);

#endif
