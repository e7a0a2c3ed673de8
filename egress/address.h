/*
 * address.h - is an address of the public internet, and how is it written.
 *
 * Pure but for address_dialable.  An upstream's name may resolve to anything its
 * owner likes; only public addresses are dialled (policy/special.h), unless root
 * named others.
 */
#ifndef EGRESS_ADDRESS_H
#define EGRESS_ADDRESS_H

#include "policy/rules.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum { ADDRESS_TEXT_MAX = 64 };

/* What may be dialled: public addresses, and what root named besides. */
struct reach {
	bool any; /* everything, this host too */
	uint32_t n;
	struct cidr cidrs[RULE_CIDRS];
};

/* AF_INET and AF_INET6; every other family is not public. */
bool address_public(const struct sockaddr *a);

bool address_within(const struct reach *r, const struct sockaddr *a);
/* The last word, at the moment of dialling: as above, and it is not this host's own unless that
 * very address was named, or loopback.  Asks the kernel for a route, sends nothing. */
bool address_dialable(const struct reach *r, const struct sockaddr *a);
/* 16 bytes, IPv4 mapped; and back, with a port.  `to` is a sockaddr_in where it can be. */
bool address_mapped(const struct sockaddr *a, uint8_t to[16]);
socklen_t address_of(const uint8_t mapped[16], unsigned port, struct sockaddr_storage *to);

/* Numbers only, without port; a mapped IPv4 address is written as IPv4. */
void address_text(const struct sockaddr *a, char to[ADDRESS_TEXT_MAX]);
/* The IPv4 address in host order, mapped ones too; false for others. */
bool address_v4(const struct sockaddr *a, uint32_t *ret);

#endif
