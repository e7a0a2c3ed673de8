/*
 * scope.h - what of all there is a request may see and do.
 *
 * Who asks with a key (apikeys.h) has what is its tenant's, within the key's bounds, and
 * never more than a user of the socket's group has.  Each row of the table of routes
 * says by which of the rules below; what the rule can decide by the path is decided
 * before the handler is called (scope_enter), and a row without a rule is refused to every
 * key.  What is another's is not there: 404, in the words for what is nowhere.
 *
 * Clients of the Unix socket without a key are as the kernel says they are, and see
 * all tenants.
 */
#ifndef SUPERVISOR_SCOPE_H
#define SUPERVISOR_SCOPE_H

#include "base/buf.h"
#include "base/err.h"
#include "supervisor/auth.h"
#include "supervisor/apikeys.h"
#include "supervisor/owner.h"
#include "supervisor/store.h"

#include <stdbool.h>

struct daemon;
struct http_request;
struct policy;

/* symbol, name in the document, what it means */
#define SCOPES(X)                                                                                  \
	X(OPEN, "open", "the same for all")                                                        \
	X(OPERATOR, "operator", "for no key")                                                      \
	X(RUN, "run", "the first parameter is a run")                                              \
	X(SESSION, "session", "the first parameter is a session")                                  \
	X(EVENTS, "events", "likewise; a key of some harnesses sees no others' runs there")        \
	X(HARNESS, "harness", "the first parameter is a harness")                                  \
	X(POLICY, "policy", "the first parameter is a policy")                                     \
	X(VIEW, "view", "the handler asks for what the key sees")                                  \
	X(BODY, "body", "the handler looks at the names in the body")

enum scope {
	SCOPE_UNRULED, /* nobody has thought about it: refused to keys, and a test fails */
#define SCOPE_ENUM(sym, name, what) SCOPE_##sym,
	SCOPES(SCOPE_ENUM)
#undef SCOPE_ENUM
	        SCOPE_COUNT
};
const char *scope_name(enum scope s); /* NULL: unruled */

/* ---- before the handler: 0, or -1 with the request answered ---- */

/* Who asks, and is that enough for `role`?  Reads the key.  passed_on: an Authorization that is no
 * key is for the server in the jail. */
MUST_USE int scope_identify(
        struct daemon *d, struct http_request *r, enum auth_role role, bool passed_on);
/* With the path's parameters there: may it? */
MUST_USE int scope_enter(
        struct daemon *d, struct http_request *r, enum scope scope, enum apikey_verb verb);

/* ---- for handlers ---- */

/* The key that asks (borrowed: for the turn), or NULL: a client of the Unix socket itself. */
const struct apikey *scope_key(struct daemon *d, const struct http_request *r);
/* Is it none that may hear of this host? */
bool scope_outside(const struct http_request *r);

/* What it sees of lists; `tenant` and `user` as the query has them (NULL: any). */
struct scope_view {
	struct store_view view; /* into what follows */
	char from[NAME_MAX_LEN + 1], to[NAME_MAX_LEN + 1], owner[OWNER_MAX];
	struct buf owners, harnesses;
	const char *user; /* the owner asked for, or NULL */
};
/* Undone by scope_view_done, also when it fails: -EINVAL. */
MUST_USE int scope_view(struct daemon *d, struct http_request *r, const char *tenant,
        const char *user, struct scope_view *ret, struct err *e);
void scope_view_done(struct scope_view *v);
#define auto_scope_view __attribute__((cleanup(scope_view_done)))

/* The owner of what it makes for a user.  -EACCES: not this key's. */
MUST_USE int scope_owner(struct daemon *d, struct http_request *r, const char *user,
        char ret[OWNER_MAX], struct err *e);
/* May it see what is this session's?  "" is nobody's. */
bool scope_sees_session(struct daemon *d, const struct http_request *r, const char *session);
/* May it start this harness, and use its policy?  -ENOENT, -EACCES; unknown ones are let through:
 * whoever starts them says so.  p NULL: a policy that is no more. */
MUST_USE int scope_may_start(
        struct daemon *d, struct http_request *r, const char *harness, struct err *e);
MUST_USE int scope_may_use(
        struct daemon *d, struct http_request *r, const struct policy *p, struct err *e);
/* Is there room in the rate and the budget of a key for one more run or command?  0, or -1 with
 * the request answered (429). */
MUST_USE int scope_admit(struct daemon *d, struct http_request *r);

#endif
