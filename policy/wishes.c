#include "policy/wishes.h"

#include "base/id.h"
#include "base/mem.h"
#include "base/wish.h"

#include <string.h>

struct asking {
	wish_fn *fn;
	void *ctx;
};

static void ask(const struct asking *a, int line, const char *kind, const char *value)
{
	auto_free char *wish = xasprintf("%s:%s", kind, value);
	a->fn(a->ctx, line ? line : 1, wish);
}

static void ask_each(const struct asking *a, int line, const char *kind, char *const *values)
{
	for (; values && *values; values++)
		ask(a, line, kind, *values);
}

/* What is not here ends in the jail, whoever wrote it: commands, `verify`, servers of tools and
 * checkouts reach what the policy lets them reach, and limits only tighten. */
void harness_wishes(const struct harness *h, wish_fn *fn, void *ctx)
{
	const struct asking a = {fn, ctx};
	const struct harness_lines *at = &h->lines;
	const struct {
		const char *kind, *value;
		int line;
	} texts[] = {{"policy", h->policy, at->policy}, {"template", h->template_dir, at->template},
	        {"snapshot", h->snapshot, at->snapshot}, {"repo", h->repo, at->repo},
	        {"user", h->user == HARNESS_USER_ROOT ? "root" : NULL, at->user},
	        {"warm", h->warm_ahead ? "ahead" : NULL, at->warm}};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (texts[i].value)
			ask(&a, texts[i].line, texts[i].kind, texts[i].value);
	/* Who says nothing of secrets would have all that the policy injects. */
	if (!h->secrets)
		ask(&a, 1, "secrets", "*");
	ask_each(&a, at->secrets, "secrets", h->secrets);
	ask_each(&a, at->env, "env", h->env_names);
	ask_each(&a, at->webhooks, "webhooks", h->webhooks);
}

bool wish_granted(const char *wish, char *const *grants)
{
	for (; grants && *grants; grants++)
		if (wish_covered(wish, *grants))
			return true;
	return false;
}

struct checking {
	const struct harness *h;
	char *const *grants;
	struct err *e;
};

static void check(void *ctx, int line, const char *wish)
{
	const struct checking *c = ctx;
	if (c->e->code == 0 && !wish_granted(wish, c->grants))
		(void)err_set(c->e, -EACCES,
		        "%s:%d: its pack is not granted '%s'; remedy: abctl pack update --grant",
		        c->h->file, line, wish);
}

int harness_granted(const struct harness *h, char *const *grants, struct err *e)
{
	e->code = 0;
	struct checking c = {h, grants, e};
	harness_wishes(h, check, &c);
	return e->code;
}

char *pack_of_file(const char *file)
{
	static const char below[] = "packs/";
	if (strncmp(file, below, sizeof(below) - 1) != 0)
		return NULL;
	file += sizeof(below) - 1;
	auto_free char *name = xstrndup(file, strcspn(file, "/"));
	return file[strlen(name)] == '/' && name_valid(name) ? take(name) : NULL;
}
