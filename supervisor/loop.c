/*
 * Theory of operation.
 *
 * Requests are queued in the submission ring and handed over once a turn, by
 * the same call that waits.  When the submission ring is full, get_sqe flushes
 * it; completions that the kernel wants to be rid of first are moved to a stash
 * and run in their turn, so that no callback ever runs inside a submit.
 *
 * A cancel names its target by address.  That is safe although the address may
 * be used again: submissions are executed in order, so a cancel can only meet
 * an operation queued before it.
 */
#include "supervisor/loop.h"

#include "base/clock.h"
#include "base/mem.h"

#include <assert.h>
#include <liburing.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	OP_MAGIC = 0x6f70ab1e,
	/* Completions of one turn, so that hooks (replies, commits) are never starved. */
	TURN_BATCH = 256,
	/* And their time: what eight agents print at once would hold a reply for 30 ms. */
	TURN_US = 2000,
	/* Completions for each submission entry: multishot operations complete without one. */
	CQ_FACTOR = 4,
};

/* The kernel reads op.when as its own struct. */
_Static_assert(sizeof(((struct op *)0)->when) == sizeof(struct __kernel_timespec), "timespec");

struct completion {
	struct op *op;
	int res;
	uint32_t flags;
};

struct loop {
	struct io_uring ring;
	struct list hooks;
	bool again; /* the next turn does not wait */
	bool stopped;
	struct loop_counts counts;
	struct completion *stash; /* owned; reaped while submitting, run in the next turn */
	size_t nstash, stash_room;
};

/* What this process ever submits; everything else is refused by the kernel. */
static const uint8_t opcodes[] = {
        IORING_OP_READ,
        IORING_OP_WRITE,
        IORING_OP_RECVMSG,
        IORING_OP_POLL_ADD,
        IORING_OP_TIMEOUT,
        IORING_OP_ASYNC_CANCEL,
};

static int ring_init(struct io_uring *ring, unsigned entries)
{
	/* 6.1 has all of them; a kernel built or patched otherwise takes the plainer ones. */
	static const unsigned tries[] = {
	        IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN | IORING_SETUP_DEFER_TASKRUN,
	        IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN,
	        0,
	};
	int r = -EINVAL;
	for (size_t i = 0; i < ARRAY_LEN(tries) && r == -EINVAL; i++) {
		struct io_uring_params p = {
		        .flags = tries[i] | IORING_SETUP_R_DISABLED | IORING_SETUP_CQSIZE |
		                 IORING_SETUP_CLAMP,
		        .cq_entries = entries * CQ_FACTOR,
		};
		r = io_uring_queue_init_params(entries, ring, &p);
	}
	return r;
}

/* liburing 2.3 declares io_uring_register_restrictions and io_uring_enable_rings, but its shared
 * library does not export them. */
static int ring_register(struct io_uring *ring, unsigned opcode, void *arg, unsigned n)
{
	long r = syscall(SYS_io_uring_register, ring->ring_fd, opcode, arg, n);
	return r < 0 ? -errno : (int)r;
}

static int ring_restrict(struct io_uring *ring)
{
	struct io_uring_restriction r[ARRAY_LEN(opcodes)] = {0};
	for (size_t i = 0; i < ARRAY_LEN(opcodes); i++) {
		r[i].opcode = IORING_RESTRICTION_SQE_OP;
		r[i].sqe_op = opcodes[i];
	}
	/* No entry for register operations or SQE flags: none is allowed. */
	return ring_register(ring, IORING_REGISTER_RESTRICTIONS, r, ARRAY_LEN(opcodes));
}

struct loop *loop_new(unsigned entries, struct err *e)
{
	struct loop *l = xnew(struct loop);
	list_init(&l->hooks);
	int r = ring_init(&l->ring, entries);
	if (r < 0) {
		err_set(e, r, "io_uring: %s%s", strerror(-r),
		        r == -EPERM
		                ? " (kernel.io_uring_disabled=2, or a seccomp filter around us: "
		                  "allow io_uring for this service)"
		                : "");
		free(l);
		return NULL;
	}
	r = ring_restrict(&l->ring);
	if (r < 0) {
		err_set(e, r, "io_uring restrictions: %s", strerror(-r));
		loop_free(l);
		return NULL;
	}
	return l;
}

int loop_enable(struct loop *l, struct err *e)
{
	int r = ring_register(&l->ring, IORING_REGISTER_ENABLE_RINGS, NULL, 0);
	return r < 0 ? err_set(e, r, "io_uring enable: %s", strerror(-r)) : 0;
}

void loop_free(struct loop *l)
{
	if (!l)
		return;
	io_uring_queue_exit(&l->ring);
	free(l->stash);
	free(l);
}

void loop_hook(struct loop *l, struct loop_hook *h)
{
	list_append(&l->hooks, &h->link);
}

void loop_stop(struct loop *l)
{
	l->stopped = true;
	l->again = true;
}

void loop_again(struct loop *l)
{
	l->again = true;
}

struct loop_counts loop_counts(const struct loop *l)
{
	struct loop_counts c = l->counts;
	c.overflows = *l->ring.cq.koverflow;
	return c;
}

bool loop_more(uint32_t flags)
{
	return flags & IORING_CQE_F_MORE;
}

/* ---- completions ---- */

