#include "supervisor/params.h"

#include "base/buf.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"

#include <string.h>

int params_parse(const char *json, struct params *ret, struct err *e)
{
	memset(ret, 0, sizeof(*ret));
	if (!json)
		return 0;
	auto_json struct json *root = json_parse(json, strlen(json), e);
	if (!root)
		return -EINVAL;
	for (const struct json *m = json_first(root); m; m = json_next(m)) {
		const char *value = json_text(m);
		if (!value || ret->n == PARAMS_LIMIT + PARAMS_ADDED) {
			params_done(ret);
			return err_set(e, -EINVAL, "params: at most %d texts", PARAMS_LIMIT);
		}
		ret->names = xrealloc(ret->names, ret->n + 1, sizeof(*ret->names));
		ret->values = xrealloc(ret->values, ret->n + 1, sizeof(*ret->values));
		ret->names[ret->n] = xstrdup(json_key(m));
		ret->values[ret->n++] = xstrdup(value);
	}
	return 0;
}

void params_done(struct params *p)
{
	for (size_t i = 0; i < p->n; i++) {
		free(p->names[i]);
		free(p->values[i]);
	}
	free(p->names);
	free(p->values);
	memset(p, 0, sizeof(*p));
}

char *params_write(const char *const *names, const char *const *values, size_t n)
{
	if (n == 0)
		return NULL;
	auto_buf struct buf b = BUF_INIT(LIMIT_HTTP_BODY * 6UL);
	struct jw w = JW_INIT(&b);
	jw_open(&w, NULL, '{');
	for (size_t i = 0; i < n; i++)
		jw_str(&w, names[i], values[i]);
	jw_close(&w, '}');
	return b.failed ? NULL : buf_take(&b);
}

static bool among(const char *const *names, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

char *params_settle(
        const struct harness *h, const char *const *names, const char *const *values, size_t n)
{
	const char *all[PARAMS_LIMIT + PARAMS_ADDED], *texts[ARRAY_LEN(all)];
	size_t count = 0;
	for (size_t i = 0; i < n && count < ARRAY_LEN(all); i++) {
		all[count] = names[i];
		texts[count++] = values[i];
	}
	for (size_t i = 0; i < h->nparams; i++) {
		const struct harness_param *p = &h->params[i];
		if (!p->dflt || count == ARRAY_LEN(all) || among(names, n, p->name))
			continue;
		all[count] = p->name;
		texts[count++] = p->dflt;
	}
	return params_write(all, texts, count);
}

/* ---- in texts ---- */

static const char *value_of(const struct params *p, const char *name, size_t n)
{
	for (size_t i = 0; i < p->n; i++)
		if (strlen(p->names[i]) == n && memcmp(p->names[i], name, n) == 0)
			return p->values[i];
	return NULL;
}

char *params_fill(const struct params *p, const char *text, size_t n, size_t *ret_len)
{
	auto_buf struct buf b = BUF_INIT(LIMIT_PROMPT);
	const char *end = text + n;
	while (text < end) {
		const char *open = p->n ? memmem(text, (size_t)(end - text), "{{", 2) : NULL;
		const char *close = open ? memmem(open, (size_t)(end - open), "}}", 2) : NULL;
		const char *value =
		        close ? value_of(p, open + 2, (size_t)(close - open - 2)) : NULL;
		const char *upto = !open ? end : value ? open : open + 2;
		(void)buf_put(&b, text, (size_t)(upto - text)); /* checked below */
		if (value)
			(void)buf_puts(&b, value);
		text = value ? close + 2 : upto;
	}
	if (b.failed)
		return NULL;
	*ret_len = b.len;
	return buf_take(&b);
}
