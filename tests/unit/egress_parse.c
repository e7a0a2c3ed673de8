/* Addresses, upstreams, TLS hellos and packets. */
#include "egress/address.h"

#include "base/mem.h"
#include "egress/hello.h"
#include "egress/origin.h"
#include "egress/packet.h"
#include "tests/t.h"

#include <arpa/inet.h>

static void test_addresses(void)
{
	static const struct {
		const char *text;
		bool public;
	} all[] = {
	        {"8.8.8.8", true},
	        {"1.1.1.1", true},
	        {"172.32.0.1", true},
	        {"100.128.0.1", true},
	        {"192.0.1.1", true},
	        {"0.0.0.0", false},
	        {"10.0.0.1", false},
	        {"127.0.0.1", false},
	        {"127.255.0.1", false},
	        {"169.254.169.254", false},
	        {"172.16.0.1", false},
	        {"172.31.255.255", false},
	        {"192.168.1.1", false},
	        {"100.64.0.1", false},
	        {"100.100.100.200", false},
	        {"168.63.129.16", false},
	        {"192.0.0.192", false},
	        {"198.18.1.0", false},
	        {"198.19.255.255", false},
	        {"203.0.113.1", false},
	        {"224.0.0.1", false},
	        {"240.0.0.1", false},
	        {"255.255.255.255", false},
	        {"2606:4700::1111", true},
	        {"2001:4860:4860::8888", true},
	        {"64:ff9b::808:808", true},
	        {"2002:808:808::1", true},
	        {"::", false},
	        {"::1", false},
	        {"::ffff:127.0.0.1", false},
	        {"::ffff:10.0.0.1", false},
	        {"::10.0.0.1", false},
	        {"::ffff:8.8.8.8", true},
	        {"64:ff9b::7f00:1", false},
	        {"64:ff9b::a9fe:a9fe", false},
	        {"64:ff9b:1::1", false},
	        {"2002:7f00:1::1", false},
	        {"2002:a00:1::1", false},
	        {"fe80::1", false},
	        {"fec0::1", false},
	        {"fc00::1", false},
	        {"fd00:ec2::254", false},
	        {"ff02::1", false},
	        {"2001::1", false},
	        {"2001:db8::1", false},
	        {"3fff::1", false},
	        {"100::1", false},
	        {"5f00::1", false},
	};
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		struct sockaddr_in in = {.sin_family = AF_INET};
		struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
		const struct sockaddr *a = (const struct sockaddr *)&in;
		if (inet_pton(AF_INET, all[i].text, &in.sin_addr) != 1) {
			must(inet_pton(AF_INET6, all[i].text, &in6.sin6_addr) == 1, "%s",
			        all[i].text);
			a = (const struct sockaddr *)&in6;
		}
		ok(address_public(a) == all[i].public, "%s is%s public", all[i].text,
		        all[i].public ? "" : " not");
	}
	struct sockaddr unix_address = {.sa_family = AF_UNIX};
	ok(!address_public(&unix_address), "another family is not public");
}

