/*
 * disk.h - what holds the files of one jail to its limits, and what is used of it.
 *
 * disks.h fills it in for a session, disk_in_memory for a jail without one.
 */
#ifndef JAIL_DISK_H
#define JAIL_DISK_H

#include "jail/closer.h"
#include "jail/job.h"
#include "policy/policy.h"
#include "proto/jail.h"

#include <stdbool.h>
#include <stdint.h>

struct disk {
	enum jail_disk method;
	int workspace, home; /* owned: the directories */
	int lower;     /* owned: what the workspace stands on (merge.h), until it is launched; -1 */
	int tree;      /* owned: IMAGE: the root, detached, -1 */
	int memory[2]; /* borrowed: TMPFS: home and workspace */
	int state;     /* borrowed: QUOTA: a descriptor of the file system */
	uint32_t project;       /* QUOTA */
	uint64_t bytes, inodes; /* limits in force, 0: none */
	uint64_t used_bytes, peak_bytes, peak_inodes, left_bytes;
	bool above;    /* IMAGE: there was more already when the limit was set */
	uint32_t told; /* bits of enum jail_limit_kind */
};
#define DISK_NONE                                                                                  \
	{                                                                                          \
		.workspace = -1, .home = -1, .lower = -1, .tree = -1, .memory = {-1, -1},          \
		.state = -1                                                                        \
	}

static inline uint64_t disk_left(uint64_t limit, uint64_t used)
{
	return limit > used ? limit - used : 0;
}

/* Two tmpfs, each with the limit. */
void disk_in_memory(struct disk *k, int home, int workspace, const struct limits *l);
/* Looks what is used.  Bits of enum jail_limit_kind for what was met for the first time.  Asks the
 * kernel's counters, never the disk. */
uint32_t disk_look(struct disk *k);
/* `above`, and files have gone since: the limit can come closer. */
bool disk_is_loose(const struct disk *k);
/* Starts the job that brings it closer; disk_tightened with what job_end says of it. */
MUST_USE int disk_tighten(const struct disk *k, struct job *ret, struct err *e);
void disk_tightened(struct disk *k, int result);
/* The last close of an image waits for its unmounting: `closer` does that, or NULL. */
void disk_done(struct disk *k, const struct closer *closer);

#endif
