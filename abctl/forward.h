/*
 * forward.h - local connections carried to ports of a session's jail.
 *
 * Each is one connection to the daemon (proto/ports.h) and two buffers; a side
 * that does not read stops the other.  Refusals are said on stderr and close the
 * one connection they are about.  All ends with the jail: it is asked for now and
 * then, because nothing may be open through which it would be seen.
 */
#ifndef ABCTL_FORWARD_H
#define ABCTL_FORWARD_H

#include "abctl/verb.h"
#include "base/err.h"

#include <stdint.h>

/* "[BIND:][LOCAL:]PORT" */
struct forward_spec {
	char bind[64];  /* "127.0.0.1" where it is not said; an IPv6 address without its brackets */
	unsigned local; /* 0: any */
	unsigned port;  /* in the jail */
};
MUST_USE int forward_parse(const char *text, struct forward_spec *ret, struct err *e);

enum { FORWARD_MAX = 16 };

/* Listens, says where, carries until the jail has ended.  The exit code. */
int forward_listen(
        const struct cli *cli, const char *session, const struct forward_spec *specs, int n);
/* One connection: stdin and stdout.  The exit code. */
int forward_stdio(const struct cli *cli, const char *session, unsigned port);

#endif
