#include "policy/egress_yaml.h"
#include "base/mem.h"
#include "policy/allow_yaml.h"
#include "policy/requests_yaml.h"

#include <string.h>

/* ---- inject ---- */

static const struct key inject_rows[] = {
        {.name = "host",
                .type = KEY_FIXED,
                .offset = offsetof(struct policy_inject, host),
                .size = POLICY_HOST_MAX,
                .required = true,
                .form = form_host,
                .want = "a host name (a.b, lower case)",
                .doc = "Name inside the jail, reached over plain HTTP."},
        {.name = "upstream",
                .type = KEY_FIXED,
                .offset = offsetof(struct policy_inject, upstream),
                .size = POLICY_PATH_MAX,
                .required = true,
                .form = form_url,
                .want = "an http:// or https:// URL without user, query and final slash",
                .doc = "Where requests go outside."},
        {.name = "header",
                .type = KEY_FIXED,
                .offset = offsetof(struct policy_inject, header),
                .size = sizeof(((struct policy_inject *)NULL)->header),
                .form = form_header,
                .want = "a header name in lower case, and none that frames the request",
                .doc = "Header that carries the secret; what the jail sent there is dropped."},
        {.name = "prefix",
                .type = KEY_FIXED,
                .offset = offsetof(struct policy_inject, prefix),
                .size = sizeof(((struct policy_inject *)NULL)->prefix),
                .form = form_printable,
                .want = "printable text",
                .doc = "Text before the secret, `\"Bearer \"`."},
        {.name = "secret",
                .type = KEY_FIXED,
                .offset = offsetof(struct policy_inject, secret),
                .size = NAME_MAX_LEN,
                .form = form_variable,
                .want = "a name such as API_KEY",
                .doc = "Name of the secret; it never enters the jail."},
        {.name = "allow_loopback",
                .type = KEY_FLAG,
                .bit = 1,
                .offset = offsetof(struct policy_inject, loopback),
                .dflt = "false",
                .doc = "The upstream may be a loopback or private address, and plain HTTP."},
        REQUESTS_ROW("Requests that are let through; none: all of them."),
};
static const struct key_table inject_keys = KEY_TABLE(inject_rows);

static int inject_fits(const struct keys_ctx *k, const struct yaml_node *n, const struct policy *p)
{
	const struct policy_inject *j = &p->inject[p->ninject];
	const struct yaml_node *upstream = yaml_get(n, "upstream");
	if (j->secret[0] && !j->header[0])
		return keys_error(k, n->line, "secret '%s' has no header to go into", j->secret);
	if (!j->loopback && strncmp(j->upstream, "https://", 8) != 0)
		return keys_error(k, upstream->line,
		        "upstream %s: plain http goes out readable to all; use https, or "
		        "allow_loopback for a server on this machine",
		        j->upstream);
	for (uint32_t i = 0; i < p->ninject; i++)
		if (strcmp(p->inject[i].host, j->host) == 0)
			return keys_error(
			        k, yaml_get(n, "host")->line, "host %s is given twice", j->host);
	return 0;
}

static int set_inject(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct policy *p = obj;
	int r = keys_counted(k, n, POLICY_INJECTS);
	if (r < 0)
		return r;
	memset(p->inject, 0, sizeof(p->inject));
	p->ninject = 0;
	requests_compact(p);
	yaml_each (it, n) {
		r = keys_apply(k, &inject_keys, it, &p->inject[p->ninject]);
		if (r == 0)
			r = inject_fits(k, it, p);
		if (r == 0)
			r = requests_add(
			        k, yaml_get(it, "requests"), p, &p->inject[p->ninject].requests);
		if (r < 0)
			return r;
		p->ninject++;
	}
	return 0;
}

/* ---- budget ---- */

/* US dollars, kept in millionths. */
static int set_cost(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct budget *b = obj;
	double dollars = 0;
	const struct key row = {.name = n->key, .type = KEY_REAL};
	int r = keys_set(k, &row, n, &dollars);
	if (r < 0)
		return r;
	if (dollars > 1e9)
		return keys_error(
		        k, n->line, "'%s': a billion dollars and more is no bound", n->key);
	b->cost_micro = (uint64_t)(dollars * 1e6 + 0.5);
	if (b->cost_micro == 0)
		return keys_error(
		        k, n->line, "'%s': a budget of nothing; leave the upstream out", n->key);
	return 0;
}

static const struct key budget_rows[] = {
        {.name = "requests",
                .type = KEY_COUNT,
                .min = 1,
                .offset = offsetof(struct budget, requests),
                .doc = "Requests to injected upstreams."},
        {.name = "tokens",
                .type = KEY_COUNT,
                .min = 1,
                .offset = offsetof(struct budget, tokens),
                .doc = "Tokens in and out, as the upstreams count them."},
        {.name = "cost",
                .type = KEY_OTHER,
                .set = set_cost,
                .want = "US dollars",
                .doc = "What the tokens cost by the price table."},
        {.name = "bytes",
                .type = KEY_BYTES,
                .min = 1,
                .offset = offsetof(struct budget, bytes),
                .doc = "Bytes out and in, of rules and upstreams together."},
};
static const struct key_table budget_keys = KEY_TABLE(budget_rows);

