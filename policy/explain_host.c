#include "policy/explain_host.h"
#include "base/mem.h"
#include "policy/advice.h"
#include "policy/forms.h"
#include "policy/keys.h"
#include "policy/policyc.h"
#include "policy/report.h"
#include "policy/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void explain_decided(const struct lookup *l, const char *key, const char *otherwise)
{
	const char *file = NULL;
	const struct yaml_node *n = lookup_line(l, key, &file);
	if (n)
		printf("  decided by %s:%d: %s\n", file, n->key_line, key);
	else
		printf("  %s\n", otherwise);
}

/* NAME, NAME:PORT, ADDRESS, [V6]:PORT.  *ret_host is owned; port 0: none given. */
static bool split_host(const char *what, char **ret_host, uint64_t *ret_port)
{
	const char *colon = strrchr(what, ':');
	bool bracket = what[0] == '[';
	size_t n = strlen(what);
	*ret_port = 0;
	if (colon && (bracket || strchr(what, ':') == colon)) {
		if (units_plain(colon + 1, ret_port) < 0 || *ret_port < 1 || *ret_port > 65535)
			return false;
		n = (size_t)(colon - what);
	}
	if (bracket && (n < 3 || what[n - 1] != ']'))
		return false;
	*ret_host = bracket ? xstrndup(what + 1, n - 2) : xstrndup(what, n);
	return n > 0;
}

static const struct policy_inject *inject_of(const struct policy *p, const char *host)
{
	for (uint32_t i = 0; i < p->ninject; i++)
		if (strcasecmp(p->inject[i].host, host) == 0)
			return &p->inject[i];
	return NULL;
}

static void print_inject(
        const struct lookup *l, const struct policy_inject *j, const char *what, uint64_t port)
{
	const char *file = NULL;
	const struct yaml_node *list = lookup_line(l, "egress.inject", &file);
	printf("%s: %s\n", what,
	        port == 80  ? "allowed"
	        : port == 0 ? "allowed on port 80"
	                    : "denied: an injected host is served on port 80 alone");
	printf("  goes to %s%s%s%s%s\n", j->upstream, j->header[0] ? ", header " : "", j->header,
	        j->secret[0] ? " from secret " : "", j->secret);
	if (!list)
		return;
	yaml_each (n, list) {
		const struct yaml_node *h = yaml_get(n, "host");
		if (h && strcmp(h->text, j->host) == 0)
			printf("  decided by %s:%d: egress.inject\n", file, h->line);
	}
}

/* Where a rule was written: its own entry, or its group's. */
static const struct yaml_node *rule_line(
        const struct lookup *l, const struct policy_rule *r, const char **file)
{
	const struct yaml_node *list = lookup_line(l, "egress.allow", file);
	if (!list)
		return NULL;
	yaml_each (n, list) {
		const struct yaml_node *host = n->kind == YAML_MAP ? yaml_get(n, "host") : n;
		const char *text = host ? host->text : NULL;
		size_t len = strlen(r->host);
		if (r->group[0]) {
			if (text && text[0] == '@' && strcmp(text + 1, r->group) == 0)
				return n;
		} else if (!r->host[0]) {
			if (n->kind == YAML_MAP && !host)
				return n;
		} else if (text) {
			text += text[0] == '*';
			if (strncmp(text, r->host, len) == 0 && (!text[len] || text[len] == ':'))
				return n;
		}
	}
	return NULL;
}

static void print_bounds(const struct policy_rule *r)
{
	char text[UNITS_TEXT_MAX];
	units_print_bytes(r->rate_bps, text);
	if (r->rate_bps)
		printf(", %s a second", text);
	units_print_bytes(r->bytes, text);
	if (r->bytes)
		printf(", %s a run", text);
	if (r->requests.n)
		printf(", some requests only");
	printf("\n");
	if (r->terminate)
		printf("  terminated: opened on its way, with a certificate of the jail's own "
		       "authority\n");
}

static void print_rule(const struct lookup *l, const struct policy_rule *r)
{
	const char *file = NULL;
	char text[RULE_TEXT_MAX];
	rule_text(r, text);
	printf("  %s by rule %s", rule_protocol_name(r->protocol), text);
	print_bounds(r);
	const struct yaml_node *n = rule_line(l, r, &file);
	if (n)
		printf("  decided by %s:%d: egress.allow\n", file, n->line);
}

static bool mapped_address(const char *host, uint8_t mapped[16])
{
	struct cidr c;
	if (!cidr_parse(host, &c) || c.bits != 128)
		return false;
	memcpy(mapped, c.bytes, 16);
	return true;
}

