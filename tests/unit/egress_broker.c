/* What models cost, as agentbox-egress sees it: metered answers that reach the jail unchanged,
 * budgets of four scopes, what agentboxd is told, and which requests an upstream lets through. */
#include "tests/egress_bed.h"

static struct budget bounds[BUDGET_SCOPES];
static struct egress_jail told;
static uint64_t next_jail = 1;

static void more(struct policy *p)
{
	memcpy(p->budgets, bounds, sizeof(bounds));
	struct policy_inject *in = &p->inject[0];
	in->requests = (struct request_range){.first = 0, .n = 3};
	p->nrequests = 3;
	(void)str_copy(p->requests[0].method, REQUEST_METHOD_MAX, "POST");
	(void)str_copy(p->requests[0].path, POLICY_PATH_MAX, "/meter/**");
	(void)str_copy(p->requests[1].path, POLICY_PATH_MAX, "/echo");
	(void)str_copy(p->requests[2].path, POLICY_PATH_MAX, "/v1/*/x");
}

static void purse(struct egress_jail *m)
{
	m->purse = told.purse;
	m->spent = told.spent;
	memcpy(m->session, "ses_1", 6);
	memcpy(m->purse.user, "ann", 4);
}

static void clear(void)
{
	memset(bounds, 0, sizeof(bounds));
	memset(&told, 0, sizeof(told));
	told.purse.day = ledger_day(clock_wall_ms());
}

/* A jail with the budgets of now, of ann. */
static void begin(void)
{
	if (next_jail > 1)
		bed_jail_end(next_jail - 1);
	bed_policies(BED_SECRET, 1);
	bed_jail(next_jail++, 0);
	bed_listen(50);
	memset(&bed.usage, 0, sizeof(bed.usage));
	bed.nbudgets = 0;
}

static char *post(const char *path, const char *fields)
{
	static const char body[] = "{\"model\":\"claude-sonnet-4-5\",\"messages\":[]}";
	auto_free char *request =
	        xasprintf("POST %s HTTP/1.1\r\nHost: anthropic.agentbox\r\nConnection: close\r\n"
	                  "%sContent-Length: %zu\r\n\r\n%s",
	                path, fields, sizeof(body) - 1, body);
	return bed_ask("198.18.1.0", request);
}

static int status(const char *path)
{
	auto_free char *answer = post(path, "");
	return strncmp(answer, "HTTP/1.1 ", 9) == 0 ? atoi(answer + 9) : -1;
}

/* Until that many tokens and requests were told of. */
static void usage(uint64_t tokens, uint64_t requests)
{
	for (int64_t end = clock_mono_ms() + 5000; clock_mono_ms() < end;) {
		const struct budget *b = &bed.usage.spent.sum;
		if (b->tokens >= tokens && b->requests >= requests)
			return;
		bed_listen(100);
	}
}

static bool hit(unsigned scope, unsigned kind, uint64_t bound)
{
	for (int64_t end = clock_mono_ms() + 5000; !bed.nbudgets && clock_mono_ms() < end;)
		bed_listen(100);
	const struct jail_budget *b = &bed.budgets[0];
	printf("# %d told: %s of %s, %llu: %s\n", bed.nbudgets, budget_kind_name(b->kind),
	        budget_scope_name(b->scope), (unsigned long long)b->bound, b->reason);
	return bed.nbudgets == 1 && b->scope == scope && b->kind == kind && b->bound == bound;
}

static void metered(void)
{
	clear();
	begin();
	auto_free char *answer = post("/meter/anthropic.sse", "Accept-Encoding: gzip, br\r\n");
	auto_free char *want = NULL;
	size_t n = 0;
	must(file_slurp("tests/fixtures/meter/anthropic.sse", 1 << 20, &want, &n) == 0, "recorded");
	const char *body = strstr(answer, "\r\n\r\n");
	ok(body && strcmp(body + 4, want) == 0, "an answer reaches the jail unchanged");
	usage(1285, 1);
	const struct jail_usage *u = &bed.usage;
	ok(u->tokens.input == 200 && u->tokens.output == 85 && u->tokens.cached == 700 &&
	                u->tokens.stored == 300,
	        "its tokens are told");
	ok(u->spent.sum.tokens == 1285 && u->spent.sum.requests == 1 &&
	                u->spent.sum.cost_micro == 3210 && u->spent.unpriced == 0,
	        "what they cost, and the request");
	ok(u->spent.sum.bytes >= n, "and its bytes: %llu", (unsigned long long)u->spent.sum.bytes);
	ok(strcmp(u->session, "ses_1") == 0 && strcmp(u->user, "ann") == 0 &&
	                strcmp(u->secret, "ANTHROPIC_API_KEY") == 0,
	        "on whose account");
	auto_free char *echo = post("/echo", "Accept-Encoding: gzip, br\r\n");
	ok(strcasestr(echo, "accept-encoding: identity") && !strstr(echo, "gzip"),
	        "an answer is asked for as it can be read");
	usage(1285, 2);
	ok(u->spent.sum.tokens == 1285 && u->spent.sum.requests == 2, "no tokens: a request alone");
	auto_free char *mcp = post("/meter/mcp.json", "");
	ok(strstr(mcp, "no model's"), "an MCP server answers");
	usage(1285, 3);
	ok(u->spent.sum.tokens == 1285 && u->spent.sum.requests == 3, "which are no tokens either");
}

