#include "supervisor/routes.h"

#include "base/limits.h"
#include "base/mem.h"
#include "supervisor/api.h"
#include "supervisor/daemon.h"
#include "supervisor/problem.h"
#include "supervisor/proxy_head.h"
#include "supervisor/said.h"

#include <stdio.h>
#include <string.h>

enum {
	BODY_NONE = 0,
	/* A pair of names of at most 256 bytes each, escaped. */
	BODY_SMALL = 16 << 10,
	/* argv and environment (LIMIT_EXEC_BLOB), escaped. */
	BODY_EXEC = 4 * LIMIT_EXEC_BLOB,
	/* A message, each of its bytes escaped. */
	BODY_SAY = 6 * SAID_TEXT_MAX + 1024,
};

#define PAGE "limit cursor"

/* A table is read by its columns. */
/* clang-format off */
static const struct route table[] = {
	{ "GET", "/healthz", AUTH_NONE, BODY_NONE, api_healthz,
	  "Is it up and taking work?", NULL, NULL, "Health" },
	{ "GET", "/v1/version", AUTH_NONE, BODY_NONE, api_version,
	  "Version of the daemon", NULL, NULL, "Version" },
	{ "GET", "/v1/openapi.json", AUTH_NONE, BODY_NONE, api_openapi,
	  "This document", NULL, NULL, NULL },
	{ "GET", "/metrics", AUTH_USER, BODY_NONE, api_metrics,
	  "Counters in Prometheus text form", NULL, NULL, NULL },
	{ "GET", "/v1/stats", AUTH_USER, BODY_NONE, api_stats,
	  "The same counters as JSON", NULL, NULL, "Stats" },
	{ "GET", "/v1/doctor", AUTH_USER, BODY_NONE, api_doctor,
	  "Each isolation layer: have, need, remedy", "policy", NULL, "Doctor" },
	{ "POST", "/v1/reload", AUTH_ROOT, BODY_SMALL, api_reload,
	  "Read root's policies again", NULL, NULL, "Reload" },

	{ "POST", "/v1/runs", AUTH_USER, LIMIT_HTTP_BODY, api_run_create,
	  "Start a run; follow it as SSE or NDJSON, wait for its result, or take 202",
	  "wait", "RunRequest", "RunAccepted" },
	{ "GET", "/v1/runs", AUTH_USER, BODY_NONE, api_run_list,
	  "Runs, newest first", "user goal session harness status " PAGE, NULL, "RunList" },
	{ "GET", "/v1/runs/{id}", AUTH_USER, BODY_NONE, api_run_show,
	  "One run, with its result when it has ended", NULL, NULL, "Run" },
	{ "DELETE", "/v1/runs/{id}", AUTH_USER, BODY_NONE, api_run_cancel,
	  "Cancel a run; now=1 without asking the agent first", "now", NULL, "RunAccepted" },
	{ "GET", "/v1/runs/{id}/events", AUTH_USER, BODY_NONE, api_run_events,
	  "Events of a run as SSE or NDJSON", "from follow", NULL, "Event" },
	{ "POST", "/v1/runs/{id}/permissions/{pid}", AUTH_USER, BODY_SMALL, api_run_answer,
	  "Answer a permission that the agent of a run has asked for", NULL, "Answer", "Said" },
	{ "POST", "/v1/runs/{id}/questions/{qid}", AUTH_USER, BODY_SAY, api_run_reply,
	  "Answer a question of the agent of a run", NULL, "Message", "Said" },
	{ "POST", "/v1/runs/{id}/input", AUTH_USER, BODY_SAY, api_run_input,
	  "One more message to the agent of a run", NULL, "Message", "Said" },
	{ "GET", "/v1/runs/{id}/artifacts", AUTH_USER, BODY_NONE, api_run_artifacts,
	  "Artifacts of a run", NULL, NULL, "ArtifactList" },
	{ "GET", "/v1/runs/{id}/artifacts/{path...}", AUTH_USER, BODY_NONE, api_run_artifact,
	  "Bytes of one artifact", NULL, NULL, NULL },

	{ "GET", "/v1/sessions", AUTH_USER, BODY_NONE, api_session_list,
	  "Sessions", "user goal " PAGE, NULL, "SessionList" },
	{ "POST", "/v1/sessions", AUTH_USER, BODY_SMALL, api_session_create,
	  "Make the session of a user and a goal, or find it", NULL, "SessionKey", "SessionMade" },
	{ "GET", "/v1/sessions/{id}", AUTH_USER, BODY_NONE, api_session_show,
	  "One session", NULL, NULL, "Session" },
	{ "DELETE", "/v1/sessions/{id}", AUTH_USER, BODY_NONE, api_session_delete,
	  "Delete a session: workspace, home, events, artifacts, records", NULL, NULL, NULL },
	{ "GET", "/v1/sessions/{id}/events", AUTH_USER, BODY_NONE, api_session_events,
	  "Events of a session as SSE or NDJSON", "from follow", NULL, "Event" },
	{ "POST", "/v1/sessions/{id}/exec", AUTH_USER, BODY_EXEC, api_session_exec,
	  "A command in the session's jail, over agentbox-stdio", NULL, "ExecRequest", NULL },
	{ "POST", "/v1/sessions/{id}/ports/{port}", AUTH_USER, BODY_NONE, api_port_open,
	  "A connection to a port of the session's jail, over agentbox-tcp", NULL, NULL, NULL },
	{ ROUTE_ANY, "/v1/sessions/{id}/ports/{port}/{path*}", AUTH_USER, HTTP_BODY_FLOWS,
	  api_port_http, "What the HTTP server on that port answers", ROUTE_ANY, NULL, NULL },

	{ "GET", "/v1/harnesses", AUTH_USER, BODY_NONE, api_harness_list,
	  "Task types", NULL, NULL, "HarnessList" },
	{ "GET", "/v1/harnesses/{name}", AUTH_USER, BODY_NONE, api_harness_show,
	  "One task type", NULL, NULL, "Harness" },

	{ "GET", "/v1/policies", AUTH_USER, BODY_NONE, api_policy_list,
	  "Root's policies", NULL, NULL, "PolicyList" },
	{ "GET", "/v1/policies/{name}", AUTH_USER, BODY_NONE, api_policy_show,
	  "One policy", NULL, NULL, "Policy" },

	{ "GET", "/v1/jails", AUTH_USER, BODY_NONE, api_jail_list,
	  "Jails that live now, with what they have used", NULL, NULL, "JailList" },
	{ "POST", "/v1/jails", AUTH_USER, BODY_EXEC, api_jail_create,
	  "A command in a fresh jail, over agentbox-stdio", NULL, "JailRequest", NULL },
	{ "GET", "/v1/egress", AUTH_USER, BODY_NONE, api_egress,
	  "The latest of what jails sent out or were refused (follow=1: and what comes), as NDJSON",
	  "follow", NULL, "EgressEvent" },
};
/* clang-format on */

