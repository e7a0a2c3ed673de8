/*
 * etc.h - the /etc of a jail, written by us.
 *
 * The host's /etc is never shown: with ids mapped, inner root could read what the
 * host keeps from others.  A few files that programs cannot do without are
 * copied by content, a few public directories are cloned read-only.
 */
#ifndef JAIL_ETC_H
#define JAIL_ETC_H

#include "base/err.h"

#include <stdint.h>

/* Fills `etc` (a directory of our own tmpfs) from `source`, the root directory that /usr comes
 * from too.  All borrowed. */
MUST_USE int etc_fill(int etc, int source, struct err *e);

/* Into the upper layer over an image's own /etc: its name, hosts and resolver as of every jail, its
 * users and groups with the agent among them.  They belong to `owner`, inner root's host id. */
MUST_USE int etc_personal(int upper, int source, uint32_t owner, struct err *e);

/* Directory i of the source that is shown there ("/etc/ssl/certs"), NULL past the end. */
const char *etc_shown(unsigned i);

#endif
