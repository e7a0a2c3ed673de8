/*
 * loop.h - the one io_uring of the supervisor, and its turn.
 *
 * A request in the kernel's hands is a `struct op` embedded in its owner;
 * user_data is its address, container_of finds the owner.  An owner counts what
 * it has in flight; closing means: set a flag, cancel, and let the last
 * completion free the owner - never anything else, because the kernel may
 * still write into its buffers.  No callback runs inside a submit.
 *
 * A turn: submit and wait, completions (a bounded batch), hooks (event commit,
 * then replies and subscribers), again.
 *
 * The ring is made disabled while the process is still privileged, restricted
 * to the opcodes used here, and enabled after privileges are gone.
 */
#ifndef SUPERVISOR_LOOP_H
#define SUPERVISOR_LOOP_H

#include "base/err.h"
#include "base/list.h"
#include "supervisor/stats.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop; /* opaque */
struct op;
typedef void op_done_fn(struct op *op, int res, uint32_t flags);

struct op {
	uint32_t magic;   /* set by the loop; checked at completion */
	bool inflight;    /* the kernel has it */
	op_done_fn *done; /* called in the completion phase; with multishot, more than once:
	                     loop_more(flags) tells whether more will come */
	struct {
		int64_t sec;
		long long nsec;
	} when; /* timeouts: must live as long as the op */
};

/* Runs once a turn after the completions; registered for the process's life. */
struct loop_hook {
	struct list link; /* in loop.hooks */
	void (*run)(struct loop_hook *h);
};

/* ---- life ---- */
struct loop *loop_new(unsigned entries, struct err *e); /* disabled and restricted */
int loop_enable(struct loop *l, struct err *e);         /* after privileges are dropped */
void loop_free(struct loop *l);
void loop_hook(struct loop *l, struct loop_hook *h);
int loop_run(struct loop *l, struct err *e); /* until loop_stop */
void loop_stop(struct loop *l);
/* The next turn does not wait: for hooks that have more to do. */
void loop_again(struct loop *l);
struct loop_counts {
	uint64_t sqes, cqes;
	uint64_t overflows;          /* completions that found no room in the ring */
	struct stats_histogram turn; /* without the waiting */
};
struct loop_counts loop_counts(const struct loop *l);

/* ---- operations: the op is in flight until done() without "more" ---- */
void loop_read(struct loop *l, struct op *op, int fd, void *p, size_t n, op_done_fn *done);
void loop_write(struct loop *l, struct op *op, int fd, const void *p, size_t n, op_done_fn *done);
void loop_recvmsg(struct loop *l, struct op *op, int fd, void *msghdr, op_done_fn *done);
/* res = poll mask; multishot when `more` */
void loop_poll(struct loop *l, struct op *op, int fd, uint32_t events, bool more, op_done_fn *done);
/* res = -ETIME when it fired, -ECANCELED when cancelled */
void loop_timeout(struct loop *l, struct op *op, int64_t ms, op_done_fn *done);
/* The op's done() comes with -ECANCELED (or its own result, if that was first). */
void loop_cancel(struct loop *l, struct op *op);
bool loop_more(uint32_t flags); /* a multishot op stays in flight */

#endif
