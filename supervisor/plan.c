#include "supervisor/plan.h"

#include "base/mem.h"
#include "drivers/launch.h"
#include "supervisor/daemon.h"
#include "supervisor/harnesses.h"
#include "supervisor/policies.h"

#include <stdlib.h>
#include <string.h>

static bool injects(const struct policy *p, const char *host)
{
	for (uint32_t i = 0; i < p->ninject; i++)
		if (strcmp(p->inject[i].host, host) == 0)
			return true;
	return false;
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

/* ---- the driver's view ---- */

static const char *const *texts(char **list)
{
	return (const char *const *)list;
}

static struct driver_mcp *mcp_of(const struct harness *h)
{
	struct driver_mcp *m = h->nmcp ? xcalloc(h->nmcp, sizeof(*m)) : NULL;
	for (size_t i = 0; i < h->nmcp; i++)
		m[i] = (struct driver_mcp){
		        .name = h->mcp[i].name,
		        .command = texts(h->mcp[i].command),
		        .env = texts(h->mcp[i].env),
		        .url = h->mcp[i].url,
		        .headers = texts(h->mcp[i].headers),
		};
	return m;
}

static const enum driver_permissions permissions[] = {
        [HARNESS_AUTO] = PERMISSIONS_AUTO,
        [HARNESS_ASK] = PERMISSIONS_ASK,
        [HARNESS_DENY] = PERMISSIONS_DENY,
};

static struct driver_spec spec_of(const struct harness *h, const struct agent *a,
        const struct plan_input *in, const struct driver_mcp *mcp)
{
	return (struct driver_spec){
	        .prompt = in->prompt,
	        .prompt_len = in->prompt_len,
	        .system_prompt =
	                in->system_prompt && in->system_prompt[0] ? in->system_prompt : NULL,
	        .model = h->model,
	        .tools_allow = texts(h->tools_allow),
	        .tools_deny = texts(h->tools_deny),
	        .mcp = mcp,
	        .nmcp = h->nmcp,
	        .max_turns = h->max_turns,
	        .permissions = permissions[h->permissions],
	        .resume = in->resume,
	        .command = texts(h->command),
	        .program = a->program,
	        .args = texts(a->args),
	        .model_flag = a->model_flag,
	        .instructions = a->instructions,
	        .mode = a->mode,
	        .ask_mode = a->ask_mode,
	        .auth_method = a->auth_method,
	        .failure_text = texts(a->failure_text),
	        .usage_sums = a->usage_sums,
	};
}

/* ---- environment ---- */

static void env_put(char ***env, size_t *n, const char *pair, size_t name_len)
{
	for (size_t i = 0; i < *n; i++)
		if (strncmp((*env)[i], pair, name_len + 1) == 0) {
			free((*env)[i]);
			(*env)[i] = xstrdup(pair);
			return;
		}
	*env = xrealloc(*env, *n + 2, sizeof(**env));
	(*env)[(*n)++] = xstrdup(pair);
	(*env)[*n] = NULL;
}

static void env_list(char ***env, size_t *n, const char *const *pairs)
{
	for (; pairs && *pairs; pairs++) {
		const char *eq = strchr(*pairs, '=');
		if (eq)
			env_put(env, n, *pairs, (size_t)(eq - *pairs));
	}
}

struct found {
	const struct agent *agent;
	const struct policy *policy;
	const struct driver *driver;
	int index;
};

/* Made from nothing: no variable of ours reaches a jail but those that root exposes and the harness
 * names; one that is not set is not set there either. */
static char **env_of(const struct harness *h, const struct found *f, const struct driver_command *c)
{
	static const char *const base[] = {
	        "PATH=/opt/agent/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	        "HOME=/home/agent",
	        "USER=agent",
	        "LOGNAME=agent",
	        "SHELL=/bin/sh",
	        "LANG=C.UTF-8",
	        "TERM=dumb",
	        "TMPDIR=/tmp",
	        NULL,
	};
	char **env = NULL;
	size_t n = 0;
	env_list(&env, &n, base);
	env_list(&env, &n, policy_trust_env(f->policy));
	env_list(&env, &n, texts(f->agent->env));
	env_list(&env, &n, texts(c->env));
	for (char **name = h->env_names; name && *name; name++) {
		const char *value = getenv(*name);
		auto_free char *pair = value ? xasprintf("%s=%s", *name, value) : NULL;
		if (pair)
			env_put(&env, &n, pair, strlen(*name));
	}
	for (size_t i = 0; i < h->nenv; i++) {
		auto_free char *pair = xasprintf("%s=%s", h->env[i].name, h->env[i].value);
		env_put(&env, &n, pair, strlen(h->env[i].name));
	}
	return env;
}

/* ---- the plan ---- */

static int look_up(struct daemon *d, struct harness *h, struct found *f, struct err *e)
{
	int rc = harness_unsupported(h, NULL, NULL, e);
	if (rc < 0)
		return rc;
	if (harnesses_agent(d->harnesses, h->backend, &f->agent, e) < 0) {
		err_wrap(e, "harness '%s'", h->name);
		return e->code = -ENOEXEC;
	}
	f->driver = driver_find(f->agent->driver);
	if (!f->driver)
		return err_set(e, -ENOEXEC,
		        "agent '%s' names the driver '%s', which does not exist", f->agent->name,
		        f->agent->driver);
	if (h->permissions == HARNESS_ASK && !f->driver->answer)
		return err_set(e, -ENOEXEC,
		        "harness '%s': permissions: agent '%s' has no way to ask; use auto or deny",
		        h->name, f->agent->name);
	f->index = policies_find(d->policies, h->policy, &f->policy, e);
	if (f->index < 0) {
		err_wrap(e, "harness '%s'", h->name);
		return e->code = -ENOEXEC;
	}
	rc = check_env(h, &policies_set(d->policies)->config, e);
	if (rc == 0)
		rc = check_policy(f->agent, f->policy, e);
	return rc < 0 ? rc : policies_met(d->policies, f->policy, e);
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

static int fill(
        struct daemon *d, struct harness *h, const struct found *f, struct plan *p, struct err *e)
{
	int rc = limits_narrow(&f->policy->limits, &h->narrow, &p->limits, e);
	if (rc == 0)
		rc = narrow_budget(h, f->policy, &p->budget, e);
	if (rc < 0) {
		err_wrap(e, "harness '%s' with policy '%s'", h->name, f->policy->name);
		return e->code = -ENOEXEC;
	}
	p->driver = f->driver;
	p->backend = xstrdup(h->backend);
	p->version = f->agent->version ? xstrdup(f->agent->version) : NULL;
	memcpy(p->policy, f->policy->name, sizeof(p->policy));
	p->policy_index = (uint32_t)f->index;
	p->layers_wanted = policy_wanted(f->policy);
	p->policy_generation = policies_set(d->policies)->generation;
	p->narrow = h->narrow;
	p->is_volatile = f->policy->flags & POLICY_VOLATILE;
	p->agent_files = f->agent->installed_files;
	p->timeout_ms = smaller(h->timeout_ms, p->limits.wall_ms);
	p->output_bytes = smaller(h->output_bytes, p->limits.output_bytes);
	return 0;
}

int plan_check(struct daemon *d, struct harness *h, struct err *e)
{
	struct found f;
	int rc = look_up(d, h, &f, e);
	if (rc < 0)
		return rc;
	struct limits unused;
	struct budget budget;
	rc = limits_narrow(&f.policy->limits, &h->narrow, &unused, e);
	if (rc == 0)
		rc = narrow_budget(h, f.policy, &budget, e);
	if (rc < 0) {
		err_wrap(e, "harness '%s' with policy '%s'", h->name, f.policy->name);
		return e->code = -ENOEXEC;
	}
	auto_free struct driver_mcp *mcp = mcp_of(h);
	struct plan_input in = {.prompt = "", .system_prompt = h->system_prompt};
	struct driver_spec spec = spec_of(h, f.agent, &in, mcp);
	return f.driver->check(&spec, e);
}

int plan_make(struct daemon *d, struct harness *h, const struct plan_input *in,
        struct event_sink *sink, struct plan *ret, struct err *e)
{
	struct found f;
	int rc = look_up(d, h, &f, e);
	if (rc < 0)
		return rc;
	auto_free struct driver_mcp *mcp = mcp_of(h);
	struct driver_spec spec = spec_of(h, f.agent, in, mcp);
	struct plan p = {0};
	rc = fill(d, h, &f, &p, e);
	if (rc == 0)
		rc = f.driver->check(&spec, e);
	if (rc == 0)
		rc = f.driver->command(&spec, &p.command, e);
	for (size_t i = 0; rc == 0 && i < f.agent->nfiles; i++)
		launch_file(&p.command, f.agent->files[i].name, xstrdup(f.agent->files[i].value));
	if (rc < 0) {
		plan_done(&p);
		return rc;
	}
	p.env = env_of(h, &f, &p.command);
	p.run = f.driver->open(&spec, sink);
	*ret = p;
	return 0;
}

void plan_done(struct plan *p)
{
	if (p->driver && p->run)
		p->driver->close(p->run);
	driver_command_done(&p->command);
	for (char **v = p->env; v && *v; v++)
		free(*v);
	free(p->env);
	free(p->backend);
	free(p->version);
	memset(p, 0, sizeof(*p));
}

/* ---- parameters ---- */

static const char *value_of(const char *name, size_t n, const char *const *names,
        const char *const *values, size_t nparams)
{
	for (size_t i = 0; i < nparams; i++)
		if (strlen(names[i]) == n && memcmp(names[i], name, n) == 0)
			return values[i];
	return NULL;
}

char *plan_fill(const char *text, size_t n, const char *const *names, const char *const *values,
        size_t nparams, size_t *ret_len)
{
	auto_buf struct buf b = BUF_INIT(LIMIT_PROMPT);
	const char *end = text + n;
	while (text < end) {
		const char *open = nparams ? memmem(text, (size_t)(end - text), "{{", 2) : NULL;
		const char *close = open ? memmem(open, (size_t)(end - open), "}}", 2) : NULL;
		const char *value = close ? value_of(open + 2, (size_t)(close - open - 2), names,
		                                    values, nparams)
		                          : NULL;
		const char *upto = !open ? end : value ? open : open + 2;
		(void)buf_put(&b, text, (size_t)(upto - text)); /* checked below */
		if (value)
			(void)buf_puts(&b, value);
		text = value ? close + 2 : upto;
	}
	if (b.failed)
		return NULL;
	*ret_len = b.len;
	return buf_take(&b);
}
