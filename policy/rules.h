/*
 * rules.h - what of the network a policy lets a jail reach, and who decides.
 *
 * Pure.  The same functions answer a jail's DNS query and its connection
 * (egress), `abctl policy explain` and the checks of the compiled policy, so
 * that none of them can mean something else.
 *
 * A rule names hosts (a.b, or *.b for every name below b) or addresses, the
 * ports, and what is spoken there.  A name that no rule names does not resolve;
 * an address that no rule names is not dialled.
 */
#ifndef POLICY_RULES_H
#define POLICY_RULES_H

#include "base/id.h"
#include "policy/forms.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POLICY_PROXY_NAME "proxy.agentbox"

enum {
	POLICY_RULES = 128,
	RULE_PORTS = 4,
	RULE_CIDRS = 4,
	/* Ports besides 53, 80 and 443 that a policy's rules name: a listener each in every jail.
	 */
	POLICY_PORTS = 12,
	POLICY_PROXY_PORT = 3128,
	POLICY_REQUESTS = 64, /* of all rules and upstreams of a policy together */
	REQUEST_METHOD_MAX = 16,
	/* "*.", a name, four ports, a group: a rule as one line. */
	RULE_TEXT_MAX = POLICY_HOST_MAX + 96,
};

/* Where a jail has what it trusts, and in it the authority of its own, where TLS is terminated. */
#define POLICY_TRUST_DIR  "/etc/ssl/certs"
#define POLICY_TRUST_FILE POLICY_TRUST_DIR "/ca-certificates.crt"
#define POLICY_TRUST_OWN  POLICY_TRUST_DIR "/agentbox-egress.pem"

enum rule_protocol {
	RULE_TLS,  /* a ClientHello whose server name is the name dialled; passed on as it is */
	RULE_HTTP, /* HTTP/1.1 whose Host is the name dialled */
	RULE_RAW,  /* bytes: an exact name or addresses, nothing is looked at */
};

/* IPv4 as IPv4-mapped IPv6, so bits is 96 and more there.  Host bits are zero. */
struct cidr {
	uint8_t bytes[16];
	uint32_t bits;
};

/* A request that is let through, where requests are looked at. */
struct policy_request {
	char method[REQUEST_METHOD_MAX]; /* upper case; "" for any */
	char path[POLICY_PATH_MAX];      /* `*` within a segment, `**` across them */
};

struct request_range {
	uint32_t first, n; /* of policy.requests; n 0: every request */
};

struct policy_rule {
	char host[POLICY_HOST_MAX];    /* a.b; .b for *.b; "" for a rule of addresses */
	char group[NAME_MAX_LEN];      /* @group that it came from, or "" */
	uint32_t protocol;             /* enum rule_protocol */
	uint32_t terminate;            /* tls: 1 when egress opens it and judges its requests */
	struct request_range requests; /* http, and tls that is terminated */
	uint32_t nports, ncidrs;
	uint16_t ports[RULE_PORTS];
	/* With a host: addresses that are not public and that it may nevertheless resolve to.
	 * Without: what may be dialled. */
	struct cidr cidrs[RULE_CIDRS];
	uint64_t rate_bps; /* both directions together; 0: as fast as it goes */
	uint64_t bytes;    /* of one run, both directions together; 0: no bound */
};

/* "10.0.0.0/8", "fd00::/8", "192.0.2.7" (all bits); false for anything else, also with host bits
 * set. */
bool cidr_parse(const char *text, struct cidr *ret);
void cidr_text(const struct cidr *c, char to[RULE_TEXT_MAX]);
bool cidr_fine(const struct cidr *c); /* as cidr_parse would give it */
bool cidr_has(const struct cidr *c, const uint8_t mapped[16]);
/* May it be dialled where this network is named?  A public address that it has; any other only
 * where the network is no more than the special range around it (special.h): 0.0.0.0/0 opens what
 * is public, 10.0.0.0/8 and each part of it what is private there. */
bool cidr_opens(const struct cidr *c, const uint8_t mapped[16]);
bool cidrs_open(const struct cidr *c, size_t n, const uint8_t mapped[16]);

/* Index of the rule for this name and port, or -1: an exact name before a suffix, a longer suffix
 * before a shorter one, the first of equals.  Letter case is ignored; `host` has no final dot.
 * port 0: any of them.  A name of POLICY_HOST_MAX characters or more is nobody's. */
int rules_for_name(
        const struct policy_rule *rules, size_t n, const char *host, size_t len, unsigned port);
/* The same for an address that was dialled as a number. */
int rules_for_address(
        const struct policy_rule *rules, size_t n, const uint8_t mapped[16], unsigned port);
bool rule_has_port(const struct policy_rule *r, unsigned port);
/* Are the requests of its connections seen? */
bool rule_shows_requests(const struct policy_rule *r);
/* Is there one whose TLS is terminated?  Jails of such a policy have an authority of their own. */
bool rules_terminate(const struct policy_rule *rules, size_t n);

/* "*.example.com:443,8443", "10.0.0.0/8:5432", "pypi.org:443 of @pypi". */
void rule_text(const struct policy_rule *r, char to[RULE_TEXT_MAX]);
const char *rule_protocol_name(uint32_t protocol);

/* May this request be sent?  `target` is an origin-form target without dot segments; with rules, a
 * path that two readers could take apart differently (%2f, %2e, //, a backslash) is none of them.
 */
bool requests_allow(const struct policy_request *requests, size_t n, const char *method,
        size_t method_len, const char *target, size_t target_len);

#endif
