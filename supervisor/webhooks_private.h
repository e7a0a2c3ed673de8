/*
 * webhooks_private.h - struct webhooks, and what its files share.
 *
 *	webhooks.c         deliveries and where each stands; root's configuration
 *	webhooks_flight.c  when they are attempted, and what comes of it
 *	webhooks_show.c    the API's view, and trials
 */
#ifndef SUPERVISOR_WEBHOOKS_PRIVATE_H
#define SUPERVISOR_WEBHOOKS_PRIVATE_H

#include "base/id.h"
#include "base/list.h"
#include "policy/webhooks.h"
#include "proto/jail.h"
#include "supervisor/eventlog.h"
#include "supervisor/hub.h"
#include "supervisor/loop.h"

#include <stdbool.h>
#include <stdint.h>

struct webhooks;

struct hook {
	struct list link;          /* in webhooks.hooks */
	struct webhooks *webhooks; /* borrowed */
	struct webhook config;
	uint32_t index;                  /* of the configuration in use */
	bool configured;                 /* false within webhooks_configure: it is gone */
	struct list ready, idle, flying; /* delivery.link: to be looked at from due_ms on; waiting
	                                    for the run's next event; asked */
	unsigned n, nflying;             /* of all three; of the last */
	unsigned failures;               /* since an attempt succeeded last */
	int64_t next_ms;                 /* monotonic: not before that */
	uint64_t delivered, retried, failed;
	int64_t answered_ms; /* wall clock of the last attempt's end, 0: none */
	char last[192];      /* what that was: "status 200" */
};

struct delivery {
	struct list link; /* in one list of its hook */
	struct hook *hook;
	struct hub_sub sub; /* while idle */
	char run[ID_MAX];
	char *user, *goal, *harness; /* owned */
	bool over;                   /* the run had ended when this was loaded */
	struct eventlog_cursor cursor;
	int64_t due_ms; /* monotonic */
	unsigned failures;
	/* While flying. */
	uint64_t number;
	int64_t deadline_ms;
	bool last;
	struct eventlog_cursor after;
};

struct trial {
	struct list link; /* in webhooks.trials */
	char name[NAME_MAX_LEN];
	bool stale; /* not sent: webhooks were reloaded; it goes when the new ones are here */
	uint64_t number, generation; /* of the attempt */
	int64_t deadline_ms;
	void (*done)(void *ctx, const struct jail_hooked *m);
	void *ctx;
};

struct webhooks {
	struct daemon *daemon; /* borrowed */
	struct list hooks, trials;
	uint64_t generation; /* of the configuration in use */
	uint64_t last_number;
	unsigned nflying, ntrials;
	bool stopped;
	bool dirty; /* the hook of the loop has something to look at */
	struct loop_hook hook;
	struct op timer;
	int64_t timer_ms; /* when it fires, while it is in flight */
};

/* ---- webhooks.c ---- */
struct hook *webhooks_hook(const struct webhooks *w, const char *name);
/* From due_ms on its next event is looked for; or when something of its session comes. */
void webhooks_ready(struct webhooks *w, struct delivery *d, int64_t due_ms);
void webhooks_idle(struct webhooks *w, struct delivery *d);
/* Nothing is owed any more, or the rest is given up: frees it. */
void webhooks_end(struct webhooks *w, struct delivery *d);
void webhooks_give_up(struct webhooks *w, struct delivery *d, const char *why);
void webhooks_count_failed(struct webhooks *w, struct hook *h);

/* ---- webhooks_flight.c ---- */
void webhooks_turn(struct loop_hook *l);
/* Something has changed: it is looked at before the loop sleeps. */
void webhooks_wake(struct webhooks *w);
/* One attempt, whose answer has `number`; fd is taken. */
void webhooks_send(
        struct webhooks *w, const struct hook *h, const char *id, uint64_t number, int fd);
int64_t webhooks_deadline(const struct hook *h); /* of one that is sent now */

/* ---- webhooks_show.c ---- */
/* Of a trial (delivery 0: of any): true where it was one. */
bool webhooks_tried(struct webhooks *w, const struct jail_hooked *m);
/* Those that a reload overtook. */
void webhooks_trials_again(struct webhooks *w);
/* Those whose time is up. */
void webhooks_trials_late(struct webhooks *w, int64_t now);

#endif
