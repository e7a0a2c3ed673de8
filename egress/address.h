/*
 * address.h - is an address of the public internet, and how is it written.
 *
 * Pure.  An upstream's name may resolve to anything its owner likes; only
 * addresses that are globally reachable are dialled (IANA's special-purpose
 * registries, RFC 6890 and updates), unless root marked the upstream.
 * Addresses that carry an IPv4 address (mapped, compatible, 6to4, NAT64) are
 * judged by the address they carry.
 */
#ifndef EGRESS_ADDRESS_H
#define EGRESS_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum { ADDRESS_TEXT_MAX = 64 };

bool address_public_v4(uint32_t host_order);
bool address_public_v6(const uint8_t a[16]);
/* AF_INET and AF_INET6; every other family is not public. */
bool address_public(const struct sockaddr *a);

/* Numbers only, without port; a mapped IPv4 address is written as IPv4. */
void address_text(const struct sockaddr *a, char to[ADDRESS_TEXT_MAX]);
/* The IPv4 address in host order, mapped ones too; false for others. */
bool address_v4(const struct sockaddr *a, uint32_t *ret);

#endif
