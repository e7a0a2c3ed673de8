#include "policy/allow_yaml.h"
#include "base/mem.h"
#include "policy/groups.h"
#include "policy/requests_yaml.h"
#include "policy/special.h"
#include "policy/units.h"

#include <stdio.h>
#include <string.h>

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

/* What is special has to be named: a wide network does not open it by the way. */
static void note_wide(const struct keys_ctx *k, const struct yaml_node *n, const struct cidr *c)
{
	struct special s;
	char range[RULE_TEXT_MAX];
	if (!special_within(c, &s))
		return;
	cidr_text(&s.range, range);
	keys_note(k, n->line,
	        "'%.60s' is wider than what it opens: what is special in it has to be named by "
	        "itself, as %s (%s)",
	        n->text, range, special_name(s.kind));
}

int cidrs_set(const struct keys_ctx *k, const struct yaml_node *n, struct cidr to[RULE_CIDRS],
        uint32_t *ret_n)
{
	uint32_t count = 0;
	int r = keys_kind(k, n, YAML_SEQ);
	if (r == 0 && (n->count < 1 || n->count > RULE_CIDRS))
		r = keys_error(k, n->line, "'%s' has 1 to %d entries", n->key, RULE_CIDRS);
	yaml_each (it, n) {
		if (r == 0)
			r = keys_kind(k, it, YAML_SCALAR);
		if (r < 0)
			return r;
		if (!cidr_parse(it->text, &to[count]))
			return keys_error(k, it->line,
			        "'%.60s' is not an address or a network (10.1.0.0/16, fd00::/8, no "
			        "bits set behind the prefix)",
			        it->text);
		note_wide(k, it, &to[count]);
		count++;
	}
	*ret_n = count;
	return r;
}

static int set_addresses(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct policy_rule *rule = obj;
	return cidrs_set(k, n, rule->cidrs, &rule->ncidrs);
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
                       "the name may resolve to.  Without: what may be dialled as a number.  A "
                       "network opens a special range (private, loopback, metadata) only when it "
                       "lies within it: 0.0.0.0/0 is all that is public."},
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
const struct key_table allow_keys = KEY_TABLE(allow_rows);

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
		e = requests_add(k, requests, p, &to->requests);
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

int allow_set(const struct keys_ctx *k, const struct yaml_node *n, void *obj)
{
	struct policy *p = obj;
	int r = keys_kind(k, n, YAML_SEQ);
	p->nrules = 0;
	memset(p->rules, 0, sizeof(p->rules));
	requests_compact(p);
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
