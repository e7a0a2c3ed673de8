/*
 * shared_jail.h - a jail that was made for a client's command, and the commands in it.
 *
 * The command it was made for is its first one; others may join while it lives. It is killed when
 * the last of them has ended or lost its client, or when its time is over, and given back when
 * nothing lives in it any more.
 *
 * Order: shared_jail_new (the first command has its place), shared_jail_made when agentboxd has
 * made it; each command leaves once.  Counted references: one of each command, and its own while
 * the jail lives.
 */
#ifndef SUPERVISOR_SHARED_JAIL_H
#define SUPERVISOR_SHARED_JAIL_H

#include <stdbool.h>
#include <stdint.h>

struct daemon;
struct shared_jail;

/* wall_ms: the longest life of the jail, 0: no bound.  released, or NULL: called once, when it is
 * given back or was never made.  Returns a reference. */
struct shared_jail *shared_jail_new(
        struct daemon *d, int64_t wall_ms, void (*released)(void *ctx), void *ctx);
void shared_jail_made(struct shared_jail *x, uint64_t jail);
/* One command more, also if it is yet to start.  Returns a reference. */
struct shared_jail *shared_jail_join(struct shared_jail *x);
/* One command less. */
void shared_jail_leave(struct shared_jail *x);
void shared_jail_unref(struct shared_jail *x); /* NULL is fine */

unsigned shared_jail_commands(const struct shared_jail *x);
bool shared_jail_ends(const struct shared_jail *x);      /* it was killed */
bool shared_jail_timed_out(const struct shared_jail *x); /* for that reason */

#endif
