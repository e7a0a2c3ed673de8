#include "policy/harness_steps.h"

#include "base/mem.h"
#include "policy/harness_keys.h"

#include <stdlib.h>
#include <string.h>

static const struct key step_rows[] = {
        {.name = "harness",
                .type = KEY_TEXT,
                .offset = offsetof(struct harness_step, harness),
                .required = true,
                .form = form_name,
                .want = "a harness's name",
                .doc = "Harness of the step."},
        {.name = "prompt",
                .type = KEY_TEXT,
                .offset = offsetof(struct harness_step, prompt),
                .required = true,
                .doc = "Its prompt.  {{prompt}} is the run's own, {{NAME}} a parameter, "
                       "{{prev.finalText}} what the step before it said."},
        {.name = "approve",
                .type = KEY_BOOL,
                .offset = offsetof(struct harness_step, approve),
                .dflt = "false",
                .doc = "A person is asked before it, and it begins when one says yes."},
        {.name = "timeoutMs",
                .type = KEY_MS,
                .offset = offsetof(struct harness_step, timeout_ms),
                .min = 1,
                .max = UINT64_C(2592000000),
                .dflt = "86400000",
                .doc = "With `approve`: how long a person is waited for; then it is a no."},
};
const struct key_table harness_step_keys = KEY_TABLE(step_rows);

int harness_set_pipeline(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct harness *h = &((struct harness_build *)obj)->h;
	int r = keys_counted(k, n, HARNESS_STEPS_MAX);
	if (r < 0)
		return r;
	if (!n->count)
		return keys_error(k, n->line, "'pipeline' has no steps");
	h->steps = xcalloc(n->count, sizeof(*h->steps));
	yaml_each (it, n) {
		struct harness_step *s = &h->steps[h->nsteps++];
		s->line = it->line;
		s->timeout_ms = UINT64_C(86400000);
		r = keys_apply(k, &harness_step_keys, it, s);
		if (r < 0)
			return r;
		const struct yaml_node *timeout = yaml_get(it, "timeoutMs");
		if (timeout && !s->approve)
			return keys_error(
			        k, timeout->key_line, "'timeoutMs' goes with 'approve: true'");
	}
	return 0;
}

void harness_steps_free(struct harness_step *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(s[i].harness);
		free(s[i].prompt);
	}
	free(s);
}

/* ---- beside other keys ---- */

static bool goes_along(const char *key)
{
	static const char *const keys[] = {"name", "description", "params", "webhooks", "pipeline"};
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (strcmp(keys[i], key) == 0)
			return true;
	return false;
}

static int check_prev(const struct keys_ctx *k, const struct harness_step *s, size_t i)
{
	static const char known[] = "{{prev.finalText}}", id[] = "{{prev.runId}}";
	for (const char *at = strstr(s->prompt, "{{prev."); at; at = strstr(at + 2, "{{prev.")) {
		if (i == 0)
			return keys_error(
			        k, s->line, "step 1: no step is before it for {{prev...}}");
		if (strncmp(at, known, strlen(known)) != 0 && strncmp(at, id, strlen(id)) != 0)
			return keys_error(k, s->line,
			        "step %zu: of the step before there are %s and %s", i + 1, known,
			        id);
	}
	return 0;
}

static int check_steps(const struct keys_ctx *k, const struct harness *h)
{
	for (size_t i = 0; i < h->nsteps; i++) {
		const struct harness_step *s = &h->steps[i];
		if (strcmp(s->harness, h->name) == 0)
			return keys_error(k, s->line, "step %zu: '%s' is this pipeline itself",
			        i + 1, h->name);
		int r = check_prev(k, s, i);
		if (r < 0)
			return r;
	}
	return 0;
}

int harness_fit_steps(
        const struct keys_ctx *k, const struct yaml_node *root, const struct harness *h)
{
	if (!h->nsteps && !h->backend)
		return keys_error(k, root->line, "'backend' is missing (or 'pipeline')");
	if (!h->nsteps)
		return 0;
	yaml_each (n, root)
		if (!goes_along(n->key))
			return keys_error(k, n->key_line,
			        "'%.60s' has no meaning beside 'pipeline': it belongs to the "
			        "harnesses of the steps",
			        n->key);
	if (h->system_prompt[0])
		return keys_error(k, 1,
		        "a pipeline has no text of its own; it belongs to the harnesses of the "
		        "steps");
	return check_steps(k, h);
}
