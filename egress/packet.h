/*
 * packet.h - what a packet seen on the jail's loopback was trying to reach.
 *
 * Pure.  The watch socket of a jail shows attempts to ports that no listener
 * takes; they fail by themselves, and this says where they were going.  The
 * socket is SOCK_RAW or SOCK_DGRAM; the caller says where the IP header begins.
 */
#ifndef EGRESS_PACKET_H
#define EGRESS_PACKET_H

#include "egress/address.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PACKET_SNAP = 128 }; /* IPv6 header, a few extension headers, TCP ports and flags */

struct packet {
	const char *protocol; /* "tcp" or "udp"; static */
	uint16_t port;        /* destination */
	char address[ADDRESS_TEXT_MAX];
};

/* True for the first packet of a TCP connection and for any UDP datagram. */
bool packet_parse(const uint8_t *ip, size_t n, struct packet *ret);

#endif
