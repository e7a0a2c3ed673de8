/*
 * special.h - addresses that are not of the public internet, range by range.
 *
 * Pure.  IANA's special-purpose registries (RFC 6890 and updates) and where clouds have their
 * metadata services.  What carries an IPv4 address (mapped, compatible, 6to4, NAT64) is what it
 * carries.  A range may lie within another one: who may reach carrier-grade NAT may not reach the
 * metadata service in the midst of it.
 */
#ifndef POLICY_SPECIAL_H
#define POLICY_SPECIAL_H

#include "policy/rules.h"

enum special_kind {
	SPECIAL_NOBODY, /* no host's address to be reached at: multicast, unspecified, our own */
	SPECIAL_LOOPBACK,
	SPECIAL_LINK,
	SPECIAL_METADATA,
	SPECIAL_PRIVATE,
	SPECIAL_RESERVED, /* documentation, protocols, not assigned */
};

struct special {
	enum special_kind kind;
	struct cidr range;
};

const char *special_name(enum special_kind kind);
/* The narrowest range around it; false: it is public. */
bool special_of(const uint8_t mapped[16], struct special *ret);
/* One that is part of the network and not all of it; false where there is none. */
bool special_within(const struct cidr *c, struct special *ret);

#endif
