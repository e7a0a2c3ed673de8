#include "supervisor/repo.h"

#include "base/embed.h"
#include "base/mem.h"
#include "policy/forms.h"
#include "policy/rules.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define HEX "0123456789abcdef"

/* ---- what may be asked ---- */

bool repo_object_ok(const char *text)
{
	size_t n = strspn(text, HEX);
	return text[n] == '\0' && (n == 40 || n == 64);
}

static int check(const struct repo_ask *a, const char *path, struct err *e)
{
	char where[64];
	(void)snprintf(where, sizeof(where), "%s.url", path);
	if (!a->url == !a->bundle)
		return err_set(e, -EINVAL, "%s: takes either url or bundle", path);
	if (a->ref && !repo_ref_ok(a->ref))
		return err_set(
		        e, -EINVAL, "%s.ref: '%.100s' is no branch, tag or commit", path, a->ref);
	if (a->bundle && (!form_relative(a->bundle) || a->bundle[0] == '-'))
		return err_set(e, -EINVAL, "%s.bundle: must be a path in the workspace", path);
	return a->url ? repo_url_check(a->url, where, e) : 0;
}

static char *own(const char *text)
{
	return text ? xstrdup(text) : NULL;
}

int repo_read(const struct json *object, const char *path, struct repo_ask *ret, struct err *e)
{
	struct repo_ask a = {.url = own(json_str(object, "url", NULL)),
	        .bundle = own(json_str(object, "bundle", NULL)),
	        .ref = own(json_str(object, "ref", NULL))};
	int rc = check(&a, path, e);
	if (rc < 0)
		repo_ask_done(&a);
	else
		*ret = a;
	return rc;
}

int repo_parse(const char *text, struct repo_ask *ret, struct err *e)
{
	size_t n = strcspn(text, "#");
	struct repo_ask a = {
	        .url = xstrndup(text, n), .ref = text[n] ? xstrdup(text + n + 1) : NULL};
	int rc = check(&a, "repo", e);
	if (rc < 0)
		repo_ask_done(&a);
	else
		*ret = a;
	return rc;
}

void repo_ask_done(struct repo_ask *a)
{
	free(take(a->url));
	free(take(a->bundle));
	free(take(a->ref));
}

char *repo_write(const struct repo_ask *a)
{
	struct buf b = BUF_INIT(16 << 10);
	struct jw w = JW_INIT(&b);
	jw_open(&w, NULL, '{');
	jw_str(&w, "url", a->url);
	jw_str(&w, "bundle", a->bundle);
	jw_str(&w, "ref", a->ref);
	jw_close(&w, '}');
	return buf_take(&b); /* fits: each is bounded */
}

const char *repo_source(const struct repo_ask *a)
{
	return a->url ? a->url : REPO_BUNDLE;
}

/* ---- whether it can be fetched ---- */

struct target {
	char host[POLICY_HOST_MAX];
	unsigned port;
	bool tls;
};

static bool split(const char *url, struct target *ret)
{
	ret->tls = strncmp(url, "https:", 6) == 0;
	const char *host = strstr(url, "//") + 2;
	size_t n = strcspn(host, ":/");
	if (n == 0 || n >= sizeof(ret->host))
		return false;
	memcpy(ret->host, host, n);
	ret->host[n] = '\0';
	ret->port = ret->tls ? 443 : 80;
	if (host[n] != ':')
		return true;
	ret->port = 0;
	for (const char *p = host + n + 1; *p && *p != '/'; p++) {
		if (*p < '0' || *p > '9' || ret->port > 65535)
			return false;
		ret->port = 10 * ret->port + (unsigned)(*p - '0');
	}
	return ret->port > 0 && ret->port <= 65535;
}

/* The policy's own way to that server, with what it adds. */
static char *injected(const char *url, const struct policy *p, const struct outlets *reach)
{
	for (uint32_t i = 0; i < p->ninject; i++) {
		size_t n = strlen(p->inject[i].upstream);
		if (n && strncasecmp(url, p->inject[i].upstream, n) == 0 && url[n] == '/' &&
		        outlets_inject(reach, &p->inject[i]))
			return xasprintf("http://%s%s", p->inject[i].host, url + n);
	}
	return NULL;
}

static bool is_injected(const struct target *t, const struct policy *p, const struct outlets *reach)
{
	for (uint32_t i = 0; i < p->ninject; i++)
		if (strcasecmp(t->host, p->inject[i].host) == 0)
			return !t->tls && t->port == 80 && outlets_inject(reach, &p->inject[i]);
	return false;
}

static bool lets_out(const struct target *t, const struct policy *p, const struct outlets *reach)
{
	if (!outlets_host(reach, t->host, strlen(t->host)))
		return false;
	int at = rules_for_name(p->rules, p->nrules, t->host, strlen(t->host), t->port);
	if (at < 0)
		return false;
	uint32_t protocol = p->rules[at].protocol;
	return protocol == RULE_RAW || protocol == (t->tls ? RULE_TLS : RULE_HTTP);
}

