#include "policy/policy_yaml.h"
#include "base/mem.h"
#include "policy/builtin.h"
#include "tests/t.h"

static struct policy *parsed; /* of the last text that was fine */
static struct err err;

static int parse(const char *text)
{
	const struct keys_ctx k = {.file = "p.yaml", .e = &err};
	return policy_parse(&k, "p", text, strlen(text), parsed);
}

static const char everything[] =
        "egress:\n"
        "  allow:\n"
        "    - '@pypi'\n"
        "    - registry.example.com\n"
        "    - '*.example.com:8443'\n"
        "    - archive.example.com:80\n"
        "    - host: mirror.example\n"
        "      protocol: http\n"
        "      ports: [80, 8080]\n"
        "      addresses: [10.0.0.0/8, 'fd00::/8']\n"
        "      requests: [GET /simple/**, /any]\n"
        "    - { addresses: [192.0.2.7], protocol: raw, ports: [5432], rate: 5M, bytes: 1G }\n"
        "    - { host: last.example, protocol: http, requests: [POST /x] }\n"
        "    - { host: opened.example, terminate: true, requests: [GET /y] }\n"
        "  inject:\n"
        "    - { host: m.agentbox, upstream: 'https://m.example', requests: [POST /v1/*] }\n"
        "  budget:\n"
        "    run: { cost: 1.25, tokens: 2M }\n"
        "    user: { requests: 100, bytes: 1G }\n"
        "  proxy: true\n";

static void all_of_it(void)
{
	must(parse(everything) == 0, "everything at once: %s", err.text);
	const struct policy *p = parsed;
	uint32_t n = p->nrules;
	must(n > 7, "a group is several rules");
	is_str(p->rules[0].host, "pypi.org", "the first of a group");
	is_str(p->rules[0].group, "pypi", "and its name");
	const struct policy_rule *r = &p->rules[n - 7];
	ok(strcmp(r[0].host, "registry.example.com") == 0 && r[0].protocol == RULE_TLS &&
	                r[0].nports == 1 && r[0].ports[0] == 443 && !r[0].group[0],
	        "a host alone is TLS on 443");
	ok(strcmp(r[1].host, ".example.com") == 0 && r[1].ports[0] == 8443, "a suffix with a port");
	ok(r[2].protocol == RULE_HTTP && r[2].ports[0] == 80, "port 80 is HTTP");
	ok(r[3].nports == 2 && r[3].ncidrs == 2 && r[3].requests.n == 2, "a rule with everything");
	const struct policy_request *q = &p->requests[r[3].requests.first];
	ok(strcmp(q[0].method, "GET") == 0 && strcmp(q[0].path, "/simple/**") == 0 &&
	                !q[1].method[0] && strcmp(q[1].path, "/any") == 0,
	        "its requests");
	ok(r[4].protocol == RULE_RAW && !r[4].host[0] && r[4].rate_bps == 5 << 20 &&
	                r[4].bytes == 1 << 30,
	        "addresses with rate and bytes");
	ok(r[5].requests.n == 1, "requests of another");
	ok(r[6].protocol == RULE_TLS && r[6].terminate == 1 && r[6].ports[0] == 443 &&
	                r[6].requests.n == 1 && !r[0].terminate && rules_terminate(r, 7) &&
	                !rules_terminate(r, 6),
	        "TLS that is terminated");
	ok(p->inject[0].requests.n == 1 &&
	                strcmp(p->requests[p->inject[0].requests.first].path, "/v1/*") == 0,
	        "an upstream's requests");
	ok(p->nrequests == 5, "no request is kept twice");
	ok(p->nports == 4 && p->ports[0] == 3128 && p->ports[1] == 5432 && p->ports[2] == 8080 &&
	                p->ports[3] == 8443,
	        "ports that need a listener, the proxy's too");
	ok(p->budgets[BUDGET_RUN].cost_micro == 1250000 &&
	                p->budgets[BUDGET_RUN].tokens == 2000000 &&
	                p->budgets[BUDGET_USER].requests == 100 &&
	                p->budgets[BUDGET_USER].bytes == 1 << 30 &&
	                !p->budgets[BUDGET_SESSION].bytes,
	        "budgets");
	ok(p->flags & POLICY_PROXY, "proxy");
}

static void inherited(void)
{
	ok(parse("extends: demo\negress: { allow: [a.b] }\n") == 0 && parsed->nrules == 1 &&
	                parsed->ninject == 1,
	        "a list replaces its own kind alone");
	ok(parse("egress: { allow: [a.b, a.b, { host: pypi.org, bytes: 1G }, '@pypi', "
	         "'@pypi', { host: c.d, protocol: http, requests: [/.x/..a/**/] }] }\n") == 0,
	        "the same twice, and groups after what was said by oneself: %s", err.text);
	ok(parse("egress: { allow: [] }\n") == 0 && parsed->nrules == 0, "an empty list is fine");
}

