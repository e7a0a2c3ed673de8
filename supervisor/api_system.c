#include "supervisor/api.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/version.h"
#include "policy/layers.h"
#include "supervisor/daemon.h"
#include "supervisor/harnesses.h"
#include "supervisor/http.h"
#include "supervisor/jails.h"
#include "supervisor/loop.h"
#include "supervisor/metrics.h"
#include "supervisor/openapi.h"
#include "supervisor/policies.h"
#include "supervisor/problem.h"
#include "supervisor/scope.h"
#include "supervisor/sessions.h"
#include "supervisor/space.h"
#include "supervisor/store.h"

enum { SYSTEM_JSON_MAX = 256 << 10, METRICS_MAX = 2 << 20 };

static void reply_json(struct http_request *r, int status, struct buf *b)
{
	buf_putc(b, '\n');
	http_reply(r, status, "application/json", b);
}

static void under_way(const struct daemon *d, struct jw *w)
{
	jw_int(w, "runsRunning", (int64_t)d->stats.runs_running);
	jw_int(w, "runsQueued", (int64_t)d->stats.runs_queued);
}

/* 503 where no request would get anything done; 200 and "degraded" where it serves and no restart
 * would help, for a person to look at. */
void api_healthz(struct daemon *d, struct http_request *r)
{
	auto_buf struct buf b = BUF_INIT(SYSTEM_JSON_MAX);
	struct jw w = JW_INIT(&b);
	const char *unproven = policies_unproven(d->policies);
	const struct policy *p;
	struct err e = {0};
	bool unmet = !*unproven && (policies_find(d->policies, NULL, &p, &e) < 0 ||
	                                   policies_met(d->policies, p, &e) < 0);
	struct err full = {0};
	bool low = space_check(d->space, &full) < 0;
	bool degraded = d->stats.runs_unsaved > 0 || unmet || low;
	jw_open(&w, NULL, '{');
	jw_str(&w, "status",
	        daemon_closing(d) ? "draining"
	        : unproven[0]     ? "unproven"
	        : degraded        ? "degraded"
	                          : "ok");
	if (daemon_closing(d))
		under_way(d, &w);
	if (d->stats.runs_unsaved > 0)
		jw_int(&w, "runsUnsaved", (int64_t)d->stats.runs_unsaved);
	bool told = !scope_outside(r);
	if (told && (unproven[0] || unmet))
		jw_str(&w, "detail", unproven[0] ? unproven : e.text);
	else if (told && low)
		jw_str(&w, "detail", full.text);
	jw_close(&w, '}');
	reply_json(r, daemon_closing(d) || unproven[0] ? 503 : 200, &b);
}

void api_version(struct daemon *d, struct http_request *r)
{
	auto_buf struct buf b = BUF_INIT(SYSTEM_JSON_MAX);
	struct jw w = JW_INIT(&b);
	const struct jails_root *root = jails_root(d->jails);
	char since[CLOCK_TEXT_MAX];
	clock_rfc3339(root->since_ms, since);
	jw_open(&w, NULL, '{');
	jw_str(&w, "version", AGENTBOX_VERSION);
	if (root->version[0] && !scope_outside(r)) {
		jw_open(&w, "agentboxd", '{');
		jw_str(&w, "version", root->version);
		jw_str(&w, "since", since);
		jw_bool(&w, "renewing", d->renewing);
		if (root->agents[0])
			jw_str(&w, "agents", root->agents);
		if (root->stays[0])
			jw_str(&w, "stays", root->stays);
		jw_close(&w, '}');
	}
	jw_close(&w, '}');
	reply_json(r, 200, &b);
}

void api_openapi(struct daemon *d, struct http_request *r)
{
	(void)d;
	auto_buf struct buf b = BUF_INIT(SYSTEM_JSON_MAX);
	openapi_print(&b);
	reply_json(r, 200, &b);
}

static struct metrics measure(struct daemon *d)
{
	struct loop_counts ring = loop_counts(d->loop);
	d->stats.state_left = space_left(d->space);
	d->stats.uploads_pending = store_objects_pending(d->store);
	d->stats.ring_sqes = ring.sqes;
	d->stats.ring_cqes = ring.cqes;
	d->stats.ring_overflows = ring.overflows;
	d->stats.turn = ring.turn;
	struct metrics m = {
	        .stats = &d->stats,
	        .sessions = sessions_count(d->sessions),
	        .harnesses = harnesses_count(d->harnesses),
	        .connections = http_connections(d->http),
	        .uptime_ms = clock_mono_ms() - http_started_ms(d->http),
	};
	machine_see(d->machine, &m.machine);
	return m;
}

