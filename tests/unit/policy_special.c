/* Which addresses are not everybody's, and what a network that is named opens. */
#include "policy/special.h"
#include "base/mem.h"
#include "tests/t.h"

#include <arpa/inet.h>
#include <string.h>

static const uint8_t *mapped(const char *text)
{
	static struct cidr c;
	must(cidr_parse(text, &c) && c.bits == 128, "%s is an address", text);
	return c.bytes;
}

static void kinds(void)
{
	static const struct {
		const char *text, *kind, *range;
	} rows[] = {
	        {"0.0.0.0", "no host's", "0.0.0.0/8"},
	        {"10.255.0.1", "private", "10.0.0.0/8"},
	        {"100.64.0.1", "private", "100.64.0.0/10"},
	        {"100.100.100.200", "metadata services", "100.100.100.200/32"},
	        {"127.0.0.53", "loopback", "127.0.0.0/8"},
	        {"168.63.129.16", "metadata services", "168.63.129.16/32"},
	        {"169.254.1.1", "link-local", "169.254.0.0/16"},
	        {"169.254.169.254", "metadata services", "169.254.169.0/24"},
	        {"169.254.170.2", "metadata services", "169.254.170.0/24"},
	        {"198.18.128.1", "no host's", "198.18.0.0/15"},
	        {"255.255.255.255", "no host's", "224.0.0.0/3"},
	        {"::1", "loopback", "::1/128"},
	        {"::", "no host's", "::/104"},
	        {"64:ff9b::a01:203", "private", "64:ff9b::a00:0/104"},
	        {"64:ff9b::a9fe:a9fe", "metadata services", "64:ff9b::a9fe:a900/120"},
	        {"2002:c0a8:101::1", "private", "2002:c0a8::/32"},
	        {"64:ff9b:1::1", "reserved", "::/3"},
	        {"5f00::1", "reserved", "4000::/2"},
	        {"2001:db8::1", "reserved", "2001:db8::/32"},
	        {"fd00::1", "private", "fc00::/7"},
	        {"fd00:ec2::254", "metadata services", "fd00:ec2::/32"},
	        {"fd20:ce::254", "metadata services", "fd20:ce::/32"},
	        {"fe80::1", "link-local", "fe80::/10"},
	        {"ff02::1", "no host's", "ff00::/8"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct special s;
		char range[RULE_TEXT_MAX];
		must(special_of(mapped(rows[i].text), &s), "%s is special", rows[i].text);
		cidr_text(&s.range, range);
		ok(strcmp(special_name(s.kind), rows[i].kind) == 0 && !strcmp(range, rows[i].range),
		        "%s: %s %s", rows[i].text, special_name(s.kind), range);
		ok(cidr_fine(&s.range) && cidr_has(&s.range, mapped(rows[i].text)), "in its range");
	}
	static const char *const public[] = {"8.8.8.8", "9.255.255.255", "11.0.0.0", "126.0.0.1",
	        "169.253.0.1", "198.20.0.0", "223.255.255.255", "2606:4700::1111",
	        "64:ff9b::808:808", "2002:808:808::1"};
	for (size_t i = 0; i < ARRAY_LEN(public); i++) {
		struct special s;
		ok(!special_of(mapped(public[i]), &s), "%s is public", public[i]);
	}
}

static void opening(void)
{
	static const struct {
		const char *named, *dialled;
		bool fine;
	} rows[] = {
	        {"0.0.0.0/0", "8.8.8.8", true},
	        {"0.0.0.0/0", "10.0.0.1", false},
	        {"0.0.0.0/0", "127.0.0.1", false},
	        {"0.0.0.0/1", "10.0.0.1", false},
	        {"8.0.0.0/7", "8.8.8.8", true},
	        {"10.0.0.0/7", "11.0.0.1", true},
	        {"10.0.0.0/7", "10.0.0.1", false},
	        {"10.0.0.0/8", "10.0.0.1", true},
	        {"10.2.0.0/16", "10.2.0.1", true},
	        {"10.2.0.0/16", "10.3.0.1", false},
	        {"100.64.0.0/10", "100.64.0.1", true},
	        {"100.64.0.0/10", "100.100.100.200", false},
	        {"100.100.100.200", "100.100.100.200", true},
	        {"168.0.0.0/8", "168.63.129.16", false},
	        {"168.0.0.0/8", "168.63.129.17", true},
	        {"169.254.0.0/16", "169.254.7.7", true},
	        {"169.254.0.0/16", "169.254.169.254", false},
	        {"169.254.169.254", "169.254.169.254", true},
	        {"172.0.0.0/11", "172.16.0.1", false},
	        {"172.16.0.0/12", "172.16.0.1", true},
	        {"::/0", "2606:4700::1111", true},
	        {"::/0", "fd00::1", false},
	        {"::/0", "::1", false},
	        {"::/0", "64:ff9b::808:808", true},
	        {"::/0", "64:ff9b::a00:1", false},
	        {"64:ff9b::/96", "64:ff9b::a00:1", false},
	        {"64:ff9b::a00:0/104", "64:ff9b::a00:1", true},
	        {"fc00::/7", "fd00::1", true},
	        {"fd00::/8", "fd00:ec2::254", false},
	        {"::1", "::1", true},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct cidr c;
		must(cidr_parse(rows[i].named, &c), "%s", rows[i].named);
		ok(cidr_opens(&c, mapped(rows[i].dialled)) == rows[i].fine, "%s %s %s",
		        rows[i].named, rows[i].fine ? "opens" : "does not open", rows[i].dialled);
	}
}

static void within(void)
{
	static const struct {
		const char *named, *part; /* NULL: all of it is opened */
	} rows[] = {
	        {"0.0.0.0/0", "0.0.0.0/8"},
	        {"10.0.0.0/7", "10.0.0.0/8"},
	        {"10.0.0.0/8", NULL},
	        {"100.64.0.0/10", "100.100.100.200/32"},
	        {"169.254.0.0/16", "169.254.169.0/24"},
	        {"8.8.8.0/24", NULL},
	        {"::/0", "::/3"},
	        {"fd00::/8", "fd00:ec2::/32"},
	        {"2606::/16", NULL},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct cidr c;
		struct special s;
		char text[RULE_TEXT_MAX] = "";
		must(cidr_parse(rows[i].named, &c), "%s", rows[i].named);
		bool some = special_within(&c, &s);
		if (some)
			cidr_text(&s.range, text);
		ok(some == (rows[i].part != NULL) && (!some || strcmp(text, rows[i].part) == 0),
		        "%s is wider than %s", rows[i].named, some ? text : "nothing");
	}
}

int main(void)
{
	kinds();
	opening();
	within();
	return done();
}