const struct route *routes_table(size_t *ret_count)
{
	*ret_count = ARRAY_LEN(table);
	return table;
}

/* ---- matching ---- */

/* Takes the next segment off *p (which is at a '/' or at the end). */
static size_t segment(const char **p, const char **ret)
{
	if (**p == '/')
		(*p)++;
	*ret = *p;
	size_t n = strcspn(*p, "/");
	*p += n;
	return n;
}

static bool fits(const char *pattern, const char *path, struct route_match *m)
{
	m->nparams = 0;
	if (path[0] != '/')
		return false;
	while (*pattern && *path) {
		const char *want, *got;
		size_t nwant = segment(&pattern, &want), n = segment(&path, &got);
		if (nwant > 0 && want[0] == '{') {
			if (memcmp(want + nwant - 2, "*}", 2) == 0)
				return true;
			if (nwant > 4 && memcmp(want + nwant - 4, "...}", 4) == 0) {
				n += strlen(path);
				path += strlen(path);
			}
			if (n == 0)
				return false;
			m->params[m->nparams].p = got;
			m->params[m->nparams++].n = n;
		} else if (n != nwant || memcmp(want, got, n) != 0) {
			return false;
		}
	}
	return *pattern == *path; /* both at their end */
}

static void allow(struct route_match *m, const char *method)
{
	size_t n = strlen(m->allow);
	snprintf(m->allow + n, sizeof(m->allow) - n, "%s%s", n ? ", " : "", method);
}

