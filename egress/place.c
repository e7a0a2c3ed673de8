#include "egress/place.h"
#include "egress/address.h"

#include <string.h>
#include <sys/socket.h>

void place_of(int fd, unsigned port, struct place *ret)
{
	struct sockaddr_storage a;
	const struct sockaddr *sa = (const struct sockaddr *)&a;
	socklen_t len = sizeof(a);
	memset(ret, 0, sizeof(*ret));
	ret->port = port;
	if (getsockname(fd, (struct sockaddr *)&a, &len) < 0)
		return;
	ret->has_v4 = address_v4(sa, &ret->v4);
	(void)address_mapped(sa, ret->mapped);
}
