/*
 * keeper.h - agents that have done their run and wait for the next one of their session.
 *
 * Each has its jail for itself, cut off from the network (jails_rest), its bytes in a pump, and one
 * run at most is given it: that of its own session which comes next and was made of the same things
 * (plan.key) for the same conversation.  It ends when it has waited too long, holds too much
 * memory, says what its driver does not know, when another jail of its session is wanted, when
 * there are too many, and with this supervisor.
 */
#ifndef SUPERVISOR_KEEPER_H
#define SUPERVISOR_KEEPER_H

#include "base/digest.h"
#include "drivers/driver.h"
#include "supervisor/jails.h"

#include <stdbool.h>
#include <stdint.h>

struct daemon;
struct jw;
struct keeper;
struct kept;
struct pump;

struct kept_agent {
	char session[ID_MAX], run[ID_MAX]; /* the run it had last */
	char harness[NAME_MAX_LEN];
	char key[DIGEST_TEXT];
	const struct driver *driver; /* static */
	char *resume;                /* owned; the conversation, or NULL */
	char *live;                  /* owned; of driver.rest */
	uint64_t jail, exec;
	uint32_t layers, fallback, disk;
	struct jail_resources used; /* so far */
	uint64_t memory_bytes;      /* held now */
	uint64_t idle_ms, memory_most;
	struct pump *pump; /* owned; NULL: it was never started, and is not fit */
	bool ahead;        /* it was told nothing yet */
	bool nobodys;      /* likewise, and its session is to be had (ahead.h) */
};

struct keeper *keeper_new(struct daemon *d);

/* Takes all of it.  `fit` false: it has only to go. */
void keeper_take(struct keeper *k, const struct kept_agent *a, bool fit);

/* ---- the next run ---- */

bool keeper_has(const struct keeper *k, const char *session);
/* The jail of the one of that session that waits and may go on waiting, or 0. */
uint64_t keeper_jail(const struct keeper *k, const char *session);
/* The one of that session, if it fits: it waits no more, and is ended by keeper_end_claimed unless
 * its jail has become the run's.  NULL: none. */
struct kept *keeper_claim(
        struct keeper *k, const char *session, const char *key, const char *resume);
/* Would that give one? */
bool keeper_fits(const struct keeper *k, const char *session, const char *key, const char *resume);
const struct kept_agent *kept_agent(const struct kept *x);
bool kept_lives(const struct kept *x); /* nothing was heard of it that would forbid it */
/* The jail and the pump are the caller's now, who watches the jail; frees it. */
struct pump *kept_pass(struct kept *x);
void keeper_end_claimed(struct kept *x); /* NULL is fine */

/* ---- ending ---- */

/* That of the session, if there is one; done(), or NULL, when no jail of it is there: at once if
 * there is none, else on the loop. */
void keeper_end(struct keeper *k, const char *session, void (*done)(void *ctx), void *ctx);
void keeper_end_all(struct keeper *k, const char *why);
/* One more run is to begin: who has waited longest goes, as long as there are more than `room`. */
void keeper_make_room(struct keeper *k, size_t room);

/* ---- those whose session is nobody's ---- */

/* Their sessions: one that nobody got is left, without a jail; one is a run's now. */
struct keeper_news {
	void (*unused)(void *ctx, const char *session);
	void (*used)(void *ctx, const char *session);
};
void keeper_tell(struct keeper *k, const struct keeper_news *news, void *ctx);
size_t keeper_count(const struct keeper *k);                      /* of all that wait */
size_t keeper_ahead(const struct keeper *k, const char *harness); /* that anybody may get */
/* The session of one, or NULL; whoever makes it somebody's says so, in the same turn. */
const char *keeper_offer(const struct keeper *k, const char *harness);
void keeper_assign(struct keeper *k, const char *session);

/* ---- for people ---- */

/* Member "waits" of that jail, where its agent does. */
void keeper_show(const struct keeper *k, uint64_t jail, struct jw *w);

#endif
