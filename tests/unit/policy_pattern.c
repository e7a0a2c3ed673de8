/* Patterns: as regexec finds them, in pieces of any size, in bounded time. */
#include "policy/pattern.h"

#include "base/clock.h"
#include "base/mem.h"
#include "tests/t.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>

static struct patterns *one(const char *text)
{
	struct err e;
	struct patterns *p = patterns_new(&text, 1, &e);
	must(p != NULL, "'%s': %s", text, e.text);
	return p;
}

static int finds(const char *pattern, const char *text)
{
	struct patterns *p = one(pattern);
	int r = patterns_find(p, text, strlen(text));
	patterns_free(p);
	return r == 0;
}

static void language(void)
{
	static const struct {
		const char *pattern, *text;
		int want;
	} rows[] = {
	        {"abc", "xabcx", 1},
	        {"abc", "ab c", 0},
	        {"a.c", "a\nc", 0},
	        {"a.c", "abc", 1},
	        {"^b", "a\nb", 1},
	        {"^b", "ab", 0},
	        {"a$", "a\nb", 1},
	        {"a$", "ab", 0},
	        {"a$", "ba", 1},
	        {"^$", "a\n\nb", 1},
	        {"^$", "a\nb", 0},
	        {"(?i)SeCret", "a sEcReT", 1},
	        {"SeCret", "a sEcReT", 0},
	        {"(?i)[^a]b", "Ab", 0},
	        {"[^a]b", "Ab", 1},
	        {"[[:digit:]]{3}-[0-9]{2}", "x123-45", 1},
	        {"[[:digit:]]{3}-[0-9]{2}", "x12-345", 0},
	        {"\\d+\\.\\d", "v1.2", 1},
	        {"\\bkey\\b", "a key.", 1},
	        {"\\bkey\\b", "monkey", 0},
	        {"\\Bkey", "monkey", 1},
	        {"a\\sb", "a\nb", 1},
	        {"[^x]b", "a\nb", 0},
	        {"a{2,3}b", "ab", 0},
	        {"a{2,3}b", "aab", 1},
	        {"(a|bc)+d", "abcbcad", 1},
	        {"\xc3\xa4+x", "\xc3\xa4\xc3\xa4x", 1},
	        {"b\xc3\xa4{2}x", "b\xc3\xa4x", 0},
	        {"b\xc3\xa4{2}x", "b\xc3\xa4\xc3\xa4x", 1},
	        {"[]x]", "]", 1},
	        {"[a-]", "-", 1},
	        {"[\\\\]", "\\", 1},
	        {"x(|y)z", "xz", 1},
	        {"x(((a*)*)*)*y", "xaaay", 1},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		ok(finds(rows[i].pattern, rows[i].text) == rows[i].want, "'%s' in %zu",
		        rows[i].pattern, i);
}

static void refused(void)
{
	static const char *const bad[] = {"", "(", ")", "a)", "(a", "[", "[a", "a**", "a+?", "*a",
	        "a{", "a{2", "a{3,2}", "a{256}", "{2}", "\\", "\\1", "\\q", "(?=a)", "(?i)",
	        "[[:alhpa:]]", "[[.a.]]", "[z-a]", "[\xc3\xa4]", "[\\d]", "a*", "", "a|", "$",
	        "(((a{99}){99}){99}){99}", "((((){255}){255}){255}){255}",
	        "((((((((a?){9}){9}){9}){9}){9}){9}){9}){9}"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct err e = {0};
		ok(pattern_check(bad[i], &e) < 0 && e.text[0], "'%s': %s", bad[i], e.text);
	}
	char deep[PATTERN_TEXT_MAX + 8];
	struct err e;
	memset(deep, '(', sizeof(deep));
	deep[PATTERN_TEXT_MAX] = '\0';
	ok(pattern_check(deep, &e) == -E2BIG, "too many brackets");
	memset(deep, 'a', sizeof(deep));
	deep[PATTERN_TEXT_MAX] = '\0';
	ok(pattern_check(deep, &e) == 0, "the longest");
	deep[PATTERN_TEXT_MAX] = 'a';
	deep[PATTERN_TEXT_MAX + 1] = '\0';
	ok(pattern_check(deep, &e) == -E2BIG, "and one more");
}

/* ---- against the C library ---- */

static uint32_t seed = 1;
static unsigned rnd(unsigned n)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % n;
}