static void cut(void)
{
	clear();
	begin();
	auto_close int s = bed_connect("198.18.1.0", 80);
	static const char request[] = "POST /meter/cut/anthropic.sse HTTP/1.1\r\n"
	                              "Host: anthropic.agentbox\r\nContent-Length: 2\r\n\r\n{}";
	char some[4096];
	size_t n = 0;
	must(s >= 0 && fd_write_all(s, request, sizeof(request) - 1) == 0, "asked");
	while (n < sizeof(some) - 1 && !(some[n] = 0, strstr(some, "partial_json"))) {
		ssize_t k = read(s, some + n, sizeof(some) - 1 - n);
		must(k > 0, "an answer comes");
		n += (size_t)k;
	}
	shutdown(s, SHUT_RDWR);
	usage(1200, 1);
	ok(bed.usage.tokens.input == 200 && bed.usage.tokens.cached == 700,
	        "a jail that hangs up pays for what went in");
	ok(bed.usage.tokens.output > 20 && bed.usage.tokens.output < 85,
	        "and for what came out until then: %llu",
	        (unsigned long long)bed.usage.tokens.output);
}

static void run_budget(void)
{
	clear();
	bounds[BUDGET_RUN].requests = 2;
	begin();
	ok(status("/meter/chat.json") == 200 && status("/echo") == 203, "two requests");
	auto_free char *answer = post("/echo", "");
	ok(strncmp(answer, "HTTP/1.1 429 ", 13) == 0, "the third is refused");
	ok(strstr(answer, "x-should-retry: false") &&
	                strstr(answer, "\"type\":\"agentbox_egress\"") &&
	                strstr(answer, "2 requests of this run are used up"),
	        "in a shape that clients show, not to be tried again");
	ok(hit(BUDGET_RUN, BUDGET_REQUESTS, 2), "agentboxd is told");
	ok(status("/echo") == 429, "and the next");
	bed_listen(100);
	ok(bed.nbudgets == 1, "which is told once");
	ok(bed_event(EGRESS_DENIED, "anthropic.agentbox", 80, "budget: 2 requests"), "as an event");

	clear();
	bounds[BUDGET_RUN].tokens = 1285;
	begin();
	ok(status("/meter/anthropic.json") == 200,
	        "tokens: the answer that uses them up comes whole");
	ok(status("/meter/anthropic.json") == 429, "nothing after it");
	ok(hit(BUDGET_RUN, BUDGET_TOKENS, 1285), "told");

	clear();
	bounds[BUDGET_RUN].tokens = 9999;
	told.purse.run.tokens = 100;
	begin();
	ok(status("/meter/anthropic.json") == 200 && status("/echo") == 429, "a run may have less");
	ok(hit(BUDGET_RUN, BUDGET_TOKENS, 100), "told of that");
	told.purse.run.tokens = 99999;
	told.spent.sum.tokens = 9999;
	begin();
	ok(status("/echo") == 429, "not more; what was spent before this egress counts");
	ok(hit(BUDGET_RUN, BUDGET_TOKENS, 9999), "told");
}

static void cost(void)
{
	clear();
	bounds[BUDGET_RUN].cost_micro = 3211;
	begin();
	ok(status("/meter/anthropic.sse") == 200 && status("/meter/anthropic.sse") == 200,
	        "two answers for less than a cent");
	ok(status("/echo") == 429 && hit(BUDGET_RUN, BUDGET_COST, 3211), "then no more");
	ok(strstr(bed.budgets[0].reason, "0.003211 USD of this run are used up"), "why");
	begin();
	ok(status("/meter/chat.sse") == 200 && status("/echo") == 429, "a model without a price");
	ok(hit(BUDGET_RUN, BUDGET_COST, 3211) &&
	                strstr(bed.budgets[0].reason, "the price of gpt-5 is not known"),
	        "why");
	ok(bed.usage.spent.unpriced == 1285, "its tokens are counted");
	clear();
	begin();
	ok(status("/meter/chat.sse") == 200 && status("/echo") == 203,
	        "no bound on cost: it goes on");
}

