#include "policy/forms.h"
#include "base/mem.h"
#include "tests/t.h"

static void all(form_fn *fn, const char *name, const char *const *texts, bool want)
{
	for (; *texts; texts++)
		ok(fn(*texts) == want, "%s: '%.60s' is %s", name, *texts,
		        want ? "fine" : "refused");
}

#define FINE(fn, ...)    all(fn, #fn, (const char *const[]){__VA_ARGS__, NULL}, true)
#define REFUSED(fn, ...) all(fn, #fn, (const char *const[]){__VA_ARGS__, NULL}, false)

static void commands(void)
{
	static const char two[] = "/bin/a\0b", open_end[4] = {'/', 'b', '\0', 'x'};
	char many[2 * FORM_COMMAND_ARGS + 4] = "/";
	ok(form_command(two, sizeof(two), 2), "a path and an argument");
	ok(form_command(two, sizeof(two), 1), "what is behind them does not matter");
	ok(!form_command(two, sizeof(two), 0), "nothing is no command");
	ok(!form_command(two, sizeof(two), 3), "more arguments than there are");
	ok(!form_command(open_end, sizeof(open_end), 2), "one that does not end");
	ok(!form_command("bin/a", 6, 1), "a program without a path");
	ok(!form_command(many, sizeof(many), FORM_COMMAND_ARGS + 1), "too many");
}

int main(void)
{
	commands();
	char longer[400];
	memset(longer, 'a', sizeof(longer) - 1);
	longer[0] = '/';
	longer[sizeof(longer) - 1] = '\0';

	FINE(form_path, "/", "/a", "/a/b.c", "/a b", "/..a", "/a/...");
	REFUSED(form_path, "", "a", "//", "/a/", "/a//b", "/.", "/..", "/a/../b", "/a/./b", "/a\nb",
	        longer);
	FINE(form_relative, "a", "a/b", "out/**/*.md", ".hidden");
	REFUSED(form_relative, "", "/a", "..", "a/../b", "a/", "./a");
	FINE(form_host, "a.b", "anthropic.agentbox", "x-1.example.com", "1.a");
	REFUSED(form_host, "", "a", "a.", ".a", "a..b", "A.b", "-a.b", "a-.b", "127.0.0.1",
	        "a.b:80", "a b.c", "*.a.b", longer + 1);
	FINE(form_asked_host, "a", "a.b", "A.b", "a.", "_x.a.b", "127.0.0.1", "::1", "fe80::1",
	        "localhost");
	REFUSED(form_asked_host, "", ".", "a b", "a b.c", ".a", "a..b", "a/b", "a.b:80", "1.2.3",
	        "256.1.1.1", "\xc3\xa4.de", "*", longer + 1);
	FINE(form_url, "https://api.example.com", "http://127.0.0.1:47821", "https://[::1]:8080",
	        "https://a.b/v1/x", "http://localhost:1");
	REFUSED(form_url, "", "api.example.com", "ftp://a.b", "https://", "https://a.b/",
	        "https://a.b/../c", "https://u@a.b", "https://a.b?x", "https://a.b#x",
	        "https://a.b:0", "https://a.b:65536", "https://a.b:", "https://a.b:80x",
	        "https://[zz]", "https://[::1", "https://1.2.3", "https://256.1.1.1",
	        "https://a.b/x y", "https://a.b/%2e%2e", "HTTPS://a.b", "https://a.b\r\nx: y");
	FINE(form_header, "x-api-key", "authorization");
	REFUSED(form_header, "", "X-Api-Key", "x key", "x:", "x\r\n");
	FINE(form_variable, "A", "_a1", "ANTHROPIC_API_KEY");
	REFUSED(form_variable, "", "1A", "A-B", "A=B", "A B", "\xc3\xa9");
	FINE(form_printable, "", "Bearer ", "~");
	REFUSED(form_printable, "a\n", "\x7f", "\xff");
	FINE(form_line, "", "text\twith tab", "\xc3\xa9");
	REFUSED(form_line, "a\nb", "a\x1b[0m");

	ok(path_within("/a/b", "/a") && path_within("/a", "/a") && path_within("/a", "/"),
	        "within");
	ok(!path_within("/ab", "/a") && !path_within("/a", "/a/b"), "not within");
	return done();
}
