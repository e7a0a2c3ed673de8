/*
 * exec_wait.h - requests for a command in a session that is between two jails.
 *
 * A session whose run or command is just starting has no jail to join yet, and
 * one whose is just ending has none any more, while its workspace is still
 * taken.  Such a request rests here until there is a jail to join or the
 * workspace is free, and is then handled anew.  At its deadline the client is
 * told (409).  A client that leaves takes its request along.
 */
#ifndef SUPERVISOR_EXEC_WAIT_H
#define SUPERVISOR_EXEC_WAIT_H

#include <stdbool.h>
#include <stdint.h>

struct daemon;
struct exec_waits;
struct http_request;
struct session;

/* Handles the request as if it had just come, but with the deadline it has. */
typedef void exec_again_fn(struct daemon *d, struct http_request *r, int64_t deadline_ms);

struct exec_waits *exec_waits_new(struct daemon *d, exec_again_fn *again);
void exec_waits_free(struct exec_waits *w);

/* Neither a jail to join nor free: `live` is in memory (sessions_live) or NULL; not_jail: a jail
 * that is known to be ending, or 0. */
bool exec_must_wait(struct session *live, uint64_t not_jail);
/* The request has no answer yet, and no other on_gone.  deadline_ms: monotonic. */
void exec_wait(struct exec_waits *w, struct http_request *r, const char *session, uint64_t not_jail,
        int64_t deadline_ms);

#endif
