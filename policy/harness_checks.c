#include "policy/harness_checks.h"
#include "base/mem.h"
#include "policy/harness_keys.h"
#include "policy/pattern.h"

#include <regex.h>
#include <string.h>

static int set_retry_on(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	static const char *const words[] = {"failed", "timeout", "oom", NULL};
	struct harness *h = &((struct harness_build *)obj)->h;
	int r = keys_kind(k, n, YAML_SEQ);
	if (r < 0)
		return r;
	if (n->count == 0)
		return keys_error(k, n->line, "'on' is empty: leave it out for failed, timeout");
	h->retry_on = 0;
	yaml_each (it, n) {
		uint32_t index = 0;
		const struct key row = {.name = "on", .type = KEY_ENUM, .names = words};
		r = keys_set(k, &row, it, &index);
		if (r < 0)
			return r;
		h->retry_on |= 1u << index;
	}
	return 0;
}

static const struct key retry_rows[] = {
        {.name = "maxAttempts",
                .type = KEY_U32,
                .offset = HARNESS_AT(max_attempts),
                .min = 1,
                .max = 10,
                .dflt = "1",
                .doc = "Attempts altogether."},
        {.name = "on",
                .type = KEY_OTHER,
                .set = set_retry_on,
                .want = "list of failed, timeout, oom",
                .dflt = "failed, timeout",
                .doc = "After which ends another attempt is made."},
        {.name = "backoffMs",
                .type = KEY_MS,
                .offset = HARNESS_AT(backoff_ms),
                .max = 3600000,
                .dflt = "0",
                .doc = "Pause before the next attempt."},
};
const struct key_table harness_retry_keys = KEY_TABLE(retry_rows);

static const struct key verify_rows[] = {
        {.name = "command",
                .type = KEY_LIST,
                .offset = HARNESS_AT(verify),
                .min = 1,
                .required = true,
                .doc = "Run in a jail of its own after a success; its exit code decides."},
        {.name = "required",
                .type = KEY_BOOL,
                .offset = HARNESS_AT(verify_required),
                .dflt = "true",
                .doc = "A failed check fails the run."},
        {.name = "timeoutMs",
                .type = KEY_MS,
                .offset = HARNESS_AT(verify_timeout_ms),
                .min = 1,
                .max = UINT64_C(86400000),
                .dflt = "120000",
                .doc = "Time for the check, beside limits.timeoutMs."},
};
const struct key_table harness_verify_keys = KEY_TABLE(verify_rows);

/* regcomp of nested bounds, ((a{255}){255}){255}, takes memory by their product. */
static bool bounds_bearable(const char *pattern)
{
	unsigned long product = 1;
	for (const char *p = strchr(pattern, '{'); p; p = strchr(p + 1, '{')) {
		unsigned long least = strtoul(p + 1, NULL, 10), most = least;
		const char *comma = strchr(p, ',');
		if (comma && comma < p + strcspn(p, "}"))
			most = strtoul(comma + 1, NULL, 10);
		unsigned long times = most > least ? most : least;
		if (times > 1000 || (times > 1 && (product *= times) > 1000))
			return false;
	}
	return true;
}

bool form_regex(const char *text)
{
	enum { REGEX_MAX = 512 }; /* longer ones are lists and better written as such */
	regex_t re;
	if (!text[0] || strlen(text) > REGEX_MAX || !bounds_bearable(text) ||
	        regcomp(&re, text, REG_EXTENDED | REG_NOSUB) != 0)
		return false;
	regfree(&re);
	return true;
}

static int set_deny(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct harness_rule *rule = obj;
	struct err why;
	int r = keys_kind(k, n, YAML_SCALAR);
	if (r < 0)
		return r;
	if (pattern_check(n->text, &why) < 0)
		return keys_error(k, n->line, "'deny': %.160s", why.text);
	rule->deny = xstrdup(n->text);
	return 0;
}

static int set_guard_in(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	static const char *const words[] = {"text", "artifacts", NULL};
	struct harness_rule *rule = obj;
	int r = keys_kind(k, n, YAML_SEQ);
	if (r < 0)
		return r;
	if (n->count == 0)
		return keys_error(k, n->line, "'in' is empty: such a rule would look nowhere");
	rule->in_text = rule->in_artifacts = false;
	yaml_each (it, n) {
		uint32_t index = 0;
		const struct key row = {.name = "in", .type = KEY_ENUM, .names = words};
		r = keys_set(k, &row, it, &index);
		if (r < 0)
			return r;
		*(index ? &rule->in_artifacts : &rule->in_text) = true;
	}
	return 0;
}

static const struct key guard_rows[] = {
        {.name = "deny",
                .type = KEY_OTHER,
                .required = true,
                .set = set_deny,
                .want = "an extended regular expression of at most 512 bytes",
                .doc = "What must not be found: docs/CHECKS.md."},
        {.name = "in",
                .type = KEY_OTHER,
                .set = set_guard_in,
                .want = "list of text, artifacts",
                .dflt = "text",
                .doc = "Output only: where it is looked for."},
};
static const struct key_table guard_keys = KEY_TABLE(guard_rows);

/* Whoever looks for them looks for all at once. */
static int guards_fit(const struct keys_ctx *k, const struct yaml_node *n,
        const struct harness_rule *rules, size_t nrules)
{
	const char **texts = xcalloc(nrules + 1, sizeof(*texts));
	struct err why;
	for (size_t i = 0; i < nrules; i++)
		texts[i] = rules[i].deny;
	struct patterns *p = patterns_new(texts, nrules, &why);
	patterns_free(p);
	free(texts);
	return p ? 0 : keys_error(k, n->line, "the rules together: %.160s", why.text);
}

static int guards(const struct keys_ctx *k, const struct yaml_node *n, struct harness_rule **ret,
        size_t *ret_n)
{
	int r = keys_kind(k, n, YAML_SEQ);
	if (r < 0)
		return r;
	*ret = xcalloc(n->count + 1, sizeof(**ret));
	yaml_each (it, n) {
		struct harness_rule *rule = &(*ret)[(*ret_n)++];
		rule->in_text = true;
		r = keys_apply(k, &guard_keys, it, rule);
		if (r < 0)
			return r;
	}
	return guards_fit(k, n, *ret, *ret_n);
}

static int set_guard_input(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct harness *h = &((struct harness_build *)obj)->h;
	int r = guards(k, n, &h->guard_input, &h->nguard_input);
	if (r < 0)
		return r;
	yaml_each (it, n) {
		const struct yaml_node *in = yaml_get(it, "in");
		if (in)
			return keys_error(k, in->key_line, "'in' belongs to output rules");
	}
	return 0;
}

static int set_guard_output(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct harness *h = &((struct harness_build *)obj)->h;
	return guards(k, n, &h->guard_output, &h->nguard_output);
}

static const struct key guardrail_rows[] = {
        {.name = "input",
                .type = KEY_OTHER,
                .set = set_guard_input,
                .sub = &guard_keys,
                .want = "list of rules",
                .doc = "Rules for prompts."},
        {.name = "output",
                .type = KEY_OTHER,
                .set = set_guard_output,
                .sub = &guard_keys,
                .want = "list of rules",
                .doc = "Rules for results."},
};
const struct key_table harness_guardrail_keys = KEY_TABLE(guardrail_rows);
