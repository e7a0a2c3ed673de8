/* Chunked bodies: what is taken, what is refused. */
#include "base/chunked.h"
#include "base/mem.h"
#include "tests/t.h"

/* Decodes in pieces of `step`; the body, or NULL when it is refused or not done. */
static char *decode(const char *text, size_t n, size_t step, size_t room)
{
	struct chunked c = CHUNKED_INIT;
	struct buf b = BUF_INIT(4096);
	size_t at = 0;
	for (int idle = 0; !c.done && idle < 2;) {
		size_t k = n - at < step ? n - at : step;
		ssize_t used = chunked_decode(&c, text + at, k, &b, room);
		if (used < 0)
			break;
		idle = used ? 0 : idle + 1;
		at += (size_t)used;
	}
	if (c.done && at == n)
		return buf_take(&b);
	buf_done(&b);
	return NULL;
}

static void test_chunked(void)
{
	static const char fine[] =
	        "5\r\nhello\r\n00006;a=\"b\"\r\n world\r\n0\r\nX: 1\r\nY: 2\r\n\r\n";
	for (size_t step = 1; step < sizeof(fine); step += 3) {
		auto_free char *got = decode(fine, sizeof(fine) - 1, step, 3);
		is_str(got, "hello world", "in pieces of %zu", step);
	}
	static const struct {
		const char *text, *what;
	} bad[] = {
	        {"\r\n", "no size"},
	        {"g\r\n", "a size that is none"},
	        {"5\nhello", "a bare line feed"},
	        {"5\r\nhelloX", "more than was said"},
	        {"5\r\nhello\rX", "a broken end"},
	        {"1000000000000000\r\n", "an endless size"},
	        {"-5\r\n", "a sign"},
	        {"5 \r\nhello\r\n0\r\n\r\n", "a blank"},
	        {"0\r\n\nX", "a broken trailer"},
	        {"0x5\r\n", "a prefix"},
	        {"1;\na\r\n", "a broken extension"},
	};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct chunked c = CHUNKED_INIT;
		auto_buf struct buf b = BUF_INIT(64);
		ok(chunked_decode(&c, bad[i].text, strlen(bad[i].text), &b, 64) == -EBADMSG,
		        "refused: %s", bad[i].what);
	}
	struct chunked c = CHUNKED_INIT;
	auto_buf struct buf b = BUF_INIT(64);
	static char flood[16 << 10] = "0\r\n";
	memset(flood + 3, 'a', sizeof(flood) - 3);
	ok(chunked_decode(&c, flood, sizeof(flood), &b, 64) == -EBADMSG,
	        "refused: endless trailers");
}

int main(void)
{
	test_chunked();
	return done();
}
