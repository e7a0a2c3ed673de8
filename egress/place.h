/*
 * place.h - where a connection of a jail was going.
 */
#ifndef EGRESS_PLACE_H
#define EGRESS_PLACE_H

#include <stdbool.h>
#include <stdint.h>

struct place {
	bool has_v4;
	uint32_t v4;        /* host byte order */
	uint8_t mapped[16]; /* IPv4 mapped */
	unsigned port;
};

/* Of an accepted socket: AnyIP makes its own address the one that was dialled. */
void place_of(int fd, unsigned port, struct place *ret);
/* Of an address that was named instead. */
void place_v4(uint32_t host_order, unsigned port, struct place *ret);
void place_mapped(const uint8_t mapped[16], unsigned port, struct place *ret);

#endif
