/* The table of routes: what matches what, and that table and document agree. */
#include "supervisor/routes.h"

#include "base/json.h"
#include "base/fd.h"
#include "supervisor/openapi.h"
#include "tests/t.h"

static struct route_match match(const char *method, const char *path)
{
	struct route_match m;
	size_t n;
	const struct route *table = routes_table(&n);
	routes_match(table, n, method, path, &m);
	return m;
}

static int is(const char *method, const char *path, const char *pattern)
{
	struct route_match m = match(method, path);
	return m.route && strcmp(m.route->pattern, pattern) == 0;
}

static int param_is(const struct route_match *m, unsigned i, const char *want)
{
	return i < m->nparams && m->params[i].n == strlen(want) &&
	       memcmp(m->params[i].p, want, strlen(want)) == 0;
}

static void test_match(void)
{
	ok(is("GET", "/healthz", "/healthz"), "a literal");
	ok(is("HEAD", "/healthz", "/healthz"), "HEAD as GET");
	ok(is("POST", "/v1/runs", "/v1/runs") && is("GET", "/v1/runs", "/v1/runs"), "two methods");
	struct route_match m = match("GET", "/v1/runs/run_x/events");
	ok(m.route && param_is(&m, 0, "run_x"), "a parameter in the middle");
	m = match("GET", "/v1/runs/run_x/artifacts/out/a%2Fb/c.txt");
	ok(m.route && param_is(&m, 0, "run_x") && param_is(&m, 1, "out/a%2Fb/c.txt"),
	        "the rest of a path, as it was sent");
	ok(is("GET", "/v1/runs/x/artifacts", "/v1/runs/{id}/artifacts"), "without the rest");
	static const char any[] = "/v1/sessions/{id}/ports/{port}/{path*}";
	ok(is("GET", "/v1/sessions/x/ports/3000/", any) &&
	                is("PROPFIND", "/v1/sessions/x/ports/3000/a/%00/b", any) &&
	                match("GET", "/v1/sessions/x/ports/3000/a").nparams == 2,
	        "the rest, whatever it is, by any method");
	ok(is("POST", "/v1/sessions/x/ports/3000", "/v1/sessions/{id}/ports/{port}") &&
	                !match("GET", "/v1/sessions/x/ports/3000").route &&
	                !match("GET", "/v1/sessions/x/ports//a").route,
	        "not without its slash, nor without a port");
	static const char *const none[] = {"", "/", "healthz", "*", "/healthz/", "/v1", "/v1/runs/",
	        "/v1/runs//events", "/v1/runs/x/", "/v1/runs/x/artifacts/", "//healthz",
	        "/v1/runs/x/nothing", "/v1/runsx", "/v1/run", "http://x/healthz"};
	for (size_t i = 0; i < ARRAY_LEN(none); i++) {
		m = match("GET", none[i]);
		ok(!m.route && !m.allow[0], "nothing at '%s'", none[i]);
	}
	m = match("DELETE", "/v1/runs");
	ok(!m.route, "a method that is not there");
	is_str(m.allow, "POST, GET", "names those that are");
	m = match("PATCH", "/v1/sessions/x");
	is_str(m.allow, "GET, DELETE", "for each path");
}

static void test_table(void)
{
	size_t n;
	const struct route *t = routes_table(&n);
	for (size_t i = 0; i < n; i++) {
		ok(t[i].handler && t[i].summary && t[i].pattern[0] == '/', "%s %s", t[i].method,
		        t[i].pattern);
		for (size_t k = 0; k < i; k++)
			if (!strcmp(t[i].method, t[k].method) &&
			        !strcmp(t[i].pattern, t[k].pattern))
				ok(0, "%s %s is there twice", t[i].method, t[i].pattern);
		if (t[i].role == AUTH_NONE && strncmp(t[i].pattern, "/v1/openapi", 11) != 0 &&
		        strcmp(t[i].pattern, "/v1/version") != 0)
			is_str(t[i].pattern, "/healthz", "strangers see no more");
	}
}

static bool below(const struct route *r, const char *prefix)
{
	return strncmp(r->pattern, prefix, strlen(prefix)) == 0;
}

/* Whoever adds a route says how keys see it; what has a run or a session in its path is decided by
 * that before its handler is called. */
static void test_scopes(void)
{
	size_t n;
	const struct route *t = routes_table(&n);
	for (size_t i = 0; i < n; i++) {
		const char *scope = scope_name(t[i].scope);
		const char *named = strchr(t[i].pattern, '{');
		ok(scope != NULL, "%s %s says how keys see it", t[i].method, t[i].pattern);
		if (!scope)
			continue;
		if (t[i].role == AUTH_ROOT)
			is_str(scope, "operator", "%s %s: root's is for no key", t[i].method,
			        t[i].pattern);
		if (t[i].scope == SCOPE_OPEN)
			ok(t[i].role == AUTH_NONE && !named, "%s is open to all", t[i].pattern);
		if (below(&t[i], "/v1/runs/{"))
			is_str(scope, "run", "%s %s: by its run", t[i].method, t[i].pattern);
		if (below(&t[i], "/v1/sessions/{"))
			ok(t[i].scope == SCOPE_SESSION || t[i].scope == SCOPE_EVENTS ||
			                t[i].scope == SCOPE_OPERATOR,
			        "%s %s: by its session", t[i].method, t[i].pattern);
		if (named)
			ok(t[i].scope != SCOPE_VIEW && t[i].scope != SCOPE_BODY,
			        "%s %s: by the name in its path", t[i].method, t[i].pattern);
		if (strcmp(t[i].method, "GET") != 0 && t[i].scope != SCOPE_OPERATOR)
			ok(t[i].verb != APIKEY_VERB_READ, "%s %s is not reading", t[i].method,
			        t[i].pattern);
	}
}

static void test_document(void)
{
	struct err e;
	auto_buf struct buf b = BUF_INIT(1 << 20);
	openapi_print(&b);
	auto_json struct json *j = json_parse(b.p, b.len, &e);
	must(j != NULL, "the document is JSON");
	size_t n;
	const struct route *t = routes_table(&n);
	for (size_t i = 0; i < n; i++) {
		const struct json *schemas = json_path(j, "components", "schemas", NULL);
		if (t[i].request)
			ok(json_get(schemas, t[i].request) != NULL, "schema %s", t[i].request);
		if (t[i].response)
			ok(json_get(schemas, t[i].response) != NULL, "schema %s", t[i].response);
	}
	ok(json_path(j, "paths", "/v1/runs", "post", "requestBody", NULL) != NULL, "a body");
	ok(json_path(j, "paths", "/v1/runs/{id}/artifacts/{path}", "get", NULL) != NULL, "a rest");
	const struct json *request = json_path(j, "components", "schemas", "RunRequest", NULL);
	ok(!json_bool(request, "additionalProperties", true), "strict");
	/* docs/openapi.json is a copy for readers. */
	auto_free char *kept = NULL;
	size_t len;
	if (file_slurp("docs/openapi.json", 1 << 20, &kept, &len) < 0) {
		ok(0, "docs/openapi.json: run from the top of the tree");
		return;
	}
	auto_json struct json *copy = json_parse(kept, len, &e);
	auto_buf struct buf c = BUF_INIT(1 << 20);
	ok(copy && json_print(copy, &c) == 0 && c.len == b.len && memcmp(c.p, b.p, b.len) == 0,
	        "docs/openapi.json is not stale (GET /v1/openapi.json makes it new)");
}

int main(void)
{
	test_match();
	test_table();
	test_scopes();
	test_document();
	return done();
}
