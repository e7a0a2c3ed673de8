#include "policy/harness_pairs.h"
#include "base/mem.h"

int pairs_parse(const struct keys_ctx *k, const struct yaml_node *n, struct harness_pair **ret,
        size_t *ret_n, form_fn *form, const char *want)
{
	int r = keys_kind(k, n, YAML_MAP);
	if (r < 0)
		return r;
	yaml_each (it, n) {
		if (!form(it->key))
			return keys_error(
			        k, it->key_line, "'%s': '%.60s' is not %s", n->key, it->key, want);
		r = keys_kind(k, it, YAML_SCALAR);
		if (r < 0)
			return r;
	}
	struct harness_pair *pairs = xcalloc(n->count, sizeof(*pairs));
	size_t i = 0;
	yaml_each (it, n) {
		pairs[i].name = xstrdup(it->key);
		pairs[i++].value = xstrdup(it->text);
	}
	*ret = pairs;
	*ret_n = n->count;
	return 0;
}

int pairs_list(const struct keys_ctx *k, const struct yaml_node *map, const char *glue,
        form_fn *form, const char *want, char ***ret)
{
	struct harness_pair *pairs = NULL;
	size_t n = 0;
	int r = pairs_parse(k, map, &pairs, &n, form, want);
	if (r < 0)
		return r;
	char **list = xcalloc(n + 1, sizeof(*list));
	for (size_t i = 0; i < n; i++)
		list[i] = xasprintf("%s%s%s", pairs[i].name, glue, pairs[i].value);
	pairs_free(pairs, n);
	list_free(*ret);
	*ret = list;
	return 0;
}

void pairs_free(struct harness_pair *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(p[i].name);
		free(p[i].value);
	}
	free(p);
}
