/* Any bytes as JSON: what base/scan.h takes, the parser takes too, and both find the same. */
#include "base/json.h"
#include "base/mem.h"
#include "base/scan.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void same_text(struct span value, const struct json *tree)
{
	auto_buf struct buf b = BUF_INIT(1 << 20);
	const char *text = json_text(tree);
	if (!scan_text(value, &b))
		return;
	assert(text);
	/* A string of the tree ends at its first NUL; half a pair the tree does not take at all. */
	assert(strncmp(b.p, text, strlen(text)) == 0);
}

static void walk(struct span value, const struct json *tree, int depth)
{
	struct span at = {0};
	if (depth == 8)
		return;
	same_text(value, tree);
	const struct json *element = json_is_array(tree) ? json_first(tree) : NULL;
	while (scan_next(value, &at)) {
		assert(at.p >= value.p && at.p + at.n <= value.p + value.n);
		assert(element);
		walk(at, element, depth + 1);
		element = json_next(element);
	}
	assert(!element);
	struct span member;
	bool plain = !memchr(value.p, '\\', value.n); /* names are compared as they are written */
	if (plain && scan_member(value, "params", &member))
		walk(member, json_get(tree, "params"), depth + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span value, text = {(const char *)data, size};
	if (!scan_value(text, &value))
		return 0;
	auto_json struct json *tree = json_parse(text.p, text.n, NULL);
	if (tree)
		walk(value, tree, 0);
	else /* which has limits of its own, and wants both halves of a pair */
		assert(size > 512 << 10 || memmem(data, size, "\\u", 2));
	return 0;
}
