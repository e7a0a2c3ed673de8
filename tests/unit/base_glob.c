#include "base/glob.h"
#include "tests/t.h"

static const struct {
	const char *pattern, *path;
	bool match;
} rows[] = {
        {"out/*.txt", "out/a.txt", true},
        {"out/*.txt", "out/a/b.txt", false},
        {"out/**/*.pptx", "out/x.pptx", true},
        {"out/**/*.pptx", "out/a/b/x.pptx", true},
        {"out/**", "out/a/b", true},
        {"out/**", "out", false},
        {"**", "any/thing", true},
        {"**/x", "x", true},
        {"**/x", "a/b/x", true},
        {"**/x", "a/bx", false},
        {"**/x", "/x", true},
        {"**/x", "bx", false},
        {"a/**/b", "a/b", true},
        {"a/**/b", "a/x/b", true},
        {"a/**/b", "a/xb", false},
        {"a/**/b", "ab", false},
        {"**/**/b", "x/b", true},
        {"**/**/b", "b", true},
        {"**/**/b", "x/cb", false},
        {"a**/b", "ab", false},
        {"a**/b", "a/b", true},
        {"a**/b", "axy/z/b", true},
        {"**/*.c", "a.c", true},
        {"**/*.c", "x/a.c", true},
        {"**/.git/**", "a.git/x", false},
        {"**/.git/**", "s/.git/x", true},
        {"?.c", "a.c", true},
        {"?.c", "/.c", false},
        {"a[b]", "a[b]", true},
        {"a[b]", "ab", false},
        {"", "", true},
        {"", "a", false},
        {"*", "", true},
        {"*", ".hidden", true},
        {"a*b*c", "aXXbYYc", true},
        {"a*b*c", "aXXbYY", false},
};

int main(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		ok(glob_match(rows[i].pattern, rows[i].path) == rows[i].match, "'%s' %s '%s'",
		        rows[i].pattern, rows[i].match ? "matches" : "does not match",
		        rows[i].path);
	char stars[201], path[4001];
	for (int i = 0; i < 200; i++)
		stars[i] = i % 2 ? 'a' : '*';
	stars[200] = '\0';
	memset(path, 'a', 4000);
	path[4000] = '\0';
	ok(glob_match(stars, path), "100 stars against 4000 characters end at once");
	path[3999] = 'b';
	ok(!glob_match(stars, path), "also where nothing matches");
	return done();
}
