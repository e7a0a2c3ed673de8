#include "policy/egress_yaml.h"
#include "base/mem.h"
#include "policy/groups.h"
#include "policy/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- requests ---- */

static const char *const methods[] = {
        "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", NULL};

/* Ranges of entries that were replaced leave holes; the ranges that count are moved together. */
static void compact_requests(struct policy *p)
{
	struct policy_request kept[POLICY_REQUESTS] = {0};
	uint32_t n = 0;
	for (uint32_t i = 0; i < p->nrules + p->ninject; i++) {
		struct request_range *r =
		        i < p->nrules ? &p->rules[i].requests : &p->inject[i - p->nrules].requests;
		memcpy(kept + n, p->requests + r->first, r->n * sizeof(kept[0]));
		r->first = n;
		n += r->n;
	}
	memcpy(p->requests, kept, sizeof(kept));
	p->nrequests = n;
}

static int one_request(
        const struct keys_ctx *k, const struct yaml_node *n, struct policy_request *ret)
{
	int r = keys_kind(k, n, YAML_SCALAR);
	if (r < 0)
		return r;
	const char *path = n->text;
	size_t word = strcspn(n->text, " ");
	memset(ret, 0, sizeof(*ret));
	if (n->text[word]) {
		path = n->text + word + strspn(n->text + word, " ");
		(void)snprintf(ret->method, sizeof(ret->method), "%.*s", (int)word, n->text);
		size_t i = 0;
		while (methods[i] && strcmp(methods[i], ret->method) != 0)
			i++;
		if (!methods[i] || word >= sizeof(ret->method))
			return keys_unknown(k, n->line, "method", ret->method, methods);
	}
	if (!form_path_glob(path))
		return keys_error(k, n->line,
		        "request '%.60s' is not METHOD /PATH or /PATH, with * within a segment and "
		        "** across them (and no empty segment, . or ..)",
		        n->text);
	(void)str_copy(ret->path, sizeof(ret->path), path);
	return 0;
}

static int add_requests(const struct keys_ctx *k, const struct yaml_node *list, struct policy *p,
        struct request_range *ret)
{
	*ret = (struct request_range){.first = p->nrequests};
	if (!list)
		return 0;
	int r = keys_kind(k, list, YAML_SEQ);
	if (r == 0 && list->count == 0)
		r = keys_error(k, list->line,
		        "'requests' is empty: leave it out for all requests, the entry for none");
	yaml_each (n, list) {
		if (r < 0)
			return r;
		if (p->nrequests == POLICY_REQUESTS)
			return keys_error(k, n->line,
			        "a policy's rules and upstreams have room for %d requests together",
			        POLICY_REQUESTS);
		r = one_request(k, n, &p->requests[p->nrequests]);
		p->nrequests += r == 0;
		ret->n += r == 0;
	}
	return r;
}

/* Known to the tables, taken up by add_requests once the entry has its place. */
static int set_requests(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	(void)obj;
	return keys_kind(k, n, YAML_SEQ);
}

#define REQUESTS_ROW(text)                                                                         \
	{                                                                                          \
		.name = "requests", .type = KEY_OTHER, .set = set_requests,                        \
		.want = "list of METHOD PATH", .doc = (text)                                       \
	}

/* ---- allow: the entries ---- */

static const char *const protocols[] = {"tls", "http", "raw", NULL};

/* A host, or *.host as .host. */
static int set_rule_host(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct policy_rule *rule = obj;
	int r = keys_kind(k, n, YAML_SCALAR);
	if (r < 0)
		return r;
	const char *text = n->text + (n->text[0] == '*' && n->text[1] == '.' ? 1 : 0);
	if (!form_host(text + (text != n->text)) || !str_copy(rule->host, POLICY_HOST_MAX, text))
		return keys_error(k, n->line,
		        "'%.80s' is not a host name (a.b or *.a.b, lower case); an address goes "
		        "into `addresses`",
		        n->text);
	return 0;
}

static int set_ports(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct policy_rule *rule = obj;
	int r = keys_kind(k, n, YAML_SEQ);
	if (r == 0 && (n->count < 1 || n->count > RULE_PORTS))
		r = keys_error(k, n->line, "'ports' has 1 to %d entries", RULE_PORTS);
	rule->nports = 0;
	const struct key row = {.name = "port", .type = KEY_U32, .min = 1, .max = 65535};
	yaml_each (it, n) {
		uint32_t port = 0;
		if (r == 0)
			r = keys_set(k, &row, it, &port);
		if (r < 0)
			return r;
		if (!rule_has_port(rule, port))
			rule->ports[rule->nports++] = (uint16_t)port;
	}
	return r;
}

