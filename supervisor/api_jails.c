#include "supervisor/api.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "proto/exec.h"
#include "proto/stdio.h"
#include "supervisor/body.h"
#include "supervisor/daemon.h"
#include "supervisor/exec_wait.h"
#include "supervisor/harnesses.h"
#include "supervisor/http.h"
#include "supervisor/jailspec.h"
#include "supervisor/jails.h"
#include "supervisor/policies.h"
#include "supervisor/problem.h"
#include "supervisor/purses.h"
#include "supervisor/runs.h"
#include "supervisor/scope.h"
#include "supervisor/sessions.h"
#include "supervisor/shared_jail.h"
#include "supervisor/stdio.h"
#include "supervisor/visit.h"

#include <string.h>
#include <strings.h>

enum {
	NOTICES_MAX = 16 << 10,
	EXEC_WAIT_MS = 30000, /* for a session that is between two jails: they take milliseconds */
};

/* A request whose jail is being made. */
struct launch {
	struct daemon *d;
	struct http_request *request; /* borrowed; NULL once the client left */
	struct stdio *stdio;          /* owned until its client or the lack of one takes it */
	uint32_t wanted;              /* layers the policy asks for, to name those missing */
	struct shared_jail *makes;    /* borrowed of stdio: the jail that is being made, or NULL */
	struct session *session;      /* whose workspace that has for itself, or NULL */
	uint64_t joins;               /* the jail it joins, or 0 */
	int64_t deadline_ms;          /* until when it may look for another to join */
};

static bool wants_upgrade(struct http_request *r)
{
	const char *upgrade = http_header(r, "Upgrade");
	if (upgrade && strcasecmp(upgrade, STDIO_UPGRADE) == 0)
		return true;
	http_add_header(r, "Upgrade", STDIO_UPGRADE);
	problem_reply(r, PROBLEM_UPGRADE, "use `abctl jail` or `abctl exec`",
	        "send `Connection: Upgrade` and `Upgrade: " STDIO_UPGRADE "`");
	return false;
}

static void on_client_gone(void *ctx)
{
	((struct launch *)ctx)->request = NULL;
}

/* {"layers":[...],"missing":[...]}: the first thing a client hears. */
static void layers_notice(const struct launch *n, const struct jail_reply *reply, struct buf *to)
{
	auto_buf struct buf in_force = BUF_INIT(NOTICES_MAX), missing = BUF_INIT(NOTICES_MAX);
	policies_layers_json(reply->layers | reply->fallback, &in_force);
	policies_layers_json(n->wanted & ~(reply->layers | reply->fallback), &missing);
	struct jw w = JW_INIT(to);
	jw_open(&w, NULL, '{');
	jw_raw(&w, "layers", in_force.p, in_force.len);
	jw_raw(&w, "missing", missing.p, missing.len);
	jw_close(&w, '}');
}

static void on_launched(void *ctx, const struct jail_reply *reply, int fds[MSG_FDS])
{
	struct launch *n = ctx;
	struct http_request *r = n->request;
	struct stdio *s = n->stdio;
	if (reply->err.code < 0) {
		if (r && reply->err.code == -ESRCH && n->joins)
			exec_wait(n->d->execs, r, http_param(r, 0), n->joins, n->deadline_ms);
		else if (r)
			problem_err(r, &reply->err, PROBLEM_POLICY_UNMET);
		stdio_abandon(s);
	} else {
		auto_buf struct buf notices = BUF_INIT(NOTICES_MAX);
		if (n->wanted)
			layers_notice(n, reply, &notices);
		if (n->session)
			visit_jail_made(n->makes, n->session, reply->jail);
		else if (n->makes)
			shared_jail_made(n->makes, reply->jail);
		stdio_attach(s, reply, fds, notices.p ? notices.p : "");
		if (r) {
			http_on_gone(r, stdio_abandon, s);
			http_upgrade(r, STDIO_UPGRADE, stdio_start, s);
		} else {
			stdio_abandon(s);
		}
	}
	free(n);
}