char *repo_from(const struct repo_ask *a, const struct policy *p, const struct outlets *reach,
        struct err *e)
{
	static const struct outlets all;
	struct target t;
	char *through = injected(a->url, p, reach);
	if (through)
		return through;
	if (!split(a->url, &t)) {
		err_set(e, -ENOEXEC, "repo.url: '%.100s' has no host that could be reached",
		        a->url);
		return NULL;
	}
	if (is_injected(&t, p, reach) || lets_out(&t, p, reach))
		return xstrdup(a->url);
	auto_free char *wide = injected(a->url, p, &all);
	if (wide || is_injected(&t, p, &all) || lets_out(&t, p, &all))
		err_set(e, -ENOEXEC,
		        "repo.url: narrow.egress.only or secrets of the harness leave no way to "
		        "%.100s:%u",
		        t.host, t.port);
	else
		err_set(e, -ENOEXEC,
		        "repo.url: policy '%s' does not let %.100s:%u out; remedy: an entry of "
		        "egress.allow of the policy, or for a private repository egress.inject "
		        "with "
		        "its secret, then abctl reload",
		        p->name, t.host, t.port);
	return NULL;
}

/* ---- the programs ---- */

EMBED(repo_clone_script, "supervisor/repo_clone.sh")
EMBED(repo_changes_script, "supervisor/repo_changes.sh")

/* Nothing of the system's or of a home's configuration, no question, no protocol but the one that
 * is meant, no program that a repository or an environment could name. */
static const char *const git_env[] = {
        "PATH=/usr/local/bin:/usr/bin:/bin",
        "HOME=/nonexistent",
        "LC_ALL=C",
        "TZ=UTC",
        "GIT_CONFIG_NOSYSTEM=1",
        "GIT_CONFIG_GLOBAL=/dev/null",
        "GIT_ATTR_NOSYSTEM=1",
        "GIT_TERMINAL_PROMPT=0",
        "GIT_ASKPASS=/bin/false",
        "GIT_NO_REPLACE_OBJECTS=1",
        "GIT_OPTIONAL_LOCKS=0",
        "GIT_PAGER=cat",
        "GIT_EDITOR=false",
};

static void begin(struct repo_command *c, const char *script)
{
	memset(c, 0, sizeof(*c));
	c->argv[0] = "/bin/sh";
	c->argv[1] = "-c";
	c->argv[2] = script;
	c->argv[3] = "agentbox-repo";
	memcpy(c->env, git_env, sizeof(git_env));
}

void repo_command_done(struct repo_command *c)
{
	for (size_t i = 0; i < ARRAY_LEN(c->texts); i++)
		free(c->texts[i]);
	memset(c, 0, sizeof(*c));
}

static void add_env(struct repo_command *c, const char *pair)
{
	size_t n = 0;
	while (c->env[n])
		n++;
	if (n + 1 < ARRAY_LEN(c->env))
		c->env[n] = pair;
}

void repo_clone_command(const struct repo_ask *a, const char *from, const char *run,
        const char *const *trust, struct repo_command *ret)
{
	begin(ret, repo_clone_script);
	ret->argv[4] = run;
	ret->argv[5] = from ? from : "";
	ret->argv[6] = a->url ? a->url : "";
	ret->argv[7] = a->bundle ? a->bundle : "";
	ret->argv[8] = a->ref ? a->ref : "";
	add_env(ret, a->bundle ? "GIT_ALLOW_PROTOCOL=file" : "GIT_ALLOW_PROTOCOL=https:http");
	for (; trust && *trust; trust++)
		add_env(ret, *trust);
}

void repo_changes_command(
        const char *base, const char *run, const struct repo_who *who, struct repo_command *ret)
{
	const char *name = who->name && who->name[0] ? who->name : REPO_NAME;
	const char *email = who->email && who->email[0] ? who->email : REPO_EMAIL;
	static const char *const keys[] = {"GIT_AUTHOR_NAME=", "GIT_COMMITTER_NAME=",
	        "GIT_AUTHOR_EMAIL=", "GIT_COMMITTER_EMAIL="};
	begin(ret, repo_changes_script);
	ret->argv[4] = base;
	ret->argv[5] = run;
	add_env(ret, "GIT_ALLOW_PROTOCOL=none");
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		ret->texts[i] = xasprintf("%s%s", keys[i], i < 2 ? name : email);
		add_env(ret, ret->texts[i]);
	}
}

/* ---- what the first one says ---- */

bool repo_base_read(const char *text, struct repo_base *ret)
{
	struct repo_base x = {.base = ""};
	const char *line = strstr(text, "\nref ");
	size_t n = strncmp(text, "base ", 5) == 0 ? strspn(text + 5, HEX) : 0;
	if (!line || n == 0 || n >= sizeof(x.base) || text + 5 + n != line)
		return false;
	memcpy(x.base, text + 5, n);
	const char *ref = line + 5;
	n = strcspn(ref, "\n");
	if (n >= sizeof(x.ref) || ref[n] != '\n' || ref[n + 1])
		return false;
	memcpy(x.ref, ref, n);
	if (!repo_object_ok(x.base) || (x.ref[0] && !repo_ref_ok(x.ref)))
		return false;
	*ret = x;
	return true;
}
