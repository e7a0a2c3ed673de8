/*
 * privilege.h - what root's daemon keeps of root.
 *
 * Once, before anything is started: capabilities that no step of ours needs
 * leave every set, the bounding set included, so that no child has them
 * either; no_new_privs; not dumpable, so that nothing may look into a process
 * that holds secrets.
 */
#ifndef JAIL_PRIVILEGE_H
#define JAIL_PRIVILEGE_H

#include "base/buf.h"
#include "base/err.h"

#include <stdint.h>

MUST_USE int privilege_reduce(struct err *e);
/* Bits of the capabilities kept, for the log and tests. */
uint64_t privilege_kept(void);
/* A line for each that is not among those bits and that no jail can be made without: its name, and
 * what for. */
void privilege_missing(uint64_t have, struct buf *to);

#endif
