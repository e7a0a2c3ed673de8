#include "supervisor/scope.h"

#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "policy/harness.h"
#include "policy/policy.h"
#include "supervisor/daemon.h"
#include "supervisor/harnesses.h"
#include "supervisor/http.h"
#include "supervisor/policies.h"
#include "supervisor/problem.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
	/* Connections of one key at once: others have room beside it. */
	KEY_CONNECTIONS = LIMIT_CONNECTIONS / 4,
	/* APIKEY_NAMES owners, escaped. */
	NAMES_MAX = APIKEY_NAMES * (6 * OWNER_MAX + 4),
};

static const char *const names[SCOPE_COUNT] = {
#define SCOPE_ROW(sym, name, what) [SCOPE_##sym] = (name),
        SCOPES(SCOPE_ROW)
#undef SCOPE_ROW
};

const char *scope_name(enum scope s)
{
	return names[s];
}

/* ---- who asks ---- */

static const char *bearer(const struct http_request *r)
{
	static const char scheme[] = "Bearer ";
	const char *text = http_header(r, "Authorization");
	if (!text || strncasecmp(text, scheme, strlen(scheme)) != 0)
		return NULL;
	text += strlen(scheme);
	return text + strspn(text, " ");
}

static int refuse_stranger(struct http_request *r, const char *why)
{
	http_add_header(r, "WWW-Authenticate", "Bearer realm=\"agentbox\"");
	problem_reply(r, PROBLEM_UNAUTHORIZED, "Authorization: Bearer KEY (abctl --key-file FILE)",
	        "%s", why);
	return -1;
}

static int take_key(struct daemon *d, struct http_request *r, const char *secret)
{
	const struct apikey *k = apikeys_of_secret(d->keys, secret);
	if (!k)
		return refuse_stranger(r, "this key is unknown, revoked or expired");
	if (strcmp(http_actor(r), k->id) != 0 &&
	        http_actor_connections(r, k->id) >= KEY_CONNECTIONS) {
		problem_retry(r, PROBLEM_RATE, 1000, "key %s has %d connections already", k->name,
		        KEY_CONNECTIONS);
		return -1;
	}
	http_set_actor(r, k->id);
	int64_t wait = apikeys_take_request(d->keys, k->id);
	if (!wait)
		return 0;
	problem_retry(r, PROBLEM_RATE, wait, "key %s may ask %u times a minute", k->name,
	        k->requests.per_minute);
	return -1;
}

static int refuse_role(struct http_request *r, enum auth_role role, const char *who)
{
	problem_reply(r, PROBLEM_FORBIDDEN,
	        role == AUTH_ROOT ? "only root may do this, through the Unix socket"
	                          : "use an account in the socket's group",
	        "%s may not %s %.200s", who, http_method(r), http_path(r));
	return -1;
}

static int count_credentials(void *ctx, const char *name, const char *value)
{
	(void)value;
	*(int *)ctx += strcasecmp(name, "Authorization") == 0;
	return 0;
}

/* Whoever sends a credential means to be bounded by it: one that is empty or cut off must not make
 * an operator of him, because of the socket that it comes through. */
static int refuse_no_key(struct http_request *r, bool is_key)
{
	int n = 0;
	(void)http_each_header(r, count_credentials, &n);
	if (n > 1)
		return refuse_stranger(r, "more than one Authorization field");
	return n && !is_key ? refuse_stranger(r, "Authorization is no key of agentbox; without the "
	                                         "field it counts who the kernel says you are")
	                    : 0;
}

int scope_identify(struct daemon *d, struct http_request *r, enum auth_role role, bool passed_on)
{
	const struct auth_peer *peer = http_peer(r);
	const char *secret = bearer(r);
	bool is_key = secret && strncmp(secret, "abk_", 4) == 0;
	char who[64];
	http_set_actor(r, "");
	if (!passed_on && !peer->remote && refuse_no_key(r, is_key) < 0)
		return -1;
	if (secret && (peer->remote || is_key)) {
		if (peer->remote || peer->role >= AUTH_USER) {
			if (take_key(d, r, secret) < 0)
				return -1;
			return role <= AUTH_USER ? 0 : refuse_role(r, role, "a key");
		}
	}
	if (peer->role >= role)
		return 0;
	if (peer->remote)
		return refuse_stranger(r, "this needs a key");
	(void)snprintf(who, sizeof(who), "uid %u", peer->uid);
	return refuse_role(r, role, who);
}

const struct apikey *scope_key(struct daemon *d, const struct http_request *r)
{
	const char *id = http_actor(r);
	return id[0] ? apikeys_find(d->keys, id) : NULL;
}

bool scope_outside(const struct http_request *r)
{
	return http_actor(r)[0] || http_peer(r)->remote;
}

/* ---- by the path ---- */

