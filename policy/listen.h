/*
 * listen.h - where the API is served besides the control socket: addresses of
 * TCP, as root's configuration has them.
 */
#ifndef POLICY_LISTEN_H
#define POLICY_LISTEN_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	LISTENS = 8,
	LISTEN_TEXT = 64,    /* "[addr]:port", with NUL */
	LISTEN_PATH = 256,   /* with NUL; POLICY_PATH_MAX */
	LISTEN_ADDRESS = 16, /* bytes of IPv6 */
};

struct listen_at {
	char text[LISTEN_TEXT]; /* as it was written: 127.0.0.1:7777, [::1]:7777 */
	char cert[LISTEN_PATH], key[LISTEN_PATH]; /* PEM files of root's; "": no TLS */
	uint8_t address[LISTEN_ADDRESS];          /* the first 4 of them: IPv4 */
	uint16_t port;
	uint8_t v6; /* 0 or 1 */
	uint8_t pad;
};

/* Fills address, port and v6 from text, which is copied.  False: it is none. */
bool listen_parse(const char *text, struct listen_at *to);
bool listen_loopback(const struct listen_at *l);
bool listen_has_tls(const struct listen_at *l);
/* Everything a reader relies on. */
MUST_USE int listen_check(const struct listen_at *l, struct err *e);

#endif
