/* A directory as a page: whatever the order in which its names come. */
#include "supervisor/file_list.h"

#include "base/json.h"
#include "base/mem.h"
#include "tests/t.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { FILES = 1000 };

/* Names f0000 to f0999, none in its place. */
static void fill(struct file_list *l)
{
	for (unsigned i = 0; i < FILES; i++) {
		char name[16];
		snprintf(name, sizeof(name), "f%04u", i * 617 % FILES);
		file_list_add(l, name, S_IFREG | 0644, i, 0);
	}
}

/* How many pages of `limit` hold all names in order, or -1. */
static int pages(unsigned limit)
{
	unsigned next = 0;
	char cursor[300] = "";
	for (int n = 1; n <= FILES; n++) {
		struct file_list *l = file_list_new(limit, cursor[0] ? cursor : NULL);
		struct buf text;
		fill(l);
		file_list_json(l, "d", false, &text);
		struct json *j = json_parse(text.p, text.len, NULL);
		const struct json *x = json_first(json_get(j, "entries"));
		for (; x; x = json_next(x)) {
			char want[16];
			snprintf(want, sizeof(want), "f%04u", next++);
			if (strcmp(json_str(x, "name", ""), want) != 0)
				n = FILES + 1;
		}
		const char *more = json_str(j, "cursor", NULL);
		snprintf(cursor, sizeof(cursor), "%s", more ? more : "");
		json_free(j);
		buf_done(&text);
		file_list_free(l);
		if (!cursor[0])
			return n <= FILES && next == FILES ? n : -1;
	}
	return -1;
}

static void test_names(void)
{
	struct file_list *l = file_list_new(1000, NULL);
	struct buf text;
	char name[256];
	memset(name, 1, 255); /* six characters each */
	name[255] = '\0';
	for (unsigned i = 0; i < FILES; i++) {
		name[0] = (char)('a' + i % 26);
		name[1] = (char)('a' + i / 26 % 26);
		name[2] = (char)('a' + i / 676);
		file_list_add(l, name, S_IFREG, 0, 0);
	}
	file_list_add(l, "bad\377", S_IFREG, 0, 0);
	file_list_json(l, "", true, &text);
	ok(!text.failed, "the longest names fit");
	struct json *j = json_parse(text.p, text.len, NULL);
	ok(j && json_int(j, "unnamed", 0) == 1, "one that is no UTF-8 is counted");
	ok(json_bool(j, "truncated", false), "a cut is told");
	ok(!json_get(j, "cursor"), "and a last page is one");
	json_free(j);
	buf_done(&text);
	file_list_free(l);
}

int main(void)
{
	ok(pages(1) == FILES, "a page each");
	ok(pages(7) == 143, "pages of seven");
	ok(pages(FILES - 1) == 2, "all but one");
	ok(pages(FILES) == 1, "all");
	test_names();
	return done();
}
