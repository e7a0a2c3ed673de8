/*
 * Theory of operation.  Each step is asked of agentboxd and goes on with its reply.  What fails on
 * the way is ended by the keeper like any other agent, for it knows how to wait for a jail's end.
 */
#include "supervisor/early.h"

#include "base/fd.h"
#include "base/mem.h"
#include "proto/exec.h"
#include "supervisor/daemon.h"
#include "supervisor/jails.h"
#include "supervisor/keeper.h"
#include "supervisor/plan.h"
#include "supervisor/policies.h"
#include "supervisor/pump.h"
#include "supervisor/purses.h"
#include "supervisor/seed.h"

#include <string.h>

struct early {
	struct daemon *d;        /* borrowed */
	struct early_spec spec;  /* without its texts */
	struct harness *harness; /* reference */
	struct plan plan;
	struct event_sink sink;
	int exec_fd; /* owned */
	struct kept_agent agent;
	struct jail_watch watch;
	struct seed *seed; /* owned */
	bool lost;         /* its jail has ended */
};

static void ignore(struct event_sink *sink, enum event_type t, const char *members, size_t n)
{
	(void)sink;
	(void)t;
	(void)members;
	(void)n;
}

static void early_free(struct early *m)
{
	m->d->early--;
	jails_unwatch(m->d->jails, &m->watch);
	seed_close(m->seed);
	plan_done(&m->plan);
	harness_unref(m->harness);
	fd_close(m->exec_fd);
	free(m->agent.resume);
	free(m);
}

/* The keeper's, which ends it unless it fits. */
static void give(struct early *m, bool fit)
{
	jails_unwatch(m->d->jails, &m->watch);
	keeper_take(m->d->keeper, &m->agent, fit);
	m->agent.resume = NULL;
}

static void finish(struct early *m, int rc, bool left, const struct err *e)
{
	struct early_spec spec = m->spec;
	early_free(m);
	spec.done(spec.ctx, rc, left, e);
}

static void fail(struct early *m, const struct err *e)
{
	struct err why = *e; /* it may be of what is freed */
	bool lives = m->agent.jail && !m->lost;
	if (lives)
		give(m, false);
	else if (m->agent.jail)
		jails_release(m->d->jails, m->agent.jail);
	finish(m, why.code, !lives, &why);
}

static void fail_lost(struct early *m)
{
	struct err e;
	if (m->d->early_stopped || daemon_closing(m->d))
		(void)err_set(&e, -ESHUTDOWN, "the daemon is about to stop, or is being drained");
	else
		(void)err_set(&e, -ESRCH, "its jail has ended");
	fail(m, &e);
}

/* True: it goes on. */
static bool goes_on(struct early *m, const struct jail_reply *reply)
{
	if (reply->err.code)
		fail(m, &reply->err);
	else if (m->lost || m->d->early_stopped || daemon_closing(m->d))
		fail_lost(m);
	else
		return true;
	return false;
}

static void on_gone(struct jail_watch *w, const struct jail_gone *x)
{
	(void)x;
	container_of(w, struct early, watch)->lost = true; /* the next reply will say so */
}

static void on_started(void *ctx, const struct jail_reply *reply, int fds[MSG_FDS])
{
	static const struct pump_calls none; /* until the keeper's, within this call */
	struct early *m = ctx;
	if (!goes_on(m, reply))
		return;
	int own[3];
	for (int i = 0; i < 3; i++)
		own[i] = take_fd(fds[i]);
	m->agent.exec = reply->exec;
	m->agent.pump = pump_new_held(m->d->loop, own, &none, NULL, 0);
	pump_veil(m->agent.pump, &reply->veil);
	give(m, true);
	finish(m, 0, false, NULL);
}

static void start(struct early *m)
{
	if (m->spec.starts) {
		jails_exec(m->d->jails, m->agent.jail, m->plan.exec_flags | JAIL_MAKE_PROGRAM,
		        take_fd(m->exec_fd), on_started, m);
		return;
	}
	give(m, false);
	finish(m, 0, false, NULL);
}

static void on_seeded(void *ctx, int rc, const struct err *e)
{
	struct early *m = ctx;
	seed_close(take(m->seed));
	if (m->lost)
		fail_lost(m);
	else if (rc < 0)
		fail(m, e);
	else
		start(m);
}

static void on_worker(void *ctx, const struct jail_reply *reply, int fds[MSG_FDS])
{
	struct early *m = ctx;
	if (goes_on(m, reply))
		m->seed = seed_start(m->d->loop, take_fd(fds[0]), m->harness, m->spec.seeds,
		        &m->plan.command, on_seeded, m);
}

