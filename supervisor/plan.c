#include "supervisor/plan.h"

#include "base/mem.h"
#include "drivers/launch.h"
#include "policy/harness_params.h"
#include "policy/fits.h"
#include "policy/keys.h"
#include "proto/children.h"
#include "proto/jail.h"
#include "supervisor/daemon.h"
#include "supervisor/harnesses.h"
#include "supervisor/plan_env.h"
#include "supervisor/policies.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool injects(const struct policy *p, const char *host)
{
	for (uint32_t i = 0; i < p->ninject; i++)
		if (strcmp(p->inject[i].host, host) == 0)
			return true;
	return false;
}

static int check_reach(
        const struct agent *a, const struct outlets *r, const struct policy *p, struct err *e)
{
	for (uint32_t i = 0; i < p->ninject; i++)
		for (char **host = a->inject; host && *host; host++)
			if (strcmp(p->inject[i].host, *host) == 0 &&
			        !outlets_inject(r, &p->inject[i]))
				return err_set(e, -ENOEXEC,
				        "agent '%s' needs the host '%s', which narrow.egress.only "
				        "or "
				        "secrets leaves out",
				        a->name, *host);
	return 0;
}

static int check_policy(const struct agent *a, const struct policy *p, struct err *e)
{
	for (char **host = a->inject; host && *host; host++)
		if (!injects(p, *host))
			return err_set(e, -ENOEXEC,
			        "agent '%s' needs the host '%s', which policy '%s' does not "
			        "provide",
			        a->name, *host, p->name);
	return 0;
}

static bool exposes(const struct daemon_config *c, const char *name)
{
	for (uint32_t i = 0; i < c->nexposed; i++)
		if (strcmp(c->exposed[i], name) == 0)
			return true;
	return false;
}

static int check_env(const struct harness *h, const struct daemon_config *c, struct err *e)
{
	for (char **name = h->env_names; name && *name; name++)
		if (!exposes(c, *name))
			return err_set(e, -ENOEXEC,
			        "harness '%s' asks for the variable '%s', which is not in "
			        "expose_env of agentboxd.yaml",
			        h->name, *name);
	return 0;
}

static int check_webhooks(const struct harness *h, const struct daemon_config *c, struct err *e)
{
	for (char **name = h->webhooks; name && *name; name++) {
		int at = webhook_find(c->webhooks, c->nwebhooks, *name);
		if (at < 0)
			return err_set(e, -ENOEXEC,
			        "harness '%s' asks for the webhook '%s', which is not in webhooks "
			        "of agentboxd.yaml",
			        h->name, *name);
		if (!webhook_takes_harness(&c->webhooks[at], h->name))
			return err_set(e, -ENOEXEC,
			        "harness '%s' asks for the webhook '%s', whose `harnesses` in "
			        "agentboxd.yaml do not have it",
			        h->name, *name);
	}
	return 0;
}

/* ---- the plan ---- */

static const char *const *texts(char **list)
{
	return (const char *const *)list;
}

struct found {
	const struct agent *agent;
	const struct policy *policy;
	struct fit fit; /* owned */
	int index;
};

static int check_warm(const struct harness *h, const struct found *f, struct err *e)
{
	if (!h->warm_idle_ms)
		return 0;
	if (f->policy->flags & POLICY_VOLATILE)
		return err_set(e, -ENOEXEC,
		        "harness '%s': warm: policy '%s' leaves nothing for a next run", h->name,
		        f->policy->name);
	return 0;
}

static int check_verify(const struct harness *h, const struct found *f, struct err *e)
{
	if (h->verify && f->policy->flags & POLICY_VOLATILE)
		return err_set(e, -ENOEXEC,
		        "harness '%s': verify: under policy '%s' (filesystem.volatile) nothing may "
		        "be left of an agent's files to check",
		        h->name, f->policy->name);
	return 0;
}

struct agents {
	const struct agent *v[LIMIT_HARNESSES];
	size_t n;
};

static void add_agent(void *ctx, const char *dir, const struct agent *a, const char *error)
{
	struct agents *all = ctx;
	(void)dir, (void)error;
	if (a && all->n < ARRAY_LEN(all->v))
		all->v[all->n++] = a;
}