static int set_addresses(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct policy_rule *rule = obj;
	int r = keys_kind(k, n, YAML_SEQ);
	if (r == 0 && (n->count < 1 || n->count > RULE_CIDRS))
		r = keys_error(k, n->line, "'addresses' has 1 to %d entries", RULE_CIDRS);
	rule->ncidrs = 0;
	yaml_each (it, n) {
		if (r == 0)
			r = keys_kind(k, it, YAML_SCALAR);
		if (r < 0)
			return r;
		if (!cidr_parse(it->text, &rule->cidrs[rule->ncidrs]))
			return keys_error(k, it->line,
			        "'%.60s' is not an address or a network (10.1.0.0/16, fd00::/8, no "
			        "bits set behind the prefix)",
			        it->text);
		rule->ncidrs++;
	}
	return r;
}

static const struct key allow_rows[] = {
        {.name = "host",
                .type = KEY_OTHER,
                .set = set_rule_host,
                .want = "a host name, *.name for all names below it",
                .doc = "Name that may be reached."},
        {.name = "addresses",
                .type = KEY_OTHER,
                .set = set_addresses,
                .want = "list of addresses or networks",
                .doc = "With `host`: addresses that are not public (private, loopback) and that "
                       "the name may resolve to.  Without: what may be dialled as a number."},
        {.name = "ports",
                .type = KEY_OTHER,
                .set = set_ports,
                .want = "list of ports, at most 4",
                .dflt = "[443] for tls, [80] for http",
                .doc = "TCP ports.  A port other than 80 and 443 cannot be listened on inside."},
        {.name = "protocol",
                .type = KEY_ENUM,
                .offset = offsetof(struct policy_rule, protocol),
                .names = protocols,
                .dflt = "tls",
                .doc = "tls: the server name must be the name dialled.  http: so must Host, in "
                       "every request.  raw: bytes, for exact names and addresses."},
        {.name = "terminate",
                .type = KEY_FLAG,
                .bit = 1,
                .offset = offsetof(struct policy_rule, terminate),
                .dflt = "false",
                .doc = "With protocol: tls, it is opened on its way, by an authority of the jail's "
                       "own, so that its requests can be judged; what is said there is seen."},
        REQUESTS_ROW("With protocol: http or `terminate`, the requests that are let through; none: "
                     "all of them."),
        {.name = "rate",
                .type = KEY_BYTES,
                .min = 1024,
                .offset = offsetof(struct policy_rule, rate_bps),
                .none = true,
                .dflt = "none",
                .doc = "Bytes a second, both directions together."},
        {.name = "bytes",
                .type = KEY_BYTES,
                .min = 1,
                .offset = offsetof(struct policy_rule, bytes),
                .none = true,
                .dflt = "none",
                .doc = "Bytes of one run, both directions together."},
};
static const struct key_table allow_keys = KEY_TABLE(allow_rows);

static int rule_fits(
        const struct keys_ctx *k, const struct yaml_node *n, const struct policy_rule *r)
{
	if (!r->host[0] && r->ncidrs == 0)
		return keys_error(k, n->line, "a rule needs `host` or `addresses`");
	if (r->nports == 0)
		return keys_error(k, n->line, "protocol: raw needs `ports`");
	if (rule_has_port(r, 53))
		return keys_error(k, n->line,
		        "port 53 is the jail's resolver, which answers for the names allowed here");
	if (r->protocol != RULE_RAW && !r->host[0])
		return keys_error(k, n->line,
		        "addresses without a host have no name that %s could carry: protocol: raw",
		        protocols[r->protocol]);
	if (r->protocol == RULE_RAW && r->host[0] == '.')
		return keys_error(k, n->line,
		        "protocol: raw carries no name that could be compared, so it needs an "
		        "exact "
		        "host");
	const struct yaml_node *requests = yaml_get(n, "requests");
	if (r->terminate && r->protocol != RULE_TLS)
		return keys_error(k, yaml_get(n, "terminate")->line,
		        "terminate: %s has nothing to terminate", protocols[r->protocol]);
	if (requests && !rule_shows_requests(r))
		return keys_error(k, requests->line, "requests: %s does not show them%s",
		        protocols[r->protocol],
		        r->protocol == RULE_TLS ? " without `terminate: true`" : "");
	return 0;
}

/* The first rule for a name and port counts: another one after it that says something else would
 * be there for nothing.  What groups bring is only filled in where nothing was said. */
static int hidden(const struct keys_ctx *k, int line, const struct policy_rule *r,
        const struct yaml_node *requests, const struct policy *p)
{
	for (uint32_t i = 0; i < p->nrules && r->host[0] && !r->group[0]; i++) {
		const struct policy_rule *had = &p->rules[i];
		bool same = !requests && !had->requests.n && had->protocol == r->protocol &&
		            had->terminate == r->terminate && had->rate_bps == r->rate_bps &&
		            had->bytes == r->bytes && had->ncidrs == r->ncidrs &&
		            memcmp(had->cidrs, r->cidrs, sizeof(r->cidrs)) == 0;
		for (uint32_t j = 0; j < r->nports && strcmp(had->host, r->host) == 0; j++)
			if (!same && rule_has_port(had, r->ports[j]))
				return keys_error(k, line,
				        "%s%s:%u has a rule before this one%s%s, which alone would "
				        "count",
				        r->host[0] == '.' ? "*" : "", r->host, r->ports[j],
				        had->group[0] ? " by @" : "", had->group);
	}
	return 0;
}

