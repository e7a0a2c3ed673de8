/*
 * layers.h - what snapshots are on the disk: immutable trees that workspaces start from.
 *
 *	STATE/snapshots/NAME		a link to the layer beside it that has this name now
 *	STATE/snapshots/<random>/	a layer: `tree`, root's `meta`; complete before it has a
 *name STATE/sessions/<random>/base	a link whose text is the layer that the session stands on
 *
 * Whether a layer is in use is read from these links alone, so nothing else has to survive.
 * A layer without a name and without a session is a left-over and goes into the trash: of a
 * creation that was killed, or replaced by a newer one and then by its last session.
 *
 * Everything here reads and writes the state's disk: it is work for a job (job.h), but for
 * layers_open, which reads one link and opens one directory.
 */
#ifndef JAIL_LAYERS_H
#define JAIL_LAYERS_H

#include "base/err.h"
#include "jail/layout.h"
#include "jail/sessions.h"
#include "proto/jail.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- of a session ---- */

/* Once, before anything else is in its directory `dir`: it stands on the layer that has this name
 * now.  -ENOENT: no such snapshot. */
MUST_USE int layers_choose(const struct state *s, int dir, const char *name, struct err *e);
/* It stands on a layer. */
bool layers_has(int dir);
/* The tree it stands on (owned fd), or -1 where it stands on none: *ret; 0 or -errno. */
MUST_USE int layers_open(const struct state *s, int dir, int *ret, struct err *e);

/* ---- of a snapshot ---- */

struct layers_new {
	char layer[SESSION_NAME];
	int dir;  /* owned; locked: a sweep leaves it alone */
	int tree; /* owned: empty */
};
#define LAYERS_NEW_NONE                                                                            \
	{                                                                                          \
		.dir = -1, .tree = -1                                                              \
	}
void layers_new_done(struct layers_new *n);
#define auto_layers_new __attribute__((cleanup(layers_new_done)))

/* -EEXIST where the name is taken and `replace` is not wanted: asked before the work. */
MUST_USE int layers_free_name(const struct state *s, const char *name, bool replace, struct err *e);
MUST_USE int layers_begin(const struct state *s, struct layers_new *ret, struct err *e);
/* Counts what is in the tree into `facts`, makes all of it durable, and names it facts->name. */
MUST_USE int layers_land(const struct state *s, const struct layers_new *n,
        struct jail_snapshot *facts, bool replace, struct err *e);
/* -EBUSY with the sessions that stand on it; else the name is gone and the layer in the trash. */
MUST_USE int layers_remove(const struct state *s, const char *name, struct err *e);
/* Memfd (owned) of struct jail_snapshot, one for each name ("" : all), sorted by name. */
MUST_USE int layers_list(const struct state *s, const char *name, struct err *e);
/* Layers without a name that stay. */
struct layers_left {
	unsigned used;   /* sessions stand on them */
	unsigned locked; /* somebody makes them, or is about to end */
};
/* Left-overs go into the trash. */
MUST_USE int layers_sweep(const struct state *s, struct layers_left *ret, struct err *e);

#endif
