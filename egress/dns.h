/*
 * dns.h - the jail's resolver: one query in, one answer out, from memory.
 *
 * Pure: no socket, no clock, no query of its own (a lookup can therefore not
 * carry anything outside).  A for a name of the policy gives its synthetic
 * address; every other type of such a name has no data, which keeps clients on
 * IPv4 and without HTTPS records; every other name is refused and reported.
 */
#ifndef EGRESS_DNS_H
#define EGRESS_DNS_H

#include "egress/names.h"

#include <stddef.h>
#include <stdint.h>

enum {
	DNS_QUERY_MAX = 65535, /* by TCP; what UDP brings is at most that */
	DNS_ANSWER_MAX = 512,  /* header, question, one A record, OPT: 12 + 259 + 16 + 11 */
	DNS_NAME_TEXT = POLICY_HOST_MAX,
	DNS_TTL_S = 5, /* a changed policy is felt soon; nothing is asked upstream for it */
};

enum dns_verdict {
	DNS_DROP,      /* not a query: no answer */
	DNS_MALFORMED, /* answered FORMERR or NOTIMP; nothing worth an event */
	DNS_ANSWERED,
	DNS_REFUSED, /* `name` says what was asked */
	DNS_FULL,    /* refused: one name more than a jail may ask for */
};

struct dns_reply {
	enum dns_verdict verdict;
	size_t n;                 /* of `bytes`; 0 with DNS_DROP */
	char name[DNS_NAME_TEXT]; /* as text, unprintable bytes as \DDD, cut with "..." */
	uint8_t bytes[DNS_ANSWER_MAX];
};

/* A name that is asked for the first time gets its place in `t`. */
void dns_answer(struct names *t, const uint8_t *query, size_t n, struct dns_reply *ret);

#endif
