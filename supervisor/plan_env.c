#include "supervisor/plan_env.h"

#include "base/mem.h"
#include "policy/policy.h"
#include "supervisor/repo.h"

#include <stdlib.h>
#include <string.h>

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

static void env_git(char ***env, size_t *n, const struct harness *h)
{
	const char *name = h->git_name ? h->git_name : REPO_NAME;
	const char *email = h->git_email ? h->git_email : REPO_EMAIL;
	const struct {
		const char *key, *value;
	} all[] = {{"GIT_AUTHOR_NAME", name}, {"GIT_COMMITTER_NAME", name},
	        {"GIT_AUTHOR_EMAIL", email}, {"GIT_COMMITTER_EMAIL", email}};
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		auto_free char *pair = xasprintf("%s=%s", all[i].key, all[i].value);
		env_put(env, n, pair, strlen(all[i].key));
	}
}

/* No variable of ours reaches a jail but those that root exposes and the harness names; one that is
 * not set is not set there either. */
static void env_harness(char ***env, size_t *n, const struct harness *h)
{
	for (char **name = h->env_names; name && *name; name++) {
		const char *value = getenv(*name);
		auto_free char *pair = value ? xasprintf("%s=%s", *name, value) : NULL;
		if (pair)
			env_put(env, n, pair, strlen(*name));
	}
	for (size_t i = 0; i < h->nenv; i++) {
		auto_free char *pair = xasprintf("%s=%s", h->env[i].name, h->env[i].value);
		env_put(env, n, pair, strlen(h->env[i].name));
	}
}

/* Where the system's programs are, behind the agent's own. */
#define PATH_SYSTEM "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define ENV_SYSTEM  ("PATH=" PATH_SYSTEM)
#define ENV_AGENT   ("PATH=/opt/agent/bin:" PATH_SYSTEM)
#define ENV_COMMON  "USER=agent", "LOGNAME=agent", "SHELL=/bin/sh", "LANG=C.UTF-8", "TERM=dumb"

char **plan_env(const struct harness *h, const struct agent *a, const struct policy *p,
        const struct driver_command *c, bool commits)
{
	static const char *const base[] = {
	        ENV_AGENT, "HOME=/home/agent", ENV_COMMON, "TMPDIR=/tmp", NULL};
	char **env = NULL;
	size_t n = 0;
	env_list(&env, &n, base);
	env_list(&env, &n, policy_trust_env(p));
	env_list(&env, &n, (const char *const *)a->env);
	env_list(&env, &n, (const char *const *)c->env);
	if (commits || h->git_name || h->git_email)
		env_git(&env, &n, h);
	env_harness(&env, &n, h);
	return env;
}

/* The agent's home is full of files that programs obey: this one is an empty /tmp. */
char **plan_env_verify(const struct harness *h, const struct policy *p)
{
	static const char *const base[] = {
	        ENV_SYSTEM, "HOME=/tmp", ENV_COMMON, "TMPDIR=/tmp", NULL};
	char **env = NULL;
	size_t n = 0;
	if (!h->verify)
		return NULL;
	env_list(&env, &n, base);
	env_list(&env, &n, policy_trust_env(p));
	env_harness(&env, &n, h);
	return env;
}
