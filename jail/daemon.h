/*
 * daemon.h - agentboxd as one struct: everything it holds, in order of birth.
 *
 * main() opens it, runs its loop and closes it.  daemon.c: birth and death.
 * trash.c: what was deleted.  deletes.c: what is being deleted.  prove.c: what the host has.
 * reload.c: what root has changed.  rotation.c: secrets that change.  peers.c: supervisor and
 * egress.  peers_egress.c: egress alone.  peers_listener.c: the listener.  requests.c: what the
 * supervisor may ask for. upgrade.c: the next agentboxd in this one's place.
 */
#ifndef JAIL_DAEMON_H
#define JAIL_DAEMON_H

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "jail/broker.h"
#include "jail/cgroup.h"
#include "jail/closer.h"
#include "jail/disks.h"
#include "jail/host.h"
#include "jail/jails.h"
#include "jail/later.h"
#include "jail/layout.h"
#include "jail/lease.h"
#include "jail/listen.h"
#include "jail/notify.h"
#include "jail/options.h"
#include "jail/policies.h"
#include "jail/poller.h"
#include "jail/pool.h"
#include "jail/reaper.h"
#include "jail/remote.h"
#include "jail/service.h"
#include "jail/upgrade.h"
#include "policy/ledger.h"
#include "proto/children.h"

#include <stdbool.h>
#include <stdint.h>

enum { HARNESS_DIRS = CHILD_AGENTS - CHILD_HARNESS_DIRS };

/* Command lines of the services, owned here because a restart needs them. */
struct daemon_argv {
	char uid[16], gid[16];
	const char *argv[12];
};

/* Those that finish what was open when they were replaced, and one more that is told to end. */
enum { EGRESS_PLACES = 4 + 1 };

/* One that is under way, and those who asked. */
enum { RELOAD_ASKERS = 16 };
enum { RELOAD_MS = 60000 }; /* its parts have bounds of their own, half of that; a disk has none */
#define RELOAD_STEPS(X)                                                                            \
	X(PROGRAMS, "asking the programs for their build")                                         \
	X(POLICIES, "compiling policies")                                                          \
	X(SECRETS, "reading secrets")                                                              \
	X(LAYERS, "trying the layers")                                                             \
	X(DISKS, "trying the limits of disks")                                                     \
	X(CANARY, "the self-test")                                                                 \
	X(UPGRADE, "trying the new agentboxd")
enum reload_step {
#define RELOAD_STEP_ENUM(sym, name) RELOAD_##sym,
	RELOAD_STEPS(RELOAD_STEP_ENUM)
#undef RELOAD_STEP_ENUM
	        RELOAD_STEP_COUNT
};
struct reload {
	struct job job; /* its slow half */
	struct watch ended;
	struct alarm alarm; /* RELOAD_MS */
	volatile unsigned char
	        *step; /* owned, shared with the job: enum reload_step; NULL: no job */
	bool late;     /* it was killed for that; nothing waits for it */
	bool upgrade;  /* a new agentboxd is tried, else policies are read */
	int program;   /* owned: that agentboxd */
	uint32_t base; /* leased for the proof */
	bool again;    /* somebody asked after it had begun */
	uint64_t asked[RELOAD_ASKERS], later[RELOAD_ASKERS]; /* requests; 0: none */
};

struct kept_event {
	struct list link; /* in daemon.events */
	struct jail_egress m;
};

struct daemon {
	const struct options *options; /* borrowed: for its life */
	struct notify notify;
	struct listener listener;
	struct remote remote; /* addresses of TCP */
	struct poller poller;
	int signals; /* owned signalfd */
	struct watch signals_watch;

	struct state state;
	struct programs programs;
	struct leases leases;
	struct cgroup_tree tree;
	struct host host;

	struct policies *policies; /* owned */
	uint64_t generation;
	char *credentials; /* owned: $CREDENTIALS_DIRECTORY, or NULL */
	int secrets;       /* owned memfd */
	int secret_files;  /* owned inotify, or -1 */
	struct watch secret_files_watch;
	struct alarm secrets_alarm; /* after a change, when there was time for more of them */
	char *exposed[POLICY_EXPOSED + 1]; /* owned "K=V" for the supervisor, NULL-terminated */

	int init, worker, acp;          /* owned memfds of the programs */
	int share;                      /* owned directory */
	int harness_dirs[HARNESS_DIRS]; /* owned */
	int agents;                     /* owned directory of installed agents */
	char *templates;                /* owned path: what harnesses' workspace.template is in */

