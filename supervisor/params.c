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
		if (!value || ret->n == PARAMS_LIMIT) {
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
