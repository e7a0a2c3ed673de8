/* Any bytes as a query to the jail's resolver: an answer within its bounds, or none. */
#include "egress/dns.h"

#include "base/mem.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct policy p = {.name = "default", .ninject = 1};
	struct names t;
	struct dns_reply r;
	(void)str_copy(p.inject[0].host, sizeof(p.inject[0].host), "anthropic.agentbox");
	names_of(&p, &t);
	dns_answer(&t, data, size, &r);
	if (r.n > sizeof(r.bytes) || !memchr(r.name, 0, sizeof(r.name)))
		abort();
	if (r.verdict == DNS_DROP ? r.n != 0 : r.n < 12 || !(r.bytes[2] & 0x80))
		abort();
	return 0;
}