	struct closer closer;
	struct reaper reaper; /* killed, and not gone yet */
	struct pool pool;
	struct jails jails;
	struct ledger ledger; /* of budgets that jails share */
	struct disks disks;
	struct laters laters;
	struct broker broker;
	struct service supervisor, egress;
	struct service drains[EGRESS_PLACES]; /* former egress that finish what is open */
	bool adopted;                         /* the supervisor was told of the jails */
	struct list events;                   /* of struct kept_event: for the next supervisor */
	unsigned nevents;
	struct service listener_service; /* agentbox-listener, where there is `listen` */
	struct daemon_argv supervisor_argv, egress_argv, listener_argv;
	int64_t supervisor_ended_ms;
	enum jail_former former;     /* what the next supervisor finds */
	bool abandoning;             /* abandon_alarm is set */
	struct alarm settled_alarm;  /* the one that took the jails up has lived for a while */
	struct alarm abandon_alarm;  /* patience of the jails with having none */
	struct alarm handover_alarm; /* telling one to make room, then patience with it */
	bool renewing;               /* it will be told, or was */
	bool handing_over;           /* it was told */

	struct list hook_commands; /* of what hook_commands.c keeps of each */
	struct list deletes;       /* of what deletes.c keeps of each */
	struct {
		struct list works;  /* of what snapshots.c keeps of each */
		unsigned nameless;  /* layers without a name that sessions stand on */
		struct alarm again; /* to sweep, where something held a layer */
	} snapshots;
	struct job trash; /* empties the trash, one at a time */
	struct watch trash_watch;
	bool trash_again;
	struct alarm trash_alarm; /* after it failed */
	int64_t trash_wait_ms;

	int64_t since_ms;    /* wall clock: this program's start */
	bool resumed;        /* this process was another agentboxd's, whose jails we have */
	int former_policies; /* borrowed, at an upgrade: what was in use; then owned */
	struct upgrade upgrade;
	struct reload reload;

	bool ready; /* READY=1 was told */
	bool stopping;
	struct alarm stop_alarm;     /* patience with the supervisor, then with the jails */
	struct alarm refill_alarm;   /* of the pool, after the jail just made had its moment */
	struct alarm leftover_alarm; /* of cgroups that could not be removed */
	struct alarm watchdog_alarm; /* the service manager is to hear of us */
	bool killing;                /* patience is over */
};

/* ---- life (daemon.c) ---- */

/* Everything up to the first start of the services.  On failure what was opened is closed. */
MUST_USE int daemon_open(struct daemon *d, const struct options *o, struct err *e);
MUST_USE int daemon_run(struct daemon *d, struct err *e); /* until it is told to stop */
void daemon_close(struct daemon *d);
/* Whether this program could go on with what an agentboxd left in o->handover; starts nothing. */
MUST_USE int daemon_check(struct daemon *d, const struct options *o, struct err *e);

/* Root's files as they are now; what is wrong with them is logged.  Waits for policyc.  Returns
 * owned, or NULL with *e. */
struct policies *daemon_load_policies(const struct daemon *d, struct err *e);
void daemon_became_ready(struct daemon *d);
/* Programs of ours that are not those on the disk any more are started anew: supervisor and egress
 * make room for their successors, which take up what they leave. */
void daemon_renew(struct daemon *d);
/* The supervisor was told of the jails it found. */
void daemon_adopted(struct daemon *d);
/* The supervisor has ended during a stop. */
void daemon_stop_next(struct daemon *d);

/* ---- trash.c ---- */

void daemon_init_trash(struct daemon *d);
/* Starts emptying it, or notes that it has to happen again. */
void daemon_empty_trash(struct daemon *d);
void daemon_empty_trash_later(struct daemon *d);
void daemon_leave_trash(struct daemon *d); /* its child is ended */

/* ---- hook_commands.c: root's commands that are told of runs ---- */

/* Takes `body`. */
MUST_USE int hook_commands_begin(
        struct daemon *d, const struct jail_hook *asked, int body, struct err *e);
void hook_commands_done(struct daemon *d); /* what runs is killed: whoever asked asks again */

/* ---- deletes.c: sessions that are renamed into the trash ---- */

/* -EINPROGRESS: the reply to `req` comes when it is done. */
MUST_USE int deletes_begin(struct daemon *d, const char *session, uint64_t req, struct err *e);
bool deletes_has(const struct daemon *d, const char *session);
void deletes_forget(struct daemon *d); /* who asked: that supervisor has ended */
void deletes_done(struct daemon *d);