static struct launch *launch_new(
        struct daemon *d, struct http_request *r, const struct stdio_spec *spec, uint32_t wanted)
{
	struct launch *n = xnew(struct launch);
	n->d = d;
	n->request = r;
	n->stdio = stdio_new(d, spec);
	n->wanted = wanted;
	http_on_gone(r, on_client_gone, n);
	return n;
}

/* Its files at /opt/agent and its environment, as a run of it has them. */
static int add_agent(struct daemon *d, struct jailspec *j, struct jail_make *m, struct err *e)
{
	const struct agent *a;
	if (!j->agent)
		return 0;
	if (harnesses_agent(d->harnesses, j->agent, &a, e) < 0)
		return e->code;
	j->agent_env = a->env;
	if (a->installed_files)
		(void)str_copy(m->agent, sizeof(m->agent), a->name); /* a checked name */
	return 0;
}

/* Directories of the host are no tenant's, and what one leaves there another would find; snapshots
 * have what was anybody's. */
static int may_bring(
        struct daemon *d, struct http_request *r, const struct jailspec *j, struct err *e)
{
	if (!scope_key(d, r))
		return 0;
	if (j->binds && j->binds[0])
		return err_set(e, -EACCES, "binds: a key may not bring directories of the host");
	return j->snapshot ? err_set(e, -EACCES, "snapshot: a key has those of its harnesses only")
	                   : 0;
}

/* Whose account a jail without a session spends from: the tenant's, as of a user without a name. */
static int payer(struct daemon *d, struct http_request *r, char ret[OWNER_MAX], struct err *e)
{
	const struct apikey *k = scope_key(d, r);
	return owner_make(k ? k->tenant : "", "", ret, e);
}

/* Makes a jail for the process; `session` "" or whose workspace it gets. */
static int launch_jail(struct daemon *d, struct http_request *r, struct jailspec *j,
        const char *session, struct err *e)
{
	const struct policy *p;
	struct jail_make m = {.flags = JAIL_MAKE_EXEC};
	struct limits effective;
	int index = policies_find(d->policies, j->policy, &p, e);
	if (index < 0)
		return index;
	if (scope_may_use(d, r, p, e) < 0 || may_bring(d, r, j, e) < 0)
		return e->code;
	if (jailspec_narrow(j, p, &m, &effective, e) < 0 || add_agent(d, j, &m, e) < 0)
		return e->code;
	m.policy = (uint32_t)index;
	m.policy_generation = policies_set(d->policies)->generation;
	m.flags |= (j->tty ? JAIL_MAKE_TTY : 0) | (j->root ? JAIL_MAKE_ROOT : 0) |
	           (session[0] ? JAIL_MAKE_SESSION : 0);
	(void)str_copy(m.session, sizeof(m.session), session);
	if (j->snapshot)
		(void)str_copy(m.snapshot, sizeof(m.snapshot), j->snapshot); /* a checked name */
	auto_close int exec = jailspec_pack(j, p, e);
	if (exec < 0)
		return exec;
	char owner[OWNER_MAX];
	if (payer(d, r, owner, e) < 0)
		return e->code;
	struct session *held = NULL;
	if (session[0] && runs_keep_session(d->runs, session, &held, e) < 0)
		return e->code;
	if (purses_fill(d, p, session, held ? held->user : owner, &m.purse, e) < 0) {
		if (held)
			runs_let_session(d->runs, held);
		return e->code;
	}
	int64_t wall_ms = (int64_t)effective.wall_ms;
	if (held)
		(void)str_copy(held->policy, sizeof(held->policy), p->name);
	const struct stdio_spec spec = {
	        .jail = held ? visit_jail(d, held, wall_ms)
	                     : shared_jail_new(d, wall_ms, NULL, NULL),
	        .tty = j->tty,
	        .rows = j->rows,
	        .cols = j->cols,
	};
	struct launch *n = launch_new(d, r, &spec, policy_wanted(p));
	n->makes = spec.jail;
	n->session = held;
	jails_make(d->jails, &m, take_fd(exec), stdio_watch(n->stdio), on_launched, n);
	return 0;
}

