/* Where UTF-8 may be cut. */
#include "base/utf8.h"
#include "tests/t.h"

static void test_end(void)
{
	ok(utf8_floor("a\xe2\x82", 3) == 1, "a character that is cut goes");
	ok(utf8_floor("a\xe2\x82\xac", 4) == 4, "a whole one stays");
	ok(utf8_floor("", 0) == 0, "of nothing");
	ok(utf8_floor("\x80\x80\x80\x80\x80", 5) == 5, "what is none stays");
}

static void test_beginning(void)
{
	ok(utf8_rest("\x82\xac z", 4) == 2, "what is left of a character");
	ok(utf8_rest("\xe2\x82\xac", 3) == 0, "a whole one");
	ok(utf8_rest("\x80\x80\x80\x80\x80", 5) == 3, "of what is none, no more than a character");
	ok(utf8_rest("\x80", 1) == 1 && utf8_rest("\x80", 0) == 0, "not behind the bytes");
}

int main(void)
{
	test_end();
	test_beginning();
	return done();
}