/* ---- rotation.c: secrets that change while we run ---- */

void secrets_mind(struct daemon *d);
/* Sealed memfd (owned) with the values of now; says which commands failed.  `files_only`: commands
 * are not run. */
MUST_USE int secrets_reload(
        const struct daemon *d, const struct policy_set *set, bool files_only, struct err *e);
/* Notices from now on when a file of the policies in use changes; egress then gets the new value,
 * which counts for the next request. */
void secrets_follow(struct daemon *d);
void secrets_forget(struct daemon *d);
void secrets_look_again(struct daemon *d); /* in a moment */
/* Each line but `except`, which is told elsewhere. */
void daemon_log_lines(enum log_level level, struct buf *b, const char *except);

/* ---- prove.c ---- */

/* What is found on this host by trying it, and what of that a canary jail has proven. */
struct proof {
	struct host host;
	struct disks disks;
};
/* `base`: of a leased block.  Waits for disks and children: at start, and in a job of a reload. */
void prove_look(
        const struct daemon *d, const struct policy_set *set, uint32_t base, struct proof *ret);
/* Takes it into use.  0 also where layers are missing (policies are then refused, d->host knows);
 * an error when the canary could not look, after which no policy is served. */
MUST_USE int prove_use(struct daemon *d, const struct proof *p, struct err *e);
/* Both, at start. */
MUST_USE int daemon_prove(struct daemon *d, struct err *e);

/* ---- reload.c: root's files and our programs, read again ---- */

void reload_init(struct daemon *d);
void reload_done(struct daemon *d);
/* By SIGHUP. */
void reload_asked(struct daemon *d);
/* By request `req` of the supervisor: -EINPROGRESS, and the reply comes when it is done. */
MUST_USE int reload_request(struct daemon *d, uint64_t req, struct err *e);
bool reload_runs(const struct daemon *d);
void reload_at(
        const struct daemon *d, enum reload_step step); /* for its job to say; else nothing */
void reload_forget(struct daemon *d); /* those requests: that supervisor has ended */

/* ---- peers.c ---- */

void peers_init(struct daemon *d);
MUST_USE int peers_start(struct daemon *d, struct err *e);
/* Policies and secrets as they are now, to whoever runs. */
void peers_tell_policies(struct daemon *d);
/* Secrets as they are now, to egress. */
void peers_tell_secrets(struct daemon *d);
/* To a request whose reply was to come later; e->code 0: it is done, or will be by the next
 * supervisor (daemon_renew). */
void peers_reply(struct daemon *d, uint64_t req, const struct err *e);
/* With a descriptor, which is not taken. */
void peers_reply_with(struct daemon *d, uint64_t req, const struct err *e, int fd);
/* Takes `body`. */
MUST_USE int peers_tell_hook(
        struct daemon *d, const struct jail_hook *asked, int body, struct err *e);
/* Likewise; fd: -1 where none goes along. */
MUST_USE int peers_tell_object(
        struct daemon *d, const struct jail_object *asked, int fd, struct err *e);
MUST_USE int peers_tell_jail(struct daemon *d, struct jail *j, struct err *e);
struct jail_exited peers_exited(const struct jail *j, const struct init_exited *m);
extern const struct jails_news peers_news;

/* ---- peers_egress.c ---- */

void peers_init_egress(struct daemon *d);
void peers_fill_argv(const struct daemon *d, struct daemon_argv *a, const char *name, uint32_t uid,
        uint32_t gid);
void peers_resume_egress(struct daemon *d); /* those that a former agentboxd had */
/* Another is started; this one accepts nothing more and ends when what is open has ended. */
void peers_drain_egress(struct daemon *d);
void peers_tell_egress(struct daemon *d); /* policies and secrets */
bool peers_end_jail(struct daemon *d, const struct jail *j);
void peers_keep_event(struct daemon *d, const struct jail_egress *m);
void peers_tell_kept(struct daemon *d);                 /* of the jails that were just told */
void peers_tell_lost(struct daemon *d, struct jail *j); /* how many events were not kept */
void peers_forget_events(struct daemon *d);

/* ---- peers_listener.c ---- */

void peers_init_listener(struct daemon *d);
/* Binds and serves what root's `listen` has now; -errno names what cannot be, the rest is. */
MUST_USE int peers_follow_listen(struct daemon *d, struct err *e);

/* ---- requests.c ---- */

extern const struct broker_ops requests_ops; /* ctx is the daemon */

#endif
