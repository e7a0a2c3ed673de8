/*
 * shake.h - a connection of a jail whose TLS is terminated, until its handshake
 * is done: then it is HTTP (egress/http_conn.h).
 *
 * What fails is reset, with an event that says why: a program that brings its
 * own certificates, or pins the server's, ends here.
 */
#ifndef EGRESS_SHAKE_H
#define EGRESS_SHAKE_H

#include "egress/jails.h"
#include "egress/place.h"

#include <stddef.h>
#include <stdint.h>

enum { SHAKE_MS = 5000 }; /* its round trips are on loopback, but machines are loaded */

/* Takes fd.  `name` has been judged; hello[n] has been read. */
void shake_accept(struct jail *j, int fd, const struct place *p, const char *name,
        const uint8_t *hello, size_t n);

#endif