static bool sees(const struct apikey *k, const char *owner, const char *harness)
{
	char tenant[NAME_MAX_LEN];
	owner_tenant(owner, tenant);
	return strcmp(tenant, k->tenant) == 0 && apikey_names(k->users, owner_user(owner)) &&
	       (!harness || apikey_names(k->harnesses, harness));
}

struct looking {
	const struct apikey *key;
	bool seen;
};

static void look(void *ctx, const char *owner, const char *harness)
{
	struct looking *l = ctx;
	l->seen = sees(l->key, owner, harness);
}

static int refuse_foreign(struct http_request *r, const char *what)
{
	problem_reply(r, PROBLEM_NOT_FOUND, NULL, "no %s '%.40s'", what, http_param(r, 0));
	return -1;
}

static int enter_run(struct daemon *d, struct http_request *r, const struct apikey *k)
{
	struct looking l = {.key = k};
	struct err e;
	int rc = store_run_owner(d->store, http_param(r, 0), look, &l, &e);
	return rc == 0 && l.seen ? 0 : refuse_foreign(r, "run");
}

static bool sees_session(struct daemon *d, const struct apikey *k, const char *session)
{
	struct looking l = {.key = k};
	struct err e;
	return store_session_owner(d->store, session, look, &l, &e) == 0 && l.seen;
}

static int enter_session(
        struct daemon *d, struct http_request *r, const struct apikey *k, bool events)
{
	if (!sees_session(d, k, http_param(r, 0)))
		return refuse_foreign(r, "session");
	if (!events || !k->harnesses)
		return 0;
	problem_reply(r, PROBLEM_FORBIDDEN, "ask for the events of a run",
	        "key %s is bound to harnesses; a session may have runs of others", k->name);
	return -1;
}

static int enter_name(struct http_request *r, char *const *list, const char *what)
{
	return apikey_names(list, http_param(r, 0)) ? 0 : refuse_foreign(r, what);
}

static int refuse_key(struct http_request *r, const struct apikey *k)
{
	problem_reply(r, PROBLEM_FORBIDDEN, "this is the operator's, through the Unix socket",
	        "key %s may not %s %.200s: no key may", k->name, http_method(r), http_path(r));
	return -1;
}

static int refuse_verb(struct http_request *r, const struct apikey *k, enum apikey_verb verb)
{
	problem_reply(r, PROBLEM_FORBIDDEN, "`abctl key add --verbs` says what a key may do",
	        "key %s may not %s %.200s: it lacks the verb '%s'", k->name, http_method(r),
	        http_path(r), apikey_verb_name(verb));
	return -1;
}

static int enter(struct daemon *d, struct http_request *r, const struct apikey *k, enum scope scope)
{
	switch (scope) {
	case SCOPE_OPEN:
	case SCOPE_VIEW:
	case SCOPE_BODY:
		return 0;
	case SCOPE_RUN:
		return enter_run(d, r, k);
	case SCOPE_SESSION:
	case SCOPE_EVENTS:
		return enter_session(d, r, k, scope == SCOPE_EVENTS);
	case SCOPE_HARNESS:
		return enter_name(r, k->harnesses, "harness");
	case SCOPE_POLICY:
		return enter_name(r, k->policies, "policy");
	case SCOPE_OPERATOR:
	case SCOPE_UNRULED:
	case SCOPE_COUNT:
		break;
	}
	return refuse_key(r, k);
}

int scope_enter(struct daemon *d, struct http_request *r, enum scope scope, enum apikey_verb verb)
{
	if (!http_actor(r)[0])
		return 0;
	const struct apikey *k = scope_key(d, r);
	if (!k)
		return refuse_stranger(r, "this key is revoked or expired");
	/* What no key may is not a matter of verbs. */
	bool never = scope == SCOPE_OPERATOR || scope == SCOPE_UNRULED;
	if (!never && scope != SCOPE_OPEN && !apikey_has_verb(k, verb))
		return refuse_verb(r, k, verb);
	return enter(d, r, k, scope);
}

/* ---- lists ---- */

static void owners_json(struct buf *to, const struct apikey *k)
{
	struct jw w = JW_INIT(to);
	char owner[OWNER_MAX];
	struct err e;
	jw_open(&w, NULL, '[');
	for (char **u = k->users; *u; u++)
		if (owner_make(k->tenant, *u, owner, &e) == 0)
			jw_str(&w, NULL, owner);
	jw_close(&w, ']');
}

static void harnesses_json(struct buf *to, const struct apikey *k)
{
	struct jw w = JW_INIT(to);
	jw_texts(&w, NULL, k->harnesses);
}