void routes_match(const struct route *rows, size_t n, const char *method, const char *path,
        struct route_match *ret)
{
	if (strcmp(method, "HEAD") == 0)
		method = "GET";
	*ret = (struct route_match){.route = NULL};
	for (size_t i = 0; i < n; i++) {
		if (!fits(rows[i].pattern, path, ret))
			continue;
		if (strcmp(rows[i].method, method) == 0 || strcmp(rows[i].method, ROUTE_ANY) == 0) {
			ret->route = &rows[i];
			return;
		}
		allow(ret, rows[i].method);
	}
}

/* ---- query ---- */

enum { QUERIES_MAX = 16 };

struct query_check {
	const char *known; /* names, by spaces */
	const char *seen[QUERIES_MAX];
	unsigned nseen;
	struct err e; /* code 0: none yet */
};

/* Where `name` stands in the list, or NULL. */
static const char *known_query(const char *list, const char *name)
{
	for (const char *p = list; *p;) {
		size_t n = strcspn(p, " ");
		if (strlen(name) == n && memcmp(p, name, n) == 0)
			return p;
		p += n + (p[n] == ' ');
	}
	return NULL;
}

static void check_query(void *ctx, const char *name, const char *value)
{
	struct query_check *c = ctx;
	if (c->e.code)
		return;
	const char *at = name ? known_query(c->known, name) : NULL;
	if (!name)
		err_set(&c->e, -EINVAL, "the query has a broken %%-escape or a NUL");
	else if (!at)
		err_set(&c->e, -EINVAL, "%.64s: unknown query parameter (known: %s)", name,
		        c->known[0] ? c->known : "none");
	else if (!value)
		err_set(&c->e, -EINVAL, "%s: has no value, a broken %%-escape or a NUL", name);
	for (unsigned i = 0; at && i < c->nseen; i++)
		if (c->seen[i] == at)
			err_set(&c->e, -EINVAL, "%s: given twice", name);
	if (!c->e.code && c->nseen < QUERIES_MAX)
		c->seen[c->nseen++] = at;
}

/* A filter that is misspelled must not list everything. */
static int refuse_query(struct http_request *r, const struct route *route)
{
	if (route->query && strcmp(route->query, ROUTE_ANY) == 0)
		return 0;
	struct query_check c = {.known = route->query ? route->query : ""};
	http_each_query(r, check_query, &c);
	if (c.e.code)
		problem_err(r, &c.e, PROBLEM_BAD_REQUEST);
	return c.e.code;
}

/* ---- dispatch ---- */

static int refuse_unmatched(struct http_request *r, const struct route_match *m)
{
	if (m->allow[0]) {
		http_add_header(r, "Allow", m->allow);
		problem_reply(r, PROBLEM_METHOD, NULL, "%s is not allowed here, only %s",
		        http_method(r), m->allow);
	} else {
		problem_reply(r, PROBLEM_NOT_FOUND, "GET /v1/openapi.json lists what there is",
		        "there is nothing at %.256s", http_path(r));
	}
	return -1;
}

static const struct route by_name = {.role = AUTH_USER,
        .body_limit = HTTP_BODY_FLOWS,
        .handler = api_port_by_name,
        .query = ROUTE_ANY};

