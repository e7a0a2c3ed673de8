#include "policy/advice.h"
#include "base/mem.h"
#include "policy/forms.h"
#include "policy/special.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const char *const protocols[] = {
#define PROTOCOL_NAME(sym, name) [EGRESS_PROTOCOL_##sym] = (name),
        EGRESS_PROTOCOLS(PROTOCOL_NAME)
#undef PROTOCOL_NAME
};

const char *egress_protocol_name(uint32_t protocol)
{
	return protocol < EGRESS_PROTOCOL_COUNT ? protocols[protocol] : "?";
}

int egress_protocol_by_name(const char *name)
{
	for (int i = 0; i < EGRESS_PROTOCOL_COUNT; i++)
		if (strcmp(protocols[i], name) == 0)
			return i;
	return -1;
}

static const char *const never_names[] = {
        "metadata.google.internal", "metadata.goog", "metadata.azure.internal"};

static bool never_address(const uint8_t mapped[16])
{
	struct special s;
	return special_of(mapped, &s) && s.kind != SPECIAL_PRIVATE && s.kind != SPECIAL_RESERVED;
}

static bool never_name(const char *host)
{
	for (size_t i = 0; i < ARRAY_LEN(never_names); i++)
		if (strcmp(never_names[i], host) == 0)
			return true;
	return false;
}

/* What is likely to be spoken on a port that nobody listened on. */
static enum rule_protocol protocol_for(const struct advice *a)
{
	static const unsigned tls[] = {443, 465, 636, 853, 993, 995, 5671, 6443, 8443, 8883};
	switch (a->protocol) {
	case EGRESS_PROTOCOL_TLS:
	case EGRESS_PROTOCOL_DNS:
		return RULE_TLS;
	case EGRESS_PROTOCOL_HTTP:
		return RULE_HTTP;
	case EGRESS_PROTOCOL_RAW:
	case EGRESS_PROTOCOL_UDP:
	case EGRESS_PROTOCOL_COUNT:
		return RULE_RAW;
	case EGRESS_PROTOCOL_TCP:
		break;
	}
	for (size_t i = 0; i < ARRAY_LEN(tls); i++)
		if (tls[i] == a->port)
			return RULE_TLS;
	return a->port == 80 ? RULE_HTTP : RULE_RAW;
}

/* As policies write it: lower case, without a final dot. */
static bool plain_name(const char *host, char to[POLICY_HOST_MAX])
{
	size_t n = strlen(host);
	n -= n && host[n - 1] == '.';
	if (n >= POLICY_HOST_MAX)
		return false;
	for (size_t i = 0; i < n; i++)
		to[i] = (char)tolower((unsigned char)host[i]);
	to[n] = '\0';
	return form_host(to);
}

bool advice_injectable(const char *host)
{
	static const char own[] = ".agentbox";
	size_t n = strlen(host), k = sizeof(own) - 1;
	return n > k && strcmp(host + n - k, own) == 0;
}

const char *advice_why_none(const struct advice *a)
{
	char name[POLICY_HOST_MAX];
	struct cidr c;
	if (a->protocol == EGRESS_PROTOCOL_UDP)
		return "UDP does not go out";
	if (a->port == 53 && a->protocol != EGRESS_PROTOCOL_DNS)
		return "port 53 is the jail's own resolver";
	if (cidr_parse(a->host, &c))
		return c.bits == 128 && !never_address(c.bytes)
		               ? NULL
		               : "an address of metadata services, of the host or of no host";
	if (!plain_name(a->host, name))
		return "not a name that a policy can have";
	if (advice_injectable(name))
		return "a name that only egress.inject makes";
	return never_name(name) ? "a metadata service" : NULL;
}

bool advice_entry(const struct advice *a, char to[ADVICE_ENTRY_MAX])
{
	char name[POLICY_HOST_MAX];
	if (a->remedy != EGRESS_REMEDY_ALLOW || advice_why_none(a))
		return false;
	unsigned port = a->protocol == EGRESS_PROTOCOL_DNS ? 443 : a->port;
	enum rule_protocol p = protocol_for(a);
	if (!plain_name(a->host, name))
		snprintf(to, ADVICE_ENTRY_MAX,
		        "{ addresses: [\"%s\"], protocol: raw, ports: [%u] }", a->host,
		        port ? port : 443);
	else if (p == RULE_TLS && port == 443)
		snprintf(to, ADVICE_ENTRY_MAX, "%s", name);
	else if (p == RULE_TLS || (p == RULE_HTTP && port == 80))
		snprintf(to, ADVICE_ENTRY_MAX, "\"%s:%u\"", name, port);
	else
		snprintf(to, ADVICE_ENTRY_MAX, "{ host: %s, protocol: %s, ports: [%u] }", name,
		        rule_protocol_name(p), port);
	return true;
}

bool advice_hint(const struct advice *a, char to[ADVICE_HINT_MAX])
{
	char entry[ADVICE_ENTRY_MAX];
	switch (a->remedy) {
	case EGRESS_REMEDY_ALLOW:
		if (plain_name(a->host, entry) && advice_injectable(entry)) {
			snprintf(to, ADVICE_HINT_MAX,
			        "add an entry with `host: %s` to egress.inject of policy '%s'",
			        entry, a->policy);
			return true;
		}
		if (!advice_entry(a, entry))
			return false;
		snprintf(to, ADVICE_HINT_MAX, "add `%s` to egress.allow of policy '%s'", entry,
		        a->policy);
		return true;
	case EGRESS_REMEDY_ADDRESSES:
		snprintf(to, ADVICE_HINT_MAX,
		        "if it is meant to lead there, name its network (of this host, the very "
		        "address) in `addresses` of rule %s of policy '%s'",
		        a->rule, a->policy);
		return true;
	case EGRESS_REMEDY_PROTOCOL:
		snprintf(to, ADVICE_HINT_MAX, "say `protocol: %s` in rule %s of policy '%s'",
		        rule_protocol_name(protocol_for(a)), a->rule, a->policy);
		return true;
	case EGRESS_REMEDY_REQUESTS:
		snprintf(to, ADVICE_HINT_MAX, "add the request to `requests` of %s of policy '%s'",
		        a->rule, a->policy);
		return true;
	case EGRESS_REMEDY_BYTES:
		snprintf(to, ADVICE_HINT_MAX, "raise `bytes` of rule %s of policy '%s'", a->rule,
		        a->policy);
		return true;
	case EGRESS_REMEDY_TERMINATE:
		snprintf(to, ADVICE_HINT_MAX,
		        "let the program trust " POLICY_TRUST_FILE
		        ", or leave `terminate` out of rule %s of policy '%s'",
		        a->rule, a->policy);
		return true;
	case EGRESS_REMEDY_NONE:
	case EGRESS_REMEDY_COUNT:
		break;
	}
	return false;
}
