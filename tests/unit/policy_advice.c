/* What to add to a policy, and where nothing is to be added. */
#include "policy/advice.h"
#include "tests/t.h"

#include <string.h>

#define ALLOW EGRESS_REMEDY_ALLOW

static void test_entries(void)
{
	static const struct {
		enum egress_protocol protocol;
		const char *host;
		unsigned port;
		const char *entry; /* NULL: none */
	} all[] = {
	        {EGRESS_PROTOCOL_DNS, "a.example", 53, "a.example"},
	        {EGRESS_PROTOCOL_DNS, "A.Example.", 53, "a.example"},
	        {EGRESS_PROTOCOL_TLS, "a.example", 443, "a.example"},
	        {EGRESS_PROTOCOL_TLS, "a.example", 8443, "\"a.example:8443\""},
	        {EGRESS_PROTOCOL_HTTP, "a.example", 80, "\"a.example:80\""},
	        {EGRESS_PROTOCOL_HTTP, "a.example", 8080,
	                "{ host: a.example, protocol: http, ports: [8080] }"},
	        {EGRESS_PROTOCOL_TCP, "a.example", 22,
	                "{ host: a.example, protocol: raw, ports: [22] }"},
	        {EGRESS_PROTOCOL_TCP, "a.example", 993, "\"a.example:993\""},
	        {EGRESS_PROTOCOL_TCP, "10.0.0.5", 5432,
	                "{ addresses: [\"10.0.0.5\"], protocol: raw, ports: [5432] }"},
	        {EGRESS_PROTOCOL_TCP, "2001:db8::1", 443,
	                "{ addresses: [\"2001:db8::1\"], protocol: raw, ports: [443] }"},
	        {EGRESS_PROTOCOL_UDP, "a.example", 443, NULL},
	        {EGRESS_PROTOCOL_TCP, "1.1.1.1", 53, NULL},
	        {EGRESS_PROTOCOL_HTTP, "169.254.169.254", 80, NULL},
	        {EGRESS_PROTOCOL_TCP, "fe80::1", 80, NULL},
	        {EGRESS_PROTOCOL_TCP, "198.18.128.7", 443, NULL},
	        {EGRESS_PROTOCOL_TCP, "239.1.1.1", 443, NULL},
	        {EGRESS_PROTOCOL_DNS, "metadata.google.internal", 53, NULL},
	        {EGRESS_PROTOCOL_DNS, "host", 53, NULL},
	        {EGRESS_PROTOCOL_DNS, "a\\007b.example", 53, NULL},
	        {EGRESS_PROTOCOL_TCP, "(any)", 80, NULL},
	};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		char got[ADVICE_ENTRY_MAX] = "", hint[ADVICE_HINT_MAX];
		const struct advice a = {ALLOW, all[i].protocol, all[i].host, all[i].port, "p", ""};
		bool is = advice_entry(&a, got);
		if (!all[i].entry)
			ok(!is && advice_why_none(&a) && !advice_hint(&a, hint),
			        "none for %s:%u: %s", a.host, a.port,
			        advice_why_none(&a) ? advice_why_none(&a) : "?");
		else
			is_str(got, all[i].entry, "%s", egress_protocol_name(a.protocol));
	}
}

static void test_hints(void)
{
	static const struct {
		enum egress_remedy remedy;
		const char *part; /* NULL: none */
	} all[] = {
	        {EGRESS_REMEDY_NONE, NULL},
	        {EGRESS_REMEDY_ALLOW, "add `\"a.example:8443\"` to egress.allow of policy 'p'"},
	        {EGRESS_REMEDY_ADDRESSES, "`addresses` of rule *.example:8443 of policy 'p'"},
	        {EGRESS_REMEDY_PROTOCOL, "`protocol: tls` in rule *.example:8443"},
	        {EGRESS_REMEDY_REQUESTS, "`requests` of *.example:8443"},
	        {EGRESS_REMEDY_BYTES, "raise `bytes` of rule *.example:8443"},
	        {EGRESS_REMEDY_TERMINATE, "leave `terminate` out of rule *.example:8443"},
	};
	_Static_assert(sizeof(all) / sizeof(all[0]) == EGRESS_REMEDY_COUNT, "each remedy");
	for (size_t i = 0; i < EGRESS_REMEDY_COUNT; i++) {
		char got[ADVICE_HINT_MAX] = "", entry[ADVICE_ENTRY_MAX];
		const struct advice a = {all[i].remedy, EGRESS_PROTOCOL_TLS, "a.example", 8443, "p",
		        "*.example:8443"};
		bool is = advice_hint(&a, got);
		ok(is == (all[i].part != NULL) && (!is || strstr(got, all[i].part)), "hint %zu: %s",
		        i, got);
		ok(advice_entry(&a, entry) == (a.remedy == ALLOW), "an entry only where one helps");
	}
}

/* Names that are nobody's outside. */
static void test_injected(void)
{
	char got[ADVICE_HINT_MAX];
	struct advice a = {ALLOW, EGRESS_PROTOCOL_DNS, "Mine.agentbox", 53, "p", ""};
	ok(!advice_entry(&a, got) && advice_why_none(&a), "no rule helps x.agentbox: %s",
	        advice_why_none(&a));
	ok(advice_hint(&a, got), "but there is a way");
	is_str(got, "add an entry with `host: mine.agentbox` to egress.inject of policy 'p'", "it");
	a.host = "a\nb.agentbox";
	ok(!advice_hint(&a, got), "not for what is no name");
	ok(!advice_injectable("agentbox") && !advice_injectable(".agentbox") &&
	                !advice_injectable("x.agentbox.example"),
	        "and no other names");
}

int main(void)
{
	test_injected();
	test_entries();
	test_hints();
	for (int i = 0; i < EGRESS_PROTOCOL_COUNT; i++)
		ok(egress_protocol_by_name(egress_protocol_name((uint32_t)i)) == i, "%s",
		        egress_protocol_name((uint32_t)i));
	ok(egress_protocol_by_name("smtp") == -1, "no other");
	return done();
}
