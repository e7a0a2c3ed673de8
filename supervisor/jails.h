/*
 * jails.h - the client of agentboxd: ask for jails, hear what becomes of them.
 *
 * Each request gets exactly one reply through its callback (on the loop, never
 * from within the call), unless agentboxd is gone: then `lost` is told, the loop
 * is to end, and nothing is answered any more.  A watch hears what happens to one jail; several may
 * watch the same jail.  `ctx` must stay valid until the reply.
 *
 * Order: make (-> watch learns the jail's number) ... kill -> gone -> release.
 */
#ifndef SUPERVISOR_JAILS_H
#define SUPERVISOR_JAILS_H

#include "base/err.h"
#include "base/id.h"
#include "base/list.h"
#include "proto/jail.h"

#include <stdbool.h>
#include <stdint.h>

struct daemon;
struct jw;
struct jails;

/* fds are owned by the caller of the callback: take what you keep with take_fd, the rest is
 * closed after it returns. */
typedef void jails_reply_fn(void *ctx, const struct jail_reply *r, int fds[MSG_FDS]);

struct jail_watch {
	struct list link; /* in jails.buckets */
	uint64_t jail;
	/* Each may be NULL.  A watch may be removed from within. */
	void (*exited)(struct jail_watch *w, const struct jail_exited *x);
	void (*gone)(struct jail_watch *w, const struct jail_gone *x);
	void (*egress)(struct jail_watch *w, const struct jail_egress *x);
	void (*limit)(struct jail_watch *w, const struct jail_limit *x);
	void (*used)(struct jail_watch *w, const struct jail_used *x);
	void (*budget)(struct jail_watch *w, const struct jail_budget *x);
	void (*lost)(struct jail_watch *w, const struct jail_lost *x);
};

/* ---- life ---- */
struct jails_calls {
	/* A set was loaded, the first or a newer one, and what the host has is known. */
	void (*policies)(struct daemon *d);
	void (*stop)(struct daemon *d);     /* agentboxd asks to end */
	void (*handover)(struct daemon *d); /* likewise, and to leave the runs to the next */
	/* A jail of a run that another supervisor left: before `adopted`.  fds as of a reply. */
	void (*found)(struct daemon *d, const struct jail_found *x, int fds[MSG_FDS]);
	void (*adopted)(struct daemon *d, enum jail_former former); /* those were all */
	/* What a webhook's receiver has answered. */
	void (*hooked)(struct daemon *d, const struct jail_hooked *x);
	/* What has become of an artifact in root's bucket. */
	void (*objected)(struct daemon *d, const struct jail_objected *x);
	/* It is gone, or sent no policies that could be used; told once. */
	void (*lost)(struct daemon *d, const char *why);
};
/* `sock` is borrowed for life. */
struct jails *jails_new(struct daemon *d, int sock, const struct jails_calls *calls);
void jails_free(struct jails *j);
/* What agentboxd said of itself in answer to HELLO. */
struct jails_root {
	char version[24];             /* "" until then */
	char stays[ERR_TEXT_MAX];     /* why the latest new one has not taken over, "" */
	int64_t since_ms;             /* wall clock: this program's start */
	char agents[JAIL_AGENTS_MAX]; /* where agents are installed, "" where it did not say */
};
const struct jails_root *jails_root(const struct jails *j);
void jails_start(struct jails *j); /* reads from the socket, says JAIL_HELLO */

/* ---- requests ---- */
/* exec_fd is taken (-1 without JAIL_MAKE_EXEC).  Fill flags, policy, policy_generation, narrow...;
 * the head is filled here.  When the reply says success, `w` (borrowed until jails_unwatch) is
 * already watching. */
void jails_make(struct jails *j, struct jail_make *m, int exec_fd, struct jail_watch *w,
        jails_reply_fn *done, void *ctx);
/* exec_fd is taken.  flags: JAIL_MAKE_TTY, JAIL_MAKE_ROOT. */
void jails_exec(struct jails *j, uint64_t jail, uint32_t flags, int exec_fd, jails_reply_fn *done,
        void *ctx);
