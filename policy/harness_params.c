#include "policy/harness_params.h"

#include "base/mem.h"
#include "policy/harness_checks.h"
#include "policy/harness_keys.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

/* ---- keys ---- */

static bool form_value(const char *text)
{
	return text[0] && strlen(text) <= HARNESS_PARAM_VALUE;
}

#define PARAM_AT(field) offsetof(struct harness_param, field)

static const struct key param_rows[] = {
        {.name = "required",
                .type = KEY_BOOL,
                .offset = PARAM_AT(required),
                .dflt = "false",
                .doc = "A run without it is refused."},
        {.name = "default",
                .type = KEY_TEXT,
                .offset = PARAM_AT(dflt),
                .doc = "Its value where a run gives none."},
        {.name = "enum",
                .type = KEY_LIST,
                .offset = PARAM_AT(choices),
                .min = 1,
                .max = 256,
                .form = form_value,
                .want = "a text of at most 4096 bytes",
                .doc = "The values it may have."},
        {.name = "pattern",
                .type = KEY_TEXT,
                .offset = PARAM_AT(pattern),
                .form = form_regex,
                .want = FORM_REGEX_WANT,
                .doc = "What the whole of a value looks like (POSIX extended); of at most 4096 "
                       "bytes then."},
        {.name = "description",
                .type = KEY_TEXT,
                .offset = PARAM_AT(description),
                .form = form_line,
                .want = "one line of text",
                .doc = "One line for people."},
};
const struct key_table harness_param_keys = KEY_TABLE(param_rows);

/* prev.NAME and prompt are what steps of a pipeline are given. */
static bool form_param(const char *text)
{
	size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
	return n > 0 && n < 64 && !text[n] && strcmp(text, "prompt") != 0;
}

static bool backward(const char *pattern)
{
	for (const char *at = strchr(pattern, '\\'); at && at[1]; at = strchr(at + 2, '\\'))
		if (at[1] >= '1' && at[1] <= '9')
			return true;
	return false;
}

static int fit_param(const struct keys_ctx *k, const struct yaml_node *n, struct harness_param *p)
{
	struct err why;
	if (p->required && p->dflt)
		return keys_error(k, n->key_line,
		        "'params.%s': one with a default is never missing; leave out 'required' or "
		        "'default'",
		        p->name);
	if (p->choices && p->pattern)
		return keys_error(
		        k, n->key_line, "'params.%s': 'enum' or 'pattern', not both", p->name);
	if (p->pattern && backward(p->pattern))
		return keys_error(k, n->key_line,
		        "'params.%s': a pattern that refers back (\\1) can take for ever", p->name);
	if (p->dflt && harness_param_fits(p, p->dflt, &why) < 0)
		return keys_error(k, n->key_line, "the default of %s", why.text);
	return 0;
}

int harness_set_params(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct harness *h = &((struct harness_build *)obj)->h;
	int r = keys_kind(k, n, YAML_MAP);
	if (r < 0)
		return r;
	if (n->count > HARNESS_PARAMS_MAX)
		return keys_error(k, n->key_line, "'params': at most %d", HARNESS_PARAMS_MAX);
	h->params = xcalloc(n->count, sizeof(*h->params));
	yaml_each (it, n) {
		struct harness_param *p = &h->params[h->nparams++];
		p->name = xstrdup(it->key);
		if (!form_param(it->key))
			return keys_error(k, it->key_line,
			        "'params': '%.60s' is not a name of letters, digits, '_' and '-' "
			        "(and 'prompt' is taken)",
			        it->key);
		r = keys_apply(k, &harness_param_keys, it, p);
		if (r == 0)
			r = fit_param(k, it, p);
		if (r < 0)
			return r;
	}
	return 0;
}

void harness_params_free(struct harness_param *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(p[i].name);
		free(p[i].dflt);
		free(p[i].pattern);
		free(p[i].description);
		list_free(p[i].choices);
	}
	free(p);
}

/* ---- texts ---- */

const struct harness_param *harness_param(const struct harness *h, const char *name)
{
	for (size_t i = 0; i < h->nparams; i++)
		if (strcmp(h->params[i].name, name) == 0)
			return &h->params[i];
	return NULL;
}

bool harness_text_has(const char *text, size_t n, const char *name)
{
	auto_free char *asked = xasprintf("{{%s}}", name);
	return memmem(text, n, asked, strlen(asked)) != NULL;
}

