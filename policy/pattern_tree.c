#include "policy/pattern_tree.h"

#include "base/mem.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 64, REPEAT_MAX = 255 };

bool byte_set_has(const struct byte_set *s, unsigned char c)
{
	return s->bits[c / 8] >> (c % 8) & 1;
}

static void put(struct byte_set *s, unsigned char c)
{
	s->bits[c / 8] |= (uint8_t)(1u << (c % 8));
}

static void invert(struct byte_set *s)
{
	for (size_t i = 0; i < sizeof(s->bits); i++)
		s->bits[i] = (uint8_t)~s->bits[i];
}

bool byte_is_word(unsigned char c)
{
	return (c < 128 && isalnum(c)) || c == '_';
}

static int node(struct pattern_tree *x, enum pattern_kind kind, int a, int b)
{
	if (x->n == PATTERN_NODES)
		return err_set(x->e, -E2BIG, "it is too long");
	x->nodes[x->n] = (struct pattern_node){.kind = kind, .a = a, .b = b};
	return x->n++;
}

static void fold(struct byte_set *s)
{
	for (int c = 'a'; c <= 'z'; c++)
		if (byte_set_has(s, (unsigned char)c) || byte_set_has(s, (unsigned char)(c - 32))) {
			put(s, (unsigned char)c);
			put(s, (unsigned char)(c - 32));
		}
}

static int set_node(struct pattern_tree *x, const struct byte_set *s)
{
	int at = node(x, NODE_SET, 0, 0);
	if (at < 0)
		return at;
	x->nodes[at].set = *s;
	if (x->fold)
		fold(&x->nodes[at].set);
	return at;
}

static int byte_node(struct pattern_tree *x, unsigned char c)
{
	struct byte_set s = {{0}};
	put(&s, c);
	return set_node(x, &s);
}

/* ---- parsing ---- */

static const struct {
	const char *name;
	int (*is)(int c);
} classes[] = {
        {"alnum", isalnum},
        {"alpha", isalpha},
        {"blank", isblank},
        {"cntrl", iscntrl},
        {"digit", isdigit},
        {"graph", isgraph},
        {"lower", islower},
        {"print", isprint},
        {"punct", ispunct},
        {"space", isspace},
        {"upper", isupper},
        {"xdigit", isxdigit},
};

/* ASCII whatever the locale. */
static int put_class(struct byte_set *s, const char *name, size_t n)
{
	for (size_t i = 0; i < ARRAY_LEN(classes); i++) {
		if (strlen(classes[i].name) != n || strncmp(classes[i].name, name, n) != 0)
			continue;
		for (int c = 0; c < 128; c++)
			if (classes[i].is(c))
				put(s, (unsigned char)c);
		return 0;
	}
	return -EINVAL;
}

/* "[:name:]" at x->p. */
static int named_class(struct pattern_tree *x, struct byte_set *s)
{
	const char *end = strstr(x->p + 2, ":]");
	if (!end || put_class(s, x->p + 2, (size_t)(end - x->p - 2)) < 0)
		return err_set(x->e, -EINVAL, "no class of characters: '%.16s'", x->p);
	x->p = end + 2;
	return 0;
}

static int one_of_list(struct pattern_tree *x, struct byte_set *s)
{
	if (x->p[0] == '[' && x->p[1] == ':')
		return named_class(x, s);
	if (x->p[0] == '\\' && x->p[1] == '\\')
		x->p++;
	else if (x->p[0] == '\\')
		return err_set(x->e, -EINVAL,
		        "in brackets a backslash is a character: write it twice, and classes as "
		        "[:space:]");
	if (x->p[0] == '[' && (x->p[1] == '.' || x->p[1] == '='))
		return err_set(x->e, -EINVAL, "collating symbols are not known here");
	unsigned char from = (unsigned char)*x->p++, to = from;
	if (x->p[0] == '-' && x->p[1] && x->p[1] != ']') {
		to = (unsigned char)x->p[1];
		x->p += 2;
	}
	if (from > 127 || to > 127)
		return err_set(x->e, -EINVAL,
		        "in brackets are ASCII characters only; others as (\xc3\xa4|\xc3\xb6)");
	if (to < from)
		return err_set(x->e, -EINVAL, "the range %c-%c is empty", from, to);
	for (int c = from; c <= to; c++)
		put(s, (unsigned char)c);
	return 0;
}

static int list(struct pattern_tree *x)
{
	struct byte_set s = {{0}};
	bool negated = *x->p == '^';
	x->p += negated;
	for (bool first = true; first || *x->p != ']'; first = false) {
		if (!*x->p)
			return err_set(x->e, -EINVAL, "a '[' without its ']'");
		int r = one_of_list(x, &s);
		if (r < 0)
			return r;
	}
	x->p++;
	if (negated) {
		if (x->fold)
			fold(&s);
		put(&s, '\n');
		invert(&s);
		int at = node(x, NODE_SET, 0, 0); /* is folded already */
		if (at >= 0)
			x->nodes[at].set = s;
		return at;
	}
	return set_node(x, &s);
}

static int class_node(struct pattern_tree *x, char c)
{
	struct byte_set s = {{0}};
	bool negated = isupper((unsigned char)c);
	int r = 0;
	if (c == 'w' || c == 'W') {
		r = put_class(&s, "alnum", 5);
		put(&s, '_');
	} else {
		r = put_class(&s, c == 'd' || c == 'D' ? "digit" : "space", 5);
	}
	if (negated) {
		put(&s, '\n');
		invert(&s);
	}
	return r < 0 ? r : set_node(x, &s);
}

