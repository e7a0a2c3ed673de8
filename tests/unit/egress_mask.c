/* A secret in what comes back, wherever the pieces are cut. */
#include "egress/mask.h"

#include "base/mem.h"
#include "tests/t.h"

#include <string.h>

#define SECRET "sk-abc_DEF.123"
#define STARS  "**************"

/* All of `text`, passed in pieces of `step` bytes. */
static char *passed(const char *secret, const char *text, size_t step)
{
	struct mask m = {0};
	struct buf got = BUF_INIT(1 << 20);
	size_t n = strlen(text), k;
	mask_begin(&m, secret, strlen(secret));
	for (size_t at = 0; at < n; at += step) {
		const char *p = mask_pass(&m, text + at, step < n - at ? step : n - at, &k);
		must(p && buf_put(&got, p, k) == 0, "passed");
	}
	const char *rest = mask_rest(&m, &k);
	must(buf_put(&got, rest, k) == 0, "and the rest");
	mask_done(&m);
	return buf_take(&got);
}

static void test_pieces(void)
{
	static const struct {
		const char *text, *want;
	} all[] = {
	        {"nothing in it", "nothing in it"},
	        {SECRET, STARS},
	        {"a " SECRET " b", "a " STARS " b"},
	        {SECRET SECRET, STARS STARS},
	        {"sk-ask-abc_DE" SECRET "sk-abc_DEF.12", "sk-ask-abc_DE" STARS "sk-abc_DEF.12"},
	        {"sk-abc_DEF.12\n3", "sk-abc_DEF.12\n3"},
	        {"", ""},
	};
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		bool same = true;
		for (size_t step = 1; step < 40; step++) {
			auto_free char *got = passed(SECRET, all[i].text, step);
			same = same && strcmp(got, all[i].want) == 0;
		}
		ok(same, "in pieces of 1 to 39 bytes: '%s'", all[i].text);
	}
	auto_free char *odd = passed("two words, one key", "x two words, one key y", 3);
	ok(strcmp(odd, "x ****************** y") == 0, "a secret with other characters");
	auto_free char *few = passed("short", "a short text", 3);
	ok(strcmp(few, "a short text") == 0, "a short one is not looked for");
}

/* How much of `text` comes at once. */
static size_t at_once(const char *secret, const char *text)
{
	struct mask m = {0};
	size_t k;
	mask_begin(&m, secret, strlen(secret));
	must(mask_pass(&m, text, strlen(text), &k) != NULL, "passed");
	mask_done(&m);
	return k;
}

static void test_delay(void)
{
	ok(at_once(SECRET, "data: {\"text\":\"sk-abc\"}\n\n") == 25, "an event does not wait");
	ok(at_once("two words, one key", "data: {}\n") == 9, "for no secret");
	ok(at_once(SECRET, "so sk-abc") == at_once(SECRET, "so zz-zzz"),
	        "what waits does not tell of the secret");
	ok(at_once(SECRET, "0123456789abcdefghijklmnop") == 26 - 13,
	        "it is less than the secret's length");
}

static void test_bounds(void)
{
	struct mask m = {0};
	char text[] = "x=" SECRET "; y";
	size_t k;
	mask_text(&m, text, sizeof(text) - 1);
	ok(strcmp(text, "x=" SECRET "; y") == 0 && mask_pass(&m, text, 3, &k) == text && k == 3,
	        "without a secret everything passes as it is");
	ok(mask_rest(&m, &k) == NULL && k == 0, "and nothing waits");
	mask_begin(&m, SECRET, strlen(SECRET));
	mask_text(&m, text, sizeof(text) - 1);
	ok(strcmp(text, "x=" STARS "; y") == 0 && m.found == 1, "a whole text, in place");
	auto_free char *much = xcalloc(MASK_PIECE + 64, 1);
	ok(mask_pass(&m, much, MASK_PIECE + 64, &k) == NULL, "more than fits is not passed");
	mask_done(&m);
	ok(!m.secret && !m.n, "nothing is left of it");
}

int main(void)
{
	test_pieces();
	test_delay();
	test_bounds();
	return done();
}
