#include "supervisor/routes.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/version.h"
#include "supervisor/api.h"
#include "supervisor/audit.h"
#include "supervisor/daemon.h"
#include "supervisor/problem.h"
#include "supervisor/proxy_head.h"
#include "supervisor/runs.h"
#include "supervisor/said.h"

#include <stdio.h>
#include <string.h>

enum {
	BODY_NONE = 0,
	/* A pair of names of at most 256 bytes each, escaped. */
	BODY_SMALL = 16 << 10,
	/* Three lists of names. */
	BODY_KEY = 256 << 10,
	/* argv and environment (LIMIT_EXEC_BLOB), escaped. */
	BODY_EXEC = 4 * LIMIT_EXEC_BLOB,
	/* A message, each of its bytes escaped. */
	BODY_SAY = 6 * SAID_TEXT_MAX + 1024,
};

#define PAGE "limit cursor"
/* How keys see it, and the verb they need. */
#define BY(scope, verb) SCOPE_##scope, APIKEY_VERB_##verb

/* A table is read by its columns. */
/* clang-format off */
static const struct route table[] = {
	{ "GET", "/healthz", AUTH_NONE, BODY_NONE, api_healthz,
	  "Is it up and taking work?", NULL, NULL, "Health", BY(OPEN, READ) },
	{ "GET", "/v1/version", AUTH_NONE, BODY_NONE, api_version,
	  "Version of the daemon", NULL, NULL, "Version", BY(OPEN, READ) },
	{ "GET", "/v1/openapi.json", AUTH_NONE, BODY_NONE, api_openapi,
	  "This document", NULL, NULL, NULL, BY(OPEN, READ) },
	{ "GET", "/metrics", AUTH_USER, BODY_NONE, api_metrics,
	  "Counters in Prometheus text form", NULL, NULL, NULL, BY(OPERATOR, READ) },
	{ "GET", "/v1/stats", AUTH_USER, BODY_NONE, api_stats,
	  "The same counters as JSON", NULL, NULL, "Stats", BY(VIEW, READ) },
	{ "GET", "/v1/doctor", AUTH_USER, BODY_NONE, api_doctor,
	  "Each isolation layer: have, need, remedy", "policy", NULL, "Doctor",
	  BY(OPERATOR, READ) },
	{ "POST", "/v1/reload", AUTH_ROOT, BODY_SMALL, api_reload,
	  "Read root's policies again", NULL, NULL, "Reload", BY(OPERATOR, READ) },
	{ "POST", "/v1/backup", AUTH_ROOT, BODY_NONE, api_backup,
	  "The state as a tar archive, while it is in use", NULL, NULL, NULL, BY(OPERATOR, READ) },
	{ "GET", "/v1/drain", AUTH_USER, BODY_NONE, api_drain_show,
	  "Is the daemon being drained, and what is under way?", NULL, NULL, "Drain",
	  BY(OPERATOR, READ) },
	{ "POST", "/v1/drain", AUTH_ROOT, BODY_SMALL, api_drain_begin,
	  "No new runs: those that run end, queued ones stay queued", NULL, NULL, "Drain",
	  BY(OPERATOR, READ) },
	{ "DELETE", "/v1/drain", AUTH_ROOT, BODY_NONE, api_drain_undo,
	  "Runs are taken and begun again", NULL, NULL, "Drain", BY(OPERATOR, READ) },

	{ "POST", "/v1/runs", AUTH_USER, LIMIT_HTTP_BODY, api_run_create,
	  "Start a run; follow it as SSE or NDJSON, wait for its result, or take 202",
	  "wait", "RunRequest", "RunAccepted", BY(BODY, RUN) },
	{ "GET", "/v1/runs", AUTH_USER, BODY_NONE, api_run_list,
	  "Runs, newest first",
	  "tenant user goal session harness status since until " PAGE, NULL, "RunList",
	  BY(VIEW, READ) },
	{ "GET", "/v1/runs/{id}", AUTH_USER, BODY_NONE, api_run_show,
	  "One run, with its result when it has ended", NULL, NULL, "Run", BY(RUN, READ) },
	{ "DELETE", "/v1/runs/{id}", AUTH_USER, BODY_NONE, api_run_cancel,
	  "Cancel a run; now=1 without asking the agent first", "now", NULL, "RunAccepted",
	  BY(RUN, STEER) },
	{ "GET", "/v1/runs/{id}/events", AUTH_USER, BODY_NONE, api_run_events,
	  "Events of a run as SSE or NDJSON", "from follow", NULL, "Event", BY(RUN, READ) },
	{ "GET", "/v1/runs/{id}/raw", AUTH_USER, BODY_NONE, api_run_raw,
	  "What the agent of a run has printed, as it came, as NDJSON", "follow", NULL, "Raw",
	  BY(RUN, READ) },
	{ "POST", "/v1/runs/{id}/permissions/{pid}", AUTH_USER, BODY_SMALL, api_run_answer,
	  "Answer a permission that the agent of a run has asked for", NULL, "Answer", "Said",
	  BY(RUN, STEER) },
	{ "POST", "/v1/runs/{id}/questions/{qid}", AUTH_USER, BODY_SAY, api_run_reply,
	  "Answer a question of the agent of a run", NULL, "Message", "Said", BY(RUN, STEER) },
	{ "POST", "/v1/runs/{id}/input", AUTH_USER, BODY_SAY, api_run_input,
	  "One more message to the agent of a run", NULL, "Message", "Said", BY(RUN, STEER) },
	{ "GET", "/v1/runs/{id}/artifacts", AUTH_USER, BODY_NONE, api_run_artifacts,
	  "Artifacts of a run", NULL, NULL, "ArtifactList", BY(RUN, READ) },
	{ "GET", "/v1/runs/{id}/artifacts/{path...}", AUTH_USER, BODY_NONE, api_run_artifact,
	  "Bytes of one artifact (Range: some of them); link=1: {url, expiresAt}", "link",
	  NULL, NULL, BY(RUN, READ) },

	{ "GET", "/v1/sessions", AUTH_USER, BODY_NONE, api_session_list,
	  "Sessions", "tenant user goal " PAGE, NULL, "SessionList", BY(VIEW, READ) },
	{ "POST", "/v1/sessions", AUTH_USER, BODY_SMALL, api_session_create,
	  "Make the session of a user and a goal, or find it", NULL, "SessionKey", "SessionMade",
	  BY(BODY, SESSION) },
	{ "GET", "/v1/sessions/{id}", AUTH_USER, BODY_NONE, api_session_show,
	  "One session", NULL, NULL, "Session", BY(SESSION, READ) },
	{ "DELETE", "/v1/sessions/{id}", AUTH_USER, BODY_NONE, api_session_delete,
	  "Delete a session: workspace, home, events, artifacts, records", NULL, NULL, NULL,
	  BY(SESSION, SESSION) },
	{ "PUT", "/v1/sessions/{id}/pin", AUTH_USER, BODY_NONE, api_session_pin,
	  "Never evict a session", NULL, NULL, NULL, BY(SESSION, SESSION) },
	{ "DELETE", "/v1/sessions/{id}/pin", AUTH_USER, BODY_NONE, api_session_unpin,
	  "Evict a session as others", NULL, NULL, NULL, BY(SESSION, SESSION) },
	{ "POST", "/v1/sessions/{id}/prewarm", AUTH_USER, BODY_SMALL, api_session_prewarm,
	  "Make and seed the workspace, and start an agent ahead, for the next run of a harness",
	  "wait", "PrewarmRequest", "Prewarmed", BY(SESSION, RUN) },
	{ "GET", "/v1/sessions/{id}/events", AUTH_USER, BODY_NONE, api_session_events,
	  "Events of a session as SSE or NDJSON", "from follow", NULL, "Event", BY(EVENTS, READ) },
	{ "POST", "/v1/sessions/{id}/exec", AUTH_USER, BODY_EXEC, api_session_exec,
	  "A command in the session's jail, over agentbox-stdio", NULL, "ExecRequest", NULL,
	  BY(SESSION, EXEC) },
	{ "GET", "/v1/sessions/{id}/files", AUTH_USER, BODY_NONE, api_file_get,
	  "The workspace of a session: its entries by name", PAGE, NULL, "FileList",
	  BY(SESSION, READ) },
	{ "GET", "/v1/sessions/{id}/files/{path...}", AUTH_USER, BODY_NONE, api_file_get,
	  "Bytes of a file (Range: some of them), or a directory's entries", PAGE, NULL,
	  "FileList", BY(SESSION, READ) },
	{ "PUT", "/v1/sessions/{id}/files/{path...}", AUTH_USER, HTTP_BODY_FLOWS, api_file_put,
	  "Make or replace a file of a session's workspace with the body, whose length is said",
	  "mode keep directory", NULL, NULL, BY(SESSION, SESSION) },
	{ "DELETE", "/v1/sessions/{id}/files/{path...}", AUTH_USER, BODY_NONE, api_file_delete,
	  "Remove a file of a session's workspace, or a directory", "recursive", NULL, NULL,
	  BY(SESSION, SESSION) },
	{ "GET", "/v1/sessions/{id}/home", AUTH_USER, BODY_NONE, api_home_get,
	  "The home of a session's agent: its entries by name", PAGE, NULL, "FileList",
	  BY(SESSION, EXEC) },
	{ "GET", "/v1/sessions/{id}/home/{path...}", AUTH_USER, BODY_NONE, api_home_get,
	  "Bytes of a file there (Range: some of them), or a directory's entries", PAGE, NULL,
	  "FileList", BY(SESSION, EXEC) },
	{ "PUT", "/v1/sessions/{id}/home/{path...}", AUTH_USER, HTTP_BODY_FLOWS, api_home_put,
	  "Make or replace a file there with the body, whose length is said",
	  "mode keep directory", NULL, NULL, BY(SESSION, EXEC) },
	{ "GET", "/v1/sessions/{id}/conversations", AUTH_USER, BODY_NONE, api_session_talks,
	  "The agents' own ids of the conversations that the next run goes on with", NULL, NULL,
	  "Conversations", BY(SESSION, READ) },
	{ "PUT", "/v1/sessions/{id}/conversations", AUTH_USER, BODY_SMALL, api_session_take_talks,
	  "What the first run of a session goes on with: conversations that are in its home", 
	  NULL, "ConversationKeys", NULL, BY(SESSION, EXEC) },
	{ "POST", "/v1/sessions/{id}/ports/{port}", AUTH_USER, BODY_NONE, api_port_open,
	  "A connection to a port of the session's jail, over agentbox-tcp", NULL, NULL, NULL,
	  BY(SESSION, PORT) },
	{ ROUTE_ANY, "/v1/sessions/{id}/ports/{port}/{path*}", AUTH_USER, HTTP_BODY_FLOWS,
	  api_port_http, "What the HTTP server on that port answers", ROUTE_ANY, NULL, NULL,
	  BY(SESSION, PORT) },

	{ "GET", "/v1/harnesses", AUTH_USER, BODY_NONE, api_harness_list,
	  "Task types", NULL, NULL, "HarnessList", BY(VIEW, READ) },
	{ "GET", "/v1/harnesses/{name}", AUTH_USER, BODY_NONE, api_harness_show,
	  "One task type", NULL, NULL, "Harness", BY(HARNESS, READ) },

	{ "GET", "/v1/agents", AUTH_USER, BODY_NONE, api_agent_list,
	  "Agents, and what each can", NULL, NULL, "AgentList", BY(OPERATOR, READ) },
	{ "GET", "/v1/agents/{name}", AUTH_USER, BODY_NONE, api_agent_show,
	  "One agent", NULL, NULL, "Agent", BY(OPERATOR, READ) },

	{ "GET", "/v1/policies", AUTH_USER, BODY_NONE, api_policy_list,
	  "Root's policies", NULL, NULL, "PolicyList", BY(VIEW, READ) },
	{ "GET", "/v1/policies/{name}", AUTH_USER, BODY_NONE, api_policy_show,
	  "One policy", NULL, NULL, "Policy", BY(POLICY, READ) },

	{ "GET", "/v1/jails", AUTH_USER, BODY_NONE, api_jail_list,
	  "Jails that live now, with what they have used", NULL, NULL, "JailList", BY(VIEW, READ) },
	{ "POST", "/v1/jails", AUTH_USER, BODY_EXEC, api_jail_create,
	  "A command in a fresh jail, over agentbox-stdio", NULL, "JailRequest", NULL,
	  BY(BODY, EXEC) },
	{ "GET", "/v1/egress", AUTH_USER, BODY_NONE, api_egress,
	  "The latest of what jails sent out or were refused (follow=1: and what comes), as NDJSON",
	  "follow", NULL, "EgressEvent", BY(VIEW, READ) },

	{ "GET", "/v1/snapshots", AUTH_USER, BODY_NONE, api_snapshot_list,
	  "What workspaces can start from", NULL, NULL, "SnapshotList", BY(OPERATOR, READ) },
	{ "POST", "/v1/snapshots", AUTH_USER, BODY_SMALL, api_snapshot_create,
	  "Keep what the workspace of an idle session shows", NULL, "SnapshotRequest", "Snapshot",
	  BY(OPERATOR, SESSION) },
	{ "GET", "/v1/snapshots/{name}", AUTH_USER, BODY_NONE, api_snapshot_show,
	  "One snapshot, and who stands on it", NULL, NULL, "Snapshot", BY(OPERATOR, READ) },
	{ "DELETE", "/v1/snapshots/{name}", AUTH_USER, BODY_NONE, api_snapshot_delete,
	  "Remove a snapshot that no session stands on", NULL, NULL, NULL, BY(OPERATOR, SESSION) },

	{ "GET", "/v1/webhooks", AUTH_USER, BODY_NONE, api_webhook_list,
	  "Webhooks, and what has become of their deliveries", NULL, NULL, "WebhookList",
	  BY(OPERATOR, READ) },
	{ "POST", "/v1/webhooks/{name}/test", AUTH_USER, BODY_NONE, api_webhook_test,
	  "Send a test event to a webhook and wait for its answer", NULL, NULL, "WebhookAnswer",
	  BY(OPERATOR, READ) },

	{ "GET", "/v1/audit", AUTH_ROOT, BODY_NONE, api_audit,
	  "Who has changed something or was refused (follow=1: and what comes), as NDJSON",
	  "follow", NULL, "AuditEntry", BY(OPERATOR, READ) },

	{ "GET", "/v1/keys", AUTH_ROOT, BODY_NONE, api_key_list,
	  "API keys of tenants", NULL, NULL, "KeyList", BY(OPERATOR, READ) },
	{ "POST", "/v1/keys", AUTH_ROOT, BODY_KEY, api_key_add,
	  "Make an API key; the answer alone has the key itself", NULL, "KeyRequest", "KeyMade",
	  BY(OPERATOR, READ) },
	{ "GET", "/v1/keys/{name}", AUTH_ROOT, BODY_NONE, api_key_show,
	  "One API key, by name or id", NULL, NULL, "Key", BY(OPERATOR, READ) },
	{ "DELETE", "/v1/keys/{name}", AUTH_ROOT, BODY_NONE, api_key_revoke,
	  "Revoke a key, and cut its connections", NULL, NULL, NULL, BY(OPERATOR, READ) },
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

/* What comes with such a request, Authorization too, is for the server in the jail. */
static int refuse_by_name(struct http_request *r)
{
	const struct auth_peer *peer = http_peer(r);
	if (!peer->remote && peer->role >= by_name.role)
		return 0;
	problem_reply(r, PROBLEM_FORBIDDEN,
	        "ask by path, /v1/sessions/SESSION/ports/PORT/, with a key",
	        "a jail's port by name is for the socket's group, through the Unix socket");
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
	struct proxy_target target;
	bool named = proxy_by_name(http_header(r, "Host"), &target);
	if (refuse_page(r, named) < 0)
		return -1;
	struct route_match m = {.route = &by_name};
	if (!named)
		routes_match(table, ARRAY_LEN(table), http_method(r), http_path(r), &m);
	/* What a server in a jail answers is not ours. */
	if (!m.route || m.route->body_limit != HTTP_BODY_FLOWS)
		http_add_header(r, AGENTBOX_VERSION_FIELD, AGENTBOX_VERSION_VALUE);
	if (!m.route)
		return refuse_unmatched(r, &m);
	if ((named ? refuse_by_name(r)
	           : scope_identify(ctx, r, m.route->role, m.route->handler == api_port_http)) < 0)
		return -1;
	for (unsigned i = 0; i < m.nparams; i++)
		if (http_add_param(r, m.params[i].p, m.params[i].n) < 0) {
			problem_reply(r, PROBLEM_BAD_REQUEST, NULL,
			        "the path has a broken %%-escape or a NUL");
			return -1;
		}
	if (refuse_query(r, m.route) < 0)
		return -1;
	if (!named && scope_enter(ctx, r, m.route->scope, m.route->verb) < 0)
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

/* ---- the audit log ---- */

static bool looks(const char *method)
{
	return strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0 ||
	       strcmp(method, "OPTIONS") == 0;
}

/* The run that came of it, by the headers that say so. */
static const char *made_run(const struct http_request *r)
{
	static const char prefix[] = "/v1/runs/";
	const char *at = http_answer_header(r, "Location");
	if (at && strncmp(at, prefix, sizeof(prefix) - 1) == 0)
		return at + sizeof(prefix) - 1;
	return http_answer_header(r, "X-Run-Id");
}

/* What a jail's server is asked and answers is not ours to keep. */
static bool of_a_jail(const struct http_request *r)
{
	const struct route *route = http_route(r);
	return route && (route == &by_name || route->handler == api_port_http);
}

static void on_answered(void *ctx, struct http_request *r, int status)
{
	struct daemon *d = ctx;
	struct run_info run;
	struct err e;
	bool outside = scope_outside(r);
	bool refused =
	        status == 401 || status == 403 || status == 429 || (outside && status == 404);
	if (of_a_jail(r) || !http_method(r)[0] || (looks(http_method(r)) && !refused))
		return;
	const struct auth_peer *peer = http_peer(r);
	const struct apikey *k = scope_key(d, r);
	const char *made = made_run(r);
	struct audit_entry x = {.remote = peer->remote,
	        .uid = peer->uid,
	        .method = http_method(r),
	        .path = http_path(r),
	        .status = status,
	        .refused = refused};
	if (k) {
		x.key = k->name;
		x.key_id = k->id;
		x.tenant = k->tenant;
	}
	if (made && runs_info(d->runs, made, &run, &e) == 0) {
		x.run = run.id;
		x.session = run.session;
	}
	audit_write(d->audit, &x);
}

int routes_serve(struct daemon *d, int listen_fd, int remote_fd, gid_t socket_gid, struct err *e)
{
	struct http_service service = {
	        .ctx = d,
	        .headers = on_headers,
	        .request = on_request,
	        .too_large = on_too_large,
	        .malformed = on_malformed,
	        .answered = on_answered,
	};
	d->http = http_new(d->loop, listen_fd, remote_fd, socket_gid, &service, e);
	return d->http ? 0 : e ? e->code : -ENOMEM;
}
