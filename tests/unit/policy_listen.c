/* Addresses of `listen`: what is one, and which are this host's alone. */
#include "policy/listen.h"

#include "tests/t.h"

static struct listen_at l;
static struct err e;

static bool takes(const char *text)
{
	memset(&l, 0, sizeof(l));
	return listen_parse(text, &l);
}

int main(void)
{
	static const char *const wrong[] = {"", ":", ":80", "127.0.0.1",
	        "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:80x", "127.0.0.1:-1",
	        "127.0.0.1: 80", "localhost:80", "::1:80", "[::1]", "[::1]80", "[::1:80",
	        "[127.0.0.1]:80", "1.2.3:80", "1.2.3.4.5:80", "[fe80::1%lo]:80", "127.0.0.1:080",
	        "[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0001]:7777"};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		ok(!takes(wrong[i]) && !l.port, "not '%s'", wrong[i]);
	ok(takes("127.0.0.1:7777") && l.port == 7777 && !l.v6 && listen_loopback(&l), "IPv4");
	ok(listen_check(&l, &e) == 0, "fine without TLS");
	ok(takes("127.9.9.9:1") && listen_loopback(&l), "all of 127/8");
	ok(takes("[::1]:65535") && l.v6 && listen_loopback(&l), "IPv6");
	static const char *const wide[] = {"0.0.0.0:80", "10.0.0.1:80", "[::]:80", "[fe80::1]:80",
	        "[::ffff:127.0.0.1]:80", "128.0.0.1:80"};
	for (size_t i = 0; i < sizeof(wide) / sizeof(wide[0]); i++) {
		ok(takes(wide[i]) && !listen_loopback(&l), "%s is not this host's alone", wide[i]);
		ok(listen_check(&l, &e) == -EINVAL, "refused without TLS: %s", e.text);
		snprintf(l.cert, sizeof(l.cert), "/c");
		ok(!listen_has_tls(&l) && listen_check(&l, &e) == -EINVAL, "and with half of it");
		snprintf(l.key, sizeof(l.key), "/k");
		ok(listen_has_tls(&l) && listen_check(&l, &e) == 0, "fine with it");
		l.address[0] ^= 1;
		ok(listen_check(&l, &e) == -EINVAL, "bytes and text agree");
	}
	ok(takes("127.0.0.1:7777"), "again");
	memset(l.text, 'x', sizeof(l.text));
	ok(listen_check(&l, &e) == -EINVAL, "a text without an end");
	return done();
}
