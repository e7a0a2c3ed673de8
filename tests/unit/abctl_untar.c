#include "abctl/untar.h"
#include "base/buf.h"
#include "tests/t.h"

#include <stdbool.h>
#include <stdio.h>

enum { BLOCK = 512 };

/* ---- an archive, by hand ---- */

static struct buf archive = BUF_INIT(8 << 20);

static void block(const char *name, const char *prefix, char kind, const char *size)
{
	char h[BLOCK] = {0};
	snprintf(h, 100, "%s", name);
	memcpy(h + 100, "0000755", 8);
	memcpy(h + 124, size, strlen(size));
	memcpy(h + 148, "        ", 8);
	h[156] = kind;
	memcpy(h + 257, "ustar\00000", 8);
	memcpy(h + 345, prefix, strlen(prefix));
	unsigned sum = 0;
	for (int i = 0; i < BLOCK; i++)
		sum += (uint8_t)h[i];
	snprintf(h + 148, 8, "%06o", sum);
	(void)buf_put(&archive, h, sizeof(h));
}

static void data(const void *p, size_t n)
{
	static const char zeros[BLOCK];
	(void)buf_put(&archive, p, n);
	(void)buf_put(&archive, zeros, (BLOCK - n % BLOCK) % BLOCK);
}

static void entry(const char *name, char kind, const char *text)
{
	char size[12];
	snprintf(size, sizeof(size), "%011o", (unsigned)strlen(text));
	block(name, "", kind, size);
	data(text, strlen(text));
}

static void over(void)
{
	static const char zeros[2 * BLOCK];
	(void)buf_put(&archive, zeros, sizeof(zeros));
}

/* ---- what is told ---- */

static char told[4096];

static int on_file(void *ctx, const char *name, bool executable, struct err *e)
{
	(void)ctx;
	(void)e;
	size_t n = strlen(told);
	snprintf(told + n, sizeof(told) - n, "%s%s=", name, executable ? "*" : "");
	return 0;
}
static int on_data(void *ctx, const void *p, size_t n, struct err *e)
{
	(void)ctx;
	(void)e;
	size_t at = strlen(told);
	snprintf(told + at, sizeof(told) - at, "%.*s", (int)n, (const char *)p);
	return 0;
}
static int on_end(void *ctx, struct err *e)
{
	(void)ctx;
	(void)e;
	strncat(told, ";", sizeof(told) - strlen(told) - 1);
	return 0;
}
static const struct untar_calls calls = {on_file, on_data, on_end};

/* In pieces of `step` bytes; then the archive is emptied. */
static int read_it(size_t step, struct err *e)
{
	struct untar *u = untar_new(&calls, NULL);
	int r = 0;
	told[0] = '\0';
	for (size_t at = 0; r == 0 && at < archive.len; at += step)
		r = untar_feed(
		        u, archive.p + at, archive.len - at < step ? archive.len - at : step, e);
	if (r == 0)
		r = untar_end(u, e);
	untar_free(u);
	return r;
}

static void refused(const char *want, const char *what)
{
	struct err e = {0};
	int r = read_it(7, &e);
	ok(r < 0 && strstr(e.text, want), "%s: %s", what, e.text);
	buf_clear(&archive);
}

static void good(void)
{
	struct err e = {0};
	entry("package/", '5', "");
	entry("package/a", '0', "hello");
	block("c", "package/b", '0', "00000000000");
	entry("x", 'x', "12 path=p/q\n13 mtime=1.5\n");
	entry("package/other", '0', "named otherwise");
	entry("./", '5', "");
	entry("./package/dot", '0', "of .");
	entry("package/last", '\0', "old style");
	over();
	static const char want[] = "package/a*=hello;package/b/c*=;p/q*=named otherwise;"
	                           "package/dot*=of .;package/last*=old style;";
	bool all = true;
	for (size_t step = 1; step < archive.len; step = step * 2 + 1)
		all = all && read_it(step, &e) == 0 && strcmp(told, want) == 0;
	ok(all, "whatever the pieces are, the same comes out: %s %s", told, e.text);
	archive.len -= 1024;
	ok(read_it(100, &e) == 0 && strcmp(told, want) == 0, "without the blocks at its end");
	archive.len -= 100;
	ok(read_it(100, &e) == -EBADMSG, "cut within a file's last block: %s", e.text);
	buf_clear(&archive);
}

static void one(const char *name, char kind, const char *want, const char *what)
{
	entry(name, kind, "");
	over();
	refused(want, what);
}

int main(void)
{
	good();
	one("../evil", '0', "'..'", "out by ..");
	one("a/../../evil", '0', "'..'", "and in the midst");
	one("/etc/evil", '0', "empty part", "absolute");
	one("a//b", '0', "empty part", "an empty part");
	one("a/.", '0', "'.'", "a dot");
	one("././a", '0', "'.'", "a second one");
	one("./", '0', "empty part", "a file that is where it unpacks");
	one("./../evil", '0', "'..'", "out by ./..");
	one(".//evil", '0', "empty part", "absolute behind it");
	one("a/", '0', "empty part", "a file that is a directory");
	one("a\033b", '0', "control", "control characters");
	one("", '0', "without a name", "no name");
	one("a/link", '2', "a link", "a symbolic link");
	one("a/link", '1', "a link", "a hard link");
	one("a/null", '3', "device", "a character device");
	one("a/disk", '4', "device", "a block device");
	one("a/fifo", '6', "FIFO", "a FIFO");
	one("a/sparse", 'S', "kind 0x53", "a kind of GNU's");
	block("a", "", '0', "77777777777");
	refused("more than 2147483648 bytes", "a file of 8 GiB");
	block("a", "", '0', "\x80\0\0\0\0\0\0\1");
	refused("no size", "a size in another base");
	block("a", "", '0', "12x");
	refused("no size", "a size that is no number");
	block("x", "", 'x', "00001000000");
	refused("attributes of more than", "attributes without end");
	entry("x", 'x', "99999 path=a\n");
	refused("broken attributes", "a record longer than all of them");
	entry("x", 'x', "12 path=a/b");
	refused("broken attributes", "a record without an end");
	entry("x", 'x', "7 path\n");
	refused("broken attributes", "a record without a value");
	entry("x", 'g', "12 path=p/q\n");
	refused("no way", "one name for all files");
	entry("x", 'x', "11 path=a\n\n");
	entry("a", '0', "");
	refused("control", "a line end in an attribute");
	entry("x", 'x', "13 path=../a\n");
	entry("a", '0', "");
	refused("'..'", "out by an attribute");
	entry("x", 'x', "23 GNU.sparse.major=10\n");
	refused("sparse", "sparse by attributes");
	entry("x", 'x', "19 size=9999999999\n");
	entry("a", '0', "");
	refused("bytes", "a size by attributes");
	entry("a", '0', "x");
	archive.p[10] ^= 1;
	refused("damaged", "a header whose sum is wrong");
	(void)buf_put(&archive, "short", 5);
	refused("cut off", "a few bytes");
	over();
	refused("cut off", "nothing but an end");
	entry("a", '0', "x");
	over();
	for (int i = 0; i < 2100; i++)
		over();
	refused("goes on after its end", "zeros without end");
	buf_done(&archive);
	return done();
}
