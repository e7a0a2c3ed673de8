/*
 * hello.h - the server name in a TLS ClientHello.
 *
 * Pure and bounded: reads the first record (or records) of a connection far
 * enough to name the host that was wanted.  A name that the server might read
 * differently (a second one, something after it) is none.
 */
#ifndef EGRESS_HELLO_H
#define EGRESS_HELLO_H

#include "policy/policy.h"

#include <stddef.h>
#include <stdint.h>

/* 16 KiB is one record; hellos with post-quantum key shares are below 3 KiB. */
enum { HELLO_MAX = 16 << 10 };

enum hello_verdict {
	HELLO_MORE,    /* not all of it is there yet */
	HELLO_NAME,    /* `name` filled */
	HELLO_NO_NAME, /* a whole hello without (a usable) server name */
	HELLO_NOT_TLS, /* something else */
};

enum hello_verdict hello_read(const uint8_t *p, size_t n, char name[POLICY_HOST_MAX]);

#endif
