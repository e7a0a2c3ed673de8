#include "egress/packet.h"

#include <netinet/in.h>
#include <string.h>

enum { TCP_SYN = 0x02, TCP_ACK = 0x10 };

static uint16_t u16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static bool parse_ports(unsigned proto, const uint8_t *p, size_t n, struct packet *ret)
{
	if (proto == IPPROTO_TCP && n >= 14 && (p[13] & (TCP_SYN | TCP_ACK)) == TCP_SYN)
		ret->protocol = "tcp";
	else if (proto == IPPROTO_UDP && n >= 8)
		ret->protocol = "udp";
	else
		return false;
	ret->port = u16(p + 2);
	return true;
}

static bool parse_v4(const uint8_t *p, size_t n, struct packet *ret)
{
	size_t head = (size_t)(p[0] & 15) * 4;
	if (n < 20 || head < 20 || head > n)
		return false;
	if (u16(p + 6) & 0x1fff) /* a later fragment has no ports */
		return false;
	struct sockaddr_in to = {.sin_family = AF_INET};
	memcpy(&to.sin_addr, p + 16, 4);
	address_text((const struct sockaddr *)&to, ret->address);
	return parse_ports(p[9], p + head, n - head, ret);
}

static bool parse_v6(const uint8_t *p, size_t n, struct packet *ret)
{
	if (n < 40)
		return false;
	struct sockaddr_in6 to = {.sin6_family = AF_INET6};
	memcpy(&to.sin6_addr, p + 24, 16);
	address_text((const struct sockaddr *)&to, ret->address);
	unsigned next = p[6];
	size_t at = 40;
	while (next == IPPROTO_HOPOPTS || next == IPPROTO_ROUTING || next == IPPROTO_DSTOPTS) {
		if (n - at < 8)
			return false;
		next = p[at];
		size_t len = ((size_t)p[at + 1] + 1) * 8;
		if (len > n - at)
			return false;
		at += len;
	}
	return parse_ports(next, p + at, n - at, ret);
}

bool packet_parse(const uint8_t *ip, size_t n, struct packet *ret)
{
	if (n < 1)
		return false;
	switch (ip[0] >> 4) {
	case 4:
		return parse_v4(ip, n, ret);
	case 6:
		return parse_v6(ip, n, ret);
	default:
		return false;
	}
}
