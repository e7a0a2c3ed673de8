/* What an artifact is called and taken for when it is saved: its name is an attacker's. */
#include "supervisor/download.h"

#include "base/mem.h"
#include "supervisor/media.h"
#include "tests/t.h"

#include <string.h>

static void is_called(const char *path, const char *plain, const char *full)
{
	auto_buf struct buf got = BUF_INIT(4096);
	auto_free char *want =
	        xasprintf("attachment; filename=\"%s\"; filename*=UTF-8''%s", plain, full);
	download_disposition(&got, path);
	ok(strcmp(got.p, want) == 0, "%s: %s", plain, got.p);
}

static void is_type(const char *path, const char *want)
{
	/* Its length, since it may be what TAP cannot say. */
	ok(strncmp(media_type(path), want, strlen(want)) == 0, "%s, of %zu bytes", want,
	        strlen(path));
}

static void long_names(void)
{
	char path[4096];
	memset(path, 'a', sizeof(path));
	memcpy(path + sizeof(path) - 5, ".txt", 5);
	auto_buf struct buf got = BUF_INIT(4096);
	download_disposition(&got, path);
	ok(!got.failed && got.len < 600 && strstr(got.p, "a.txt\""), "a long name keeps its end");
	for (size_t i = 0; i + 2 < 600; i += 2)
		memcpy(path + i, "\xc3\xa9", 2);
	path[600] = '\0';
	buf_clear(&got);
	download_disposition(&got, path);
	const char *star = strstr(got.p, "''");
	ok(!got.failed && star && strncmp(star, "''%C3%A9", 8) == 0, "no character is cut in two");
}

int main(void)
{
	is_called("a.txt", "a.txt", "a.txt");
	is_called("out/deep/a b.txt", "a b.txt", "a%20b.txt");
	is_called("b\xc3\xa4r.pdf", "b_r.pdf", "b%C3%A4r.pdf");
	is_called(".bashrc", "_bashrc", "_bashrc");
	is_called("a/..hidden", "_.hidden", "_.hidden");
	is_called("x\"; filename=\"evil.exe", "x__ filename__evil.exe",
	        "x_%3B%20filename%3D_evil.exe");
	is_called("a\r\nSet-Cookie: x", "a__Set-Cookie_ x", "a__Set-Cookie_%20x");
	is_called("..\\..\\boot.ini", "_._.._boot.ini", "_._.._boot.ini");
	is_called("CON:x|y<z>?*", "CON_x_y_z___", "CON_x_y_z___");
	is_called("%2e%2e%2fx", "_2e_2e_2fx", "_2e_2e_2fx");
	/* What reads "exe.txt" and is none. */
	is_called("a\xe2\x80\xaetxt.exe", "a_txt.exe", "a_txt.exe");
	is_called("a\xe2\x81\xa6"
	          "b\xe2\x80\x8b"
	          "c\xef\xbb\xbf"
	          "d\xd8\x9c"
	          "e\xc2\x85"
	          "f\x7f",
	        "a_b_c_d_e_f_", "a_b_c_d_e_f_");
	is_called("\xe2\x80\x94", "_", "%E2%80%94");
	is_called("'(x)'", "__x__", "%27%28x%29%27");
	long_names();

	is_type("a/b.TXT", "text/plain;");
	is_type("a.tar.gz", "application/gzip");
	is_type("x.png", "image/png");
	is_type("html", "application/octet-stream");
	is_type("a.html/b", "application/octet-stream");
	is_type("a.html\r\nX: y", "application/octet-stream");
	is_type("", "application/octet-stream");
	is_type("x.", "application/octet-stream");
	return done();
}
