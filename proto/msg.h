/*
 * msg.h - one datagram between two of our programs: a fixed-size struct and at
 * most MSG_FDS descriptors, over SOCK_SEQPACKET.
 *
 * The receiver checks size against the type before it looks at a field; text
 * fields are checked to be NUL-terminated with msg_text_ok.  Both ends are the
 * same build, so the layout needs no version beyond MSG_MAGIC.
 */
#ifndef PROTO_MSG_H
#define PROTO_MSG_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MSG_FDS = 8, MSG_MAX = 16384 };
#define MSG_MAGIC 0x41425831u /* "ABX1" */

struct msg_head {
	uint32_t magic;
	uint16_t type; /* of the protocol in use */
	uint16_t nfds; /* descriptors that came along (set by msg_send, checked by msg_recv) */
	uint32_t size; /* of the whole struct, this head included */
	uint32_t pad;
	uint64_t req; /* the caller's number; a reply carries it back; 0 for events */
};

/* Fills magic, size and nfds.  `m` points at a struct that begins with msg_head.
 * 0, -EAGAIN (socket full), or -errno.  fds are borrowed. */
MUST_USE int msg_send(int sock, void *m, size_t size, const int *fds, int nfds);

/* Receives one datagram into buf[MSG_MAX].  Returns its size; 0 at EOF; -EAGAIN; -EBADMSG for a
 * foreign or cut datagram (its fds are closed).  ret_fds[MSG_FDS] are owned, -1 where none. */
MUST_USE int msg_recv(int sock, void *buf, int ret_fds[MSG_FDS]);

/* NUL within the array and nothing after the NUL but zeroes is not required. */
/* Passes by itself (too many bytes or descriptors in flight, no memory at the moment): nothing was
 * taken or given, and the same call is worth another try when the socket is ready. */
static inline bool msg_later(int r)
{
	return r == -EAGAIN || r == -ENOBUFS || r == -ENOMEM || r == -ETOOMANYREFS;
}

bool msg_text_ok(const char *field, size_t size);

#endif
