/*
 * agentboxd_messages.c - what a supervisor that was taken over may send to root.
 *
 * Input: a sequence of {u8 descriptors, u16 little-endian length, bytes}.  Each
 * becomes one datagram for a broker whose operations only check that what
 * reaches them is within root's policies; anything else aborts.
 */
#include "base/fd.h"
#include "base/mem.h"
#include "jail/broker.h"
#include "proto/exec.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WEBHOOKS = 2 };

static int op_make(void *ctx, const struct broker_make *m, struct broker_call *c, struct err *e)
{
	(void)e;
	const struct policy_set *set = ctx;
	assert(m->policy_index < set->count && m->policy == &set->policies[m->policy_index]);
	assert(m->limits.memory_bytes != 0 && m->limits.memory_bytes <= 1 << 30);
	assert(m->nbinds <= JAIL_BINDS && (!m->session || id_valid(m->session, "ses")) &&
	        (!m->agent || name_valid(m->agent)) &&
	        (!m->run || (m->session && id_valid(m->run, "run"))));
	assert(((m->flags & JAIL_MAKE_EXEC) != 0) == (c->exec_fd >= 0));
	for (uint32_t i = 0; i < m->nbinds; i++)
		assert(m->binds[i].index < m->policy->nbindable &&
		        broker_below_ok(m->binds[i].below) &&
		        broker_target_ok(m->binds[i].target) && !m->binds[i].writable);
	return 0;
}

static int op_exec(void *ctx, const struct jail_exec *m, struct broker_call *c, struct err *e)
{
	(void)ctx;
	(void)m;
	(void)e;
	assert(c->exec_fd >= 0);
	return 0;
}

static int op_signal(void *ctx, const struct jail_signal *m, struct err *e)
{
	(void)ctx;
	(void)e;
	assert(m->sig == JAIL_SIGNAL_RESIZE || (m->sig >= 1 && m->sig <= 64));
	return 0;
}

static int op_jail(void *ctx, uint64_t jail, struct err *e)
{
	(void)ctx;
	return jail == 1 ? 0 : err_set(e, -ENOENT, "no jail");
}

static int op_jail_call(void *ctx, uint64_t jail, struct broker_call *c, struct err *e)
{
	(void)c;
	return op_jail(ctx, jail, e);
}

static int op_call(void *ctx, struct broker_call *c, struct err *e)
{
	(void)ctx;
	(void)c;
	(void)e;
	return 0;
}

static int op_session(void *ctx, const char *session, struct broker_call *c, struct err *e)
{
	(void)c;
	(void)ctx;
	(void)e;
	assert(id_valid(session, "ses"));
	return 0;
}

static int op_socket(void *ctx, const struct jail_socket *m, struct broker_call *c, struct err *e)
{
	(void)c;
	assert(m->port > 0 && m->v6 <= 1);
	return op_jail(ctx, m->jail, e);
}

static int op_claim(void *ctx, const struct jail_claim *m, struct err *e)
{
	assert(id_valid(m->session, "ses") && id_valid(m->run, "run"));
	return op_jail(ctx, m->jail, e);
}

static int op_snapshot(
        void *ctx, const struct jail_snapshot_ask *m, struct broker_call *c, struct err *e)
{
	assert(m->op < JAIL_SNAPSHOT_OPS);
	assert(name_valid(m->name) || (m->op == JAIL_SNAPSHOT_LIST && !m->name[0]));
	assert(id_valid(m->session, "ses") == (m->op == JAIL_SNAPSHOT_CREATE));
	return op_call(ctx, c, e);
}

static int op_hook(void *ctx, const struct jail_hook *m, struct broker_call *c, struct err *e)
{
	assert(m->hook < WEBHOOKS && jail_hook_id_ok(m->id) && c->exec_fd >= 0);
	return op_call(ctx, c, e);
}

static int op_object(void *ctx, const struct jail_object *m, struct broker_call *c, struct err *e)
{
	assert(m->op < JAIL_OBJECT_OPS && m->number && jail_object_key_ok(m->key));
	assert((m->op == JAIL_OBJECT_PUT) == (c->exec_fd >= 0));
	return op_call(ctx, c, e);
}

static const struct broker_ops ops = {op_call, op_make, op_exec, op_signal, op_jail, op_jail_call,
        op_jail, op_session, op_call, op_jail_call, op_call, op_call, op_jail, op_socket,
        op_jail_call, op_claim, op_snapshot, op_hook, op_object};

static struct policy_set *make_set(void)
{
	struct policy_set *set = xcalloc(1, sizeof(*set) + 2 * sizeof(struct policy));
	set->count = 2;
	set->generation = 1;
	set->config.nwebhooks = WEBHOOKS;
	for (int i = 0; i < 2; i++) {
		set->policies[i].limits.memory_bytes = 1 << 30;
		set->policies[i].nbindable = 2;
	}
	return set;
}

static int exec_memfd(void)
{
	const char *const argv[] = {"true", NULL}, *const env[] = {NULL};
	const struct exec_spec spec = {argv, env, "/"};
	return exec_pack(&spec, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct policy_set *set;
	if (!set)
		set = make_set();
	struct broker b;
	broker_init(&b, &ops, set, set);
	while (size >= 3) {
		unsigned nfds = data[0] % 3;
		size_t n = data[1] | (size_t)data[2] << 8;
		data += 3;
		size -= 3;
		n = n > size ? size : n;
		n = n > MSG_MAX ? MSG_MAX : n;
		_Alignas(16) char bytes[MSG_MAX] = {0};
		memcpy(bytes, data, n);
		data += n;
		size -= n;
		if (n < sizeof(struct msg_head))
			continue; /* msg_recv lets no such thing through */
		int fds[MSG_FDS];
		for (unsigned i = 0; i < MSG_FDS; i++)
			fds[i] = i < nfds ? exec_memfd() : -1;
		struct broker_call call;
		struct err e;
		if (broker_receive(&b, bytes, n, fds, &call, &e) == BROKER_REPLY)
			assert(call.exec_fd == -1 && call.reply.err.code <= 0);
	}
	return 0;
}