static void random_pattern(char *to, size_t room)
{
	static const char *const parts[] = {"a", "b", "c", ".", "[ab]", "[^a]", "(a|b)", "(ab)",
	        "^", "$", "a*", "b+", "c?", "(a|bc)*", "a{2}", "b{1,2}", "(b|c$)", "[[:alpha:]]"};
	to[0] = '\0';
	for (unsigned i = 0, n = 1 + rnd(5); i < n; i++) {
		const char *part = parts[rnd(sizeof(parts) / sizeof(parts[0]))];
		size_t len = strlen(to);
		snprintf(to + len, room - len, "%s%s", i && rnd(6) == 0 ? "|" : "", part);
	}
}

static void alike(void)
{
	unsigned differ = 0, found = 0, tried = 0;
	for (int i = 0; i < 4000; i++) {
		char pattern[128], text[24];
		struct err e;
		regex_t re;
		random_pattern(pattern, sizeof(pattern));
		const char *list = pattern;
		struct patterns *p = patterns_new(&list, 1, &e);
		if (!p || regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB | REG_NEWLINE) != 0) {
			patterns_free(p);
			continue;
		}
		for (int k = 0; k < 10; k++, tried++) {
			size_t n = rnd(sizeof(text) - 1);
			for (size_t j = 0; j < n; j++)
				text[j] = "abc\nd"[rnd(5)];
			text[n] = '\0';
			int want = regexec(&re, text, 0, NULL, 0) == 0;
			patterns_begin(p);
			int got = PATTERN_NONE;
			for (size_t j = 0; j < n;) { /* in pieces */
				size_t m = 1 + rnd((unsigned)(n - j));
				got = patterns_feed(p, text + j, m);
				j += m;
			}
			if (got == PATTERN_NONE)
				got = patterns_end(p);
			found += want;
			if ((got == 0) != want && differ++ < 5)
				printf("# '%s' in '%s': %d, want %d\n", pattern, text, got, want);
		}
		regfree(&re);
		patterns_free(p);
	}
	ok(differ == 0 && tried > 20000 && found > 1000, "%u texts, %u with a match, %u differ",
	        tried, found, differ);
}

/* ---- many, and hostile ones ---- */

static void together(void)
{
	struct err e;
	const char *list[] = {"one", "two$", "t.ree"};
	struct patterns *p = patterns_new(list, 3, &e);
	must(p != NULL, "%s", e.text);
	ok(patterns_find(p, "a one", 5) == 0 && patterns_find(p, "a two", 5) == 1 &&
	                patterns_find(p, "three", 5) == 2 && patterns_find(p, "two.", 4) == -1,
	        "which one was found");
	patterns_begin(p);
	ok(patterns_feed(p, "tw", 2) == -1 && patterns_feed(p, "", 0) == -1 &&
	                patterns_feed(p, "o", 1) == -1 && patterns_end(p) == 1,
	        "over the borders of pieces");
	patterns_begin(p);
	ok(patterns_feed(p, "on", 2) == -1 && patterns_feed(p, "e", 1) == 0,
	        "found with its last byte");
	ok(patterns_feed(p, "two", 3) == 0, "and stays");
	patterns_free(p);
	static const char wide[] = "(a|b|c|d|e|f|g|h){200}z";
	const char *many[64];
	for (size_t i = 0; i < 64; i++)
		many[i] = wide;
	p = patterns_new(many, 64, &e);
	ok(!p && e.code == -E2BIG, "too many together: %s", e.text);
}

/* 2^18 states, whatever is remembered; what is not hostile costs a look a byte. */
static void bounded(void)
{
	enum { N = 4 << 20 };
	char *text = xcalloc(1, N);
	struct patterns *p = one("(a|b)*a(a|b){200}c");
	for (size_t i = 0; i < N; i++)
		text[i] = "ab"[rnd(2)];
	int64_t begun = clock_mono_us();
	int r = patterns_find(p, text, N);
	int64_t took = clock_mono_us() - begun;
	ok(r == PATTERN_COSTLY, "one that is made to be slow is too costly");
	ok(took < 20 * 1000000, "and told so in time (%lld ms)", (long long)(took / 1000));
	patterns_free(p);
	p = one("(x+x+)+y");
	memset(text, 'x', N);
	begun = clock_mono_us();
	r = patterns_find(p, text, N);
	ok(r == PATTERN_NONE, "what other engines never end with: %lld ms for 4 MiB",
	        (long long)(clock_mono_us() - begun) / 1000);
	text[N - 1] = 'y';
	ok(patterns_find(p, text, N) == 0, "and its match is found");
	patterns_free(p);
	free(text);
}

int main(void)
{
	language();
	refused();
	alike();
	together();
	bounded();
	return done();
}
