#include "policy/shares_yaml.h"
#include "base/limits.h"
#include "base/mem.h"

#include <string.h>

static bool form_user(const char *text)
{
	return text[0] && form_line(text) && !strchr(text, '\t');
}

static const struct key share_rows[] = {
        {.name = "tenant",
                .type = KEY_FIXED,
                .offset = offsetof(struct run_share, tenant),
                .size = NAME_MAX_LEN,
                .form = form_name,
                .want = "a tenant's name",
                .dflt = "none",
                .doc = "Whose share that is; without `user`, the tenant's as a whole."},
        {.name = "user",
                .type = KEY_FIXED,
                .offset = offsetof(struct run_share, user),
                .size = RUN_SHARE_USER,
                .form = form_user,
                .want = "a user's name",
                .dflt = "none",
                .doc = "Whose share that is, of the tenant or of those without one."},
        {.name = "weight",
                .type = KEY_U32,
                .offset = offsetof(struct run_share, weight),
                .min = 1,
                .max = 1000,
                .dflt = "1",
                .doc = "How much slot time it gets beside others that want some."},
        {.name = "max",
                .type = KEY_U32,
                .offset = offsetof(struct run_share, max),
                .min = 1,
                .max = LIMIT_JAILS,
                .dflt = "runs.per_user; of a tenant: runs.max",
                .doc = "Runs at once."},
        {.name = "queue",
                .type = KEY_U32,
                .offset = offsetof(struct run_share, queue),
                .min = 1,
                .max = LIMIT_QUEUED_RUNS,
                .dflt = "runs.per_user_queue; of a tenant: runs.queue",
                .doc = "Runs that may wait."},
};
const struct key_table share_keys = KEY_TABLE(share_rows);

static int fits(const struct keys_ctx *k, const struct yaml_node *n, const struct run_share *x,
        const struct daemon_config *c)
{
	if (!x->tenant[0] && !x->user[0])
		return keys_error(k, n->line, "a share is of a `tenant`, a `user`, or both");
	for (uint32_t i = 0; i < c->nshares; i++)
		if (strcmp(c->shares[i].tenant, x->tenant) == 0 &&
		        strcmp(c->shares[i].user, x->user) == 0)
			return keys_error(k, n->line, "this share is given twice");
	return 0;
}

int shares_set(const struct keys_ctx *k, const struct yaml_node *list, struct daemon_config *to)
{
	int r = keys_counted(k, list, RUN_SHARES);
	if (r < 0)
		return r;
	yaml_each (it, list) {
		struct run_share *x = &to->shares[to->nshares];
		*x = (struct run_share){.weight = 1};
		r = keys_apply(k, &share_keys, it, x);
		if (r == 0)
			r = fits(k, it, x, to);
		if (r < 0)
			return r;
		to->nshares++;
	}
	return 0;
}

int shares_total(const struct keys_ctx *k, const struct yaml_node *n, enum key_type type,
        uint64_t least, uint64_t *ret)
{
	int r = keys_kind(k, n, YAML_SCALAR);
	if (r == 0 && strcmp(n->text, "host") == 0) {
		*ret = RUN_SHARES_HOST;
		return 0;
	}
	const struct key row = {.name = n->key, .type = type, .min = least, .none = true};
	return r < 0 ? r : keys_set(k, &row, n, ret);
}
