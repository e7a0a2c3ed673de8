/*
 * broker.h - the permission table in front of root.
 *
 * Takes each datagram of the supervisor, looks its type up in a table {size,
 * phases, descriptors, once}, checks every field against root's policies and
 * then calls one operation with what is left of it.  Knows no jail: the
 * operations are given, so that tests and the fuzzer run the same code without
 * root.
 *
 * Two kinds of refusal.  What the table does not allow (unknown type, wrong
 * size, a descriptor too many, a second HELLO, anything before HELLO) no
 * supervisor of ours ever sends: BROKER_VIOLATION, and the caller kills that
 * process and starts another.  A field that does not hold (an index out of
 * range, a widening, a stale generation) may be an honest mistake: the reply
 * carries the error and nothing happens.
 */
#ifndef JAIL_BROKER_H
#define JAIL_BROKER_H

#include "base/err.h"
#include "policy/policy.h"
#include "proto/jail.h"

#include <stddef.h>

enum broker_phase {
	BROKER_BOOT = 1 << 0, /* until HELLO */
	BROKER_SERVE = 1 << 1,
	BROKER_DRAIN = 1 << 2, /* after JAIL_STOP: nothing new is begun */
};

enum broker_verdict {
	BROKER_REPLY,     /* call.reply (and call.fds) is to be sent */
	BROKER_LATER,     /* the operation goes on and its reply comes later; nothing is sent */
	BROKER_VIOLATION, /* off the table: *e says what; end that supervisor */
};

/* One request on its way through. */
struct broker_call {
	int exec_fd; /* sealed exec memfd or -1; owned by the broker, which closes it afterwards:
	                an operation that keeps it uses take_fd */
	struct jail_reply reply; /* head.req is filled in */
	int fds[3];              /* to go with the reply; owned by the caller of broker_receive */
	int nfds;
};

/* JAIL_MAKE after every check: policy and limits are root's, names are names. */
struct broker_make {
	const struct jail_make *asked; /* as it came: for who asks again later */
	const struct policy *policy;   /* borrowed: for the call */
	uint32_t policy_index;
	uint32_t flags;                /* enum jail_make_flag */
	struct limits limits;          /* the policy's, narrowed */
	const char *session;           /* valid id, or NULL */
	const char *run;               /* valid id, or NULL */
	const char *agent;             /* valid name, or NULL */
	const char *snapshot;          /* valid name, or NULL */
	const char *template;          /* likewise */
	const struct jail_bind *binds; /* below and target are normalised, index is in range */
	uint32_t nbinds;
};

/* Each: 0, or -errno with *e, which goes into the reply.  Jail numbers are looked up here.
 * `make`, `session_delete`, `reload`, `rest` and `snapshot` may answer -EINPROGRESS.  `make` has
 * then kept `asked` and taken c->exec_fd, and gives both to broker_receive again; the others send a
 * reply of their own to c->reply.head.req. */
struct broker_ops {
	int (*hello)(void *ctx, struct broker_call *c, struct err *e);
	int (*make)(void *ctx, const struct broker_make *m, struct broker_call *c, struct err *e);
	int (*exec)(void *ctx, const struct jail_exec *m, struct broker_call *c, struct err *e);
	int (*signal)(void *ctx, const struct jail_signal *m, struct err *e);
	int (*kill)(void *ctx, uint64_t jail, struct err *e);
	int (*worker)(void *ctx, uint64_t jail, struct broker_call *c, struct err *e);
	int (*release)(void *ctx, uint64_t jail, struct err *e);
	int (*session_delete)(void *ctx, const char *session, struct broker_call *c, struct err *e);
	int (*doctor)(void *ctx, struct broker_call *c, struct err *e);
	int (*stats)(void *ctx, uint64_t jail, struct broker_call *c, struct err *e);
	int (*reload)(void *ctx, struct broker_call *c, struct err *e);
	int (*adopt)(void *ctx, struct broker_call *c, struct err *e);
	int (*stdin_end)(void *ctx, uint64_t jail, struct err *e);
	int (*socket)(void *ctx, const struct jail_socket *m, struct broker_call *c, struct err *e);
	int (*rest)(void *ctx, uint64_t jail, struct broker_call *c, struct err *e);
	int (*claim)(void *ctx, const struct jail_claim *m, struct err *e);
	int (*snapshot)(
	        void *ctx, const struct jail_snapshot_ask *m, struct broker_call *c, struct err *e);
	/* c->exec_fd is the sealed body. */
	int (*hook)(void *ctx, const struct jail_hook *m, struct broker_call *c, struct err *e);
	/* c->exec_fd is the file of PUT. */
	int (*object)(void *ctx, const struct jail_object *m, struct broker_call *c, struct err *e);
};

struct broker {
	const struct broker_ops *ops;      /* static */
	void *ctx;                         /* for the operations */
	const struct policy_set *policies; /* borrowed: until the caller sets another */
	enum broker_phase phase;
	uint32_t once; /* bit i: row i of the table was used and may not be again */
};

/* For a supervisor that was just started. */
void broker_init(struct broker *b, const struct broker_ops *ops, void *ctx,
        const struct policy_set *policies);
void broker_drain(struct broker *b);

/* One datagram as msg_recv gave it (n >= sizeof(struct msg_head), head.size == n).  The fds are
 * taken.  After BROKER_REPLY the caller sends call->reply with call->fds and owns those. */
enum broker_verdict broker_receive(struct broker *b, const void *msg, size_t n, int fds[MSG_FDS],
        struct broker_call *call, struct err *e);

/* Name of a request type for the log, or "unknown". */
const char *broker_request_name(unsigned type);

/* "a/b", no empty, "." or ".." component, no control character; "" is fine. */
bool broker_below_ok(const char *path);
/* Absolute, normalised, below /mnt or /workspace. */
bool broker_target_ok(const char *path);

#endif