/* {{name}} that nobody can fill in is left as it is, and may be meant so. */
static void note_text(const struct keys_ctx *k, const struct harness *h, const char *text)
{
	for (const char *at = strstr(text, "{{"); at; at = strstr(at + 2, "{{")) {
		const char *end = strstr(at, "}}");
		if (!end)
			return;
		auto_free char *name = xstrndup(at + 2, (size_t)(end - at - 2));
		if (form_param(name) && !harness_param(h, name))
			keys_note(k, 1, "{{%s}} stays as it is: 'params' does not have it", name);
	}
}

void harness_params_note(const struct keys_ctx *k, const struct harness *h)
{
	if (h->nparams)
		note_text(k, h, h->system_prompt);
	for (size_t i = 0; h->nparams && i < h->nsteps; i++)
		note_text(k, h, h->steps[i].prompt);
}

/* ---- values ---- */

static int fits_pattern(const struct harness_param *p, const char *value, struct err *e)
{
	regex_t re;
	auto_free char *whole = xasprintf("^(%s)$", p->pattern);
	if (strlen(value) > HARNESS_PARAM_VALUE)
		return err_set(
		        e, -EINVAL, "params.%s: at most %d bytes", p->name, HARNESS_PARAM_VALUE);
	if (regcomp(&re, whole, REG_EXTENDED | REG_NOSUB) != 0)
		return err_set(e, -EINVAL, "params.%s: its pattern is not understood", p->name);
	int rc = regexec(&re, value, 0, NULL, 0);
	regfree(&re);
	return rc == 0 ? 0
	               : err_set(e, -EINVAL, "params.%s: '%.60s' is not of the form %.100s",
	                         p->name, value, p->pattern);
}

/* A list as text: "a, b, c". */
static char *joined(const char *const *list)
{
	auto_buf struct buf b = BUF_INIT(160); /* what does not fit is left out */
	for (size_t i = 0; list[i]; i++)
		if (b.len + strlen(list[i]) < 150)
			buf_printf(&b, "%s%s", i ? ", " : "", list[i]);
	return xstrdup(b.len ? b.p : "");
}

int harness_param_fits(const struct harness_param *p, const char *value, struct err *e)
{
	if (p->pattern)
		return fits_pattern(p, value, e);
	for (size_t i = 0; p->choices && p->choices[i]; i++)
		if (strcmp(p->choices[i], value) == 0)
			return 0;
	if (!p->choices)
		return 0;
	auto_free char *all = joined((const char *const *)p->choices);
	return err_set(e, -EINVAL, "params.%s: '%.60s' is none of %s", p->name, value, all);
}

static int not_declared(const struct harness *h, const char *name, struct err *e)
{
	const char *names[HARNESS_PARAMS_MAX + 1] = {0};
	for (size_t i = 0; i < h->nparams; i++)
		names[i] = h->params[i].name;
	const char *near = keys_nearest(name, names);
	if (near)
		return err_set(e, -EINVAL,
		        "params.%.64s: harness '%s' has no such parameter (did you mean '%s'?)",
		        name, h->name, near);
	auto_free char *all = joined(names);
	return err_set(e, -EINVAL, "params.%.64s: harness '%s' has no such parameter; it has: %s",
	        name, h->name, all);
}

static bool used(const struct harness *h, const char *prompt, size_t n, const char *name)
{
	bool is = harness_text_has(prompt, n, name) ||
	          harness_text_has(h->system_prompt, strlen(h->system_prompt), name);
	for (size_t i = 0; i < h->nsteps && !is; i++)
		is = harness_text_has(h->steps[i].prompt, strlen(h->steps[i].prompt), name);
	return is;
}

int harness_params_check(const struct harness *h, const char *prompt, size_t prompt_len,
        const char *const *names, const char *const *values, size_t n, struct err *e)
{
	bool given[HARNESS_PARAMS_MAX] = {false};
	for (size_t i = 0; i < n; i++) {
		const struct harness_param *p = harness_param(h, names[i]);
		if (!p && h->nparams)
			return not_declared(h, names[i], e);
		if (!p && !used(h, prompt, prompt_len, names[i]))
			return err_set(e, -EINVAL,
			        "params.%.64s: neither the prompt nor harness '%s' has {{%.64s}}",
			        names[i], h->name, names[i]);
		if (p && harness_param_fits(p, values[i], e) < 0)
			return e->code;
		if (p)
			given[p - h->params] = true;
	}
	for (size_t i = 0; i < h->nparams; i++) {
		const struct harness_param *p = &h->params[i];
		if (p->required && !given[i])
			return err_set(e, -EINVAL,
			        "params.%s: missing, harness '%s' requires it%s%.100s", p->name,
			        h->name, p->description ? ": " : "",
			        p->description ? p->description : "");
	}
	return 0;
}
