/*
 * upgrade.h - another agentboxd binary in the place of the one that runs: the same process, the
 * same children, and no jail notices.
 *
 *	reload -> tried (upgrade_try) -> the supervisor makes room -> exec -> it goes on
 *
 * The new program is tried before anything is given up: it must understand what
 * would be carried over, compile root's policies and find the other programs. Where it does not,
 * everything stays as it is and whoever asked is told.  The exec comes when
 * no supervisor runs: then nothing is asked, half made or on its way to one.
 */
#ifndef JAIL_UPGRADE_H
#define JAIL_UPGRADE_H

#include "base/err.h"
#include "jail/poller.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct daemon;

struct upgrade {
	struct stat file; /* of the program that runs */
	int program;      /* owned: the one that was tried and comes next, -1: none */
	struct alarm alarm;
	int64_t until_ms;       /* patience with what is on its way */
	char why[ERR_TEXT_MAX]; /* the latest that was begun has not taken over; "": it has, or none
	                         */
};

void upgrade_init(struct daemon *d);
/* Once the programs are found. */
MUST_USE int upgrade_know_self(struct daemon *d, struct err *e);
/* 1: this process was another agentboxd's, `d` has what that left; 0: it was not. */
MUST_USE int upgrade_take_over(struct daemon *d, struct err *e);

/* The file of agentboxd is not the one that runs. */
bool upgrade_due(const struct daemon *d);
/* Both owned: that program, and what it would have to understand.  -EBUSY where asking again later
 * helps. */
MUST_USE int upgrade_prepare(
        const struct daemon *d, int *ret_program, int *ret_memfd, struct err *e);
/* In a job: tries it, for up to UPGRADE_TRY_MS. */
MUST_USE int upgrade_try(const struct daemon *d, int program, int memfd, struct err *e);
/* Takes the program that was tried.  0: the supervisor has to make room now; else nothing has
 * changed: -EBUSY as above. */
MUST_USE int upgrade_begin(struct daemon *d, int program, struct err *e);
bool upgrade_waits(const struct daemon *d); /* begun */
void upgrade_go_on(struct daemon *d);       /* begun, and no supervisor runs */
void upgrade_done(struct daemon *d);

enum { UPGRADE_TRY_MS = 10000 };

#endif