static int escape(struct pattern_tree *x)
{
	char c = *x->p;
	if (!c)
		return err_set(x->e, -EINVAL, "it ends with a backslash");
	x->p++;
	if (strchr("dDwWsS", c))
		return class_node(x, c);
	if (c == 'b' || c == 'B')
		return node(x, c == 'b' ? NODE_WORD : NODE_NOT_WORD, 0, 0);
	if (c == 'n' || c == 'r' || c == 't')
		return byte_node(x, c == 'n' ? '\n' : c == 'r' ? '\r' : '\t');
	if (isdigit((unsigned char)c))
		return err_set(
		        x->e, -EINVAL, "\\%c: references back take more than linear time", c);
	if (!ispunct((unsigned char)c))
		return err_set(x->e, -EINVAL, "'\\%c' is not known here", c);
	return byte_node(x, (unsigned char)c);
}

/* All bytes of a character, so that a repetition behind it is of the character. */
static int character(struct pattern_tree *x)
{
	int at = byte_node(x, (unsigned char)*x->p++);
	while (at >= 0 && (*x->p & 0xc0) == 0x80) {
		int next = byte_node(x, (unsigned char)*x->p++);
		at = next < 0 ? next : node(x, NODE_CAT, at, next);
	}
	return at;
}

static int alternatives(struct pattern_tree *x);

static int group(struct pattern_tree *x)
{
	if (*x->p == '?')
		return err_set(x->e, -EINVAL, "'(?' is not known here but for (?i) in front");
	if (++x->depth > DEPTH)
		return err_set(x->e, -E2BIG, "more than %d levels of brackets", DEPTH);
	int at = alternatives(x);
	x->depth--;
	if (at >= 0 && *x->p++ != ')')
		return err_set(x->e, -EINVAL, "a '(' without its ')'");
	return at;
}

static int atom(struct pattern_tree *x)
{
	struct byte_set any = {{0}};
	switch (*x->p) {
	case '(':
		x->p++;
		return group(x);
	case '[':
		x->p++;
		return list(x);
	case '.':
		x->p++;
		put(&any, '\n');
		invert(&any);
		return set_node(x, &any);
	case '^':
		x->p++;
		return node(x, NODE_BOL, 0, 0);
	case '$':
		x->p++;
		return node(x, NODE_EOL, 0, 0);
	case '\\':
		x->p++;
		return escape(x);
	case '*':
	case '+':
	case '?':
	case '{':
		return err_set(
		        x->e, -EINVAL, "'%c' repeats nothing (as a character: \\%c)", *x->p, *x->p);
	default:
		return character(x);
	}
}

static int number(struct pattern_tree *x, int *ret)
{
	if (!isdigit((unsigned char)*x->p))
		return -EINVAL;
	int v = 0;
	for (; isdigit((unsigned char)*x->p); x->p++)
		v = v > REPEAT_MAX ? v : v * 10 + (*x->p - '0');
	*ret = v;
	return v > REPEAT_MAX ? -E2BIG : 0;
}

/* "m}", "m,}" or "m,n}" at x->p. */
static int interval(struct pattern_tree *x, int *least, int *most)
{
	int r = number(x, least);
	*most = *least;
	if (r == 0 && *x->p == ',') {
		x->p++;
		*most = -1;
		if (*x->p != '}')
			r = number(x, most);
	}
	if (r == 0 && (*x->p != '}' || (*most >= 0 && *most < *least)))
		r = -EINVAL;
	if (r < 0)
		return err_set(
		        x->e, r, "no repetition: '{%.12s' (at most %d times)", x->p, REPEAT_MAX);
	x->p++;
	return 0;
}

static bool repeats(char c)
{
	return c == '*' || c == '+' || c == '?' || c == '{';
}

static int repeated(struct pattern_tree *x)
{
	int at = atom(x);
	if (at < 0 || !repeats(*x->p))
		return at;
	char c = *x->p++;
	int least = c == '+', most = c == '?' ? 1 : -1;
	int r = c == '{' ? interval(x, &least, &most) : 0;
	if (r == 0 && repeats(*x->p))
		r = err_set(x->e, -EINVAL, "two repetitions in a row");
	int to = r < 0 ? r : node(x, NODE_REPEAT, at, 0);
	if (to >= 0) {
		x->nodes[to].least = least;
		x->nodes[to].most = most;
	}
	return to;
}

static int sequence(struct pattern_tree *x)
{
	int at = node(x, NODE_EMPTY, 0, 0);
	while (at >= 0 && *x->p && *x->p != '|' && *x->p != ')') {
		int next = repeated(x);
		at = next < 0 ? next : node(x, NODE_CAT, at, next);
	}
	return at;
}

static int alternatives(struct pattern_tree *x)
{
	int at = sequence(x);
	while (at >= 0 && *x->p == '|') {
		x->p++;
		int next = sequence(x);
		at = next < 0 ? next : node(x, NODE_ALT, at, next);
	}
	return at;
}

int pattern_parse(struct pattern_tree *x, const char *text, struct err *e)
{
	memset(x, 0, sizeof(*x));
	x->e = e;
	x->p = text;
	if (!text[0])
		return err_set(e, -EINVAL, "it is empty");
	if (strlen(text) > PATTERN_TEXT_MAX)
		return err_set(e, -E2BIG, "it is longer than %d bytes", PATTERN_TEXT_MAX);
	x->fold = strncmp(text, "(?i)", 4) == 0;
	x->p += x->fold ? 4 : 0;
	int at = alternatives(x);
	if (at >= 0 && *x->p)
		return err_set(e, -EINVAL, "a ')' without its '('");
	return at;
}
