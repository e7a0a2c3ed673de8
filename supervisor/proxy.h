/*
 * proxy.h - one HTTP request handed on to a server inside a jail, and its answer
 * handed back.
 *
 * Bodies flow both ways and nothing of them is kept but one piece of each.  After
 * 101 (WebSocket) the rest is bytes (relay.h).  What the server sends is a
 * stranger's: its head is bounded and taken apart here, what cannot be understood
 * becomes a 502.
 */
#ifndef SUPERVISOR_PROXY_H
#define SUPERVISOR_PROXY_H

#include "supervisor/proxy_head.h"

struct daemon;
struct http_request;

/* Of a request whose body flows; answers it, at once or later. */
void proxy_begin(struct daemon *d, struct http_request *r, const struct proxy_target *t);

#endif
