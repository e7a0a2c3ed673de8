#include "egress/place.h"
#include "egress/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

static void set(const struct sockaddr *a, unsigned port, struct place *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->port = port;
	ret->has_v4 = address_v4(a, &ret->v4);
	(void)address_mapped(a, ret->mapped);
}

void place_of(int fd, unsigned port, struct place *ret)
{
	struct sockaddr_storage a = {.ss_family = AF_UNSPEC};
	socklen_t len = sizeof(a);
	if (getsockname(fd, (struct sockaddr *)&a, &len) < 0)
		a.ss_family = AF_UNSPEC;
	set((const struct sockaddr *)&a, port, ret);
}

void place_v4(uint32_t host_order, unsigned port, struct place *ret)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(host_order)};
	set((const struct sockaddr *)&a, port, ret);
}

void place_mapped(const uint8_t mapped[16], unsigned port, struct place *ret)
{
	struct sockaddr_storage a;
	(void)address_of(mapped, port, &a);
	set((const struct sockaddr *)&a, port, ret);
}
