#include "policy/lookup.h"
#include "base/fd.h"
#include "base/mem.h"
#include "policy/builtin.h"
#include "policy/keys.h"
#include "policy/policy_yaml.h"
#include "policy/policyc.h"

#include <stdio.h>
#include <string.h>

static bool is_path(const char *what)
{
	size_t n = strlen(what);
	return strchr(what, '/') || (n > 5 && strcmp(what + n - 5, ".yaml") == 0);
}

static char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;
	size_t n = strlen(base);
	if (n > 5 && strcmp(base + n - 5, ".yaml") == 0)
		n -= 5;
	return xstrndup(base, n);
}

/* Adds a text that has been parsed once already, and then what it extends. */
static int add_doc(
        struct lookup *l, const char *file, const char *text, size_t n, bool own, struct err *e)
{
	if (l->ndocs == LOOKUP_DOCS)
		return err_set(e, -EINVAL, "%s: extends too many policies", file);
	struct yaml_doc *d = yaml_parse(file, 1, text, n, e);
	if (!d)
		return -EINVAL;
	l->docs[l->ndocs++] = d;
	const struct yaml_node *extends = yaml_get(yaml_root(d), "extends");
	int base = extends && extends->kind == YAML_SCALAR ? builtin_find(extends->text)
	           : own                                   ? builtin_find("default")
	                                                   : -1;
	if (base < 0)
		return 0;
	const struct builtin *b = builtin_at((size_t)base);
	auto_free char *label = xasprintf("built-in/%s.yaml", b->name);
	return add_doc(l, label, b->text, (size_t)(b->end - b->text), false, e);
}

static int from_file(struct lookup *l, const char *path, struct err *e)
{
	auto_free char *text = NULL;
	size_t n = 0;
	int r = file_slurp(path, LIMIT_YAML_FILE, &text, &n);
	if (r < 0)
		return slurp_err(e, r, path, LIMIT_YAML_FILE);
	auto_free char *name = name_of(path);
	const struct keys_ctx k = {.file = path, .e = e};
	if (policy_parse(&k, name, text, n, &l->policy) < 0)
		return e->code = -EINVAL; /* whatever it was: the file has been read */
	return add_doc(l, path, text, n, true, e);
}

static int from_builtin(struct lookup *l, int index, struct err *e)
{
	const struct builtin *b = builtin_at((size_t)index);
	auto_free char *label = xasprintf("built-in/%s.yaml", b->name);
	int r = policy_builtin(index, &l->policy, e);
	return r < 0 ? r : add_doc(l, label, b->text, (size_t)(b->end - b->text), false, e);
}

static int not_found(const char *what, struct err *e)
{
	const size_t n = builtin_count();
	auto_free const char **names = xcalloc(n + 1, sizeof(*names));
	for (size_t i = 0; i < n; i++)
		names[i] = builtin_at(i)->name;
	const char *near = keys_nearest(what, names);
	return err_set(e, -ENOENT,
	        "no policy '%.64s' in " POLICYC_DIR " or among the built-ins%s%s%s", what,
	        near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}

static int find(struct lookup *l, const char *what, struct err *e)
{
	if (is_path(what))
		return from_file(l, what, e);
	auto_free char *path = xasprintf(POLICYC_DIR "/%s.yaml", what);
	int r = from_file(l, path, e);
	if (r != -ENOENT)
		return r;
	int index = builtin_find(what);
	if (index < 0)
		return not_found(what, e);
	return from_builtin(l, index, e);
}

struct lookup *lookup_policy(const char *what, struct err *e)
{
	auto_lookup struct lookup *l = xnew(struct lookup);
	if (find(l, what, e) < 0)
		return NULL;
	return take(l);
}

void lookup_free(struct lookup *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->ndocs; i++)
		yaml_doc_free(l->docs[i]);
	free(l);
}

const struct yaml_node *lookup_line(
        const struct lookup *l, const char *dotted, const char **ret_file)
{
	for (size_t i = 0; i < l->ndocs; i++) {
		const struct yaml_node *n = yaml_path(yaml_root(l->docs[i]), dotted);
		if (!n)
			continue;
		*ret_file = yaml_file(l->docs[i]);
		return n;
	}
	return NULL;
}