static void wrong(void)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
	        {"allow: ['@nmp']", "did you mean 'npm'"},
	        {"allow: [EXAMPLE.com]", "lower case"},
	        {"allow: [10.0.0.1]", "an address goes into `addresses`"},
	        {"allow: ['*.com']", "is not a host name"},
	        {"allow: ['*']", "is not a host name"},
	        {"allow: ['a.*.b']", "is not a host name"},
	        {"allow: ['a.b:0']", "HOST[:PORT]"},
	        {"allow: ['a.b:x']", "HOST[:PORT]"},
	        {"allow: ['a.b:53']", "port 53 is the jail's resolver"},
	        {"allow: [{ ports: [1] }]", "needs `host` or `addresses`"},
	        {"allow: [{ host: a.b, protocol: raw }]", "raw needs `ports`"},
	        {"allow: [{ host: '*.a.b', protocol: raw, ports: [1] }]", "exact host"},
	        {"allow: [{ host: a.b, ports: [] }]", "1 to 4 entries"},
	        {"allow: [{ host: a.b, ports: [1, 2, 3, 4, 5] }]", "1 to 4 entries"},
	        {"allow: [{ host: a.b, ports: [65536] }]", "the most is 65535"},
	        {"allow: [{ addresses: [10.0.0.1/8], protocol: raw, ports: [1] }]",
	                "behind the prefix"},
	        {"allow: [{ addresses: [10.0.0.0/8] }]", "protocol: raw"},
	        {"allow: [{ host: a.b, requests: [/] }]",
	                "tls does not show them without `terminate: true`"},
	        {"allow: [{ host: a.b, protocol: http, requests: [GTE /] }]", "did you mean 'GET'"},
	        {"allow: [{ host: a.b, protocol: http, requests: [GET x] }]", "METHOD /PATH"},
	        {"allow: [{ host: a.b, protocol: http, requests: ['GET /***'] }]", "METHOD /PATH"},
	        {"allow: [{ host: a.b, protocol: http, requests: [GET /a//b] }]",
	                "no empty segment"},
	        {"allow: [{ host: a.b, protocol: http, requests: ['/**/../b'] }]", ". or .."},
	        {"allow: [{ host: a.b, protocol: http, requests: [/a/.] }]", ". or .."},
	        {"allow: [{ host: a.b, protocol: http, requests: [] }]", "'requests' is empty"},
	        {"allow: [{ host: a.b, protocol: http, requests: [/x] }, 'a.b:80']",
	                "a.b:80 has a rule before this one, which alone would count"},
	        {"allow: [a.b, { host: a.b, rate: 5M }]", "a.b:443 has a rule before"},
	        {"allow: [a.b, { host: a.b, terminate: true }]", "a.b:443 has a rule before"},
	        {"allow: ['*.a.b', { host: '*.a.b', ports: [1, 443], protocol: http }]",
	                "*.a.b:443 has a rule before"},
	        {"allow: ['@pypi', { host: pypi.org, bytes: 1G }]", "one by @pypi, which"},
	        {"{ allow: [proxy.agentbox], proxy: true }", "is the name of the proxy"},
	        {"{ inject: [{ host: proxy.agentbox, upstream: 'https://a.b' }], proxy: true }",
	                "is the name of the proxy"},
	        {"inject: [{ host: a.b, upstream: 'https://c.d', header: host, secret: K }]",
	                "none that frames the request"},
	        {"inject: [{ host: a.b, upstream: 'https://c.d', requests: [] }]",
	                "'requests' is empty"},
	        {"allow: [{ host: a.b, terminate: true, protocol: raw, ports: [1] }]",
	                "raw has nothing to terminate"},
	        {"allow: [{ host: a.b, terminate: true, protocol: http }]",
	                "http has nothing to terminate"},
	        {"allow: [{ host: a.b, terminate: 'yes' }]", "'terminate'"},
	        {"allow: [{ host: a.b, terminates: true }]", "did you mean 'terminate'"},
	        {"allow: [anthropic.agentbox]", "both in `allow` and in `inject`"},
	        {"allow: [[a.b]]", "HOST[:PORT], @GROUP or a map"},
	        {"allow: a.b", "a list is expected"},
	        {"budget: { run: { cost: 0 } }", "a budget of nothing"},
	        {"budget: { run: { tokens: -1 } }", "'tokens'"},
	        {"budget: { day: { tokens: 1 } }", "unknown key 'day'"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char text[256];
		snprintf(text, sizeof(text), "egress:\n  %s\n", rows[i].text);
		int r = parse(text);
		if (!ok(r == -EINVAL && strstr(err.text, rows[i].says) &&
		                    strstr(err.text, "p.yaml:2: "),
		            "%s", rows[i].text))
			printf("# %d %s\n", r, err.text);
	}
}