int scope_view(struct daemon *d, struct http_request *r, const char *tenant, const char *user,
        struct scope_view *ret, struct err *e)
{
	*ret = (struct scope_view){.owners = BUF_INIT(NAMES_MAX), .harnesses = BUF_INIT(NAMES_MAX)};
	const struct apikey *k = scope_key(d, r);
	if (!k && http_actor(r)[0])
		return err_set(e, -EACCES, "this key is revoked or expired");
	if (tenant && !name_valid(tenant))
		return err_set(e, -EINVAL, "tenant: '%.64s' is not a name", tenant);
	if (k && tenant && strcmp(tenant, k->tenant) != 0)
		return err_set(e, -EACCES, "tenant: this key is another's");
	const char *of = k ? k->tenant : tenant;
	if (of) {
		owner_range(of, ret->from, ret->to);
		ret->view.from = ret->from;
		ret->view.to = ret->to;
	}
	if (k && k->users) {
		owners_json(&ret->owners, k);
		ret->view.owners = ret->owners.p;
	}
	if (k && k->harnesses) {
		harnesses_json(&ret->harnesses, k);
		ret->view.harnesses = ret->harnesses.p;
	}
	if (ret->owners.failed || ret->harnesses.failed)
		return err_set(e, -ENOMEM, "no room for the names of key %s", k->name);
	if (!user)
		return 0;
	ret->user = ret->owner;
	return owner_make(of ? of : "", user, ret->owner, e);
}

void scope_view_done(struct scope_view *v)
{
	buf_done(&v->owners);
	buf_done(&v->harnesses);
}

bool scope_sees_session(struct daemon *d, const struct http_request *r, const char *session)
{
	if (!http_actor(r)[0])
		return true;
	const struct apikey *k = scope_key(d, r);
	return k && session[0] && sees_session(d, k, session);
}

/* ---- names in bodies ---- */

static int no_longer(struct err *e)
{
	return err_set(e, -EACCES, "this key is revoked or expired");
}

int scope_owner(struct daemon *d, struct http_request *r, const char *user, char ret[OWNER_MAX],
        struct err *e)
{
	const struct apikey *k = scope_key(d, r);
	if (!k && http_actor(r)[0])
		return no_longer(e);
	if (k && !apikey_names(k->users, user))
		return err_set(e, -EACCES, "key %s is not for user '%.64s'", k->name, user);
	return owner_make(k ? k->tenant : "", user, ret, e);
}

int scope_may_use(struct daemon *d, struct http_request *r, const struct policy *p, struct err *e)
{
	const struct apikey *k = scope_key(d, r);
	if (!k)
		return http_actor(r)[0] ? no_longer(e) : 0;
	if (p ? apikey_names(k->policies, p->name) : !k->policies)
		return 0;
	return err_set(e, -EACCES, "key %s is not for policy '%s'", k->name,
	        p ? p->name : "(one that is no more)");
}

/* Of a pipeline, which is no way around the key's own lists. */
static int may_step(struct daemon *d, struct http_request *r, const struct apikey *k,
        const char *harness, struct err *e)
{
	struct harness *h;
	const struct policy *p;
	struct err unknown;
	int rc = 0;
	if (!apikey_names(k->harnesses, harness))
		return err_set(e, -EACCES, "key %s is not for harness '%s'", k->name, harness);
	if (harnesses_get(d->harnesses, harness, &h, &unknown) < 0)
		return 0;
	if (policies_find(d->policies, h->policy, &p, &unknown) >= 0)
		rc = scope_may_use(d, r, p, e);
	harness_unref(h);
	return rc;
}

int scope_may_start(struct daemon *d, struct http_request *r, const char *harness, struct err *e)
{
	const struct apikey *k = scope_key(d, r);
	struct harness *h;
	const struct policy *p;
	struct err unknown;
	if (!k)
		return http_actor(r)[0] ? no_longer(e) : 0;
	if (!apikey_names(k->harnesses, harness))
		return err_set(e, -ENOENT, "no harness '%.64s'", harness);
	if (harnesses_get(d->harnesses, harness, &h, &unknown) < 0)
		return 0;
	int rc = 0;
	if (!h->nsteps && policies_find(d->policies, h->policy, &p, &unknown) >= 0)
		rc = scope_may_use(d, r, p, e);
	for (size_t i = 0; i < h->nsteps && rc == 0; i++) {
		rc = may_step(d, r, k, h->steps[i].harness, e);
		if (rc < 0)
			err_wrap(e, "step %zu of harness '%s'", i + 1, harness);
	}
	harness_unref(h);
	return rc;
}

int scope_admit(struct daemon *d, struct http_request *r)
{
	const struct apikey *k = scope_key(d, r);
	struct err e;
	if (!k)
		return 0;
	if (apikeys_budget(d->keys, k, &e) < 0) {
		problem_retry(r, problem_of(e.code, PROBLEM_INTERNAL), apikeys_tomorrow_ms(), "%s",
		        e.text);
		return -1;
	}
	int64_t wait = apikeys_take_run(d->keys, k->id);
	if (!wait)
		return 0;
	problem_retry(r, PROBLEM_RATE, wait, "key %s may start %u runs a minute", k->name,
	        k->runs.per_minute);
	return -1;
}
