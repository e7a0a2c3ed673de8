#include "policy/pack.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/ids.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/privs.h"
#include "policy/forms.h"
#include "policy/keys.h"
#include "policy/policyc.h"
#include "policy/report.h"
#include "policy/wishes.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OUTPUT_MAX = 512 << 10 };

struct pack {
	struct buf *out; /* borrowed: what is printed where nothing is wrong */
	char *name, *version, *description, *dir; /* owned */
	char *names[PACK_HARNESSES_MAX];          /* owned: of the harnesses so far */
	size_t nnames;
};

static void pack_done(struct pack *p)
{
	free(p->name);
	free(p->version);
	free(p->description);
	free(p->dir);
	for (size_t i = 0; i < p->nnames; i++)
		free(p->names[i]);
}

/* ---- the manifest ---- */

/* What a stranger's text is parsed by has no way to anything else. */
static int enter(const char *dir, struct err *e)
{
	if (chdir(dir) < 0)
		return err_errno(e, "%s", dir);
	if (geteuid() != 0)
		return 0;
	return chroot(".") < 0 ? err_errno(e, "%s as root", dir)
	                       : privs_drop(ID_POLICYC, ID_POLICYC, e);
}

static int take_text(const struct json *j, const char *key, form_fn *form, const char *want,
        char **ret, struct err *e)
{
	const struct json *value = json_get(j, key);
	const char *text = json_text(value);
	if (!value)
		return 0;
	if (!text || strlen(text) > 1024 || !form(text))
		return err_set(e, -EINVAL, PACK_MANIFEST ": '%s' must be %s", key, want);
	free(*ret);
	*ret = xstrdup(text);
	return 0;
}

static int known_keys(const struct json *j, struct err *e)
{
	static const char *const keys[] = {"name", "version", "description", "harnesses"};
	for (const struct json *m = json_first(j); m; m = json_next(m)) {
		const char *key = json_key(m);
		bool known = false;
		for (size_t i = 0; i < ARRAY_LEN(keys); i++)
			known |= strcmp(key, keys[i]) == 0;
		if (!known)
			return err_set(e, -EINVAL,
			        PACK_MANIFEST ": unknown key '%.60s' (there are name, version, "
			                      "description, harnesses)",
			        key);
		if (json_get(j, key) != m) /* which finds the first */
			return err_set(e, -EINVAL, PACK_MANIFEST ": '%s' is there twice", key);
	}
	return 0;
}

/* Shown to people, and written into the pack's record. */
static bool is_shown(const char *text)
{
	return form_line(text) && json_writable(text, strlen(text));
}

static int parse_manifest(const char *text, size_t n, struct pack *p, struct err *e)
{
	struct err why = {0};
	if (json_has_nul(text, n))
		return err_set(e, -EINVAL, PACK_MANIFEST ": a NUL character in it");
	auto_json struct json *j = json_parse(text, n, &why);
	if (!j)
		return err_set(e, -EINVAL, PACK_MANIFEST ": %s", why.text);
	if (!json_is_object(j))
		return err_set(e, -EINVAL, PACK_MANIFEST ": it must be an object");
	int r = known_keys(j, e);
	if (r == 0)
		r = take_text(
		        j, "name", form_name, "a name (a-z, 0-9, '.', '_', '-')", &p->name, e);
	if (r == 0)
		r = take_text(j, "version", is_shown, "one line of text", &p->version, e);
	if (r == 0)
		r = take_text(j, "description", is_shown, "one line of text", &p->description, e);
	return r < 0 ? r
	             : take_text(j, "harnesses", form_relative,
	                       "a relative path without '.' and '..'", &p->dir, e);
}

/* npm's own file says which version a package is. */
static void read_package(struct pack *p)
{
	struct err e;
	auto_free char *text = NULL;
	size_t n = 0;
	if (file_slurp_plain_at(AT_FDCWD, "package.json", PACK_MANIFEST_MAX, &text, &n, &e) < 0)
		return;
	auto_json struct json *j = json_parse(text, n, &e);
	const char *version = json_str(j, "version", "");
	if (*version && strlen(version) < 256 && is_shown(version))
		p->version = xstrdup(version);
}

/* Without a manifest it is what the original's packs are: harnesses/, else the root. */
static int read_manifest(struct pack *p, struct err *e)
{
	auto_free char *text = NULL;
	size_t n = 0;
	struct stat st;
	if (lstat(PACK_MANIFEST, &st) == 0) {
		int r = file_slurp_plain_at(
		        AT_FDCWD, PACK_MANIFEST, PACK_MANIFEST_MAX, &text, &n, e);
		if (r == 0)
			r = parse_manifest(text, n, p, e);
		if (r < 0)
			return r;
	}
	if (!p->version)
		read_package(p);
	if (!p->dir)
		p->dir = xstrdup(
		        stat("harnesses", &st) == 0 && S_ISDIR(st.st_mode) ? "harnesses" : ".");
	return 0;
}