/* The rule for this host and port (0: any), or NULL. */
static const struct policy_rule *rule_of(const struct policy *p, const char *host, unsigned port)
{
	uint8_t mapped[16];
	size_t n = strlen(host);
	n -= n && host[n - 1] == '.';
	int i = -1;
	if (!mapped_address(host, mapped))
		i = rules_for_name(p->rules, p->nrules, host, n, port);
	else if (port)
		i = rules_for_address(p->rules, p->nrules, mapped, port);
	return i < 0 ? NULL : &p->rules[i];
}

/* Every port on which it may be reached, one rule each. */
static bool print_any_port(const struct lookup *l, const char *what, const char *host)
{
	const struct policy *p = &l->policy;
	bool found = false;
	for (unsigned port = 1; port < 65536; port++) {
		const struct policy_rule *r = rule_of(p, host, port);
		if (!r)
			continue;
		printf("%s: allowed on port %u\n", what, port);
		print_rule(l, r);
		found = true;
	}
	return found;
}

static const char *nearest_host(const struct policy *p, const char *host)
{
	const char *names[POLICY_INJECTS + POLICY_RULES + 1] = {NULL};
	size_t n = 0;
	for (uint32_t i = 0; i < p->ninject; i++)
		names[n++] = p->inject[i].host;
	for (uint32_t i = 0; i < p->nrules; i++)
		if (p->rules[i].host[0] && p->rules[i].host[0] != '.')
			names[n++] = p->rules[i].host;
	return keys_nearest(host, names);
}

/* What lint remarks where the rule is written. */
static bool too_wide(const struct policy *p, const uint8_t mapped[16], uint64_t port)
{
	for (uint32_t i = 0; i < p->nrules; i++)
		for (uint32_t k = 0; k < p->rules[i].ncidrs && !p->rules[i].host[0]; k++)
			if ((!port || rule_has_port(&p->rules[i], (unsigned)port)) &&
			        cidr_has(&p->rules[i].cidrs[k], mapped))
				return true;
	return false;
}

static void print_denied(const struct lookup *l, const char *what, const char *host, uint64_t port)
{
	const struct policy *p = &l->policy;
	const char *near = nearest_host(p, host);
	uint8_t mapped[16];
	bool number = mapped_address(host, mapped);
	printf("%s: denied: not in policy '%s'", what, p->name);
	printf(near && strcmp(near, host) != 0 ? " (did you mean '%s'?)\n" : "\n", near);
	if (!number && !rule_of(p, host, 0))
		printf("  its name does not resolve: REFUSED, whichever resolver is asked\n");
	else
		printf("  %s\n", port == 80 ? "HTTP gets 403 with the reason"
		                            : "a connection is reset at once");
	if (number && too_wide(p, mapped, port))
		printf("  a rule has it, and is wider than the special range that it is in: such a "
		       "range has to be named by itself\n");
	if (advice_injectable(host))
		printf("  to have it: egress.inject: [{ host: %s, upstream: ... }]; names of "
		       ".agentbox are nobody's outside\n",
		        host);
	else if (number)
		printf("  to allow it: egress.allow: [{ addresses: [\"%s\"], protocol: raw, ports: "
		       "[%u] }]\n",
		        host, port ? (unsigned)port : 443);
	else if (port && port != 443)
		printf("  to allow it: egress.allow: [\"%s:%u\"]\n", host, (unsigned)port);
	else
		printf("  to allow it: egress.allow: [%s]\n", host);
	explain_decided(l, "egress.allow", "no file has egress.allow");
}

int explain_host(const struct lookup *l, int argc, char **argv)
{
	auto_free char *host = NULL;
	uint64_t port = 0;
	if (argc > 1)
		return report_usage("host HOST[:PORT]: '%s' is one word too many", argv[1]);
	if (!split_host(argv[0], &host, &port))
		return report_usage("'%s' is not HOST[:PORT]", argv[0]);
	if (!form_asked_host(host))
		return report_usage("'%s' is neither a host name nor an address", host);
	const struct policy_inject *j = inject_of(&l->policy, host);
	const struct policy_rule *r = port ? rule_of(&l->policy, host, (unsigned)port) : NULL;
	if (j) {
		print_inject(l, j, argv[0], port);
	} else if (r) {
		printf("%s: allowed\n", argv[0]);
		print_rule(l, r);
	} else if (port == 0 && print_any_port(l, argv[0], host)) {
		return POLICYC_OK;
	} else if (strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
	           strcmp(host, "::1") == 0) {
		printf("%s: allowed\n  the jail's own lo, as in every jail: nothing of the host "
		       "listens there\n",
		        argv[0]);
	} else {
		print_denied(l, argv[0], host, port);
	}
	return POLICYC_OK;
}
