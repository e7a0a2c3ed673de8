/* Any bytes as a query to the jail's resolver: an answer within its bounds, or none. */
#include "egress/dns.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct rulebook *book;
	struct names t;
	struct dns_reply r;
	if (!book) {
		struct policy *p = xnew(struct policy);
		(void)str_copy(p->name, sizeof(p->name), "default");
		(void)str_copy(p->inject[0].host, sizeof(p->inject[0].host), "anthropic.agentbox");
		p->ninject = 1;
		(void)str_copy(p->rules[0].host, sizeof(p->rules[0].host), ".example");
		p->nrules = 1;
		book = rulebook_new(p);
		free(p);
	}
	names_init(&t, 1, NULL);
	names_follow(&t, book, "");
	dns_answer(&t, data, size, &r);
	if (r.n > sizeof(r.bytes) || !memchr(r.name, 0, sizeof(r.name)))
		abort();
	if (r.verdict == DNS_DROP ? r.n != 0 : r.n < 12 || !(r.bytes[2] & 0x80))
		abort();
	names_done(&t);
	return 0;
}
