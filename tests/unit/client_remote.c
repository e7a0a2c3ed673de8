/* --url: what is one, and to whom a key is not sent. */
#include "client/remote.h"

#include "tests/t.h"

static struct remote_place x;
static struct err e;

static int is(const char *url, int tls, const char *host, const char *port)
{
	return remote_parse(url, &x, &e) == 0 && x.tls == tls && strcmp(x.host, host) == 0 &&
	       strcmp(x.port, port) == 0;
}

int main(void)
{
	ok(is("https://a.example", 1, "a.example", "443"), "a host");
	ok(is("https://a.example:7443/", 1, "a.example", "7443"), "a port, a slash");
	ok(is("https://[fe80::1]:1", 1, "fe80::1", "1"), "IPv6");
	ok(is("http://127.0.0.1:7777", 0, "127.0.0.1", "7777"), "this host");
	ok(is("http://[::1]:7777/", 0, "::1", "7777"), "IPv6");
	ok(is("http://localhost:7777", 0, "localhost", "7777"), "by its name");
	static const char *const wrong[] = {"", "a.example", "ftp://a:1", "https://", "https://:1",
	        "https://a:", "https://a:x", "https://a:1x", "https://a:123456", "https://a/x",
	        "https://a:1/x", "https://[::1", "https://[::1]x", "http://127.0.0.1",
	        "https://u@a:1/x"};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		ok(remote_parse(wrong[i], &x, &e) == -EINVAL && strstr(e.text, "is not like"),
		        "not '%s'", wrong[i]);
	static const char *const far[] = {"http://a.example:80", "http://10.0.0.1:80",
	        "http://localhost.example:80", "http://[fe80::1]:80", "http://127.evil.example:80"};
	for (size_t i = 0; i < sizeof(far) / sizeof(far[0]); i++)
		ok(remote_parse(far[i], &x, &e) == -EINVAL && strstr(e.text, "plain http"),
		        "%s: %s", far[i], e.text);
	return done();
}