/* Accounts outlive their jails, and other jails of their owner see them. */
static void shared(void)
{
	clear();
	bounds[BUDGET_SESSION].tokens = 1ull << 40;
	bounds[BUDGET_USER].tokens = 1ull << 40;
	told.purse.session.sum.tokens = told.purse.user_day.sum.tokens = 1ull << 39;
	begin();
	ok(status("/meter/anthropic.json") == 200, "with half of it spent");
	told.purse.session.sum.tokens = 0;
	bounds[BUDGET_SESSION].tokens = (1ull << 39) + 1;
	begin();
	ok(status("/echo") == 429 &&
	                hit(BUDGET_SESSION, BUDGET_TOKENS, bounds[BUDGET_SESSION].tokens),
	        "told less by the next jail, the session's account stays as it was");
	bounds[BUDGET_SESSION].tokens = 0;
	bounds[BUDGET_USER].tokens = (1ull << 39) + 1;
	begin();
	ok(status("/echo") == 429 && hit(BUDGET_USER, BUDGET_TOKENS, bounds[BUDGET_USER].tokens),
	        "the user's too");
	bounds[BUDGET_USER].tokens = 1ull << 41;
	told.purse.user_day.sum.tokens = 1ull << 41;
	told.purse.day -= 1;
	begin();
	ok(status("/echo") == 203, "what was spent yesterday is not today's");
	told.purse.day += 1;
	begin();
	ok(status("/echo") == 429, "what was spent today is");

	clear();
	bounds[BUDGET_SECRET].requests = 1000;
	told.purse.secrets[0].sum.requests = 999;
	begin();
	ok(status("/echo") == 203 && status("/echo") == 429 &&
	                hit(BUDGET_SECRET, BUDGET_REQUESTS, 1000),
	        "a secret's account");
	auto_free char *plain = bed_ask("198.18.1.3", "GET / HTTP/1.1\r\nHost: plain.agentbox\r\n"
	                                              "Connection: close\r\n\r\n");
	ok(strncmp(plain, "HTTP/1.1 203 ", 13) == 0, "is not that of upstreams without it");
}

static void bytes(void)
{
	clear();
	bounds[BUDGET_RUN].bytes = 1 << 20;
	begin();
	auto_close int s = bed_connect("198.18.1.3", 80);
	static const char request[] = "GET /big?8000000 HTTP/1.1\r\nHost: plain.agentbox\r\n\r\n";
	must(s >= 0 && fd_write_all(s, request, sizeof(request) - 1) == 0, "asked");
	auto_free char *answer = bed_read_all(s);
	usage(0, 1);
	bed_listen(100);
	/* Not what has arrived: a reset takes along what is in the sockets. */
	uint64_t n = bed.usage.spent.sum.bytes;
	ok(n >= 1 << 20 && n < (1 << 20) + (256 << 10) && strlen(answer) <= n + 4096,
	        "bytes are cut where they are used up: %llu", (unsigned long long)n);
	ok(hit(BUDGET_RUN, BUDGET_BYTES, 1 << 20), "told");
	ok(status("/echo") == 429, "and no request after it");
}

static void requests(void)
{
	clear();
	begin();
	ok(status("/v1/abc/x") == 203, "a path that is among the requests");
	static const char *const refused[] = {
	        "/v1/abc/def/x", "/v1/abc", "/other", "/echo/more", "/v1/%61bc%2fx", "/v1/abc/x/"};
	for (size_t i = 0; i < ARRAY_LEN(refused); i++)
		ok(status(refused[i]) == 403, "%s is not", refused[i]);
	auto_free char *get = bed_ask("198.18.1.0", "GET /meter/chat.json HTTP/1.1\r\n"
	                                            "Host: anthropic.agentbox\r\n"
	                                            "Connection: close\r\n\r\n");
	ok(strncmp(get, "HTTP/1.1 403 ", 13) == 0 && strstr(get, "not among the requests"),
	        "nor is another method");
	bed_listen(100);
	ok(bed.usage.spent.sum.requests == 1, "what is refused is no request");
}

int main(void)
{
	bed_more = more;
	bed_purse = purse;
	bed_namespaces();
	bed_fakes();
	bed_egress(SERVE_CA_FILE);
	metered();
	cut();
	run_budget();
	cost();
	shared();
	bytes();
	requests();
	kill(bed.egress, SIGTERM);
	return done();
}
