/*
 * stdio.h - one process in a jail, connected to one client by the frames of
 * proto/stdio.h.
 *
 * A client that sends what is no frame of a client's gets a notice and is cut.
 *
 * Nothing is kept but the frame in progress of each direction: the socket's and
 * the pipes' buffers are the flow control.  When the client leaves, the process
 * goes: it gets SIGHUP and, two seconds later, SIGKILL; a jail made for commands
 * is killed when this was the last of them (shared_jail.h).
 *
 * Order: stdio_new, then the jail's watch and stdio_attach with what agentboxd
 * answered, then stdio_start through http_upgrade, or stdio_abandon when there
 * is no client any more.  It frees itself at the end.
 */
#ifndef SUPERVISOR_STDIO_H
#define SUPERVISOR_STDIO_H

#include "base/buf.h"
#include "supervisor/jails.h"

#include <stdbool.h>
#include <stdint.h>

struct daemon;
struct http_upgraded;
struct shared_jail;
struct stdio;

/* rows, cols: of the terminal, 0: as it is. */
struct stdio_spec {
	struct shared_jail *jail; /* takes a reference: a place as one of its commands; NULL: the
	                             jail is a run's */
	bool tty;
	uint16_t rows, cols;
};
struct stdio *stdio_new(struct daemon *d, const struct stdio_spec *spec);
struct jail_watch *stdio_watch(struct stdio *s); /* for jails_make and jails_watch */
/* The process is there.  Takes the reply's descriptors.  `notices` (STDIO_NOTICE payloads, one a
 * line) is borrowed for the call. */
void stdio_attach(
        struct stdio *s, const struct jail_reply *reply, int fds[MSG_FDS], const char *notices);
/* http_upgrade's `start`. */
void stdio_start(void *ctx, struct http_upgraded *u, int fd, const void *p, size_t n);
/* The client is gone, or there never was a process: ends what there is, frees. */
void stdio_abandon(void *ctx);

/* ---- pure parts ---- */

struct stdio_end {
	bool exited, gone, timed_out;
	struct jail_exited exit;
	struct jail_gone jail;
};
/* {"code"|"signal","reason","error"?,"resources"?} */
void stdio_exit_json(const struct stdio_end *end, struct buf *to);

#endif
