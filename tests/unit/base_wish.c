/* What a grant covers, and what in a directory is a pack. */
#include "base/wish.h"

#include "base/mem.h"
#include "tests/t.h"

static void covered(void)
{
	static const struct {
		const char *wish, *grant;
		bool yes;
	} rows[] = {
	        {"policy:open", "policy:open", true},
	        {"policy:open", "policy:*", true},
	        {"policy:open", "policy:ope", false},
	        {"policy:open", "policy:opened", false},
	        {"policy:open", "policy", false},
	        {"policy:open", "*", false},
	        {"policy:open", "*:*", false},
	        {"policy:open", "pol:*", false},
	        {"policy:open", "policy2:*", false},
	        {"policy:open", "secrets:*", false},
	        {"secrets:*", "secrets:*", true},
	        {"secrets:*", "secrets:token", false},
	        {"repo:https://h/a,b", "repo:https://h/a,b", true},
	        {"policy:open", "", false},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		ok(wish_covered(rows[i].wish, rows[i].grant) == rows[i].yes, "%s by '%s'",
		        rows[i].wish, rows[i].grant);
}

static void entries(void)
{
	static const struct {
		const char *name;
		int yes;
	} rows[] = {{"one", 1}, {"one-2", 1}, {".install-x", 0}, {"..", 0}, {"a.old", 0}, {"", 0}};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct dirent d = {0};
		must(str_copy(d.d_name, sizeof(d.d_name), rows[i].name), "it fits");
		ok(!wish_pack_entry(&d) == !rows[i].yes, "'%s'", rows[i].name);
	}
}

int main(void)
{
	covered();
	entries();
	return done();
}
