/*
 * hub.h - who waits for the events of a session.
 *
 * A subscriber holds a cursor into the event log, not a queue; the hub only
 * says "there is more".  hub_notify marks, the wake-ups come in the hook phase
 * of the loop, once a turn however many events were appended, and an event costs
 * the same whether one follows or a thousand.  A subscriber may
 * unsubscribe itself or others from within wake().
 */
#ifndef SUPERVISOR_HUB_H
#define SUPERVISOR_HUB_H

#include "base/id.h"
#include "base/list.h"

#include <stdbool.h>

struct hub;
struct hub_topic; /* a session that somebody follows */
struct loop;

struct hub_sub {
	struct list link;        /* in the topic's list */
	struct hub_topic *topic; /* borrowed: while subscribed; else NULL */
	void (*wake)(struct hub_sub *s);
	bool due;             /* woken in this turn's hook phase */
	struct list due_link; /* in hub.due */
};

struct hub *hub_new(struct loop *l);
void hub_free(struct hub *h);

/* `s` is borrowed until hub_unsubscribe; wake is set by the caller. */
void hub_subscribe(struct hub *h, const char *session, struct hub_sub *s);
void hub_unsubscribe(struct hub *h, struct hub_sub *s); /* twice is harmless */
/* Wakes the session's subscribers before the turn ends. */
void hub_notify(struct hub *h, const char *session);
/* Wakes one subscriber before the turn ends (a new one whose backlog is waiting). */
void hub_kick(struct hub *h, struct hub_sub *s);
/* Runs the wake-ups now: the hook's body, for tests. */
void hub_flush(struct hub *h);

#endif
