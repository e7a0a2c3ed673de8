/*
 * Patterns from harness files against what agents name: artifact globs, and the
 * tool rules that decide about commands, paths and hosts.  The input is
 * pattern, NUL, text.
 */
#include "base/glob.h"
#include "base/json.h"
#include "base/mem.h"
#include "drivers/rules.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void rule(const char *tool, const char *member, const char *pattern, const char *text)
{
	auto_free char *r = xasprintf("%s(%s)", tool, pattern);
	const char *const rules[] = {r, NULL};
	if (rules_check(r, true, NULL) < 0)
		return;
	auto_buf struct buf b = BUF_INIT(1 << 20);
	struct jw w = JW_INIT(&b);
	jw_open(&w, NULL, '{');
	jw_str(&w, member, text);
	jw_close(&w, '}');
	auto_json struct json *input = json_parse(b.p, b.len, NULL);
	bool yes = rules_allow(rules, tool, input, "/workspace");
	/* What no pattern may ever cover. */
	if (strcmp(tool, "Bash") == 0)
		assert(!yes || (!strstr(text, "$(") && !strchr(text, '`')) || strchr(text, '\'') ||
		        strchr(text, '\\'));
	else if (strcmp(tool, "Write") == 0)
		assert(!yes || !strstr(text, "/../"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 1000) /* time is length x length, by design */
		return 0;
	auto_free char *pattern = xstrndup((const char *)data, size);
	size_t n = strlen(pattern);
	auto_free char *text =
	        n < size ? xstrndup((const char *)data + n + 1, size - n - 1) : xstrdup("");
	(void)glob_match(pattern, text);
	rule("Bash", "command", pattern, text);
	rule("Write", "file_path", pattern, text);
	rule("WebFetch", "url", pattern, text);
	return 0;
}
