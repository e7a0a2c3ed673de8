#include "egress/address.h"

#include "base/fd.h"
#include "base/mem.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* IANA IPv4 special-purpose registry, and what clouds put their metadata services at. */
static const struct {
	uint32_t net;
	unsigned bits;
} closed_v4[] = {
        {0x00000000, 8},  /* this network */
        {0x0a000000, 8},  /* RFC 1918 */
        {0x64400000, 10}, /* carrier-grade NAT; 100.100.100.200 is a metadata service */
        {0x7f000000, 8},  /* loopback */
        {0xa83f8110, 32}, /* 168.63.129.16: the platform's agent on Azure, a public number */
        {0xa9fe0000, 16}, /* link-local; 169.254.169.254 is the metadata service */
        {0xac100000, 12}, /* RFC 1918 */
        {0xc0000000, 24}, /* IETF protocol assignments; 192.0.0.192 is a metadata service */
        {0xc0000200, 24}, /* documentation */
        {0xc0586300, 24}, /* 6to4 relay anycast, deprecated */
        {0xc0a80000, 16}, /* RFC 1918 */
        {0xc6120000, 15}, /* benchmarks, and our own synthetic addresses */
        {0xc6336400, 24}, /* documentation */
        {0xcb007100, 24}, /* documentation */
        {0xe0000000, 3},  /* multicast, reserved, broadcast */
};

bool address_public_v4(uint32_t a)
{
	for (size_t i = 0; i < ARRAY_LEN(closed_v4); i++) {
		uint32_t mask = ~(uint32_t)0 << (32 - closed_v4[i].bits);
		if ((a & mask) == closed_v4[i].net)
			return false;
	}
	return true;
}

static uint32_t v4_at(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

bool address_public_v6(const uint8_t a[16])
{
	static const uint8_t zero[12], mapped[12] = {[10] = 0xff, [11] = 0xff};
	static const uint8_t nat64[12] = {0x00, 0x64, 0xff, 0x9b};
	if (!memcmp(a, mapped, 12) || !memcmp(a, zero, 12) || !memcmp(a, nat64, 12))
		return address_public_v4(v4_at(a + 12)); /* :: and ::1 are closed as 0.0.0.x */
	if (a[0] == 0x20 && a[1] == 0x02)                /* 6to4 */
		return address_public_v4(v4_at(a + 2));
	/* Global unicast is 2000::/3; unique local, link-local, multicast, the local NAT64 prefix
	 * and the discard prefix are outside it. */
	if ((a[0] & 0xe0) != 0x20)
		return false;
	if (a[0] == 0x20 && a[1] == 0x01 && a[2] < 0x02) /* 2001::/23: Teredo, benchmarks, ORCHID */
		return false;
	if (a[0] == 0x20 && a[1] == 0x01 && a[2] == 0x0d && a[3] == 0xb8) /* documentation */
		return false;
	return !(a[0] == 0x3f && a[1] == 0xff && a[2] < 0x10); /* 3fff::/20: documentation */
}

bool address_public(const struct sockaddr *a)
{
	if (a->sa_family == AF_INET) {
		struct sockaddr_in in;
		memcpy(&in, a, sizeof(in));
		return address_public_v4(ntohl(in.sin_addr.s_addr));
	}
	if (a->sa_family == AF_INET6) {
		struct sockaddr_in6 in6;
		memcpy(&in6, a, sizeof(in6));
		return address_public_v6(in6.sin6_addr.s6_addr);
	}
	return false;
}

bool address_within(const struct reach *r, const struct sockaddr *a)
{
	uint8_t mapped[16];
	if (r->any)
		return a->sa_family == AF_INET || a->sa_family == AF_INET6;
	return address_public(a) ||
	       (address_mapped(a, mapped) && cidrs_have(r->cidrs, r->n, mapped));
}

bool address_mapped(const struct sockaddr *a, uint8_t to[16])
{
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	if (a->sa_family == AF_INET) {
		memcpy(&in, a, sizeof(in));
		memset(to, 0, 10);
		memset(to + 10, 0xff, 2);
		memcpy(to + 12, &in.sin_addr, 4);
		return true;
	}
	if (a->sa_family != AF_INET6)
		return false;
	memcpy(&in6, a, sizeof(in6));
	memcpy(to, &in6.sin6_addr, 16);
	return true;
}

socklen_t address_of(const uint8_t mapped[16], unsigned port, struct sockaddr_storage *to)
{
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = in6.sin6_port};
	memcpy(&in6.sin6_addr, mapped, 16);
	bool v4 = IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr);
	memcpy(&in.sin_addr, mapped + 12, 4);
	memset(to, 0, sizeof(*to));
	memcpy(to, v4 ? (const void *)&in : (const void *)&in6, v4 ? sizeof(in) : sizeof(in6));
	return v4 ? sizeof(in) : sizeof(in6);
}

/* A datagram socket that is connected has been given the source address of its route: to an address
 * of this host's own, that address itself. */
static bool own(const struct sockaddr *a)
{
	uint8_t to[16], from[16];
	struct sockaddr_storage s, source = {.ss_family = AF_UNSPEC};
	socklen_t len = sizeof(source);
	if (!address_mapped(a, to))
		return false;
	socklen_t n = address_of(to, 9, &s); /* any port: nothing is sent */
	auto_close int fd = socket(s.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return fd >= 0 && connect(fd, (const struct sockaddr *)&s, n) == 0 &&
	       getsockname(fd, (struct sockaddr *)&source, &len) == 0 &&
	       address_mapped((const struct sockaddr *)&source, from) && memcmp(to, from, 16) == 0;
}

bool address_dialable(const struct reach *r, const struct sockaddr *a)
{
	uint8_t mapped[16];
	if (!address_within(r, a))
		return false;
	return r->any || (address_mapped(a, mapped) && cidrs_have(r->cidrs, r->n, mapped)) ||
	       !own(a);
}

bool address_v4(const struct sockaddr *a, uint32_t *ret)
{
	if (a->sa_family == AF_INET) {
		struct sockaddr_in in;
		memcpy(&in, a, sizeof(in));
		*ret = ntohl(in.sin_addr.s_addr);
		return true;
	}
	struct sockaddr_in6 in6;
	if (a->sa_family != AF_INET6)
		return false;
	memcpy(&in6, a, sizeof(in6));
	if (!IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr))
		return false;
	*ret = v4_at(in6.sin6_addr.s6_addr + 12);
	return true;
}

void address_text(const struct sockaddr *a, char to[ADDRESS_TEXT_MAX])
{
	uint32_t v4;
	struct sockaddr_in6 in6;
	if (address_v4(a, &v4)) {
		snprintf(to, ADDRESS_TEXT_MAX, "%u.%u.%u.%u", v4 >> 24, v4 >> 16 & 255,
		        v4 >> 8 & 255, v4 & 255);
	} else if (a->sa_family == AF_INET6) {
		memcpy(&in6, a, sizeof(in6));
		if (!inet_ntop(AF_INET6, &in6.sin6_addr, to, ADDRESS_TEXT_MAX))
			to[0] = '\0';
	} else {
		snprintf(to, ADDRESS_TEXT_MAX, "(unknown family %d)", a->sa_family);
	}
}