/* Before there is anything in it that could send. */
static void on_cut_off(void *ctx, const struct jail_reply *reply, int fds[MSG_FDS])
{
	struct early *m = ctx;
	(void)fds;
	if (!goes_on(m, reply))
		return;
	m->agent.used = reply->resources;
	if (seed_needed(m->harness, m->spec.seeds, &m->plan.command))
		jails_worker(m->d->jails, m->agent.jail, on_worker, m);
	else
		start(m);
}

static void on_made(void *ctx, const struct jail_reply *reply, int fds[MSG_FDS])
{
	struct early *m = ctx;
	(void)fds;
	if (!reply->err.code) {
		m->agent.jail = reply->jail;
		m->agent.layers = reply->layers;
		m->agent.fallback = reply->fallback;
		m->agent.disk = reply->disk;
	}
	if (goes_on(m, reply))
		jails_rest(m->d->jails, m->agent.jail, on_cut_off, m);
}

static int pack(struct early *m, struct err *e)
{
	const struct exec_spec spec = {
	        .argv = (const char *const *)m->plan.command.argv,
	        .env = (const char *const *)m->plan.env,
	        .cwd = DRIVER_WORKSPACE,
	};
	m->exec_fd = exec_pack(&spec, e);
	return m->exec_fd < 0 ? m->exec_fd : 0;
}

static int ask(struct early *m, const char *user, struct err *e)
{
	struct daemon *d = m->d;
	const struct policy *p = &policies_set(d->policies)->policies[m->plan.policy_index];
	struct jail_make q = {
	        .policy_generation = m->plan.policy_generation,
	        .policy = m->plan.policy_index,
	        .flags = JAIL_MAKE_SESSION,
	        .narrow = m->plan.narrow,
	        .outlets = m->plan.outlets,
	        .keeps = m->plan.keeps,
	};
	int rc = purses_fill(d, p, m->agent.session, user, &q.purse, e);
	if (rc < 0)
		return rc;
	memcpy(q.session, m->agent.session, sizeof(q.session));
	memcpy(q.run, m->agent.run, sizeof(q.run));
	if (m->plan.agent_files)
		(void)str_copy(q.agent, sizeof(q.agent), m->plan.backend); /* a checked name */
	if (m->harness->snapshot)
		(void)str_copy(q.snapshot, sizeof(q.snapshot), m->harness->snapshot);
	if (m->harness->template_dir)
		(void)str_copy(q.template, sizeof(q.template), m->harness->template_dir);
	jails_make(d->jails, &q, -1, &m->watch, on_made, m);
	return 0;
}

static void fill_agent(struct early *m, const struct early_spec *spec)
{
	m->agent = (struct kept_agent){.ahead = true,
	        .nobodys = spec->nobodys,
	        .driver = m->plan.driver,
	        .resume = spec->resume ? xstrdup(spec->resume) : NULL,
	        .idle_ms = m->harness->warm_idle_ms,
	        .memory_most = m->harness->warm_memory};
	(void)str_copy(m->agent.session, sizeof(m->agent.session), spec->session); /* an id */
	/* Nobody's: agentboxd keeps the program's stdio for a run's name. */
	id_new("run", m->agent.run);
	memcpy(m->agent.key, m->plan.key, sizeof(m->plan.key));
	(void)str_copy(m->agent.harness, sizeof(m->agent.harness), m->harness->name);
}

int early_begin(struct daemon *d, struct harness *h, const struct early_spec *spec, struct err *e)
{
	struct early *m = xnew(struct early);
	*m = (struct early){.d = d,
	        .spec = *spec,
	        .harness = harness_ref(h),
	        .exec_fd = -1,
	        .sink.emit = ignore};
	m->spec.session = m->spec.user = m->spec.resume = NULL;
	d->early++;
	list_init(&m->watch.link);
	m->watch.gone = on_gone;
	const struct plan_input in = {
	        .prompt = "", .system_prompt = h->system_prompt, .resume = spec->resume};
	int rc = plan_make(d, h, &in, &m->sink, &m->plan, e);
	if (rc == 0 && m->plan.is_volatile && !spec->nobodys)
		rc = err_set(e, -EINVAL,
		        "harness '%s': its policy keeps the workspace in memory "
		        "(`filesystem.volatile`), so that nothing is there before a run",
		        h->name);
	fill_agent(m, spec);
	if (rc == 0)
		rc = pack(m, e);
	if (rc == 0)
		rc = ask(m, spec->user, e);
	if (rc < 0)
		early_free(m);
	return rc;
}