static void test_origins(void)
{
	struct origin o;
	struct err e;
	auto_buf struct buf b = BUF_INIT(512);
	must(origin_parse("https://API.Example.com", &o, &e) == 0, "plain");
	ok(o.tls && o.port == 443 && !o.literal && !strcmp(o.host, "api.example.com") &&
	                !o.prefix[0],
	        "its parts");
	must(origin_parse("http://[::1]:8080/v1/", &o, &e) == 0, "IPv6, port, prefix");
	ok(!o.tls && o.port == 8080 && o.literal && !strcmp(o.host, "::1") &&
	                !strcmp(o.prefix, "/v1"),
	        "its parts");
	ok(origin_url(&o, "/x?y", 4, &b) == 0, "joined");
	is_str(b.p, "http://[::1]:8080/v1/x?y", "as it should");
	static const char *const bad[] = {"ftp://a", "https://", "https://u@a", "https://a:0",
	        "https://a:99999", "https://a:", "https://a:+80", "https://a?b", "https://a/b?c",
	        "https://a/b#c", "https://[::1", "https://[zz]", "https://a\\b", "//a",
	        "https://a /"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ok(origin_parse(bad[i], &o, &e) == -EINVAL, "refused: %s", bad[i]);
}

static size_t hello(uint8_t *p, const char *name)
{
	size_t len = strlen(name), at = 11 + 32;
	const uint8_t head[] = {22, 3, 1, 0, 0, 1, 0, 0, 0, 3, 3};
	const uint8_t rest[] = {0, 0, 2, 0x13, 1, 1, 0, 0, (uint8_t)(len + 13), 0xfe, 0x0d, 0, 0, 0,
	        0, 0, (uint8_t)(len + 5), 0, (uint8_t)(len + 3), 0, 0, (uint8_t)len};
	memset(p, 0x5a, at);
	memcpy(p, head, sizeof(head));
	memcpy(p + at, rest, sizeof(rest));
	at += sizeof(rest);
	memcpy(p + at, name, len);
	at += len;
	p[4] = (uint8_t)(at - 5);
	p[8] = (uint8_t)(at - 9);
	return at;
}

static void test_hello(void)
{
	uint8_t p[512], split[512];
	char name[POLICY_HOST_MAX] = "";
	size_t n = hello(p, "api.example.com");
	ok(hello_read(p, n, name) == HELLO_NAME, "a hello");
	is_str(name, "api.example.com", "its name");
	size_t cut = 0;
	while (cut < n && hello_read(p, cut, name) == HELLO_MORE)
		cut++;
	ok(cut == n, "cut anywhere, more is asked for");
	/* The same in two records. */
	memcpy(split, p, 25);
	split[4] = 20;
	memcpy(split + 25, p, 5);
	split[29] = (uint8_t)(n - 25);
	memcpy(split + 30, p + 25, n - 25);
	ok(hello_read(split, n + 5, name) == HELLO_NAME, "in two records");
	/* Early data comes in one flight with it: a change of cipher, records that are encrypted.
	 */
	memcpy(split, p, n);
	memcpy(split + n, "\x14\x03\x03\x00\x01\x01\x17\x03\x03\x00\x20????", 15);
	ok(hello_read(split, n + 15, name) == HELLO_NAME, "with early data behind it");
	/* The extension of the name once more. */
	memcpy(split, p, n);
	size_t ext = 9 + 15;
	memcpy(split + n, p + n - ext, ext);
	split[n + ext - 1] = 'n';
	split[4] = (uint8_t)(split[4] + ext);
	split[8] = (uint8_t)(split[8] + ext);
	split[11 + 32 + 8] = (uint8_t)(split[11 + 32 + 8] + ext);
	ok(hello_read(split, n + ext, name) == HELLO_NO_NAME, "two names are none");
	/* A second name in the extension's list. */
	memcpy(split, p, n);
	memcpy(split + n, "\0\0\1x", 4);
	split[4] = (uint8_t)(split[4] + 4);
	split[8] = (uint8_t)(split[8] + 4);
	split[11 + 32 + 8] = (uint8_t)(split[11 + 32 + 8] + 4);
	split[n - 15 - 6] = (uint8_t)(split[n - 15 - 6] + 4);
	split[n - 15 - 4] = (uint8_t)(split[n - 15 - 4] + 4);
	ok(hello_read(split, n + 4, name) == HELLO_NO_NAME, "nor is a list of two");
	p[n - 1] = ' ';
	ok(hello_read(p, n, name) == HELLO_NO_NAME, "a name with a blank is none");
	n = hello(p, "x");
	p[11 + 32] = 200;
	ok(hello_read(p, n, name) == HELLO_NO_NAME, "lengths that do not fit");
	ok(hello_read((const uint8_t *)"GET / HTTP/1.1", 14, name) == HELLO_NOT_TLS, "not TLS");
	ok(hello_read((const uint8_t *)"\x16\x03\x01\x00\x04\x01\xff\xff\xff", 9, name) ==
	                HELLO_NOT_TLS,
	        "a hello of 16 MiB");
	ok(hello_read(p, 0, name) == HELLO_MORE, "nothing yet");
}

static void test_packets(void)
{
	uint8_t p[128] = {0x45, [9] = 6, [16] = 203, 0, 113, 7, [22] = 0x20, 0xfb, [33] = 2};
	struct packet k;
	ok(packet_parse(p, 40, &k) && k.port == 8443 && !strcmp(k.address, "203.0.113.7") &&
	                !strcmp(k.protocol, "tcp"),
	        "a SYN");
	p[33] = 0x12;
	ok(!packet_parse(p, 40, &k), "not its answer");
	p[33] = 2;
	ok(!packet_parse(p, 33, &k) && !packet_parse(p, 19, &k) && !packet_parse(p, 0, &k), "cut");
	p[7] = 1;
	ok(!packet_parse(p, 40, &k), "a later fragment");
	p[7] = 0;
	p[0] = 0x44;
	ok(!packet_parse(p, 40, &k), "a header that is too short");
	p[0] = 0x4f;
	ok(!packet_parse(p, 40, &k), "a header that is too long");
	uint8_t q[128] = {0x60, [6] = 0, [24] = 0x20, 1, [39] = 8, [40] = 17, 0, [50] = 1, 0xbb};
	ok(packet_parse(q, 56, &k) && k.port == 443 && !strcmp(k.protocol, "udp") &&
	                !strcmp(k.address, "2001::8"),
	        "UDP behind an option");
	q[41] = 255;
	ok(!packet_parse(q, 56, &k), "an option that is too long");
	q[0] = 0x70;
	ok(!packet_parse(q, 56, &k), "neither version");
}

int main(void)
{
	test_addresses();
	test_origins();
	test_hello();
	test_packets();
	return done();
}
