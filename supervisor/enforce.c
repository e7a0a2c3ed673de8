#include "supervisor/enforce.h"

#include "base/json.h"
#include "base/mem.h"
#include "drivers/ability.h"

#include <string.h>
#include <strings.h>

/* ---- turns ---- */

static bool of_another(const char *members, size_t n)
{
	auto_json struct json *j = json_parse_members(members, n);
	return json_str(j, "parentCallId", NULL) != NULL;
}

int64_t enforce_turn(struct enforce *k, enum event_type t, const char *members, size_t n)
{
	bool says = t == EVENT_AGENT_MESSAGE || t == EVENT_AGENT_THINKING || t == EVENT_TOOL_CALL;
	if (t == EVENT_TOOL_RESULT || t == EVENT_USER_MESSAGE) {
		k->within = false;
	} else if (says && !k->within && !of_another(members, n)) {
		k->within = true;
		k->turns++;
	}
	return k->turns;
}

/* ---- tools ---- */

/* `rule` is a name, with * at its end any that begin so; mcp__SERVER is all of that server.  Of
 * what is refused the case does not matter: who writes Bash means bash. */
static bool matches(const char *rule, const char *name, bool any_case)
{
	size_t n = strlen(rule);
	bool begins = n && rule[n - 1] == '*';
	n -= begins;
	if (any_case ? strncasecmp(rule, name, n) != 0 : strncmp(rule, name, n) != 0)
		return false;
	const char *rest = name + n;
	bool server = strncmp(rule, "mcp__", 5) == 0 && !strstr(rule + 5, "__");
	return begins || !*rest || (server && strncmp(rest, "__", 2) == 0);
}

static const char *first_match(char *const *rules, const char *name, bool any_case)
{
	for (; rules && *rules; rules++)
		if (matches(*rules, name, any_case))
			return *rules;
	return NULL;
}

/* A server that the harness declares is allowed whole, unless the list has tools of it. */
static bool of_server(const struct harness *h, const char *name)
{
	for (size_t i = 0; i < h->nmcp; i++) {
		auto_free char *all = xasprintf("mcp__%s", h->mcp[i].name);
		size_t n = strlen(all);
		bool narrowed = false;
		for (char *const *r = h->tools_allow; *r; r++)
			narrowed |= strncmp(*r, all, n) == 0 && strncmp(*r + n, "__", 2) == 0;
		if (!narrowed && matches(all, name, false))
			return true;
	}
	return false;
}

static char *denied(const struct harness *h, const char *name, const char *kind)
{
	const char *rule = first_match(h->tools_deny, name, true);
	if (!rule)
		rule = first_match(h->tools_deny, kind, true);
	return rule ? xasprintf("it called the tool '%.80s', which '%.80s' of tools.deny refuses",
	                      name, rule)
	            : NULL;
}

static char *not_allowed(const struct harness *h, const char *name)
{
	if (first_match(h->tools_allow, name, false) || of_server(h, name))
		return NULL;
	return xasprintf("it called the tool '%.80s', which tools.allow does not name", name);
}

char *enforce_call(const struct harness *h, uint32_t enforced, const char *members, size_t n)
{
	bool deny = ability_in(enforced, ABILITY_TOOLS_DENY);
	bool allow = ability_in(enforced, ABILITY_TOOLS_ALLOW) && h->tools_allow;
	if (!deny && !allow)
		return NULL;
	auto_json struct json *j = json_parse_members(members, n);
	const char *name = json_str(j, "name", "");
	char *why = deny ? denied(h, name, json_str(j, "kind", "")) : NULL;
	return why || !allow ? why : not_allowed(h, name);
}