void api_metrics(struct daemon *d, struct http_request *r)
{
	auto_buf struct buf b = BUF_INIT(METRICS_MAX);
	struct metrics m = measure(d);
	metrics_text(&m, &b);
	http_reply(r, 200, "text/plain; version=0.0.4; charset=utf-8", &b);
}

static void count(void *ctx, const char *status, uint64_t n)
{
	jw_int(ctx, status, (int64_t)n);
}

/* A tenant's own: what all do together is not for it to know. */
static void tenant_stats(struct daemon *d, struct http_request *r)
{
	struct err e;
	auto_buf struct buf b = BUF_INIT(SYSTEM_JSON_MAX);
	auto_scope_view struct scope_view seen = {.user = NULL};
	struct jw w = JW_INIT(&b);
	jw_open(&w, NULL, '{');
	jw_str(&w, "version", AGENTBOX_VERSION);
	jw_open(&w, "runs", '{');
	if (scope_view(d, r, NULL, NULL, &seen, &e) < 0 ||
	        store_run_counts(d->store, &seen.view, count, &w, &e) < 0) {
		problem_err(r, &e, PROBLEM_INTERNAL);
		return;
	}
	jw_close(&w, '}');
	jw_close(&w, '}');
	reply_json(r, 200, &b);
}

void api_stats(struct daemon *d, struct http_request *r)
{
	auto_buf struct buf b = BUF_INIT(METRICS_MAX);
	if (scope_outside(r)) {
		tenant_stats(d, r);
		return;
	}
	struct metrics m = measure(d);
	metrics_json(&m, &b);
	reply_json(r, 200, &b);
}

/* ---- answered by agentboxd ---- */

struct asked {
	struct daemon *d;
	struct http_request *request; /* borrowed; NULL once the client left */
	char policy[NAME_MAX_LEN];
};

static void on_client_gone(void *ctx)
{
	((struct asked *)ctx)->request = NULL;
}

static struct asked *ask(struct daemon *d, struct http_request *r)
{
	struct asked *a = xnew(struct asked);
	a->d = d;
	a->request = r;
	http_on_gone(r, on_client_gone, a);
	return a;
}

static void layer_row(
        struct jw *w, enum layer l, const struct policy *p, const struct jail_reply *reply)
{
	uint32_t bit = LAYER_BIT(l);
	jw_open(w, NULL, '{');
	jw_str(w, "layer", layer_name(l));
	jw_str(w, "have", reply->layers & bit ? "yes" : reply->fallback & bit ? "fallback" : "no");
	jw_str(w, "need", p->required & bit ? "required" : p->warned & bit ? "warned" : "none");
	jw_str(w, "missing", layer_lack(l));
	jw_str(w, "detail", reply->detail[l]);
	if (reply->remedy[l][0])
		jw_str(w, "remedy", reply->remedy[l]);
	jw_close(w, '}');
}

static bool host_rows(struct jw *w, const struct jail_reply *reply)
{
	bool works = true;
	jw_open(w, "host", '[');
	for (int i = 0; i < CHECK_COUNT; i++) {
		unsigned state = reply->check_state[i];
		works = works && state != CHECK_BAD;
		jw_open(w, NULL, '{');
		jw_str(w, "check", check_name((enum check)i));
		jw_str(w, "state", check_state_name(state));
		jw_str(w, "found", reply->check_found[i]);
		jw_str(w, "why", check_why((enum check)i));
		if (state != CHECK_OK)
			jw_str(w, "remedy", check_remedy((enum check)i));
		jw_close(w, '}');
	}
	jw_close(w, ']');
	return works;
}

