#include "drivers/rules.h"
#include "base/glob.h"
#include "base/mem.h"
#include "drivers/shell_parts.h"

#include <ctype.h>
#include <string.h>

/* ---- reading a rule ---- */

bool rules_is_mcp(const char *rule)
{
	return strncmp(rule, "mcp__", 5) == 0;
}

bool rules_has_pattern(const char *rule)
{
	return strchr(rule, '(') != NULL;
}

bool rules_any_pattern(const char *const *rules)
{
	for (; rules && *rules; rules++)
		if (rules_has_pattern(*rules))
			return true;
	return false;
}

static size_t base_len(const char *rule)
{
	return strcspn(rule, "(");
}

char *rules_base(const char *rule)
{
	return xstrndup(rule, base_len(rule));
}

/* The text between the parentheses; returns owned. */
static char *pattern_of(const char *rule)
{
	const char *p = rule + base_len(rule) + 1;
	return xstrndup(p, strlen(p) - 1); /* rules_check saw the closing one */
}

/* Which member of the input a pattern of the tool is about. */
static const struct {
	const char *tool, *member;
} subjects[] = {
        {"Bash", "command"},
        {"Read", "file_path"},
        {"Edit", "file_path"},
        {"Write", "file_path"},
        {"MultiEdit", "file_path"},
        {"NotebookEdit", "notebook_path"},
        {"Glob", "path"},
        {"Grep", "path"},
        {"WebFetch", "url"},
};

static const char *subject_member(const char *tool)
{
	for (size_t i = 0; i < ARRAY_LEN(subjects); i++)
		if (strcmp(subjects[i].tool, tool) == 0)
			return subjects[i].member;
	return NULL;
}

static int check_pattern(const char *rule, const char *base, bool enforce, struct err *e)
{
	size_t n = strlen(rule), b = strlen(base);
	if (rule[n - 1] != ')' || n - b < 3)
		return err_set(e, -ENOEXEC, "tool rule '%s': want NAME or NAME(PATTERN)", rule);
	if (rules_is_mcp(base))
		return err_set(
		        e, -ENOEXEC, "tool rule '%s': tools of MCP servers take no pattern", rule);
	if (!enforce)
		return 0;
	if (!subject_member(base))
		return err_set(e, -ENOEXEC,
		        "tool rule '%s': patterns of %s cannot be enforced; allow the whole tool "
		        "or none "
		        "of it",
		        rule, base);
	if (strcmp(base, "WebFetch") == 0 && strncmp(rule + b, "(domain:", 8) != 0)
		return err_set(e, -ENOEXEC, "tool rule '%s': want WebFetch(domain:HOST)", rule);
	if (rule[b + 1] == '~')
		return err_set(e, -ENOEXEC, "tool rule '%s': write the path without ~", rule);
	return 0;
}

int rules_check(const char *rule, bool enforce, struct err *e)
{
	size_t b = base_len(rule);
	if (b == 0 || strlen(rule) > 4096)
		return err_set(e, -ENOEXEC, "tool rule '%.80s': want NAME or NAME(PATTERN)", rule);
	for (size_t i = 0; i < b; i++) {
		bool star = rule[i] == '*' && i + 1 == b && rules_is_mcp(rule) && b > 7 &&
		            rule[i - 1] == '_' && rule[i - 2] == '_';
		if (!isalnum((unsigned char)rule[i]) && rule[i] != '_' && !(rule[i] == '-' && i) &&
		        !star)
			return err_set(e, -ENOEXEC,
			        "tool rule '%.80s': '%c' is not part of a tool's name", rule,
			        rule[i]);
	}
	if (!rules_has_pattern(rule))
		return 0;
	auto_free char *base = rules_base(rule);
	return check_pattern(rule, base, enforce, e);
}

/* ---- does it cover the call? ---- */

/* Claude calls its subagent tool Task in one place and Agent in another. */
static const char *canonical(const char *tool)
{
	return strcmp(tool, "Agent") == 0 ? "Task" : tool;
}

static bool mcp_names(const char *rule, const char *tool)
{
	size_t n = strlen(rule);
	if (rule[n - 1] == '*')
		return strncmp(rule, tool, n - 1) == 0;
	if (strcmp(rule, tool) == 0)
		return true;
	bool server_only = strstr(rule + 5, "__") == NULL;
	return server_only && strncmp(rule, tool, n) == 0 && strncmp(tool + n, "__", 2) == 0;
}

