#include "policy/rules.h"
#include "base/mem.h"
#include "tests/t.h"

#include <arpa/inet.h>

static const uint8_t *mapped(const char *text)
{
	static uint8_t a[16];
	memset(a, 0, sizeof(a));
	a[10] = a[11] = 0xff;
	if (inet_pton(AF_INET, text, a + 12) != 1 && inet_pton(AF_INET6, text, a) != 1)
		exit(2);
	return a;
}

static void networks(void)
{
	static const struct {
		const char *text, *in, *out;
	} rows[] = {
	        {"10.0.0.0/8", "10.255.0.1", "11.0.0.0"},
	        {"192.0.2.7", "192.0.2.7", "192.0.2.6"},
	        {"192.0.2.6/31", "192.0.2.7", "192.0.2.8"},
	        {"0.0.0.0/0", "203.0.113.9", "2001:db8::1"},
	        {"::/0", "2001:db8::1", "203.0.113.9"},
	        {"fd00::/8", "fdff::1", "fe00::1"},
	        {"2001:db8::/47", "2001:db8:1::1", "2001:db8:2::1"},
	        {"::1", "::1", "127.0.0.1"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct cidr c;
		must(cidr_parse(rows[i].text, &c) && cidr_fine(&c), "%s", rows[i].text);
		ok(cidr_has(&c, mapped(rows[i].in)), "%s has %s", rows[i].text, rows[i].in);
		ok(!cidr_has(&c, mapped(rows[i].out)), "%s has not %s", rows[i].text, rows[i].out);
	}
	static const char *const wrong[] = {"", "10.0.0.0/33", "10.0.0.1/8", "10.0/8", "10.0.0.0/",
	        "10.0.0.0/08", "10.0.0.0/ 8", "10.0.0.0/8/8", "fd00::1/8", "fd00::/129", "::1%lo",
	        "a.b", "10.0.0.0/-1", "010.0.0.1"};
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		struct cidr c;
		ok(!cidr_parse(wrong[i], &c), "'%s' is no network", wrong[i]);
	}
	struct cidr c;
	char text[RULE_TEXT_MAX];
	must(cidr_parse("10.0.0.0/8", &c), "again");
	cidr_text(&c, text);
	is_str(text, "10.0.0.0/8", "written as IPv4");
	c.bits = 97;
	ok(!cidr_fine(&c), "bits behind the prefix are seen");
	c.bits = 129;
	ok(!cidr_fine(&c), "129 bits are too many");
}

static const struct policy_rule rules[] = {
        {.host = ".example.com", .nports = 1, .ports = {443}},
        {.host = ".deep.example.com", .nports = 2, .ports = {443, 8443}},
        {.host = "www.example.com", .nports = 1, .ports = {443}, .group = "web"},
        {.host = "www.example.com", .nports = 1, .ports = {80}, .protocol = RULE_HTTP},
        {.nports = 1,
                .ports = {5432},
                .protocol = RULE_RAW,
                .ncidrs = 1,
                .cidrs = {{{[10] = 0xff, 0xff, 10}, 104}}},
};

static int name(const char *host, unsigned port)
{
	return rules_for_name(rules, ARRAY_LEN(rules), host, strlen(host), port);
}

static void choosing(void)
{
	ok(name("a.example.com", 443) == 0, "a suffix");
	ok(name("a.b.example.com", 443) == 0, "at any depth");
	ok(name("example.com", 443) == -1, "but not the bare name");
	ok(name("badexample.com", 443) == -1, "nor what only ends so");
	ok(name(".example.com", 443) == -1, "nor nothing before the dot");
	ok(name("x.deep.example.com", 443) == 1, "a longer suffix before a shorter one");
	ok(name("x.deep.example.com", 8443) == 1, "on another of its ports");
	ok(name("a.example.com", 8443) == -1, "which the shorter one has not");
	ok(name("WWW.Example.COM", 443) == 2, "an exact name before all, whatever its case");
	ok(name("www.example.com", 80) == 3, "each port its own rule");
	ok(name("www.example.com", 0) == 2, "any port: the first");
	ok(name("", 443) == -1, "no name");
	char longest[POLICY_HOST_MAX + 1];
	memset(longest, 'a', sizeof(longest));
	memcpy(longest + POLICY_HOST_MAX - strlen(".example.com"), ".example.com",
	        sizeof(".example.com"));
	ok(name(longest, 443) == -1 && name(longest + 1, 443) == 0,
	        "a name that would be cut is nobody's");
	ok(rules_for_address(rules, ARRAY_LEN(rules), mapped("10.2.3.4"), 5432) == 4, "an address");
	ok(rules_for_address(rules, ARRAY_LEN(rules), mapped("10.2.3.4"), 443) == -1, "its port");
	ok(rules_for_address(rules, ARRAY_LEN(rules), mapped("11.2.3.4"), 5432) == -1, "outside");
	char text[RULE_TEXT_MAX];
	rule_text(&rules[0], text);
	is_str(text, "*.example.com:443", "a suffix as a word");
	rule_text(&rules[1], text);
	is_str(text, "*.deep.example.com:443,8443", "with all its ports");
	rule_text(&rules[2], text);
	is_str(text, "www.example.com:443 of @web", "with its group");
	rule_text(&rules[4], text);
	is_str(text, "10.0.0.0/8:5432", "addresses as a word");
}

static void asking(void)
{
	static const struct policy_request list[] = {
	        {"GET", "/simple/**"}, {"POST", "/v1/*/send"}, {"", "/any"}, {"PUT", "/a/**/z/*"}};
	static const struct {
		bool fine;
		const char *method, *target;
	} rows[] = {
	        {true, "GET", "/simple/x/y"},
	        {true, "GET", "/simple/?q=/../%2e"},
	        {false, "GET", "/simple"},
	        {false, "HEAD", "/simple/x"},
	        {false, "get", "/simple/x"},
	        {true, "POST", "/v1/me/send"},
	        {true, "POST", "/v1/%C3%A4/send"},
	        {false, "POST", "/v1//send"},
	        {false, "POST", "/v1/me/you/send"},
	        {true, "DELETE", "/any?x"},
	        {false, "DELETE", "/any/"},
	        {true, "PUT", "/a/b/z/c/z/d"},
	        {false, "PUT", "/a/b/z/c/d"},
	        {false, "GET", "/simple/%2e%2e/v1"},
	        {false, "GET", "/simple/%2F"},
	        {false, "GET", "/simple/a\\b"},
	        {false, "GET", "/simple/%00"},
	        {false, "GET", "/simple/%"},
	        {false, "GET", "/simple/%252e"},
	        {false, "GET", "/simple/%0a"},
	        {false, "GET", "/simple/%u0061"},
	        {false, "GET", "/simple/%+1"},
	        {false, "GET", "/simple/%c0%ae"},
	        {true, "GET", "/simple/%20"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		ok(requests_allow(list, ARRAY_LEN(list), rows[i].method, strlen(rows[i].method),
		           rows[i].target, strlen(rows[i].target)) == rows[i].fine,
		        "%s %s is %s", rows[i].method, rows[i].target,
		        rows[i].fine ? "let through" : "refused");
	ok(requests_allow(NULL, 0, "X", 1, "/%2e", 4), "without rules everything is let through");
}

int main(void)
{
	networks();
	choosing();
	asking();
	return done();
}