/* Moves what has completed to the stash.  Cancels have user_data 0 and no owner. */
static void harvest(struct loop *l)
{
	struct io_uring_cqe *cqe;
	unsigned head, n = 0;
	io_uring_for_each_cqe(&l->ring, head, cqe)
	{
		n++;
		if (!cqe->user_data)
			continue;
		if (l->nstash == l->stash_room) {
			l->stash_room = l->stash_room ? l->stash_room * 2 : TURN_BATCH;
			l->stash = xrealloc(l->stash, l->stash_room, sizeof(*l->stash));
		}
		l->stash[l->nstash++] = (struct completion){
		        .op = (struct op *)(uintptr_t)cqe->user_data,
		        .res = cqe->res,
		        .flags = cqe->flags,
		};
	}
	io_uring_cq_advance(&l->ring, n);
	l->counts.cqes += n;
}

static void complete(struct completion c)
{
	struct op *op = c.op;
	assert(op->magic == OP_MAGIC && op->inflight);
	op->inflight = loop_more(c.flags);
	op->done(op, c.res, c.flags); /* may free the owner, op with it */
}

static void run_completions(struct loop *l)
{
	harvest(l);
	size_t n = l->nstash < TURN_BATCH ? l->nstash : TURN_BATCH;
	if (n == 0)
		return;
	/* Callbacks submit, and a full ring may make the stash grow and move: copy each. */
	int64_t until = clock_mono_us() + TURN_US;
	size_t i = 0;
	do {
		struct completion c = l->stash[i++];
		complete(c);
	} while (i < n && clock_mono_us() < until);
	n = i;
	l->nstash -= n;
	if (l->nstash > 0)
		memmove(l->stash, l->stash + n, l->nstash * sizeof(*l->stash));
}

/* ---- the turn ---- */

static int submit_and_wait(struct loop *l)
{
	bool wait = !l->again && l->nstash == 0;
	l->again = false;
	int r = wait ? io_uring_submit_and_wait(&l->ring, 1)
	             : io_uring_submit_and_get_events(&l->ring);
	/* BUSY, AGAIN: completions must be taken first, which this turn does. */
	return r == -EINTR || r == -EBUSY || r == -EAGAIN || r == -ETIME ? 0 : r;
}

int loop_run(struct loop *l, struct err *e)
{
	l->stopped = false;
	while (!l->stopped) {
		int r = submit_and_wait(l);
		if (r < 0)
			return err_set(e, r, "io_uring wait: %s", strerror(-r));
		int64_t begun = clock_mono_us();
		run_completions(l);
		list_for_each (h, &l->hooks, struct loop_hook, link)
			h->run(h);
		stats_observe(&l->counts.turn, clock_mono_us() - begun);
	}
	return 0;
}

/* ---- operations ---- */

static struct io_uring_sqe *get_sqe(struct loop *l)
{
	struct io_uring_sqe *sqe;
	while (!(sqe = io_uring_get_sqe(&l->ring))) {
		int r = io_uring_submit_and_get_events(&l->ring);
		if (r == -EBUSY || r == -EAGAIN)
			harvest(l);
		else
			assert(r >= 0 || r == -EINTR);
	}
	l->counts.sqes++;
	return sqe;
}

static struct io_uring_sqe *arm(struct loop *l, struct op *op, op_done_fn *done)
{
	assert(!op->inflight);
	struct io_uring_sqe *sqe = get_sqe(l);
	op->magic = OP_MAGIC;
	op->inflight = true;
	op->done = done;
	return sqe;
}

/* After prep, which clears user_data's neighbours. */
static void tag(struct io_uring_sqe *sqe, void *owner)
{
	io_uring_sqe_set_data(sqe, owner);
}

void loop_read(struct loop *l, struct op *op, int fd, void *p, size_t n, op_done_fn *done)
{
	struct io_uring_sqe *sqe = arm(l, op, done);
	/* Offset -1: the file position, which pipes and sockets ignore. */
	io_uring_prep_read(sqe, fd, p, (unsigned)n, (uint64_t)-1);
	tag(sqe, op);
}

void loop_write(struct loop *l, struct op *op, int fd, const void *p, size_t n, op_done_fn *done)
{
	struct io_uring_sqe *sqe = arm(l, op, done);
	io_uring_prep_write(sqe, fd, p, (unsigned)n, (uint64_t)-1);
	tag(sqe, op);
}

void loop_recvmsg(struct loop *l, struct op *op, int fd, void *msghdr, op_done_fn *done)
{
	struct io_uring_sqe *sqe = arm(l, op, done);
	io_uring_prep_recvmsg(sqe, fd, msghdr, MSG_CMSG_CLOEXEC);
	tag(sqe, op);
}

void loop_poll(struct loop *l, struct op *op, int fd, uint32_t events, bool more, op_done_fn *done)
{
	struct io_uring_sqe *sqe = arm(l, op, done);
	if (more)
		io_uring_prep_poll_multishot(sqe, fd, events);
	else
		io_uring_prep_poll_add(sqe, fd, events);
	tag(sqe, op);
}

void loop_timeout(struct loop *l, struct op *op, int64_t ms, op_done_fn *done)
{
	struct io_uring_sqe *sqe = arm(l, op, done);
	ms = ms < 0 ? 0 : ms;
	op->when.sec = ms / 1000;
	op->when.nsec = ms % 1000 * 1000000;
	io_uring_prep_timeout(sqe, (struct __kernel_timespec *)(void *)&op->when, 0, 0);
	tag(sqe, op);
}

void loop_cancel(struct loop *l, struct op *op)
{
	if (!op->inflight)
		return;
	struct io_uring_sqe *sqe = get_sqe(l);
	io_uring_prep_cancel(sqe, op, 0);
	tag(sqe, NULL);
}
