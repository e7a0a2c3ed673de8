#include "supervisor/download.h"

#include "base/mem.h"
#include "supervisor/problem.h"

#include <stdio.h>
#include <string.h>

enum {
	/* As long as a name can be, with each byte as three. */
	DISPOSITION_MAX = 4 * 256 + 128,
	/* A name has at most so many bytes; of what has more the end counts, which says its type.
	 */
	NAME_BYTES = 255,
	ETAG_MAX = 72,
};

/* ---- how it is called ---- */

/* Bytes of a character of UTF-8 that steers: control characters, and what is invisible or turns
 * the direction of what follows.  0: it does not. */
static size_t steers(const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	if (*p < 0x20 || *p == 0x7f)
		return 1;
	if (p[0] == 0xc2 && p[1] < 0xa0)
		return 2; /* U+0080 to U+009F */
	if (p[0] == 0xd8 && p[1] == 0x9c)
		return 2; /* U+061C */
	if (p[0] == 0xe2 && p[1] == 0x80 && ((p[2] >= 0x8b && p[2] <= 0x8f) || p[2] >= 0xa8))
		return p[2] <= 0xae ? 3 : 0; /* U+200B to U+200F, U+2028 to U+202E */
	if (p[0] == 0xe2 && p[1] == 0x81 && p[2] >= 0xa0 && p[2] <= 0xaf)
		return 3;                                            /* U+2060 to U+206F */
	return p[0] == 0xef && p[1] == 0xbb && p[2] == 0xbf ? 3 : 0; /* U+FEFF */
}

static bool letter(char c)
{
	return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

/* What some system takes for a directory, a drive, a variable or a pattern. */
static bool strange(char c)
{
	return strchr("\\/:*?\"<>|%$`", c) != NULL;
}

/* The last part of the path, without what steers; owned. */
static char *tame(const char *path)
{
	const char *slash = strrchr(path, '/'), *p = slash ? slash + 1 : path;
	char *name = xcalloc(1, strlen(p) + 2), *to = name;
	if (*p == '.' || !*p) { /* not what a shell, or git, reads by itself */
		*to++ = '_';
		p += *p == '.';
	}
	while (*p) {
		size_t n = steers(p);
		if (n || strange(*p)) {
			*to++ = '_';
			p += n ? n : 1;
		} else {
			*to++ = *p++;
		}
	}
	return name;
}

void download_disposition(struct buf *to, const char *path)
{
	static const char hex[] = "0123456789ABCDEF";
	auto_free char *name = tame(path);
	size_t n = strlen(name);
	const char *p = n > NAME_BYTES ? name + n - NAME_BYTES : name;
	while (((unsigned char)*p & 0xc0) == 0x80)
		p++;
	buf_puts(to, "attachment; filename=\"");
	for (const char *c = p; *c; c++)
		if (((unsigned char)*c & 0xc0) != 0x80) /* one for each character */
			buf_putc(to, letter(*c) || strchr("-._ ", *c) ? *c : '_');
	buf_puts(to, "\"; filename*=UTF-8''");
	for (const char *c = p; *c; c++) {
		if (letter(*c) || strchr("-._~", *c)) {
			buf_putc(to, *c);
			continue;
		}
		buf_putc(to, '%');
		buf_putc(to, hex[(unsigned char)*c >> 4]);
		buf_putc(to, hex[(unsigned char)*c & 15]);
	}
}

/* ---- heads ---- */

int download_head(struct http_request *r, const char *path, uint64_t bytes,
        const struct range *asked, uint64_t *ret_at, uint64_t *ret_n)
{
	char text[96];
	http_add_header(r, "Accept-Ranges", "bytes");
	if (!range_of(asked, bytes, ret_at, ret_n)) {
		(void)snprintf(text, sizeof(text), "bytes */%llu", (unsigned long long)bytes);
		http_add_header(r, "Content-Range", text);
		problem_reply(r, PROBLEM_RANGE, NULL, "'%.160s' has %llu bytes", path,
		        (unsigned long long)bytes);
		return 416;
	}
	if (asked->some) {
		(void)snprintf(text, sizeof(text), "bytes %llu-%llu/%llu",
		        (unsigned long long)*ret_at, (unsigned long long)(*ret_at + *ret_n - 1),
		        (unsigned long long)bytes);
		http_add_header(r, "Content-Range", text);
	}
	auto_buf struct buf name = BUF_INIT(DISPOSITION_MAX);
	download_disposition(&name, path);
	http_add_header(r, "Content-Disposition", name.p);
	/* What an agent wrote must not be run by a browser as a page of ours. */
	http_add_header(r, "X-Content-Type-Options", "nosniff");
	http_add_header(r, "Content-Security-Policy", "sandbox; default-src 'none'");
	return asked->some ? 206 : 200;
}

int download_head_kept(struct http_request *r, const char *path, uint64_t bytes, const char *sha256,
        uint64_t *ret_at, uint64_t *ret_n)
{
	char tag[ETAG_MAX];
	struct range asked;
	const char *there = http_header(r, "If-None-Match"), *of = http_header(r, "If-Range");
	(void)snprintf(tag, sizeof(tag), "\"%s\"", sha256);
	http_add_header(r, "ETag", tag);
	/* Whoever asks again proves anew that it may. */
	http_add_header(r, "Cache-Control", "private, no-cache");
	if (there && (strcmp(there, "*") == 0 || strstr(there, tag))) {
		http_reply(r, 304, NULL, NULL);
		return 304;
	}
	/* A part of other bytes is none of these. */
	range_read(of && strcmp(of, tag) != 0 ? NULL : http_header(r, "Range"), &asked);
	return download_head(r, path, bytes, &asked, ret_at, ret_n);
}