bool rules_names(const char *rule, const char *tool)
{
	if (rules_is_mcp(rule))
		return mcp_names(rule, tool);
	auto_free char *base = rules_base(rule);
	return strcmp(canonical(base), canonical(tool)) == 0;
}

/* `*` is any text, all else literal; both anchored.  O(pattern x text). */
static bool star_match(const char *pat, const char *s, size_t n)
{
	const char *end = s + n, *star = NULL, *again = NULL;
	while (s < end) {
		if (*pat == '*') {
			star = pat++;
			again = s;
		} else if (*pat && *pat == *s) {
			pat++;
			s++;
		} else if (star) {
			pat = star + 1;
			s = ++again;
		} else {
			return false;
		}
	}
	while (*pat == '*')
		pat++;
	return *pat == '\0';
}

static bool command_match(const char *pat, const char *s, size_t n)
{
	size_t k = strlen(pat);
	if (k > 2 && strcmp(pat + k - 2, ":*") == 0) {
		k -= 2;
		return n >= k && memcmp(pat, s, k) == 0 && (n == k || s[k] == ' ' || s[k] == '\t');
	}
	return star_match(pat, s, n);
}

struct part_query {
	const char *const *rules;
	const char *tool;
};

static bool part_allowed(void *ctx, const char *part, size_t n)
{
	const struct part_query *q = ctx;
	for (const char *const *r = q->rules; *r; r++) {
		if (!rules_has_pattern(*r) || !rules_names(*r, q->tool))
			continue;
		auto_free char *pat = pattern_of(*r);
		if (command_match(pat, part, n))
			return true;
	}
	return false;
}

/* A path that says itself where it leads: no `..`, no empty or `.` component. */
static bool path_is_plain(const char *path)
{
	for (const char *p = path; *p;) {
		size_t n = strcspn(p, "/");
		if ((n == 0 && p != path) || (n == 1 && *p == '.') ||
		        (n == 2 && memcmp(p, "..", 2) == 0))
			return false;
		p += n;
		if (*p == '/' && *++p == '\0')
			return true; /* one slash at the end is fine */
	}
	return true;
}

static bool path_match(const char *pat, const char *path, const char *cwd)
{
	if (!path_is_plain(path))
		return false;
	if (pat[0] == '/' && pat[1] == '/')
		return path[0] == '/' && glob_match(pat + 1, path);
	pat += pat[0] == '/' ? 1 : strncmp(pat, "./", 2) == 0 ? 2 : 0;
	if (path[0] == '/') {
		size_t n = cwd ? strlen(cwd) : 0;
		if (n == 0 || strncmp(path, cwd, n) != 0 || path[n] != '/')
			return false;
		path += n + 1;
	}
	return glob_match(pat, path);
}

static bool host_match(const char *pat, const char *url)
{
	size_t scheme = strncmp(url, "https://", 8) == 0  ? 8
	                : strncmp(url, "http://", 7) == 0 ? 7
	                                                  : 0;
	const char *host = url + scheme;
	size_t n = strcspn(host, "/?#\\"), bare = strcspn(host, ":/?#\\");
	if (!scheme || bare == 0 || memchr(host, '@', n))
		return false;
	auto_free char *lower = xstrndup(host, bare);
	for (char *c = lower; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	return star_match(pat + strlen("domain:"), lower, bare);
}

static bool pattern_covers(const char *rule, const char *tool, const char *subject, const char *cwd)
{
	auto_free char *pat = pattern_of(rule);
	if (strcmp(tool, "WebFetch") == 0)
		return host_match(pat, subject);
	return path_match(pat, subject, cwd);
}

bool rules_allow(
        const char *const *rules, const char *tool, const struct json *input, const char *cwd)
{
	if (!rules)
		return false;
	for (const char *const *r = rules; *r; r++)
		if (!rules_has_pattern(*r) && rules_names(*r, tool))
			return true;
	const char *member = subject_member(tool);
	const char *subject = member ? json_str(input, member, NULL) : NULL;
	if (!subject)
		return false;
	if (strcmp(tool, "Bash") == 0)
		return shell_parts(subject, part_allowed, &(struct part_query){rules, tool});
	for (const char *const *r = rules; *r; r++)
		if (rules_has_pattern(*r) && rules_names(*r, tool) &&
		        pattern_covers(*r, tool, subject, cwd))
			return true;
	return false;
}