/* What no layer changes.  Whoever reads `ok` should have read this once. */
static void isolation_member(struct jw *w, const struct policy *p)
{
	bool image = p->root == POLICY_ROOT_IMAGE;
	jw_open(w, "isolation", '{');
	jw_str(w, "kernel", "shared");
	jw_str(w, "root", image ? "image" : "host");
	jw_str(w, "note",
	        "Jails share this host's kernel: one kernel bug that is reachable through the "
	        "system calls of the policy is a way out, whatever the layers say. For code that "
	        "is out to harm, put agentbox into a virtual machine of its own.");
	jw_str(w, "rootNote",
	        image ? "Jails of this policy see an image of their own. Bugs that write into the "
	                "page cache of files one may only read reach that image, not the host's "
	                "programs, as long as nothing else on the host runs from it."
	              : "Jails of this policy see the host's /usr, read-only. A read-only mount "
	                "does not stop bugs that write into the page cache of files one may only "
	                "read: what they change is what the host runs, too. The filter refuses "
	                "the calls that the known ones need (splice, vmsplice, AF_ALG, XFRM, "
	                "RxRPC); an image as root takes the host's programs out of reach.");
	jw_str(w, "see", "docs/ISOLATION.md, docs/THREATS.md");
	jw_close(w, '}');
}

static void on_doctor(void *ctx, const struct jail_reply *reply, int fds[MSG_FDS])
{
	auto_free struct asked *a = ctx;
	struct http_request *r = a->request;
	const struct policy *p;
	struct err e;
	(void)fds;
	if (!r)
		return;
	if (reply->err.code < 0) {
		problem_err(r, &reply->err, PROBLEM_POLICY_UNMET);
		return;
	}
	if (policies_find(a->d->policies, a->policy, &p, &e) < 0) {
		problem_err(r, &e, PROBLEM_POLICY_UNMET);
		return;
	}
	auto_buf struct buf b = BUF_INIT(SYSTEM_JSON_MAX);
	struct jw w = JW_INIT(&b);
	jw_open(&w, NULL, '{');
	bool proven = !reply->unproven[0];
	/* no fallback does, as in policy_met */
	bool met = proven && !(p->required & ~reply->layers);
	jw_str(&w, "policy", a->policy);
	jw_open(&w, "selfTest", '{');
	jw_bool(&w, "ok", proven);
	jw_int(&w, "us", reply->selftest_us);
	if (!proven)
		jw_str(&w, "detail", reply->unproven);
	jw_close(&w, '}');
	jw_open(&w, "layers", '[');
	for (int l = 0; l < LAYER_COUNT; l++)
		layer_row(&w, (enum layer)l, p, reply);
	jw_close(&w, ']');
	met = host_rows(&w, reply) && met;
	isolation_member(&w, p);
	jw_bool(&w, "ok", met);
	jw_close(&w, '}');
	reply_json(r, 200, &b);
}

void api_doctor(struct daemon *d, struct http_request *r)
{
	const char *name = http_query(r, "policy");
	const struct policy *p;
	struct err e;
	if (policies_find(d->policies, name, &p, &e) < 0) {
		problem_err(r, &e, PROBLEM_POLICY_UNMET);
		return;
	}
	struct asked *a = ask(d, r);
	(void)str_copy(a->policy, sizeof(a->policy), p->name);
	jails_doctor(d->jails, on_doctor, a);
}

static void tell_reloaded(struct asked *a, bool renews)
{
	auto_buf struct buf b = BUF_INIT(SYSTEM_JSON_MAX);
	buf_puts(&b, renews ? "{\"reloaded\":false,\"renewing\":true}" : "{\"reloaded\":true}");
	reply_json(a->request, renews ? 202 : 200, &b);
}

static void on_in_use(void *ctx, const struct jail_reply *reply, int fds[MSG_FDS])
{
	auto_free struct asked *a = ctx;
	(void)fds;
	if (a->request && reply->err.code < 0)
		problem_err(a->request, &reply->err, PROBLEM_POLICY_UNMET);
	else if (a->request)
		tell_reloaded(a, false);
}

static void on_reload(void *ctx, const struct jail_reply *reply, int fds[MSG_FDS])
{
	auto_free struct asked *a = ctx;
	(void)fds;
	/* New programs are in place when another supervisor answers, which knows how it went. */
	struct daemon *d = a->d;
	d->renewing |= reply->renews != 0;
	if (!a->request)
		return;
	if (reply->err.code < 0)
		problem_err(a->request, &reply->err, PROBLEM_POLICY_UNMET);
	else if (reply->renews)
		tell_reloaded(a, true);
	else /* behind our own question what this host has for the new policies (jails_news.c) */
		jails_doctor(d->jails, on_in_use, take(a));
}

void api_reload(struct daemon *d, struct http_request *r)
{
	jails_reload(d->jails, on_reload, ask(d, r));
}