#define BUDGET_ROW(key, scope, text)                                                               \
	{                                                                                          \
		.name = (key), .type = KEY_MAP, .sub = &budget_keys,                               \
		.offset = offsetof(struct policy, budgets[scope]), .doc = (text)                   \
	}
static const struct key scope_rows[] = {
        BUDGET_ROW("run", BUDGET_RUN, "Of one run."),
        BUDGET_ROW("session", BUDGET_SESSION, "Of all runs of a session."),
        BUDGET_ROW("user", BUDGET_USER, "Of all runs of a user in a day (UTC)."),
        BUDGET_ROW("secret", BUDGET_SECRET, "Of all use of one secret in a day (UTC)."),
};
static const struct key_table scope_keys = KEY_TABLE(scope_rows);

/* ---- egress ---- */

static const struct key egress_rows[] = {
        {.name = "allow",
                .type = KEY_OTHER,
                .set = allow_set,
                .sub = &allow_keys,
                .want = "list of HOST[:PORT], @GROUP and maps",
                .doc = "What may be reached; everything else is refused.  A host alone is TLS on "
                       "443, with port 80 it is HTTP."},
        {.name = "inject",
                .type = KEY_OTHER,
                .set = set_inject,
                .sub = &inject_keys,
                .want = "list of maps",
                .doc = "HTTP hosts that exist only for the jail, with a secret added outside; at "
                       "most 8."},
        {.name = "budget", .type = KEY_MAP, .sub = &scope_keys},
        {.name = "proxy",
                .type = KEY_FLAG,
                .bit = POLICY_PROXY,
                .offset = offsetof(struct policy, flags),
                .dflt = "false",
                .doc = "http://proxy.agentbox:3128 is there for programs that insist on a proxy; "
                       "the same rules hold."},
};
const struct key_table egress_keys = KEY_TABLE(egress_rows);

/* ---- the whole ---- */

bool ports_add(uint16_t *ports, uint32_t *n, uint32_t max, uint16_t port)
{
	uint32_t at = 0;
	while (at < *n && ports[at] < port)
		at++;
	if (at < *n && ports[at] == port)
		return true;
	if (*n == max)
		return false;
	memmove(ports + at + 1, ports + at, (*n - at) * sizeof(*ports));
	ports[at] = port;
	++*n;
	return true;
}

static bool add_port(struct policy *p, uint16_t port)
{
	return ports_add(p->ports, &p->nports, POLICY_PORTS, port);
}

static bool takes_proxy(const struct policy *p, const char *host)
{
	return (p->flags & POLICY_PROXY) && strcmp(host, POLICY_PROXY_NAME) == 0;
}

/* An injected name belongs to us alone, and so does the proxy's: a rule for it would make two of
 * one name. */
static int names_apart(const struct keys_ctx *k, int line, const struct policy *p)
{
	bool proxy = false;
	for (uint32_t r = 0; r < p->nrules; r++)
		proxy |= takes_proxy(p, p->rules[r].host);
	for (uint32_t i = 0; i < p->ninject; i++) {
		proxy |= takes_proxy(p, p->inject[i].host);
		for (uint32_t r = 0; r < p->nrules; r++)
			if (strcmp(p->rules[r].host, p->inject[i].host) == 0)
				return keys_error(k, line, "%s is both in `allow` and in `inject`",
				        p->rules[r].host);
	}
	if (proxy)
		return keys_error(
		        k, line, POLICY_PROXY_NAME " is the name of the proxy (egress.proxy)");
	return 0;
}

int egress_settle(const struct keys_ctx *k, const struct yaml_node *root, struct policy *p)
{
	const struct yaml_node *allow = yaml_path(root, "egress.allow");
	const struct yaml_node *inject = yaml_path(root, "egress.inject");
	int line = allow ? allow->line : inject ? inject->line : root->line;
	p->nports = 0;
	memset(p->ports, 0, sizeof(p->ports));
	for (uint32_t i = 0; i < p->nrules; i++)
		for (uint32_t j = 0; j < p->rules[i].nports; j++) {
			uint16_t port = p->rules[i].ports[j];
			if (port != 80 && port != 443 && !add_port(p, port))
				return keys_error(k, line,
				        "the rules name more than %d ports besides 80 and 443",
				        POLICY_PORTS);
		}
	if ((p->flags & POLICY_PROXY) && !add_port(p, POLICY_PROXY_PORT))
		return keys_error(
		        k, line, "egress.proxy needs a port, and %d are taken", POLICY_PORTS);
	return names_apart(k, line, p);
}