static int fit_agent(struct daemon *d, const struct harness *h, struct found *f, struct err *e)
{
	struct agents all = {.n = 0};
	harnesses_agents(d->harnesses, add_agent, &all);
	return fits(h, f->agent, all.v, all.n, &f->fit, e);
}

/* On success f->fit is to be freed. */
static int look_up(struct daemon *d, struct harness *h, struct found *f, struct err *e)
{
	int rc = harness_unsupported(h, NULL, NULL, e);
	if (rc < 0)
		return rc;
	if (harnesses_agent(d->harnesses, h->backend, &f->agent, e) < 0)
		return e->code = -ENOEXEC;
	f->index = policies_find(d->policies, h->policy, &f->policy, e);
	if (f->index < 0)
		return e->code = -ENOEXEC;
	rc = check_warm(h, f, e);
	if (rc == 0)
		rc = check_verify(h, f, e);
	if (rc == 0)
		rc = check_env(h, &policies_set(d->policies)->config, e);
	if (rc == 0)
		rc = check_webhooks(h, &policies_set(d->policies)->config, e);
	if (rc == 0)
		rc = check_policy(f->agent, f->policy, e);
	if (rc == 0)
		rc = policies_met(d->policies, f->policy, e);
	return rc < 0 ? rc : fit_agent(d, h, f, e);
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a && (!b || a < b) ? a : b;
}

enum { COST_MAX = 1000000000 /* dollars: no bound at all */ };

/* Of the policy and of limits.costUsd, which may only be less. */
static int narrow_budget(
        const struct harness *h, const struct policy *p, struct budget *ret, struct err *e)
{
	uint64_t most = p->budgets[BUDGET_RUN].cost_micro;
	double dollars = h->cost_usd < COST_MAX ? h->cost_usd : COST_MAX;
	*ret = (struct budget){.cost_micro = (uint64_t)(dollars * 1e6 + 0.5)};
	if (most && ret->cost_micro > most)
		return err_set(e, -EACCES, "limits.costUsd: %g asked, the policy gives at most %g",
		        h->cost_usd, (double)most / 1e6);
	return 0;
}

/* Do secrets of the policy enter its agent's jail? */
static bool gives(const struct outlets *o, const struct policy *p)
{
	bool any = false;
	for (uint32_t i = 0; i < p->ngiven; i++)
		any = any || outlets_given(o, &p->given[i]);
	return any;
}

static int narrow(const struct harness *h, const struct found *f, struct limits *ret_limits,
        struct budget *ret_budget, struct outlets *ret_reach, struct err *e)
{
	const struct policy *p = f->policy;
	int rc = limits_narrow(&p->limits, &h->narrow, ret_limits, e);
	if (rc == 0)
		rc = narrow_budget(h, p, ret_budget, e);
	if (rc == 0)
		rc = outlets_make(h->egress_only, h->secrets, ret_reach, e);
	if (rc == 0)
		rc = outlets_fits(ret_reach, p, e);
	if (rc == 0)
		rc = check_reach(f->agent, ret_reach, p, e);
	if (rc == 0)
		return 0;
	err_wrap(e, "harness '%s' with policy '%s'", h->name, p->name);
	return e->code = -ENOEXEC;
}

static int fill(
        struct daemon *d, struct harness *h, const struct found *f, struct plan *p, struct err *e)
{
	int rc = narrow(h, f, &p->limits, &p->budget, &p->outlets, e);
	if (rc < 0)
		return rc;
	p->driver = f->fit.driver;
	p->enforced = f->fit.enforced;
	p->backend = xstrdup(h->backend);
	p->version = f->agent->version ? xstrdup(f->agent->version) : NULL;
	memcpy(p->policy, f->policy->name, sizeof(p->policy));
	p->policy_index = (uint32_t)f->index;
	p->layers_wanted = policy_wanted(f->policy);
	p->policy_generation = policies_set(d->policies)->generation;
	p->narrow = h->narrow;
	for (char **path = h->read_only; path && *path && p->keeps.n < JAIL_KEEPS; path++)
		if (!str_copy(p->keeps.paths[p->keeps.n++], JAIL_TARGET_MAX, *path))
			return err_set(
			        e, -ENOEXEC, "narrow.readOnly: '%.80s...' is too long", *path);
	p->warm = h->warm_idle_ms > 0;
	p->is_volatile = f->policy->flags & POLICY_VOLATILE;
	p->agent_files = f->agent->installed_files;
	p->timeout_ms = smaller(h->timeout_ms, p->limits.wall_ms);
	p->output_bytes = smaller(h->output_bytes, p->limits.output_bytes);
	return 0;
}

