/*
 * syncs.h - several files synced at once, by threads that wait for the disk.
 *
 * A file system commits what several ask for together, so eight files take little
 * longer than one; one after another they take eight times as long.
 */
#ifndef SUPERVISOR_SYNCS_H
#define SUPERVISOR_SYNCS_H

#include <stddef.h>

struct syncs;

struct sync_item {
	int fd;
	int rc; /* set: 0 or -errno of fdatasync */
};

/* Starts the threads; fewer or none of them only make it slower.  Before the system call filter. */
struct syncs *syncs_new(void);
void syncs_free(struct syncs *s); /* NULL is fine */
/* Returns when all are synced; the caller's thread helps.  One caller at a time. */
void syncs_run(struct syncs *s, struct sync_item *items, size_t n);

#endif
