#include "policy/webhooks_yaml.h"
#include "base/mem.h"
#include "policy/allow_yaml.h"
#include "policy/command_yaml.h"

#include <string.h>

static int set_events(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct webhook *w = obj;
	int r = keys_kind(k, n, YAML_SEQ);
	if (r == 0 && n->count == 0)
		r = keys_error(k, n->line, "'events' has at least one entry");
	w->events = 0;
	yaml_each (it, n) {
		if (r == 0)
			r = keys_kind(k, it, YAML_SCALAR);
		if (r < 0)
			return r;
		uint32_t bit = webhook_event_bit(it->text, strlen(it->text));
		if (!bit)
			return keys_unknown(k, it->line, "event", it->text, webhook_event_names);
		w->events |= bit;
	}
	return r;
}

static bool form_glob_of_names(const char *text)
{
	return text[0] && form_line(text);
}

static int set_globs(const struct keys_ctx *k, const struct yaml_node *n,
        char to[WEBHOOK_GLOBS][NAME_MAX_LEN], uint32_t *ret_n)
{
	static const struct key row = {.name = "entry",
	        .type = KEY_FIXED,
	        .size = NAME_MAX_LEN,
	        .form = form_glob_of_names,
	        .want = "a name or a glob of names"};
	int r = keys_counted(k, n, WEBHOOK_GLOBS);
	if (r == 0 && n->count == 0)
		r = keys_error(
		        k, n->line, "'%s': an empty list would be nobody; leave it out", n->key);
	*ret_n = 0;
	yaml_each (it, n) {
		if (r == 0)
			r = keys_set(k, &row, it, to[*ret_n]);
		if (r < 0)
			return r;
		++*ret_n;
	}
	return r;
}

static int set_harnesses(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct webhook *w = obj;
	return set_globs(k, n, w->harnesses, &w->nharnesses);
}

static int set_users(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct webhook *w = obj;
	return set_globs(k, n, w->users, &w->nusers);
}

static int set_addresses(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct webhook *w = obj;
	return cidrs_set(k, n, w->cidrs, &w->ncidrs);
}

static const struct key retry_rows[] = {
        {.name = "first",
                .type = KEY_TIME,
                .offset = offsetof(struct webhook, first_ms),
                .min = 100,
                .max = 3600000,
                .dflt = "1s",
                .doc = "Pause after the first attempt that failed; then it doubles.  Each pause is "
                       "shortened by up to half, at random."},
        {.name = "most",
                .type = KEY_TIME,
                .offset = offsetof(struct webhook, most_ms),
                .min = 100,
                .max = 3600000,
                .dflt = "5m",
                .doc = "The longest pause.  A Retry-After of the receiver is waited for, up to an "
                       "hour."},
        {.name = "give_up",
                .type = KEY_TIME,
                .offset = offsetof(struct webhook, keep_ms),
                .min = 1000,
                .max = (uint64_t)30 * 24 * 3600 * 1000,
                .dflt = "24h",
                .doc = "An event of that age that is not delivered is given up, and counted."},
};
const struct key_table webhook_retry_keys = KEY_TABLE(retry_rows);

/* What both kinds say. */
/* clang-format off */
#define NAME_ROW \
        {.name = "name", \
                .type = KEY_FIXED, \
                .offset = offsetof(struct webhook, name), \
                .size = NAME_MAX_LEN, \
                .required = true, \
                .form = form_name, \
                .want = "a name (a-z, 0-9, . _ -)", \
                .doc = "What harnesses, abctl and the metrics call it."}
#define WHOSE_ROWS \
        {.name = "events", \
                .type = KEY_OTHER, \
                .set = set_events, \
                .want = "list of events", \
                .dflt = "[run.started, run.done, permission.asked, question.asked]", \
                .doc = "What is told (docs/WEBHOOKS.md)."}, \
        {.name = "harnesses", \
                .type = KEY_OTHER, \
                .set = set_harnesses, \
                .want = "list of names or globs", \
                .dflt = "every one", \
                .doc = "Of whose runs is told; at most 8."}, \
        {.name = "users", \
                .type = KEY_OTHER, \
                .set = set_users, \
                .want = "list of names or globs", \
                .dflt = "every one", \
                .doc = "Of which users' runs is told; at most 8."}, \
        {.name = "named_only", \
                .type = KEY_FLAG, \
                .bit = 1, \
                .offset = offsetof(struct webhook, named_only), \
                .dflt = "false", \
                .doc = "Only runs of harnesses that name it under their `webhooks`."}
