/*
 * place.h - the directory of a session, opened in the state it is in.
 *
 * Mounting an image, setting its ballast, giving a complete one its name, counting files
 * for a project: each may wait for the state's disk, so a child does it (job.h), in whose
 * functions these are the work.  disks.h has the order.
 */
#ifndef JAIL_PLACE_H
#define JAIL_PLACE_H

#include "base/err.h"
#include "jail/disks.h"
#include "jail/image.h"
#include "jail/job.h"

#include <stdbool.h>

enum place_state {
	PLACE_OPEN,    /* `disk` is what it was asked for */
	PLACE_BUSY,    /* something still has its image mounted */
	PLACE_BARE,    /* no image, or one of the wrong size: `image` has to be filled */
	PLACE_COUNTED, /* its files have to be counted for a project first */
};

struct place {
	enum place_state state;
	struct disk disk;       /* owned: OPEN */
	int dir;                /* owned: BARE, COUNTED: the directory */
	int image;              /* owned: BARE: a file without a name yet */
	int source;             /* owned: BARE: what is to be in it, -1: nothing */
	struct image_size size; /* of the image to be made */
	bool replaces;          /* there is one; `source` is its tree */
	struct err without;     /* why it is open without its limits; code 0: it has them */
};
#define PLACE_NONE                                                                                 \
	{                                                                                          \
		.disk = DISK_NONE, .dir = -1, .image = -1, .source = -1                            \
	}
void place_done(struct place *p);
#define auto_place __attribute__((cleanup(place_done)))

/* 0, or why not. */
MUST_USE int place_open(
        const struct disks *d, const struct disks_ask *ask, struct place *ret, struct err *e);
/* Has its directories, no image and no limit: opening it makes nothing and copies nothing. */
bool place_is_there(const struct disks *d, const struct disks_ask *ask);
/* A name for the complete image.  What it was copied from goes only now. */
MUST_USE int place_put_image(int dir, int image, bool replaces, struct err *e);
/* Counts what is below `dir` for a new project, `dir` itself last. */
MUST_USE int place_count(int dir, struct err *e);

/* ---- from child to parent ---- */

void place_pack(struct place *p, struct job_out *out); /* takes what p owns */
MUST_USE int place_unpack(struct job_out *in, struct place *ret, struct err *e); /* likewise */

#endif
