#include "policy/special.h"
#include "base/mem.h"

#include <string.h>

#define V4(a, b, c, d, n)                                                                          \
	{                                                                                          \
		{[10] = 0xff, [11] = 0xff, (a), (b), (c), (d)}, 96 + (n)                           \
	}
#define V6(n, ...)                                                                                 \
	{                                                                                          \
		{__VA_ARGS__}, (n)                                                                 \
	}

static const struct special ranges[] = {
        {SPECIAL_NOBODY, V4(0, 0, 0, 0, 8)},
        {SPECIAL_PRIVATE, V4(10, 0, 0, 0, 8)},
        {SPECIAL_PRIVATE, V4(100, 64, 0, 0, 10)}, /* carrier-grade NAT */
        {SPECIAL_METADATA, V4(100, 100, 100, 200, 32)},
        {SPECIAL_LOOPBACK, V4(127, 0, 0, 0, 8)},
        {SPECIAL_METADATA, V4(168, 63, 129, 16, 32)}, /* a public number: Azure's agent */
        {SPECIAL_LINK, V4(169, 254, 0, 0, 16)},
        {SPECIAL_METADATA, V4(169, 254, 169, 0, 24)},
        {SPECIAL_METADATA, V4(169, 254, 170, 0, 24)}, /* credentials of containers */
        {SPECIAL_PRIVATE, V4(172, 16, 0, 0, 12)},
        {SPECIAL_RESERVED, V4(192, 0, 0, 0, 24)},
        {SPECIAL_METADATA, V4(192, 0, 0, 192, 32)},
        {SPECIAL_RESERVED, V4(192, 0, 2, 0, 24)},   /* documentation, here and below */
        {SPECIAL_RESERVED, V4(192, 88, 99, 0, 24)}, /* 6to4 relays, deprecated */
        {SPECIAL_PRIVATE, V4(192, 168, 0, 0, 16)},
        {SPECIAL_NOBODY, V4(198, 18, 0, 0, 15)}, /* benchmarks, and our synthetic addresses */
        {SPECIAL_RESERVED, V4(198, 51, 100, 0, 24)},
        {SPECIAL_RESERVED, V4(203, 0, 113, 0, 24)},
        {SPECIAL_NOBODY, V4(224, 0, 0, 0, 3)}, /* multicast, reserved, broadcast */
        /* Global unicast is 2000::/3; what is around it is one range for each leading bit. */
        {SPECIAL_RESERVED, V6(3, 0)},
        {SPECIAL_RESERVED, V6(2, 0x40)},
        {SPECIAL_RESERVED, V6(1, 0x80)},
        {SPECIAL_LOOPBACK, V6(128, [15] = 1)},
        {SPECIAL_RESERVED, V6(23, 0x20, 0x01)}, /* Teredo, benchmarks, ORCHID */
        {SPECIAL_RESERVED, V6(32, 0x20, 0x01, 0x0d, 0xb8)},
        {SPECIAL_RESERVED, V6(20, 0x3f, 0xff)},
        {SPECIAL_PRIVATE, V6(7, 0xfc)},
        {SPECIAL_METADATA, V6(32, 0xfd, 0x00, 0x0e, 0xc2)},
        {SPECIAL_METADATA, V6(32, 0xfd, 0x20, 0x00, 0xce)},
        {SPECIAL_LINK, V6(10, 0xfe, 0x80)},
        {SPECIAL_LINK, V6(10, 0xfe, 0xc0)}, /* of a site, deprecated */
        {SPECIAL_NOBODY, V6(8, 0xff)},
};

const char *special_name(enum special_kind kind)
{
	static const char *const names[] = {[SPECIAL_NOBODY] = "no host's",
	        [SPECIAL_LOOPBACK] = "loopback",
	        [SPECIAL_LINK] = "link-local",
	        [SPECIAL_METADATA] = "metadata services",
	        [SPECIAL_PRIVATE] = "private",
	        [SPECIAL_RESERVED] = "reserved"};
	return names[kind];
}

static bool narrowest(const uint8_t mapped[16], struct special *ret)
{
	const struct special *best = NULL;
	for (size_t i = 0; i < ARRAY_LEN(ranges); i++)
		if (cidr_has(&ranges[i].range, mapped) &&
		        (!best || ranges[i].range.bits > best->range.bits))
			best = &ranges[i];
	if (best)
		*ret = *best;
	return best != NULL;
}

/* At which byte an IPv6 address carries an IPv4 one; 0: it does not. */
static size_t carried_at(const uint8_t a[16])
{
	static const uint8_t compatible[12], nat64[12] = {0x00, 0x64, 0xff, 0x9b};
	static const uint8_t loopback[16] = {[15] = 1};
	if (a[0] == 0x20 && a[1] == 0x02)
		return 2;
	bool low = !memcmp(a, nat64, 12) || !memcmp(a, compatible, 12);
	return low && memcmp(a, loopback, 16) != 0 ? 12 : 0;
}

bool special_of(const uint8_t mapped[16], struct special *ret)
{
	uint8_t v4[16] = {[10] = 0xff, [11] = 0xff};
	size_t at = carried_at(mapped);
	if (!at)
		return narrowest(mapped, ret);
	memcpy(v4 + 12, mapped + at, 4);
	struct special s;
	if (!narrowest(v4, &s))
		return false;
	/* The range among what carries it: the same leading bits, at another place. */
	struct cidr range = {.bits = (uint32_t)at * 8 + s.range.bits - 96};
	memcpy(range.bytes, mapped, at);
	memcpy(range.bytes + at, s.range.bytes + 12, 4);
	*ret = (struct special){s.kind, range};
	return true;
}

bool special_within(const struct cidr *c, struct special *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(ranges); i++)
		if (ranges[i].range.bits > c->bits && cidr_has(c, ranges[i].range.bytes)) {
			*ret = ranges[i];
			return true;
		}
	return false;
}