#define WHEN_ROWS \
        {.name = "timeout", \
                .type = KEY_TIME, \
                .offset = offsetof(struct webhook, timeout_ms), \
                .min = 100, \
                .max = WEBHOOK_TIMEOUT_MAX_MS, \
                .dflt = "10s", \
                .doc = "How long one attempt may take."}, \
        {.name = "retry", .type = KEY_MAP, .sub = &webhook_retry_keys}
/* clang-format on */

static const struct key webhook_rows[] = {
        NAME_ROW,
        {.name = "url",
                .type = KEY_FIXED,
                .offset = offsetof(struct webhook, url),
                .size = POLICY_PATH_MAX,
                .required = true,
                .form = form_url,
                .want = "an http:// or https:// URL without user, query and final slash",
                .doc = "Where the events are sent, by POST.  Plain http only with `addresses`."},
        {.name = "secret",
                .type = KEY_FIXED,
                .offset = offsetof(struct webhook, secret),
                .size = NAME_MAX_LEN,
                .required = true,
                .form = form_variable,
                .want = "a name such as HOOK_KEY",
                .doc = "Name of the secret that signs: whsec_ and base64, or 16 bytes and more as "
                       "they are."},
        WHOSE_ROWS,
        {.name = "addresses",
                .type = KEY_OTHER,
                .set = set_addresses,
                .want = "list of addresses or networks",
                .dflt = "public ones alone",
                .doc = "Addresses that are not public (private, loopback) and that the receiver "
                       "may be at."},
        WHEN_ROWS,
};
const struct key_table webhook_keys = KEY_TABLE(webhook_rows);

static int set_hook_command(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct webhook *w = obj;
	return command_set(k, n, w->command, sizeof(w->command), &w->nargs);
}

static const struct key hook_rows[] = {
        NAME_ROW,
        {.name = "command",
                .type = KEY_OTHER,
                .set = set_hook_command,
                .required = true,
                .want = "list: an absolute path and arguments",
                .doc = "What is run for each event, which is its standard input; under an id of "
                       "its own, without privileges."},
        WHOSE_ROWS,
        WHEN_ROWS,
};
const struct key_table hook_keys = KEY_TABLE(hook_rows);

static int fits(const struct keys_ctx *k, const struct yaml_node *n, const struct webhook *w,
        const struct daemon_config *c)
{
	const char *why = w->nargs ? NULL : webhook_url_refusal(w);
	if (why)
		return keys_error(k, yaml_get(n, "url")->line, "url %s %s", w->url, why);
	if (w->first_ms > w->most_ms)
		return keys_error(k, yaml_get(n, "retry")->line,
		        "'retry': `first` is longer than `most`, the longest pause");
	if (webhook_find(c->webhooks, c->nwebhooks, w->name) >= 0)
		return keys_error(
		        k, yaml_get(n, "name")->line, "webhook or hook %s is given twice", w->name);
	return 0;
}

static int set_all(const struct keys_ctx *k, const struct key_table *keys,
        const struct yaml_node *list, struct daemon_config *to)
{
	int r = keys_counted(k, list, POLICY_WEBHOOKS - to->nwebhooks);
	if (r < 0)
		return r;
	yaml_each (it, list) {
		struct webhook *w = &to->webhooks[to->nwebhooks];
		*w = (struct webhook){.events = WEBHOOK_DEFAULT,
		        .timeout_ms = 10000,
		        .first_ms = 1000,
		        .most_ms = 300000,
		        .keep_ms = 24ULL * 3600 * 1000};
		r = keys_apply(k, keys, it, w);
		if (r == 0)
			r = fits(k, it, w, to);
		if (r < 0)
			return r;
		to->nwebhooks++;
	}
	return 0;
}

int webhooks_set(const struct keys_ctx *k, const struct yaml_node *list, struct daemon_config *to)
{
	return set_all(k, &webhook_keys, list, to);
}

int hooks_set(const struct keys_ctx *k, const struct yaml_node *list, struct daemon_config *to)
{
	return set_all(k, &hook_keys, list, to);
}
