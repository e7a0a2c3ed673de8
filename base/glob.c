#include "base/glob.h"
#include "base/mem.h"

#include <string.h>

/*
 * A set of live pattern positions is carried along the path (Thompson's way),
 * so that no pattern can make the match exponential.
 */
struct glob {
	const char *pattern;
	size_t len;
	bool *live; /* [len + 1] */
};

/* Marks position i, and every position reachable from it without a character. */
static void reach(struct glob *g, size_t i)
{
	for (;;) {
		if (g->live[i])
			return;
		g->live[i] = true;
		if (i >= g->len || g->pattern[i] != '*')
			return;
		bool deep = g->pattern[i + 1] == '*';
		/* As a whole component, the double star and its slash may stand for nothing. */
		if (deep && g->pattern[i + 2] == '/' && (i == 0 || g->pattern[i - 1] == '/'))
			reach(g, i + 3);
		i += deep ? 2 : 1;
	}
}

static void step(const struct glob *from, struct glob *to, char c)
{
	for (size_t i = 0; i < from->len; i++) {
		if (!from->live[i])
			continue;
		const char *p = from->pattern + i;
		bool deep = p[0] == '*' && p[1] == '*';
		if (deep) {
			/* It goes on, or ends in front of its slash: past that only at the start
			 * of a component.  What reaches i anew comes from smaller positions, so
			 * before this. */
			to->live[i] = true;
			reach(to, i + 2);
		} else if (p[0] == '*' && c != '/')
			reach(to, i);
		else if (p[0] != '*' && (p[0] == c || (p[0] == '?' && c != '/')))
			reach(to, i + 1);
	}
}

bool glob_match(const char *pattern, const char *path)
{
	size_t len = strlen(pattern);
	auto_free bool *a = xcalloc(len + 1, sizeof(bool));
	auto_free bool *b = xcalloc(len + 1, sizeof(bool));
	struct glob now = {pattern, len, a}, next = {pattern, len, b};
	reach(&now, 0);
	for (; *path; path++) {
		memset(next.live, 0, len + 1);
		step(&now, &next, *path);
		bool *swap = now.live;
		now.live = next.live;
		next.live = swap;
	}
	return now.live[len];
}