/* ---- its harnesses ---- */

struct wishing {
	struct buf *out;
	const char *file;
};

static void print_wish(void *ctx, int line, const char *wish)
{
	const struct wishing *w = ctx;
	buf_printf(w->out, "wish %s:%d %s\n", w->file, line, wish);
}

/* Named and parsed as the supervisor will. */
static int print_harness(struct pack *p, const char *file, struct err *e)
{
	bool root = strcmp(p->dir, ".") == 0;
	auto_free char *path = xasprintf("%s%s%s", root ? "" : p->dir, root ? "" : "/", file);
	auto_free char *label = xasprintf("packs/%s/%s", p->name, path);
	auto_free char *text = NULL;
	size_t n = 0;
	int r = file_slurp_plain_at(AT_FDCWD, path, LIMIT_YAML_FILE, &text, &n, e);
	if (r < 0)
		return r;
	struct harness *h = harness_parse(label, text, n, NULL, NULL, e);
	if (!h)
		return -EINVAL;
	for (size_t i = 0; i < p->nnames && r == 0; i++)
		if (strcmp(p->names[i], h->name) == 0)
			r = err_set(e, -EINVAL,
			        "%s: another file of the pack is called '%s', too; remedy: another "
			        "`name:` in one of them",
			        label, h->name);
	p->names[p->nnames++] = xstrdup(h->name);
	buf_printf(p->out, "harness %s %s\n", h->name, path);
	struct wishing to = {p->out, path};
	harness_wishes(h, print_wish, &to);
	harness_unref(h);
	return r;
}

static int is_harness(const struct dirent *d)
{
	size_t n = strlen(d->d_name);
	return d->d_name[0] != '.' && n > 3 && strcmp(d->d_name + n - 3, ".md") == 0 &&
	       strcmp(d->d_name, "README.md") != 0;
}

static int print_harnesses(struct pack *p, struct err *e)
{
	struct dirent **names = NULL;
	int n = scandir(p->dir, &names, is_harness, alphasort), r = 0;
	if (n < 0)
		return err_errno(e, "the directory of its harnesses, '%s'", p->dir);
	if (n == 0 || n > PACK_HARNESSES_MAX)
		r = err_set(e, -EINVAL, "'%s' has %d harnesses (1 to %d files *.md)", p->dir, n,
		        PACK_HARNESSES_MAX);
	for (int i = 0; i < n; i++) {
		if (r == 0 && (strchr(names[i]->d_name, ' ') || !form_printable(names[i]->d_name)))
			r = err_set(
			        e, -EINVAL, "a file of a harness has blanks or worse in its name");
		if (r == 0)
			r = print_harness(p, names[i]->d_name, e);
		free(names[i]);
	}
	free(names);
	return r;
}

static int print(struct pack *p, const char *name, struct err *e)
{
	int r = read_manifest(p, e);
	if (r < 0)
		return r;
	if (strcmp(name, "-") != 0) {
		free(p->name);
		p->name = xstrdup(name);
	}
	if (!form_name(p->name) || strlen(p->name) >= PACK_NAME_MAX || strchr(p->name, '.'))
		return err_set(e, -EINVAL,
		        "'%.60s' is no name of a pack (a-z, 0-9, '_', '-', less than %d); give one "
		        "by --name",
		        p->name, PACK_NAME_MAX);
	buf_printf(p->out, "name %s\nversion %s\ndescription %s\ndir %s\n", p->name,
	        p->version ? p->version : "", p->description ? p->description : "", p->dir);
	return print_harnesses(p, e);
}

int pack_main(int argc, char **argv)
{
	if (argc != 3)
		return report_usage("pack DIR NAME|- DEFAULT");
	struct err e = {0};
	auto_buf struct buf out = BUF_INIT(OUTPUT_MAX);
	struct pack p = {.out = &out, .name = xstrdup(argv[2])};
	int r = enter(argv[0], &e);
	if (r < 0) {
		pack_done(&p);
		return report_system(&e);
	}
	r = print(&p, argv[1], &e);
	pack_done(&p);
	if (r == 0 && out.failed)
		r = err_set(&e, -E2BIG, "its harnesses want too much");
	if (r == 0) {
		(void)fwrite(out.p ? out.p : "", 1, out.len,
		        stdout); /* flushed, and looked at, by main */
		return POLICYC_OK;
	}
	report_error(stdout, &e);
	return POLICYC_REFUSED;
}
