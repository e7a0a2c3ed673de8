#include "egress/s3_answer.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH = 8 };

/* What is left of the document. */
struct in {
	const char *p, *end;
};

struct tag {
	const char *name;
	size_t n;
	bool closes, empty;
};

static bool blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void skip_blanks(struct in *in)
{
	while (in->p < in->end && blank(*in->p))
		in->p++;
}

static bool name_char(char c)
{
	return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_' ||
	       c == '-' || c == '.' || c == ':';
}

/* At '<'; behind it there is a name and the tag's end, or it is none. */
static bool read_tag(struct in *in, struct tag *ret)
{
	const char *p = in->p + 1;
	const char *end = memchr(in->p, '>', (size_t)(in->end - in->p));
	if (!end)
		return false;
	ret->closes = *p == '/';
	p += ret->closes;
	ret->name = p;
	while (p < end && name_char(*p))
		p++;
	ret->n = (size_t)(p - ret->name);
	ret->empty = !ret->closes && end[-1] == '/';
	in->p = end + 1;
	return ret->n > 0 && (p == end || blank(*p) || (ret->empty && p == end - 1));
}

/* Past <?xml ...?>. */
static bool skip_declaration(struct in *in)
{
	skip_blanks(in);
	if (in->end - in->p < 2 || memcmp(in->p, "<?", 2) != 0)
		return true;
	const char *end = memmem(in->p, (size_t)(in->end - in->p), "?>", 2);
	in->p = end ? end + 2 : in->end;
	skip_blanks(in);
	return end != NULL;
}

/* One character of a text, entities resolved; those beyond ASCII become '?'. */
static char next_char(const char **at, const char *end)
{
	static const struct {
		const char *name;
		char c;
	} all[] = {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
	const char *p = *at;
	for (size_t i = 0; *p == '&' && i < ARRAY_LEN(all); i++) {
		size_t n = strlen(all[i].name);
		if ((size_t)(end - p) >= n && memcmp(p, all[i].name, n) == 0) {
			*at += n;
			return all[i].c;
		}
	}
	const char *semicolon = *p == '&' ? memchr(p, ';', (size_t)(end - p)) : NULL;
	if (semicolon && p[1] == '#') {
		long c = p[2] == 'x' ? strtol(p + 3, NULL, 16) : strtol(p + 2, NULL, 10);
		*at = semicolon + 1;
		return c > 0 && c < 0x7f ? (char)c : '?';
	}
	(*at)++;
	return *p;
}

/* False where it does not fit and must. */
static bool take_text(const char *p, const char *end, char *to, size_t size, bool whole)
{
	size_t n = 0;
	while (p < end && n + 1 < size) {
		char c = next_char(&p, end);
		to[n++] = (unsigned char)c < 0x20 || c == 0x7f ? ' ' : c;
	}
	to[n] = '\0';
	return p == end || !whole;
}

static bool is(const struct tag *t, const char *name)
{
	return t->n == strlen(name) && memcmp(t->name, name, t->n) == 0;
}

/* The text of a child of the root. */
static bool take_child(const struct tag *t, const char *p, const char *end, struct s3_answer *a)
{
	if (is(t, "Code"))
		return take_text(p, end, a->code, sizeof(a->code), false);
	if (is(t, "Message"))
		return take_text(p, end, a->message, sizeof(a->message), false);
	return !is(t, "UploadId") || take_text(p, end, a->upload_id, sizeof(a->upload_id), true);
}

static bool parse(struct in *in, struct s3_answer *a)
{
	struct tag open[DEPTH];
	size_t depth = 0;
	const char *text = in->p;
	do {
		const char *at = memchr(in->p, '<', (size_t)(in->end - in->p));
		struct tag t;
		if (!at || (depth == 0 && at != in->p))
			return false;
		in->p = at;
		if (!read_tag(in, &t) || (!t.closes && depth == DEPTH))
			return false;
		if (t.closes && (depth == 0 || open[depth - 1].n != t.n ||
		                        memcmp(open[depth - 1].name, t.name, t.n) != 0))
			return false;
		if (depth == 0)
			(void)take_text(t.name, t.name + t.n, a->root, sizeof(a->root), false);
		if (t.closes && depth == 2 && !take_child(&t, text, at, a))
			return false;
		if (t.closes)
			depth--;
		else if (!t.empty)
			open[depth++] = t;
		text = in->p;
	} while (depth);
	skip_blanks(in);
	return in->p == in->end;
}

bool s3_answer_parse(const char *p, size_t n, struct s3_answer *ret)
{
	struct in in = {p, p + n};
	struct s3_answer a = {.root = ""};
	bool fine = n && !memchr(p, '\0', n) && skip_declaration(&in) && in.p < in.end &&
	            parse(&in, &a);
	*ret = fine ? a : (struct s3_answer){.root = ""};
	return fine;
}

bool s3_answer_again(int status, const char *code)
{
	/* Of root's keys, bucket or clock: root can mend it, so it is not the artifact's end. */
	static const char *const mendable[] = {"RequestTimeout", "SlowDown", "InternalError",
	        "ExpiredToken", "InvalidToken", "TokenRefreshRequired", "NoSuchUpload",
	        "XAmzContentSHA256Mismatch", "BadDigest", "IncompleteBody"};
	for (size_t i = 0; i < ARRAY_LEN(mendable); i++)
		if (strcmp(code, mendable[i]) == 0)
			return true;
	return status >= 500 || status == 408 || status == 425 || status == 429 || status == 401 ||
	       status == 403 || status == 404 || (status >= 300 && status < 400);
}
