/*
 * apikeys.h - API keys: whose bearer a client is, and what that lets it do.
 *
 * A key belongs to a tenant and may be bounded further: to users, harnesses,
 * policies, verbs, rates, a budget a day, a time.  Root makes and revokes keys; the
 * secret is told once and only its SHA-256 is kept.  That is enough where the
 * secret is 256 random bits: there is nothing to guess, so a slow hash would slow
 * down nobody but us.
 *
 * All keys are in memory, and in the store.  A `struct apikey` is borrowed for the turn: it may be
 * revoked in the next.  What outlives the turn keeps the id and asks anew.
 */
#ifndef SUPERVISOR_APIKEYS_H
#define SUPERVISOR_APIKEYS_H

#include "base/digest.h"
#include "base/err.h"
#include "base/id.h"
#include "base/json.h"
#include "base/list.h"

#include <stdbool.h>
#include <stdint.h>

struct daemon;
struct apikeys;

enum {
	APIKEYS_MAX = 1000,
	APIKEY_NAMES = 64, /* of users, of harnesses, of policies */
	APIKEY_RATE_MAX = 1000000,
	/* "abk_", the id's own 26 characters, "_", 64 hexadecimal digits. */
	APIKEY_SECRET_MAX = 4 + 26 + 1 + 64 + 1,
};

/* symbol, name, what it lets a key do */
#define APIKEY_VERBS(X)                                                                            \
	X(READ, "read", "look at runs, sessions, events, artifacts")                               \
	X(RUN, "run", "start runs")                                                                \
	X(STEER, "steer", "cancel runs, answer their agents, write to them")                       \
	X(SESSION, "session", "make, change and delete sessions and their files")                  \
	X(EXEC, "exec", "start commands in jails")                                                 \
	X(PORT, "port", "reach ports of jails")

enum apikey_verb {
#define APIKEY_VERB_ENUM(sym, name, what) APIKEY_VERB_##sym,
	APIKEY_VERBS(APIKEY_VERB_ENUM)
#undef APIKEY_VERB_ENUM
	        APIKEY_VERB_COUNT
};
const char *apikey_verb_name(enum apikey_verb v);

/* So many a minute, in bursts of a minute's worth. */
struct apikey_rate {
	uint32_t per_minute; /* 0: no bound */
	int64_t debt_us;     /* how far ahead of the rate it is, at at_us */
	int64_t at_us;
};

struct apikey {
	struct list link; /* in keys.all, oldest first */
	char id[ID_MAX], name[NAME_MAX_LEN], tenant[NAME_MAX_LEN];
	char hash[DIGEST_TEXT];
	char **users, **harnesses, **policies; /* owned, ended by NULL; NULL: any */
	uint32_t verbs;                        /* bits of enum apikey_verb */
	struct apikey_rate requests, runs;
	int64_t tokens_day, cost_micro_day; /* of the tenant's, 0: no bound */
	int64_t created_ms, expires_ms;     /* wall; expires 0: never */
	int64_t used_ms;                    /* wall; 0: not since the supervisor started */
};

/* ---- life ---- */
struct apikeys *apikeys_new(struct daemon *d);
void apikeys_free(struct apikeys *k);
/* Those of the store. */
MUST_USE int apikeys_load(struct apikeys *k, struct err *e);

/* ---- use ---- */
/* The key of a secret, or NULL: none, or its time is over.  What is compared takes the same time
 * whatever differs. */
const struct apikey *apikeys_of_secret(struct apikeys *k, const char *secret);
const struct apikey *apikeys_find(struct apikeys *k, const char *id); /* NULL: revoked, or over */
bool apikey_has_verb(const struct apikey *k, enum apikey_verb v);
/* Of its users, harnesses or policies. */
bool apikey_names(char *const *list, const char *name);
/* One more request, or run.  0, or milliseconds after which it may be asked again; pure. */
int64_t apikey_rate_take(struct apikey_rate *r, int64_t now_us);
/* The same of a key's, by its id. */
int64_t apikeys_take_request(struct apikeys *k, const char *id);
int64_t apikeys_take_run(struct apikeys *k, const char *id);
/* -EDQUOT when the tenant has spent what the key may today. */
MUST_USE int apikeys_budget(struct apikeys *k, const struct apikey *x, struct err *e);

int64_t apikeys_tomorrow_ms(void); /* until budgets begin anew */

/* ---- for the API ---- */
typedef void apikeys_done_fn(void *ctx, int rc, const struct err *e);
/* Reads a request (a checked object), makes the key, keeps it; done() comes after the commit.  The
 * secret is told here and nowhere else.  -EINVAL, -EEXIST: the name is taken, -E2BIG. */
MUST_USE int apikeys_add(struct apikeys *k, const struct json *body, char ret_id[ID_MAX],
        char ret_secret[APIKEY_SECRET_MAX], apikeys_done_fn *done, void *ctx, struct err *e);
/* By name or id; its connections are cut at once, done() comes after the commit.  -ENOENT. */
MUST_USE int apikeys_revoke(
        struct apikeys *k, const char *name, apikeys_done_fn *done, void *ctx, struct err *e);
/* One object; -ENOENT. */
MUST_USE int apikeys_show(struct apikeys *k, const char *name, struct jw *w, struct err *e);
void apikeys_list(struct apikeys *k, struct jw *w); /* objects */

#endif