/* What a step cannot be: a harness that is not there or not usable, one with steps of its own (so
 * there are no circles), one that wants what the pipeline does not have. */
static int check_step(
        struct daemon *d, const struct harness *h, const struct harness_step *s, struct err *e)
{
	struct harness *x;
	struct limits unused;
	int rc = harnesses_get(d->harnesses, s->harness, &x, e);
	if (rc < 0)
		return rc;
	if (x->nsteps)
		rc = err_set(e, -ENOEXEC, "harness '%s' is a pipeline itself", x->name);
	for (size_t i = 0; rc == 0 && i < x->nparams; i++) {
		const struct harness_param *p = harness_param(h, x->params[i].name);
		if (x->params[i].required && !(p && (p->required || p->dflt)))
			rc = err_set(e, -ENOEXEC,
			        "harness '%s' requires the parameter '%s': the pipeline's 'params' "
			        "must have it, required or with a default",
			        x->name, x->params[i].name);
	}
	if (rc == 0)
		rc = plan_check(d, x, &unused, e);
	harness_unref(x);
	return rc;
}

static int check_steps(struct daemon *d, const struct harness *h, struct err *e)
{
	int rc = check_webhooks(h, &policies_set(d->policies)->config, e);
	for (size_t i = 0; rc == 0 && i < h->nsteps; i++) {
		rc = check_step(d, h, &h->steps[i], e);
		if (rc < 0) {
			err_wrap(e, "harness '%s', step %zu", h->name, i + 1);
			e->code = rc = -ENOEXEC;
		}
	}
	return rc;
}

int plan_check(struct daemon *d, struct harness *h, struct limits *ret, struct err *e)
{
	if (h->nsteps) {
		*ret = (struct limits){0};
		return check_steps(d, h, e);
	}
	struct found f = {0};
	int rc = look_up(d, h, &f, e);
	if (rc < 0)
		return rc;
	fit_done(&f.fit);
	struct budget budget;
	struct outlets reach;
	return narrow(h, &f, ret, &budget, &reach, e);
}

/* What belongs to this run. */
static struct driver_spec spec_of(const struct fit *fit, const struct plan_input *in)
{
	struct driver_spec spec = fit->spec;
	spec.prompt = in->prompt;
	spec.prompt_len = in->prompt_len;
	spec.live = in->live;
	if (spec.system_prompt)
		spec.system_prompt = in->system_prompt;
	if (ability_in(fit->can, ABILITY_RESUME))
		spec.resume = in->resume;
	return spec;
}

/* ---- what an agent that waits must have been started with ---- */

static void add_text(struct digest *d, const char *text)
{
	digest_add(d, text ? text : "", text ? strlen(text) + 1 : 0); /* NULL is not "" */
	digest_add(d, ";", 1);
}

static void add_list(struct digest *d, const char *const *list)
{
	for (; list && *list; list++)
		add_text(d, *list);
	digest_add(d, ".", 1);
}

static void add_files(struct digest *d, const struct driver_command *c, const struct agent *a)
{
	for (size_t i = 0; i < c->nfiles; i++) {
		add_text(d, c->files[i].path);
		add_text(d, c->files[i].text);
	}
	for (size_t i = 0; i < a->nfiles; i++) {
		add_text(d, a->files[i].name);
		add_text(d, a->files[i].value);
	}
}