static int refuse_role(struct http_request *r, const struct route *route)
{
	if (http_peer(r)->role >= route->role)
		return 0;
	problem_reply(r, PROBLEM_FORBIDDEN,
	        route->role == AUTH_ROOT ? "only root may do this"
	                                 : "use an account in the socket's group",
	        "uid %u may not %s %.200s", http_peer(r)->uid, http_method(r), http_path(r));
	return -1;
}

/* A page that reaches us (through whatever forwards to this socket) is as good as the user who
 * looks at it, so it must be one that the user's own server gave. */
static int refuse_page(struct http_request *r, bool named)
{
	const struct proxy_page page = {.origin = http_header(r, "Origin"),
	        .site = http_header(r, "Sec-Fetch-Site"),
	        .mode = http_header(r, "Sec-Fetch-Mode"),
	        .method = http_method(r),
	        .host = http_header(r, "Host")};
	const char *why = named ? proxy_own_page(&page) : proxy_no_page(&page);
	if (!why)
		return 0;
	problem_reply(r, PROBLEM_FORBIDDEN,
	        "a browser reaches a jail's port by name (PORT--SESSION.localhost) or through "
	        "`abctl forward`",
	        "%s", why);
	return -1;
}

static int64_t on_headers(void *ctx, struct http_request *r)
{
	(void)ctx;
	struct proxy_target target;
	bool named = proxy_by_name(http_header(r, "Host"), &target);
	if (refuse_page(r, named) < 0)
		return -1;
	struct route_match m = {.route = &by_name};
	if (!named)
		routes_match(table, ARRAY_LEN(table), http_method(r), http_path(r), &m);
	if (!m.route)
		return refuse_unmatched(r, &m);
	if (refuse_role(r, m.route) < 0)
		return -1;
	for (unsigned i = 0; i < m.nparams; i++)
		if (http_add_param(r, m.params[i].p, m.params[i].n) < 0) {
			problem_reply(r, PROBLEM_BAD_REQUEST, NULL,
			        "the path has a broken %%-escape or a NUL");
			return -1;
		}
	if (refuse_query(r, m.route) < 0)
		return -1;
	http_set_route(r, m.route);
	return m.route->body_limit;
}

static void on_request(void *ctx, struct http_request *r)
{
	const struct route *route = http_route(r);
	route->handler(ctx, r);
}

static void on_too_large(void *ctx, struct http_request *r)
{
	(void)ctx;
	const struct route *route = http_route(r);
	if (route->body_limit == 0)
		problem_reply(r, PROBLEM_TOO_LARGE, NULL, "%s %.256s takes no body", route->method,
		        http_path(r));
	else
		problem_reply(r, PROBLEM_TOO_LARGE, NULL, "the body may have at most %lld bytes",
		        (long long)route->body_limit);
}

/* What is not a request of HTTP/1.1 has an answer like any other. */
static void on_malformed(void *ctx, struct http_request *r, const struct err *e)
{
	(void)ctx;
	enum problem p = PROBLEM_BAD_REQUEST;
	if (e->code == -E2BIG)
		p = PROBLEM_HEAD_TOO_LARGE;
	else if (e->code == -ENAMETOOLONG)
		p = PROBLEM_TARGET_TOO_LONG;
	else if (e->code == -EPROTONOSUPPORT || e->code == -EACCES)
		p = PROBLEM_VERSION;
	else if (e->code == -EOPNOTSUPP)
		p = PROBLEM_NOT_IMPLEMENTED;
	else if (e->code == -EBUSY)
		p = PROBLEM_BUSY;
	problem_reply(r, p, NULL, "%s", e->text);
}

int routes_serve(struct daemon *d, int listen_fd, gid_t socket_gid, struct err *e)
{
	struct http_service service = {
	        .ctx = d,
	        .headers = on_headers,
	        .request = on_request,
	        .too_large = on_too_large,
	        .malformed = on_malformed,
	};
	d->http = http_new(d->loop, listen_fd, socket_gid, &service, e);
	return d->http ? 0 : e ? e->code : -ENOMEM;
}
