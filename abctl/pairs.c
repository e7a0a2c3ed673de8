#include "abctl/pairs.h"
#include "abctl/fail.h"
#include "base/neutral.h"
#include "base/mem.h"

#include <string.h>

static bool same_name(const char *kv, const char *name, size_t n)
{
	return strncmp(kv, name, n) == 0 && kv[n] == '=';
}

int pairs_check(const char *option, const struct opt_list *list)
{
	for (int i = 0; i < list->n; i++) {
		const char *kv = list->v[i], *eq = strchr(kv, '=');
		if (!eq || eq == kv)
			return fail_usage("--%s takes K=V, not '%s'", option, kv);
		if (!neutral_is_text(kv, strlen(kv)))
			return fail_usage("--%s '%s' is not UTF-8", option, kv);
		/* The last one would win, and who wrote the first would not hear of it. */
		for (int j = 0; j < i; j++)
			if (same_name(list->v[j], kv, (size_t)(eq - kv)))
				return fail_usage("--%s '%.*s' is given twice: '%s' and '%s'",
				        option, (int)(eq - kv), kv, list->v[j], kv);
	}
	return 0;
}

void pairs_write(struct jw *w, const struct opt_list *list)
{
	for (int i = 0; i < list->n; i++) {
		const char *eq = strchr(list->v[i], '=');
		auto_free char *k = xstrndup(list->v[i], (size_t)(eq - list->v[i]));
		jw_str(w, k, eq + 1);
	}
}

bool pairs_have(const struct opt_list *list, const char *name)
{
	for (int i = 0; i < list->n; i++)
		if (same_name(list->v[i], name, strlen(name)))
			return true;
	return false;
}

int pairs_object(struct jw *w, const char *key, const char *option, const struct opt_list *list)
{
	int r = pairs_check(option, list);
	if (r || !list->n)
		return r;
	jw_open(w, key, '{');
	pairs_write(w, list);
	jw_close(w, '}');
	return 0;
}
