/*
 * jails.h - the jails that are alive: their listeners, what they may reach and
 * the connections they have made.
 *
 * A jail begins with the five sockets that agentboxd made in its network
 * namespace and ends all at once: listeners, connections, requests under way.
 * No descriptor of it is kept, since any of them would keep the namespace.
 */
#ifndef EGRESS_JAILS_H
#define EGRESS_JAILS_H

#include "base/list.h"
#include "egress/reactor.h"
#include "egress/names.h"
#include "egress/charge.h"
#include "egress/pipes.h"
#include "egress/purse.h"
#include "egress/report.h"
#include "egress/usage.h"
#include "proto/egress.h"

#include <stdint.h>

struct certs;
struct connections;
struct hooks;
struct objects;
struct resolver;
struct secrets;
struct tls_service;
struct upstream;

enum {
	/* Connections of one jail at once: agents open a handful, a busy test suite a hundred. */
	JAIL_CLIENTS = 256,
	/* Accepts and datagrams per turn and jail, so that one jail cannot hold the loop. */
	JAIL_BATCH = 32,
};

/* What all connections use; one for the process. */
struct services {
	struct reactor *reactor;
	struct resolver *resolver;
	struct secrets *secrets;
	struct upstream *upstream;
	struct tls_service *tls;
	struct pipes pipes;
	struct list jails; /* of struct jail.link */
	struct hooks *hooks;
	struct objects *objects;
	struct ledger ledger;
	struct price_list prices; /* of the policies in use */
	int control;              /* owned */
	struct timer tick;        /* armed while there are jails, and until memory is given back */
	int64_t trim_ms;          /* when that is due; 0: nothing to give back */
	bool draining; /* another process has the listeners; the end when nothing is open */
};

struct listener {
	struct watch watch;
	struct jail *jail;
	int fd; /* owned, -1 when closed */
	unsigned port;
	bool raw; /* WATCH: packets come with their Ethernet header */
};

struct jail {
	struct services *services; /* borrowed: process */
	struct list link;          /* in services.jails */
	struct corpse corpse;
	uint64_t id;
	uint32_t flags; /* JAIL_MAKE_NO_EGRESS */
	struct names names;
	struct report report;
	struct usage usage;
	struct purse purse;
	struct certs *certs; /* owned; NULL: its policy terminated nothing when it began */
	struct connections *connections; /* owned; NULL until a request goes out without a secret */
	struct listener listeners[EGRESS_LISTENERS];
	struct listener ports[POLICY_PORTS]; /* of its policy, when it began */
	uint32_t nports;
	struct list clients; /* of struct client.link */
	unsigned nclients;
};

/* Takes fds[EGRESS_LISTENERS] (each is -1 afterwards) and `certs`, even on failure. */
MUST_USE int jails_begin(struct services *s, const struct egress_jail *m, struct rulebook *book,
        const char *why_none, int fds[EGRESS_LISTENERS], struct certs *certs, struct err *e);
/* One more listener of it, on a port that its policy names.  Takes *fd, even on failure. */
MUST_USE int jails_port(struct jail *j, unsigned port, int *fd, struct err *e);
/* Other rules from now on, for what is open too. */
void jails_follow(struct jail *j, struct rulebook *book, const char *why_none);
struct jail *jails_find(struct services *s, uint64_t id); /* NULL when it is not there */
void jails_end(struct jail *j);
/* Of `want` bytes of either direction, by rule `rule` (-1: by none) or with this secret ("": none),
 * how many may move now: 0 for later, -EDQUOT when a bound or a budget is used up. */
ssize_t jails_allow(struct jail *j, int rule, const char *secret, size_t want);
void jails_count(struct jail *j, int rule, const char *secret, size_t n); /* they have moved */
/* From now on nothing is accepted, and the loop stops when no connection is left. */
void jails_drain(struct services *s);
/* Something has ended: the loop's end, if that was the last. */
void jails_end_if_drained(struct services *s);
/* What is under way is told to be cut, before the process ends. */
void jails_cut(struct services *s, const char *why);
/* Connections have ended: what they had of memory goes back to the system in a while. */
void jails_slack(struct services *s);
/* services.tick: deadlines, waiting events, listeners that were out of descriptors. */
void jails_tick(struct timer *t);

#endif