/* More than there is room for. */
static void full(void)
{
	char text[16384] = "egress:\n  allow:\n";
	size_t n = strlen(text);
	for (int i = 0; i <= POLICY_RULES; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "    - h%d.example\n", i);
	ok(parse(text) == -EINVAL &&
	                strstr(err.text, "p.yaml:131: a policy has room for 128 rules"),
	        "rules: %s", err.text);
	n = (size_t)snprintf(text, sizeof(text), "egress:\n  allow:\n");
	for (int i = 0; i <= POLICY_PORTS; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "    - a.b:%d\n", 1000 + i);
	ok(parse(text) == -EINVAL && strstr(err.text, "more than 12 ports"), "ports: %s", err.text);
	n = (size_t)snprintf(text, sizeof(text),
	        "egress:\n  allow:\n    - host: a.b\n      protocol: http\n      requests:\n");
	for (int i = 0; i <= POLICY_REQUESTS; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "        - /p%d\n", i);
	ok(parse(text) == -EINVAL && strstr(err.text, "room for 64 requests"), "requests: %s",
	        err.text);
}

/* What may be asked with the keys of the default policy. */
static void asked(void)
{
	static const struct {
		const char *host, *method, *target;
		bool fine;
	} rows[] = {
	        {"anthropic.agentbox", "POST", "/v1/messages?beta=true", true},
	        {"anthropic.agentbox", "POST", "/v1/messages/count_tokens", true},
	        {"anthropic.agentbox", "GET", "/v1/models/claude-sonnet-4-5", true},
	        {"anthropic.agentbox", "POST", "/v1/messages/batches", false},
	        {"anthropic.agentbox", "GET", "/v1/messages/batches", false},
	        {"anthropic.agentbox", "GET", "/v1/files", false},
	        {"anthropic.agentbox", "POST", "/v1/files", false},
	        {"anthropic.agentbox", "GET", "/v1/organizations/api_keys", false},
	        {"openai.agentbox", "POST", "/v1/responses", true},
	        {"openai.agentbox", "POST", "/v1/chat/completions", true},
	        {"openai.agentbox", "GET", "/v1/models", true},
	        {"openai.agentbox", "GET", "/v1/responses/resp_1", false},
	        {"openai.agentbox", "GET", "/v1/chat/completions", false},
	        {"openai.agentbox", "GET", "/v1/files/f/content", false},
	        {"openai.agentbox", "DELETE", "/v1/models/ft", false},
	        {"openai.agentbox", "POST", "/v1/batches", false},
	        {"openai.agentbox", "GET", "/v1/organization/costs", false},
	        {"gemini.agentbox", "POST", "/v1beta/models/gemini-2.5-pro:generateContent", true},
	        {"gemini.agentbox", "POST",
	                "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse", true},
	        {"gemini.agentbox", "POST", "/v1/models/gemini-2.5-pro:countTokens", true},
	        {"gemini.agentbox", "GET", "/v1beta/models", true},
	        {"gemini.agentbox", "GET", "/v1beta/files", false},
	        {"gemini.agentbox", "POST", "/upload/v1beta/files", false},
	        {"gemini.agentbox", "POST", "/v1beta/cachedContents", false},
	        {"gemini.agentbox", "POST", "/v1beta/tunedModels/x:generateContent", false},
	        {"gemini.agentbox", "POST", "/v1beta/models/gemini:batchGenerateContent", false},
	};
	struct err e;
	for (int i = 0; i < (int)builtin_count(); i++) {
		must(policy_builtin(i, parsed, &e) == 0, "built-in %d", i);
		if (strcmp(parsed->name, "default") == 0)
			break;
	}
	is_str(parsed->name, "default", "the default policy");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct policy_inject *j = parsed->inject;
		while (j < parsed->inject + parsed->ninject && strcmp(j->host, rows[i].host) != 0)
			j++;
		must(j < parsed->inject + parsed->ninject, "%s is in it", rows[i].host);
		ok(requests_allow(parsed->requests + j->requests.first, j->requests.n,
		           rows[i].method, strlen(rows[i].method), rows[i].target,
		           strlen(rows[i].target)) == rows[i].fine,
		        "%s: %s %s %s", rows[i].host, rows[i].method, rows[i].target,
		        rows[i].fine ? "is let through" : "is not");
	}
}

int main(void)
{
	parsed = xnew(struct policy);
	all_of_it();
	inherited();
	wrong();
	full();
	asked();
	free(parsed);
	return done();
}