static int add_rule(const struct keys_ctx *k, int line, const struct policy_rule *r,
        const struct yaml_node *requests, struct policy *p)
{
	if (p->nrules == POLICY_RULES)
		return keys_error(
		        k, line, "a policy has room for %d rules, groups opened", POLICY_RULES);
	struct policy_rule *to = &p->rules[p->nrules];
	*to = *r;
	int e = hidden(k, line, r, requests, p);
	if (e == 0)
		e = add_requests(k, requests, p, &to->requests);
	p->nrules += e == 0;
	return e;
}

static void default_ports(struct policy_rule *r)
{
	if (r->nports || r->protocol == RULE_RAW)
		return;
	r->ports[0] = r->protocol == RULE_TLS ? 443 : 80;
	r->nports = 1;
}

static int add_map(const struct keys_ctx *k, const struct yaml_node *n, struct policy *p)
{
	struct policy_rule rule = {0};
	int r = keys_apply(k, &allow_keys, n, &rule);
	if (r == 0) {
		default_ports(&rule);
		r = rule_fits(k, n, &rule);
	}
	return r < 0 ? r : add_rule(k, n->line, &rule, yaml_get(n, "requests"), p);
}

/* HOST[:PORT]: what is spoken there follows from the port. */
static int add_word(
        const struct keys_ctx *k, const struct yaml_node *n, const char *group, struct policy *p)
{
	struct policy_rule rule = {.nports = 1, .ports = {443}};
	char host[POLICY_HOST_MAX + 2];
	const char *colon = strchr(n->text, ':');
	size_t len = colon ? (size_t)(colon - n->text) : strlen(n->text);
	if (len >= sizeof(host))
		return keys_error(k, n->line, "'%.60s...' is too long for a host", n->text);
	memcpy(host, n->text, len);
	host[len] = '\0';
	if (colon) {
		uint64_t port = 0;
		if (units_plain(colon + 1, &port) < 0 || port < 1 || port > 65535)
			return keys_error(k, n->line, "'%.80s' is not HOST[:PORT]", n->text);
		rule.ports[0] = (uint16_t)port;
		rule.protocol = port == 80 ? RULE_HTTP : RULE_TLS;
	}
	(void)str_copy(rule.group, sizeof(rule.group), group);
	const struct yaml_node word = {
	        .kind = YAML_SCALAR, .line = n->line, .key = "host", .text = host, .len = len};
	int r = set_rule_host(k, &word, &rule);
	if (r == 0)
		r = rule_fits(k, n, &rule);
	return r < 0 ? r : add_rule(k, n->line, &rule, NULL, p);
}

static int unknown_group(
        const struct keys_ctx *k, const struct yaml_doc *d, const struct yaml_node *n)
{
	const struct yaml_node *all = yaml_root(d);
	auto_free const char **names = xcalloc(all->count + 1, sizeof(*names));
	size_t i = 0;
	yaml_each (it, all)
		names[i++] = it->key;
	return keys_unknown(k, n->line, "group", n->text + 1, names);
}

static int add_group(const struct keys_ctx *k, const struct yaml_node *n, struct policy *p)
{
	auto_yaml struct yaml_doc *d = groups_parse(k->e);
	if (!d)
		return -EINVAL;
	const struct yaml_node *allow = groups_allow(d, n->text + 1);
	if (!allow)
		return unknown_group(k, d, n);
	const struct keys_ctx own = {.file = yaml_file(d), .e = k->e};
	yaml_each (it, allow) {
		int r = add_word(&own, it, n->text + 1, p);
		if (r < 0)
			return r;
	}
	return 0;
}

static int set_allow(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct policy *p = obj;
	int r = keys_kind(k, n, YAML_SEQ);
	p->nrules = 0;
	memset(p->rules, 0, sizeof(p->rules));
	compact_requests(p);
	yaml_each (it, n) {
		if (r < 0)
			return r;
		if (it->kind == YAML_MAP)
			r = add_map(k, it, p);
		else if (it->kind != YAML_SCALAR)
			r = keys_error(
			        k, it->line, "an entry of 'allow' is HOST[:PORT], @GROUP or a map");
		else
			r = it->text[0] == '@' ? add_group(k, it, p) : add_word(k, it, "", p);
	}
	return r;
}

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
	compact_requests(p);
	yaml_each (it, n) {
		r = keys_apply(k, &inject_keys, it, &p->inject[p->ninject]);
		if (r == 0)
			r = inject_fits(k, it, p);
		if (r == 0)
			r = add_requests(
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
                .set = set_allow,
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
