/* Bytes as text and back, whatever they are; what is no such text is refused. */
#include "base/base64.h"

#include "tests/t.h"

#include <string.h>

static void one(const char *plain, const char *coded)
{
	auto_buf struct buf a = BUF_INIT(64), b = BUF_INIT(64);
	ok(base64_encode(plain, strlen(plain), &a) == 0 && strcmp(a.p ? a.p : "", coded) == 0,
	        "'%s' is '%s'", plain, coded);
	ok(base64_decode(coded, strlen(coded), &b) == 0 && b.len == strlen(plain) &&
	                memcmp(b.p ? b.p : "", plain, b.len) == 0,
	        "and back");
}

int main(void)
{
	/* RFC 4648, 10 */
	one("", "");
	one("f", "Zg==");
	one("fo", "Zm8=");
	one("foo", "Zm9v");
	one("foob", "Zm9vYg==");
	one("fooba", "Zm9vYmE=");
	one("foobar", "Zm9vYmFy");
	char all[256];
	for (int i = 0; i < 256; i++)
		all[i] = (char)i;
	int wrong = 0;
	for (size_t n = 0; n <= sizeof(all); n++) {
		auto_buf struct buf a = BUF_INIT(1024), b = BUF_INIT(1024);
		wrong += base64_encode(all + 256 - n, n, &a) < 0 || a.len % 4 != 0 ||
		         base64_decode(a.p ? a.p : "", a.len, &b) < 0 || b.len != n ||
		         (n && memcmp(b.p, all + 256 - n, n) != 0);
	}
	ok(wrong == 0, "any bytes of any number come back");
	static const char *const bad[] = {"Z", "Zg=", "Zg", "====", "Z===", "Zg==Zg==", "Zm9\n",
	        "Zm 9", "Zg=v", "\xff\xff\xff\xff"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		auto_buf struct buf b = BUF_INIT(64);
		ok(base64_decode(bad[i], strlen(bad[i]), &b) < 0, "bad %zu is refused", i);
	}
	auto_buf struct buf small = BUF_INIT(3);
	ok(base64_encode("foo", 3, &small) == -ENOBUFS, "and what does not fit");
	return done();
}
