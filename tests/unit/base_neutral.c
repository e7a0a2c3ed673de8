#include "base/neutral.h"
#include "tests/t.h"

#include <stdbool.h>

static const struct {
	const char *what, *in, *text, *line; /* line NULL: as text */
} rows[] = {
        {"plain text", "hello, world", "hello, world", NULL},
        {"new lines and tabs", "a\n\tb", "a\n\tb", "a  b"},
        {"CRLF", "a\r\nb", "a\nb", "a b"},
        {"a lone carriage return", "secret\rfake", "secret^Mfake", NULL},
        {"a colour", "\x1b[31mred\x1b[0m", "^[[31mred^[[0m", NULL},
        {"a window title", "\x1b]0;owned\x07", "^[]0;owned^G", NULL},
        {"backspace and delete", "a\b\x7f", "a^H^?", NULL},
        {"8-bit CSI as UTF-8",
                "\xc2\x9b"
                "31m",
                "<U+009B>31m", NULL},
        {"8-bit CSI as a byte",
                "\x9b"
                "31m",
                "\xef\xbf\xbd"
                "31m",
                NULL},
        {"German and Chinese", "Grüße 你好", "Grüße 你好", NULL},
        {"an emoji of several characters", "👩‍💻", "👩‍💻", NULL},
        {"a right-to-left override", "user\xe2\x80\xaegpj.exe", "user<U+202E>gpj.exe", NULL},
        {"an isolate", "\xe2\x81\xa6x", "<U+2066>x", NULL},
        {"a line separator",
                "a\xe2\x80\xa8"
                "b",
                "a<U+2028>b", NULL},
        {"tags, which no one sees", "\xf3\xa0\x81\x81", "<U+E0041>", NULL},
        {"overlong", "\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd", NULL},
        {"a surrogate", "\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", NULL},
        {"cut UTF-8", "a\xe4\xbd", "a\xef\xbf\xbd\xef\xbf\xbd", NULL},
        {"beyond Unicode", "\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd",
                NULL},
};

static void every_byte(void)
{
	bool harmless = true;
	for (int a = 0; a < 256; a++)
		for (int b = 0; b < 256; b++) {
			char in[2] = {(char)a, (char)b};
			auto_buf struct buf out = BUF_INIT(256);
			neutral_text(&out, in, 2);
			for (size_t i = 0; i < out.len; i++) {
				unsigned char c = (unsigned char)out.p[i];
				if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
					harmless = false;
			}
		}
	ok(harmless, "no pair of bytes gives a control character");
}

static void word(const char *in, const char *want)
{
	auto_buf struct buf b = BUF_INIT(4096);
	bool can = neutral_word(&b, in);
	ok(can == (want != NULL) && (!want || strcmp(b.p, want) == 0), "as one word: %s",
	        want ? want : "nothing");
}

static void test_words(void)
{
	word("toolu_01-x", "toolu_01-x");
	word("two words", "'two words'");
	word("x; rm $(id)", "'x; rm $(id)'");
	word("it's", "'it'\\''s'");
	word("-x", "-- -x");
	word("-x y", "-- '-x y'");
	word("~/x", "'~/x'");
	word("", NULL);
	word("a\nb", NULL);
	word("\x1b[2J", NULL);
	word("\xff", NULL);
}

int main(void)
{
	test_words();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		auto_buf struct buf text = BUF_INIT(4096), line = BUF_INIT(4096);
		neutral_text(&text, rows[i].in, strlen(rows[i].in));
		neutral_line(&line, rows[i].in, strlen(rows[i].in));
		is_str(text.p, rows[i].text, "%s", rows[i].what);
		is_str(line.p, rows[i].line ? rows[i].line : rows[i].text, "%s, as a line",
		        rows[i].what);
	}
	auto_buf struct buf nul = BUF_INIT(64);
	neutral_text(&nul, "a\0b", 3);
	is_str(nul.p, "a^@b", "NUL");
	every_byte();
	ok(neutral_width("abc", 3) == 3, "width of ASCII");
	ok(neutral_width("你好", 6) == 4, "width of Chinese");
	ok(neutral_width("e\xcc\x81", 3) == 1, "width of a combining accent");
	ok(neutral_fit("你好", 6, 3) == 3, "a wide character is not cut in two");
	ok(neutral_fit("abc", 3, 10) == 3 && neutral_fit("abc", 3, 0) == 0, "fitting ASCII");
	ok(neutral_is_text("Grüße", strlen("Grüße")) && neutral_is_text("", 0), "text is text");
	ok(!neutral_is_text("\xff", 1) && !neutral_is_text("a\0b", 3), "other bytes are not");
	return done();
}
