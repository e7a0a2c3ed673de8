/*
 * stdio_private.h - what the files of stdio share: stdio_conn.c (life, bytes out
 * of the jail) and stdio_in.c (the client's frames, into the jail).
 */
#ifndef SUPERVISOR_STDIO_PRIVATE_H
#define SUPERVISOR_STDIO_PRIVATE_H

#include "base/veil.h"
#include "proto/stdio.h"
#include "supervisor/loop.h"
#include "supervisor/stdio.h"

enum {
	STDIO_SMALL_MAX = 4, /* payload of a signal or resize frame */
};

/* One direction of bytes out of the jail, a frame at a time. */
struct lane {
	struct op op;
	struct stdio *owner;
	enum stdio_stream stream;
	int fd; /* owned; -1: at its end */
	bool polling;
	size_t len;   /* of the frame in buf; 0: none */
	uint8_t *buf; /* LANE_BYTES, part of stdio.buffers */
	struct veil_stream veiled;
};

struct stdio {
	struct daemon *d;
	struct stdio_spec spec;
	struct jail_watch watch;
	uint64_t jail, exec;
	struct stdio_end end;

	struct http_upgraded *upgraded; /* NULL before the start */
	int sock;                       /* borrowed: until http_upgraded_close */
	struct lane out, err;
	struct buf control; /* frames that go before any other */
	struct op send;
	bool send_polling;
	struct lane *sending; /* NULL: control */
	size_t sent;
	bool exit_queued;

	struct op recv;
	bool recv_polling, recv_ended;
	uint8_t *in; /* STDIO_FRAME_MAX, part of buffers */
	size_t in_len, in_at;
	uint8_t head[STDIO_HEAD];
	size_t head_len, left; /* left: payload bytes still to come */
	uint8_t small[STDIO_SMALL_MAX];
	size_t small_len;

	struct op feed;
	bool feed_polling;
	int stdin_fd; /* owned; -1: closed */
	size_t feeding;

	struct veil *veil; /* owned: of the secrets in the jail; NULL: none */
	struct op timer;   /* drain and hang-up */
	struct op hangup;
	bool attached, killed, abandoned;
	bool off;     /* the jail need not live for it any more */
	bool broken;  /* the client does not speak the protocol: it hears so, then it is cut */
	bool drained; /* the outputs are at their end, whoever holds the pipes */
	/* Owned: one allocation, left as it comes, because to clear 192 KiB for `echo hi` would
	 * touch every page of it. */
	uint8_t *buffers;
};

/* Something has changed: starts whatever can be started now. */
void stdio_step(struct stdio *s);
/* The client is not there any more. */
void stdio_leave(struct stdio *s);
/* Puts a frame in front of what the jail says. */
void stdio_control_frame(struct stdio *s, enum stdio_stream stream, const char *p, size_t n);

/* ---- stdio_in.c ---- */

/* Takes what the client sent as far as the process takes it, then reads on. */
void stdio_in_next(struct stdio *s);
/* Sets the terminal's size; nothing where there is none. */
void stdio_resize(struct stdio *s, unsigned rows, unsigned cols);

#endif
