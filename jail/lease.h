/*
 * lease.h - blocks of host user ids, one for each jail.
 *
 * Block i (1 .. ID_LEASES) is the 65536 ids from ID_STORE_BASE + i * ID_BLOCK:
 * id 0 of the host and the ids under which workspaces are stored (block 0) can
 * never be leased.  A lease is a bit here and an OFD lock on byte i of a file
 * that all daemons of the machine share, so two daemons never use one block;
 * a daemon that dies gives its blocks back.  A block whose ids still have a
 * process (of a daemon that was just killed) is passed over.
 *
 * The owner drops a lease only when no process, worker, mount or descriptor
 * of the jail is left.
 */
#ifndef JAIL_LEASE_H
#define JAIL_LEASE_H

#include "base/err.h"
#include "base/ids.h"

#include <stdint.h>

/* In the one directory of /run that the unit leaves writable. */
#define LEASE_FILE "/run/agentbox/leases"

struct leases {
	int fd;         /* owned; every lock of this daemon is on this open file */
	uint32_t next;  /* where the search begins: as long as possible until reuse */
	uint32_t count; /* blocks held */
	uint64_t held[(ID_LEASES + 64) / 64]; /* bit i: block i */
};

/* Makes the file (root, 0600) and its directory where they are missing; refuses a link or a foreign
 * owner. */
MUST_USE int leases_open(struct leases *l, const char *path, struct err *e);
void leases_close(struct leases *l); /* gives every block back */

/* *ret_base is the first id of the block.  -EAGAIN when every block is taken. */
MUST_USE int lease_take(struct leases *l, uint32_t *ret_base, struct err *e);
uint32_t lease_index(uint32_t base); /* 1 .. ID_LEASES */
uint32_t lease_base(uint32_t index);
/* base: one that lease_take gave.  On failure it stays held. */
int lease_drop(struct leases *l, uint32_t base);

#endif
