#include "supervisor/packs.h"

#include "base/fd.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/wish.h"
#include "policy/forms.h"
#include "policy/keys.h"
#include "policy/wishes.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RECORD_MAX = 64 << 10, GRANTS_MAX = 256 };

static char **read_grants(const struct json *record)
{
	char **grants = xcalloc(GRANTS_MAX + 1, sizeof(*grants));
	size_t n = 0;
	const struct json *list = json_get(record, "grants");
	for (const struct json *x = json_first(list); x && n < GRANTS_MAX; x = json_next(x))
		if (json_text(x))
			grants[n++] = xstrdup(json_text(x));
	return grants;
}

static void read_record(struct pack *p, int dir, struct err *e)
{
	auto_free char *path = xasprintf("packs/%s/INSTALLED", p->name);
	auto_free char *text = NULL;
	size_t n = 0;
	struct stat st;
	if (fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		(void)err_errno(e, "%s", path);
		return;
	}
	p->time = st.st_ctim;
	if (file_slurp_plain_at(dir, path, RECORD_MAX, &text, &n, e) < 0)
		return;
	auto_json struct json *record = json_parse(text, n, e);
	const char *below = json_str(record, "harnesses", "");
	if (!record || (strcmp(below, ".") != 0 && !form_relative(below))) {
		(void)err_set(e, -EBADMSG, "%s is damaged", path);
		return;
	}
	free(p->dir);
	p->dir = strcmp(below, ".") == 0 ? xasprintf("packs/%s", p->name)
	                                 : xasprintf("packs/%s/%s", p->name, below);
	p->grants = read_grants(record);
}

static void load(int dir, const char *name, packs_fn *fn, void *ctx)
{
	struct err e = {0};
	struct pack p = {.name = xstrdup(name), .dir = xasprintf("packs/%s/harnesses", name)};
	read_record(&p, dir, &e);
	if (e.code)
		p.error = xasprintf("%s; remedy: abctl pack rm %s, and add it", e.text, name);
	fn(ctx, &p);
	free(p.name);
	free(p.dir);
	list_free(p.grants);
	free(p.error);
}

void packs_each(int dir, packs_fn *fn, void *ctx)
{
	struct dirent **names = NULL;
	int n = dir < 0 ? -1 : scandirat(dir, "packs", &names, wish_pack_entry, alphasort);
	for (int i = 0; i < n; i++) {
		load(dir, names[i]->d_name, fn, ctx);
		free(names[i]);
	}
	free(names);
}

int pack_allows(const struct pack *p, const struct harness *h, struct err *e)
{
	if (p->error)
		return err_set(e, -EACCES, "%s: %s", h->file, p->error);
	return harness_granted(h, p->grants, e);
}
