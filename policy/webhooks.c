#include "policy/webhooks.h"
#include "base/backoff.h"
#include "base/glob.h"
#include "policy/special.h"

#include <errno.h>
#include <string.h>

enum { ASKED_MAX_MS = 3600 * 1000 };

const char *const webhook_event_names[WEBHOOK_EVENT_COUNT + 1] = {
#define WEBHOOK_EVENT_NAME(sym, name) name,
        WEBHOOK_EVENTS(WEBHOOK_EVENT_NAME)
#undef WEBHOOK_EVENT_NAME
};

uint32_t webhook_event_bit(const char *name, size_t n)
{
	for (int i = 0; i < WEBHOOK_EVENT_COUNT; i++)
		if (strlen(webhook_event_names[i]) == n &&
		        memcmp(webhook_event_names[i], name, n) == 0)
			return 1u << i;
	return 0;
}

int webhook_find(const struct webhook *all, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(all[i].name, name) == 0)
			return (int)i;
	return -ENOENT;
}

static bool any_matches(const char globs[][NAME_MAX_LEN], uint32_t n, const char *text)
{
	for (uint32_t i = 0; i < n; i++)
		if (glob_match(globs[i], text))
			return true;
	return n == 0;
}

bool webhook_takes_harness(const struct webhook *w, const char *harness)
{
	return any_matches(w->harnesses, w->nharnesses, harness);
}

bool webhook_takes(
        const struct webhook *w, const char *harness, const char *user, char *const *names)
{
	bool named = !w->named_only;
	for (; names && *names && !named; names++)
		named = strcmp(*names, w->name) == 0;
	return named && webhook_takes_harness(w, harness) && any_matches(w->users, w->nusers, user);
}

/* The host of a form_url where it is an address. */
static bool literal(const char *url, struct cidr *ret)
{
	const char *host = strstr(url, "://") + 3;
	char text[POLICY_HOST_MAX];
	size_t n = *host == '[' ? strcspn(++host, "]") : strcspn(host, ":/");
	if (n >= sizeof(text))
		return false;
	memcpy(text, host, n);
	text[n] = '\0';
	return cidr_parse(text, ret);
}

const char *webhook_url_refusal(const struct webhook *w)
{
	struct cidr at;
	struct special s;
	if (literal(w->url, &at) && special_of(at.bytes, &s) &&
	        !cidrs_open(w->cidrs, w->ncidrs, at.bytes))
		return "is not at a public address; if it is meant, name the address in "
		       "`addresses`";
	if (strncmp(w->url, "https://", 8) != 0 && w->ncidrs == 0)
		return "goes out over plain http, readable to all; use https, or name the "
		       "receiver's address in `addresses` if it is near";
	return NULL;
}

/* ---- a compiled one, before it is believed ---- */

static int bad(struct err *e, const char *name, const char *why)
{
	return err_set(e, -EBADMSG, "webhook %.64s %s", name, why);
}

static bool text_fine(const char *field, size_t size, form_fn *form)
{
	return memchr(field, '\0', size) != NULL && form(field);
}

static bool globs_fine(const char globs[][NAME_MAX_LEN], uint32_t n)
{
	bool fine = n <= WEBHOOK_GLOBS;
	for (uint32_t i = 0; fine && i < n; i++)
		fine = text_fine(globs[i], NAME_MAX_LEN, form_line) && globs[i][0];
	return fine;
}

bool webhook_times_fine(const struct webhook *w)
{
	return w->timeout_ms >= 100 && w->timeout_ms <= WEBHOOK_TIMEOUT_MAX_MS &&
	       w->first_ms >= 100 && w->most_ms >= w->first_ms && w->most_ms <= ASKED_MAX_MS &&
	       w->keep_ms >= 1000 && w->keep_ms <= INT64_MAX / 2;
}

int webhook_check(const struct webhook *w, const struct webhook *before, size_t n, struct err *e)
{
	if (!text_fine(w->name, sizeof(w->name), form_name))
		return bad(e, "", "has no name");
	if (w->nargs && (w->url[0] || w->secret[0] || w->ncidrs ||
	                        !form_command(w->command, sizeof(w->command), w->nargs)))
		return bad(e, w->name, "has a command that is none");
	if (!w->nargs && !text_fine(w->url, sizeof(w->url), form_url))
		return bad(e, w->name, "has no URL");
	if (!w->nargs && !text_fine(w->secret, sizeof(w->secret), form_variable))
		return bad(e, w->name, "names no secret");
	if (webhook_find(before, n, w->name) >= 0)
		return bad(e, w->name, "is given twice");
	if (!globs_fine(w->harnesses, w->nharnesses) || !globs_fine(w->users, w->nusers))
		return bad(e, w->name, "has a filter that is none");
	if (w->ncidrs > RULE_CIDRS)
		return bad(e, w->name, "has too many networks");
	for (uint32_t i = 0; i < w->ncidrs; i++)
		if (!cidr_fine(&w->cidrs[i]))
			return bad(e, w->name, "has a network with bits behind its prefix");
	if (w->events == 0 || w->events >> WEBHOOK_EVENT_COUNT || w->named_only > 1)
		return bad(e, w->name, "has unknown events or flags");
	if (!webhook_times_fine(w))
		return bad(e, w->name, "has times out of range");
	const char *why = w->nargs ? NULL : webhook_url_refusal(w);
	return why ? bad(e, w->name, why) : 0;
}

/* ---- pauses ---- */

int64_t webhook_pause_ms(
        const struct webhook *w, unsigned failures, uint32_t random, int64_t asked_ms)
{
	uint64_t pause = backoff_ms(w->first_ms, w->most_ms, failures, random);
	if (asked_ms > ASKED_MAX_MS)
		asked_ms = ASKED_MAX_MS;
	return asked_ms > (int64_t)pause ? asked_ms : (int64_t)pause;
}