/* sig 1..64, or JAIL_SIGNAL_RESIZE.  No reply is told; an ended process is no error. */
void jails_signal(struct jails *j, uint64_t jail, uint64_t exec, int sig);
void jails_kill(struct jails *j, uint64_t jail);
/* The reply's first fd is the file worker's socket (files.h). */
void jails_worker(struct jails *j, uint64_t jail, jails_reply_fn *done, void *ctx);
void jails_release(struct jails *j, uint64_t jail);
void jails_stats(struct jails *j, uint64_t jail, jails_reply_fn *done, void *ctx);
/* Says that the loop goes round. */
void jails_alive(struct jails *j);
void jails_doctor(struct jails *j, jails_reply_fn *done, void *ctx);
void jails_reload(struct jails *j, jails_reply_fn *done, void *ctx);
/* Asks for what another supervisor left. */
void jails_adopt(struct jails *j);
/* Its run is over, its program waits for another: cuts it off, and answers when all that went out
 * is told. */
void jails_rest(struct jails *j, uint64_t jail, jails_reply_fn *done, void *ctx);
/* That it is another run's.  Fill session, run and purse. */
void jails_claim(struct jails *j, struct jail_claim *m, jails_reply_fn *done, void *ctx);
/* The jail's program is to see the end of its input: we have closed it. */
void jails_stdin_end(struct jails *j, uint64_t jail);
/* The reply's first fd is a connection to that port of the jail, begun but not waited for. */
void jails_socket(
        struct jails *j, uint64_t jail, uint16_t port, bool v6, jails_reply_fn *done, void *ctx);
/* body_fd is taken.  The reply says that egress was told; the answer comes through `hooked`. */
void jails_hook(
        struct jails *j, const struct jail_hook *m, int body_fd, jails_reply_fn *done, void *ctx);
/* fd is taken (-1: none).  Likewise; the answer comes through `objected`. */
void jails_object(
        struct jails *j, const struct jail_object *m, int fd, jails_reply_fn *done, void *ctx);
/* The rest of *m is filled in; the reply's first fd of LIST is a memfd of struct jail_snapshot. */
void jails_snapshot(struct jails *j, const struct jail_snapshot_ask *m, const char *name,
        jails_reply_fn *done, void *ctx);
void jails_session_delete(struct jails *j, const char *session, jails_reply_fn *done, void *ctx);

/* ---- those that live now ---- */
struct jail_live {
	struct list link; /* in jails.live, oldest first */
	uint64_t jail;
	char session[ID_MAX]; /* whose workspace it has, or "" */
	char run[ID_MAX];     /* that it was made for, or "" */
	char policy[NAME_MAX_LEN];
	int64_t made_ms;  /* wall clock */
	struct veil veil; /* of the secrets that are in it */
};
/* Borrowed: for the turn; NULL: it lives no more. */
const struct jail_live *jails_find(const struct jails *j, uint64_t jail);
/* The callback must not make or end jails. */
void jails_each(struct jails *j, void (*each)(void *ctx, const struct jail_live *x), void *ctx);

/* ---- a process that could not be started: x->error ---- */
enum { JAILS_WHY = 128 };
/* "No such file or directory", or "working directory: No such file or directory" where a step
 * before the program's own failed. */
void jails_why(const struct jail_exited *x, char ret[JAILS_WHY]);
/* As shells do: 127, the program is not found; 126, it is not startable. */
int jails_start_code(const struct jail_exited *x);

/* ---- what a jail has used ---- */
/* Member "resources" of a result and of an exit frame (docs/openapi.json). */
void jails_resources(struct jw *w, const struct jail_resources *x);

/* ---- watching ---- */
void jails_watch(struct jails *j, uint64_t jail, struct jail_watch *w);
void jails_unwatch(struct jails *j, struct jail_watch *w); /* twice is harmless */

#endif
