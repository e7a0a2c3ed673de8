#include "egress/address.h"

#include "base/fd.h"
#include "policy/special.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool address_public(const struct sockaddr *a)
{
	uint8_t mapped[16];
	struct special s;
	return address_mapped(a, mapped) && !special_of(mapped, &s);
}

bool address_within(const struct reach *r, const struct sockaddr *a)
{
	uint8_t mapped[16];
	if (r->any)
		return a->sa_family == AF_INET || a->sa_family == AF_INET6;
	return address_public(a) ||
	       (address_mapped(a, mapped) && cidrs_open(r->cidrs, r->n, mapped));
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

/* This host is a network of one address; only 127.0.0.0/8 is this host as a whole. */
static bool names_own(const struct reach *r, const uint8_t mapped[16])
{
	struct special s;
	if (special_of(mapped, &s) && s.kind == SPECIAL_LOOPBACK)
		return true; /* address_within has seen it named */
	for (uint32_t i = 0; i < r->n; i++)
		if (r->cidrs[i].bits == 128 && cidr_has(&r->cidrs[i], mapped))
			return true;
	return false;
}

bool address_dialable(const struct reach *r, const struct sockaddr *a)
{
	uint8_t mapped[16];
	if (!address_within(r, a))
		return false;
	return r->any || !own(a) || (address_mapped(a, mapped) && names_own(r, mapped));
}

bool address_v4(const struct sockaddr *a, uint32_t *ret)
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};
	uint8_t mapped[16];
	uint32_t v4;
	if (!address_mapped(a, mapped) || memcmp(mapped, prefix, sizeof(prefix)) != 0)
		return false;
	memcpy(&v4, mapped + 12, sizeof(v4));
	*ret = ntohl(v4);
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
