/*
 * uploads_private.h - struct uploads, and what its files share.
 *
 *	uploads.c         which rows are due; root's configuration; the turn
 *	uploads_flight.c  one attempt, and what comes of it
 *	uploads_show.c    the API's view, links, and the event of a run
 */
#ifndef SUPERVISOR_UPLOADS_PRIVATE_H
#define SUPERVISOR_UPLOADS_PRIVATE_H

#include "base/id.h"
#include "base/list.h"
#include "policy/bucket.h"
#include "proto/jail.h"
#include "supervisor/loop.h"
#include "supervisor/store.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	UPLOAD_FLIGHTS = 4, /* of a kind at once: a slow bucket takes no more of egress */
	UPLOAD_LINKS = 8,
	UPLOAD_SOON_MS = 200,  /* policies were reloaded meanwhile */
	UPLOAD_LINK_MS = 5000, /* nothing is asked for it outside */
};

/* Uploads do not wait for deletions that are not allowed, nor these for them. */
enum upload_lane { LANE_PUT, LANE_DELETE, LANES };

struct lane {
	unsigned nflights;
	unsigned failures; /* since an attempt succeeded last */
	int64_t next_ms;   /* monotonic: nothing before that */
};

/* A row that is dealt with: asked, or its outcome is on its way to the disk. */
struct flight {
	struct list link; /* in uploads.flights */
	struct uploads *uploads;
	enum upload_lane lane;
	uint64_t number;     /* of the attempt; 0: it has its answer */
	int64_t deadline_ms; /* monotonic */
	char run[ID_MAX], session[ID_MAX];
	size_t n;
	char *path, *sha256, *place; /* owned */
	uint64_t bytes;
	int64_t since_ms;
	unsigned failures;
	bool ends; /* its row is at an end: the run may be told of */
	bool was_put;
};

struct link_asked {
	struct list link; /* in uploads.links */
	uint64_t number;
	int64_t deadline_ms;
	void (*done)(void *ctx, const struct jail_objected *m);
	void *ctx;
};

/* Whose event is written, and the row not yet. */
struct telling {
	struct list link; /* in uploads.tellings */
	struct uploads *uploads;
	char run[ID_MAX];
};

struct uploads {
	struct daemon *daemon; /* borrowed */
	struct bucket bucket;
	char place[BUCKET_PLACE_MAX];
	uint64_t generation; /* of the configuration in use */
	bool configured, resumed, stopped;
	struct list flights, links, tellings;
	unsigned nlinks;
	struct lane lanes[LANES];
	uint64_t last_number;
	bool dirty; /* the hook of the loop has something to look at */
	struct loop_hook hook;
	struct op timer;
	int64_t timer_ms; /* when it fires, while it is in flight */
};

/* ---- uploads_flight.c ---- */
void uploads_fly(struct uploads *u, enum upload_lane lane, const struct store_object *x);
void uploads_late(struct uploads *u, int64_t now);
/* Asks agentboxd; fd is taken (-1: none).  The answer comes to uploads_answered with m->number. */
void uploads_ask(struct uploads *u, struct jail_object *m, int fd);
/* "ses/run/path": false where it is longer than any key can be. */
bool uploads_key(char to[JAIL_OBJECT_KEY], const char *session, const char *run, const char *path);

/* ---- uploads_show.c ---- */
/* Was a link; true where it was one.  number 0: of all. */
bool uploads_linked(struct uploads *u, const struct jail_objected *m);
void uploads_links_late(struct uploads *u, int64_t now);
/* If all of the run's rows are at an end, its event is written. */
void uploads_tell(struct uploads *u, const char *session, const char *run);
/* Runs whose event a supervisor before may have written or not. */
void uploads_tell_again(struct uploads *u);

#endif
