/*
 * advice.h - what to write into a policy so that it lets through what it refused.
 *
 * Pure.  egress says what kind of change would help (a remedy); these words are
 * made of it for events, notices and `abctl policy suggest`.  Nothing is advised
 * where a policy cannot help, nor where it had better not: addresses of
 * metadata services, of this host and of no host.
 */
#ifndef POLICY_ADVICE_H
#define POLICY_ADVICE_H

#include "policy/rules.h"

/* What was spoken, as far as it was seen. */
#define EGRESS_PROTOCOLS(X)                                                                        \
	X(DNS, "dns")                                                                              \
	X(TLS, "tls")                                                                              \
	X(HTTP, "http")                                                                            \
	X(RAW, "raw")                                                                              \
	X(TCP, "tcp") /* a connection that nobody took or heard */                                 \
	X(UDP, "udp")
enum egress_protocol {
#define EGRESS_PROTOCOL_ENUM(sym, name) EGRESS_PROTOCOL_##sym,
	EGRESS_PROTOCOLS(EGRESS_PROTOCOL_ENUM)
#undef EGRESS_PROTOCOL_ENUM
	        EGRESS_PROTOCOL_COUNT
};

enum egress_remedy {
	EGRESS_REMEDY_NONE,      /* not a policy's to allow */
	EGRESS_REMEDY_ALLOW,     /* an entry of egress.allow */
	EGRESS_REMEDY_ADDRESSES, /* the rule's name leads to an address that is not public */
	EGRESS_REMEDY_PROTOCOL,  /* the rule is of another protocol */
	EGRESS_REMEDY_REQUESTS,  /* the rule is of other requests */
	EGRESS_REMEDY_BYTES,     /* the rule's bytes are used up */
	EGRESS_REMEDY_TERMINATE, /* the rule terminates TLS, and the program does not stand that */
	EGRESS_REMEDY_COUNT
};

/* One refusal. */
struct advice {
	enum egress_remedy remedy;
	enum egress_protocol protocol;
	const char *host; /* a name or an address, as it was asked for */
	unsigned port;
	const char *policy, *rule; /* rule: text of the one that decided, or "" */
};

enum {
	ADVICE_ENTRY_MAX = POLICY_HOST_MAX + 64,
	ADVICE_HINT_MAX = ADVICE_ENTRY_MAX + RULE_TEXT_MAX + NAME_MAX_LEN + 128,
};

const char *egress_protocol_name(uint32_t protocol);
int egress_protocol_by_name(const char *name); /* enum egress_protocol, or -1 */

/* x.agentbox: names that exist in jails alone, where `inject` makes them. */
bool advice_injectable(const char *host);

/* The entry of egress.allow that would let it through, as YAML in one line.  False where there is
 * none. */
bool advice_entry(const struct advice *a, char to[ADVICE_ENTRY_MAX]);
/* The sentence for whoever met the refusal.  False where there is nothing to say. */
bool advice_hint(const struct advice *a, char to[ADVICE_HINT_MAX]);
/* Why there is no entry, for the remark that stands in its place. */
const char *advice_why_none(const struct advice *a);

#endif