/* An installation puts another directory in its place. */
static void add_installed(struct digest *d, const struct agent *a)
{
	struct stat st = {.st_ino = 0};
	if (a->installed_files && fstatat(CHILD_AGENTS, a->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return; /* the run is refused for it */
	const uint64_t which[] = {
	        st.st_dev, st.st_ino, (uint64_t)st.st_mtim.tv_sec, (uint64_t)st.st_mtim.tv_nsec};
	digest_add(d, which, sizeof(which));
}

/* Whatever reaches the process or its driver but the prompt, which is each run's own, and the
 * conversation, which is compared by whoever has both. */
static int make_key(struct daemon *d, struct harness *h, const struct found *f,
        const struct driver_spec *spec, char ret[DIGEST_TEXT], struct err *e)
{
	const struct agent *a = f->agent;
	struct driver_spec bare = *spec;
	struct driver_command c = {0};
	bare.resume = bare.live = NULL;
	bare.prompt = "";
	bare.prompt_len = 0;
	int rc = f->fit.driver->command(&bare, &c, e);
	if (rc < 0)
		return rc;
	struct digest *to = digest_new();
	const uint64_t generation = policies_set(d->policies)->generation;
	digest_add(to, &generation, sizeof(generation));
	const char *const texts_of[] = {h->name, h->file, h->source, spec->system_prompt, a->name,
	        a->driver, a->version, a->mode, a->ask_mode, a->auth_method, a->model_flag,
	        a->instructions, a->usage_sums ? "sums" : "turns", f->policy->name};
	for (size_t i = 0; i < ARRAY_LEN(texts_of); i++)
		add_text(to, texts_of[i]);
	add_list(to, texts(a->failure_text));
	add_list(to, texts(c.argv));
	char **env = plan_env(h, f->agent, f->policy, &c, false); /* such a run shares no agent */
	add_list(to, texts(env));
	list_free(env);
	add_files(to, &c, a);
	add_installed(to, a);
	digest_end(to, ret);
	driver_command_done(&c);
	return 0;
}

int plan_key(struct daemon *d, struct harness *h, const struct plan_input *in,
        char ret[DIGEST_TEXT], struct err *e)
{
	struct found f = {0};
	int rc = look_up(d, h, &f, e);
	if (rc < 0)
		return rc;
	struct driver_spec spec = spec_of(&f.fit, in);
	rc = make_key(d, h, &f, &spec, ret, e);
	fit_done(&f.fit);
	return rc;
}

int plan_make(struct daemon *d, struct harness *h, const struct plan_input *in,
        struct event_sink *sink, struct plan *ret, struct err *e)
{
	struct found f = {0};
	int rc = look_up(d, h, &f, e);
	if (rc < 0)
		return rc;
	struct driver_spec spec = spec_of(&f.fit, in);
	struct plan p = {0};
	rc = fill(d, h, &f, &p, e);
	if (rc == 0)
		rc = p.driver->check(&spec, e);
	if (rc == 0)
		rc = p.driver->command(&spec, &p.command, e);
	if (rc == 0 && p.warm)
		rc = make_key(d, h, &f, &spec, p.key, e);
	for (size_t i = 0; rc == 0 && i < f.agent->nfiles; i++)
		launch_file(&p.command, f.agent->files[i].name, xstrdup(f.agent->files[i].value));
	if (rc == 0) {
		p.exec_flags = (h->user == HARNESS_USER_ROOT ? JAIL_MAKE_ROOT : 0u) |
		               (p.command.below_acp ? JAIL_MAKE_ACP : 0u) |
		               (gives(&p.outlets, f.policy) ? JAIL_MAKE_SECRETS : 0u);
		p.env = plan_env(h, f.agent, f.policy, &p.command, in->commits);
		p.verify_env = plan_env_verify(h, f.policy);
		p.run = p.driver->open(p.driver, &spec, sink);
		*ret = p;
	} else {
		plan_done(&p);
	}
	fit_done(&f.fit);
	return rc;
}

void plan_done(struct plan *p)
{
	if (p->driver && p->run)
		p->driver->close(p->run);
	driver_command_done(&p->command);
	list_free(p->env);
	list_free(p->verify_env);
	free(p->backend);
	free(p->version);
	memset(p, 0, sizeof(*p));
}
