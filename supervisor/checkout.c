#include "supervisor/checkout.h"

#include "base/mem.h"
#include "policy/harness.h"
#include "supervisor/changes.h"
#include "supervisor/jailed.h"
#include "supervisor/policies.h"

#include <errno.h>
#include <string.h>

static int read_ask(struct checkout *c, struct store *st, const struct harness *h, const char *run,
        struct err *e)
{
	e->code = 0;
	auto_free char *asked = store_checkout(st, run, e);
	if (e->code < 0)
		return e->code;
	c->of_run = asked != NULL;
	c->asked = asked || h->repo;
	if (!c->asked)
		return 0;
	if (!asked)
		return repo_parse(h->repo, &c->ask, e);
	auto_json struct json *j = json_parse(asked, strlen(asked), e);
	return j ? repo_read(j, "repo", &c->ask, e) : e->code;
}

int checkout_load(struct checkout *c, struct store *st, const struct harness *h, const char *run,
        const char *session, struct err *e)
{
	if (c->loaded)
		return 0;
	int rc = read_ask(c, st, h, run, e);
	if (rc < 0)
		return rc;
	rc = store_repo(st, session, &c->was, e);
	if (rc < 0 && rc != -ENOENT)
		return rc;
	c->known = rc == 0;
	c->loaded = true;
	if (c->known && c->asked && strcmp(c->was.source, repo_source(&c->ask)) != 0)
		return err_set(e, -EBUSY,
		        "the session has a checkout of %.120s already; remedy: another session",
		        c->was.source);
	return 0;
}

static int admit(const struct policies *all, const struct harness *h, const struct repo_ask *ask,
        struct err *e)
{
	const struct policy *p;
	if (h->warm_idle_ms)
		return err_set(e, -ENOEXEC,
		        "repo: harness '%s' keeps its agent between runs (warm), and a checkout "
		        "takes the workspace for itself; remedy: a harness without warm",
		        h->name);
	if (h->snapshot || h->template_dir)
		return err_set(e, -ENOEXEC,
		        "repo: a workspace of harness '%s' starts from %s, and a checkout wants an "
		        "empty one; remedy: a harness without it",
		        h->name, h->snapshot ? "a snapshot" : "a template");
	if (policies_find(all, h->policy, &p, e) < 0)
		return e->code;
	if (p->flags & POLICY_VOLATILE)
		return err_set(e, -ENOEXEC,
		        "repo: policy '%s' leaves nothing of a workspace, so nothing could be said "
		        "of the changes",
		        p->name);
	struct outlets reach;
	if (outlets_make(h->egress_only, h->secrets, &reach, e) < 0)
		return e->code;
	auto_free char *from = ask->url ? repo_from(ask, p, &reach, e) : NULL;
	return ask->url && !from ? e->code : 0;
}

int checkout_admit(const struct policies *p, const struct harness *h, const struct repo_ask *ask,
        struct err *e)
{
	struct repo_ask own = {.url = NULL};
	if (ask || !h->repo)
		return ask ? admit(p, h, ask, e) : 0;
	int rc = repo_parse(h->repo, &own, e);
	if (rc == 0)
		rc = admit(p, h, &own, e);
	repo_ask_done(&own);
	return rc < 0 ? e->code = -ENOEXEC : 0;
}

void checkout_done(struct checkout *c)
{
	jailed_close(take(c->jailed));
	changes_free(take(c->changes));
	repo_ask_done(&c->ask);
	store_repo_done(&c->was);
	buf_done(&c->said);
	buf_done(&c->result);
}
