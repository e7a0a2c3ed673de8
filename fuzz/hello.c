/* Any bytes as a ClientHello, and as a packet seen on a jail's loopback. */
#include "egress/hello.h"

#include "egress/packet.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char name[POLICY_HOST_MAX];
	struct packet p;
	if (hello_read(data, size, name) == HELLO_NAME &&
	        (!memchr(name, 0, sizeof(name)) || !name[0]))
		abort();
	if (packet_parse(data, size, &p) && !memchr(p.address, 0, sizeof(p.address)))
		abort();
	return 0;
}
