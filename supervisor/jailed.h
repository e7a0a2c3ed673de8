/*
 * jailed.h - one command in a jail, its standard output as it comes and how it ended.
 *
 * Either in a jail that is there, or in one that is made for it, killed as a whole when it has
 * ended, and given back.  Its input is empty.  Of its standard error the last bytes are kept.
 */
#ifndef SUPERVISOR_JAILED_H
#define SUPERVISOR_JAILED_H

#include "base/err.h"
#include "proto/jail.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct daemon;
struct jailed;

enum { JAILED_SAID = 4000 /* bytes of standard error that are kept */ };

struct jailed_end {
	const struct err *err; /* it could not be started, or `out` refused; NULL: it ran */
	int code, sig;
	bool timed_out;
	bool lost;        /* its jail ended first */
	const char *said; /* the end of its standard error */
	size_t nsaid;
};

struct jailed_spec {
	const char *const *argv, *const *env; /* borrowed: for the call */
	const char *cwd;
	uint64_t jail;                /* 0: one is made for it, */
	const struct jail_make *make; /* as this says (borrowed: for the call) */
	uint32_t flags;               /* JAIL_MAKE_ROOT */
	int64_t limit_ms;             /* 0: none */
	/* Less than 0, with *e: it is stopped. */
	int (*out)(void *ctx, const char *p, size_t n, struct err *e);
	void (*done)(void *ctx, const struct jailed_end *x); /* once; may close */
	void *ctx;
};

/* NULL with *e; else done() comes later, from the loop. */
struct jailed *jailed_start(struct daemon *d, const struct jailed_spec *spec, struct err *e);
/* No more callbacks; a jail of its own ends.  Needed after done(), too.  NULL is fine. */
void jailed_close(struct jailed *x);

#endif