static int read_spec(
        struct http_request *r, struct jailspec *j, struct json **ret, bool fresh, struct err *e)
{
	size_t n;
	const char *text = http_body(r, &n);
	*ret = body_parse(text, n, e);
	return *ret ? jailspec_read(*ret, fresh, j, e) : e->code;
}

void api_jail_create(struct daemon *d, struct http_request *r)
{
	struct err e;
	auto_json struct json *body = NULL;
	auto_jailspec struct jailspec j = {.policy = NULL};
	if (!wants_upgrade(r) || scope_admit(d, r) < 0)
		return;
	if (d->draining)
		problem_reply(r, PROBLEM_DRAINING, NULL, "the daemon is about to stop");
	else if (d->drained)
		problem_reply(
		        r, PROBLEM_DRAINING, NULL, "the daemon is being drained: no new jails");
	else if (read_spec(r, &j, &body, true, &e) < 0 || launch_jail(d, r, &j, "", &e) < 0)
		problem_err(r, &e, PROBLEM_POLICY_UNMET);
}

/* Into the jail that a run or another command of the session has just now. */
static int launch_exec(struct daemon *d, struct http_request *r, struct jailspec *j,
        const struct session *live, int64_t deadline_ms, struct err *e)
{
	const struct policy *p = NULL;
	struct err gone;
	uint64_t jail = live->jail;
	if (j->policy && strcmp(j->policy, live->policy) != 0)
		return err_set(
		        e, -EBUSY, "the session has a jail of policy '%s' just now", live->policy);
	if (policies_find(d->policies, live->policy, &p, &gone) < 0)
		p = NULL; /* root took it away */
	if (scope_may_use(d, r, p, e) < 0)
		return e->code;
	int exec = jailspec_pack(j, p, e);
	if (exec < 0)
		return exec;
	const struct stdio_spec spec = {
	        .jail = live->commands ? shared_jail_join(live->commands) : NULL,
	        .tty = j->tty,
	        .rows = j->rows,
	        .cols = j->cols,
	};
	struct launch *n = launch_new(d, r, &spec, 0);
	n->joins = jail;
	n->deadline_ms = deadline_ms;
	jails_watch(d->jails, jail, stdio_watch(n->stdio));
	jails_exec(d->jails, jail, j->tty ? JAIL_MAKE_TTY : 0, exec, on_launched, n);
	return 0;
}

void api_session_exec_again(struct daemon *d, struct http_request *r, int64_t deadline_ms)
{
	struct err e;
	const char *id = http_param(r, 0);
	auto_json struct json *body = NULL;
	auto_jailspec struct jailspec j = {.policy = NULL};
	auto_buf struct buf known = BUF_INIT(64 << 10);
	if (sessions_show(d->sessions, id, &known, &e) < 0 ||
	        read_spec(r, &j, &body, false, &e) < 0) {
		problem_err(r, &e, PROBLEM_POLICY_UNMET);
		return;
	}
	struct session *live = sessions_live(d->sessions, id);
	int rc = 0;
	if (exec_must_wait(live, 0))
		exec_wait(d->execs, r, id, 0, deadline_ms);
	else if (live && live->jail)
		rc = launch_exec(d, r, &j, live, deadline_ms, &e);
	else
		rc = launch_jail(d, r, &j, id, &e);
	if (rc < 0)
		problem_err(r, &e, PROBLEM_POLICY_UNMET);
}

void api_session_exec(struct daemon *d, struct http_request *r)
{
	if (wants_upgrade(r) && scope_admit(d, r) == 0)
		api_session_exec_again(d, r, clock_mono_ms() + EXEC_WAIT_MS);
}
