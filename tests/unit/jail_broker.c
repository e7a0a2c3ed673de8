/* The permission table: every type in every phase with every size and number of descriptors, then
 * every byte of every message changed.  The operations below stand for root: whatever gets as far
 * as them must be within root's policies, or the test fails. */
#include "jail/broker.h"
#include "base/fd.h"
#include "base/mem.h"
#include "proto/exec.h"
#include "tests/t.h"

#include <fcntl.h>
#include <sys/mman.h>

enum { POLICIES = 2, WEBHOOKS = 2, GENERATION = 3 };
static const char session_id[] = "ses_01jd0000000000000000000000";

static struct policy_set *set;
static struct {
	unsigned calls; /* of any operation */
	unsigned bad;   /* calls with something that is not within the policies */
	unsigned makes;
	struct broker_make last;
	bool keep_fd;
	int kept;
	bool later; /* they go on */
} root;

/* ---- operations that check what reaches them ---- */

static bool within(uint64_t got, uint64_t most)
{
	return most == 0 || (got != 0 && got <= most);
}

static bool limits_ok(const struct limits *got, const struct limits *most)
{
	const uint64_t *g = (const uint64_t *)got, *m = (const uint64_t *)most;
	for (size_t i = 0; i < sizeof(*got) / sizeof(uint64_t); i++)
		if (!within(g[i], m[i]))
			return false;
	return true;
}

static bool bind_ok(const struct policy *p, const struct jail_bind *b)
{
	return b->index < p->nbindable && memchr(b->below, 0, sizeof(b->below)) &&
	       memchr(b->target, 0, sizeof(b->target)) && b->below[0] != '/' &&
	       !strstr(b->below, "..") && !strstr(b->target, "..") &&
	       (!b->writable || p->bindable[b->index].writable) &&
	       (strncmp(b->target, "/mnt/", 5) == 0 || strncmp(b->target, "/workspace/", 11) == 0);
}

static int op_make(void *ctx, const struct broker_make *m, struct broker_call *c, struct err *e)
{
	(void)ctx;
	(void)e;
	root.calls++;
	root.makes++;
	root.last = *m;
	bool good = m->policy == &set->policies[m->policy_index] && m->policy_index < POLICIES &&
	            limits_ok(&m->limits, &m->policy->limits) && m->nbinds <= JAIL_BINDS &&
	            (!m->session || id_valid(m->session, "ses")) &&
	            (!m->agent || name_valid(m->agent)) &&
	            ((m->flags & JAIL_MAKE_EXEC) != 0) == (c->exec_fd >= 0);
	for (uint32_t i = 0; good && i < m->nbinds; i++)
		good = bind_ok(m->policy, &m->binds[i]);
	root.bad += !good;
	if (root.keep_fd)
		root.kept = take_fd(c->exec_fd);
	c->reply.jail = 7;
	return 0;
}

static int op_exec(void *ctx, const struct jail_exec *m, struct broker_call *c, struct err *e)
{
	(void)ctx;
	(void)e;
	root.calls++;
	root.bad +=
	        c->exec_fd < 0 || (m->flags & ~(JAIL_MAKE_TTY | JAIL_MAKE_ROOT | JAIL_MAKE_PROGRAM |
	                                              JAIL_MAKE_ACP | JAIL_MAKE_SECRETS));
	return 0;
}

static int op_signal(void *ctx, const struct jail_signal *m, struct err *e)
{
	(void)ctx;
	(void)e;
	root.calls++;
	root.bad += m->sig != JAIL_SIGNAL_RESIZE && (m->sig < 1 || m->sig > 64);
	return 0;
}

static int op_jail(void *ctx, uint64_t jail, struct err *e)
{
	(void)ctx;
	root.calls++;
	return jail == 7 ? 0 : err_set(e, -ENOENT, "no jail");
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
	root.calls++;
	return root.later ? -EINPROGRESS : 0;
}

static int op_session(void *ctx, const char *session, struct broker_call *c, struct err *e)
{
	(void)c;
	(void)ctx;
	(void)e;
	root.calls++;
	root.bad += !id_valid(session, "ses");
	return root.later ? -EINPROGRESS : 0;
}

static int op_socket(void *ctx, const struct jail_socket *m, struct broker_call *c, struct err *e)
{
	(void)c;
	root.bad += m->port == 0 || m->v6 > 1;
	return op_jail(ctx, m->jail, e);
}

static int op_claim(void *ctx, const struct jail_claim *m, struct err *e)
{
	root.bad += !id_valid(m->session, "ses") || !id_valid(m->run, "run");
	return op_jail(ctx, m->jail, e);
}

static int op_snapshot(
        void *ctx, const struct jail_snapshot_ask *m, struct broker_call *c, struct err *e)
{
	bool list = m->op == JAIL_SNAPSHOT_LIST, create = m->op == JAIL_SNAPSHOT_CREATE;
	root.bad += m->op >= JAIL_SNAPSHOT_OPS || !(name_valid(m->name) || (list && !m->name[0])) ||
	            create != id_valid(m->session, "ses");
	return op_call(ctx, c, e);
}

static int op_hook(void *ctx, const struct jail_hook *m, struct broker_call *c, struct err *e)
{
	root.bad += m->hook >= set->config.nwebhooks || !jail_hook_id_ok(m->id) || c->exec_fd < 0;
	return op_call(ctx, c, e);
}

static int op_object(void *ctx, const struct jail_object *m, struct broker_call *c, struct err *e)
{
	root.bad += m->op >= JAIL_OBJECT_OPS || !jail_object_key_ok(m->key) ||
	            (m->op == JAIL_OBJECT_PUT) != (c->exec_fd >= 0);
	return op_call(ctx, c, e);
}

static const struct broker_ops ops = {
        .hello = op_call,
        .make = op_make,
        .exec = op_exec,
        .signal = op_signal,
        .kill = op_jail,
        .worker = op_jail_call,
        .release = op_jail,
        .session_delete = op_session,
        .doctor = op_call,
        .stats = op_jail_call,
        .reload = op_call,
        .adopt = op_call,
        .stdin_end = op_jail,
        .socket = op_socket,
        .rest = op_jail_call,
        .claim = op_claim,
        .snapshot = op_snapshot,
        .hook = op_hook,
        .object = op_object,
};

/* ---- what is sent ---- */

static void make_set(void)
{
	set = xcalloc(1, sizeof(*set) + POLICIES * sizeof(struct policy));
	set->magic = POLICY_SET_MAGIC;
	set->count = POLICIES;
	set->generation = GENERATION;
	set->config.nwebhooks = WEBHOOKS;
	set->config.bucket.on = 1;
	for (int i = 0; i < POLICIES; i++) {
		struct policy *p = &set->policies[i];
		strcpy(p->name, i ? "other" : "default");
		p->limits = (struct limits){.memory_bytes = 1 << 30, .pids = 100, .nofile = 1024};
		p->nbindable = 2;
		strcpy(p->bindable[0].source, "/srv/data");
		strcpy(p->bindable[1].source, "/srv/scratch");
		p->bindable[1].writable = 1;
	}
}

static int exec_memfd(void)
{
	const char *const argv[] = {"true", NULL}, *const env[] = {NULL};
	const struct exec_spec spec = {argv, env, "/"};
	return exec_pack(&spec, NULL);
}

static struct jail_make good_make(void)
{
	struct jail_make m = {.policy_generation = GENERATION,
	        .policy = 1,
	        .flags = JAIL_MAKE_EXEC | JAIL_MAKE_SESSION,
	        .narrow = {.memory_bytes = 1 << 20},
	        .nbinds = 2};
	strcpy(m.session, session_id);
	strcpy(m.agent, "claude");
	strcpy(m.binds[0].below, "a/b");
	strcpy(m.binds[0].target, "/mnt/a");
	m.binds[1].index = 1;
	m.binds[1].writable = 1;
	strcpy(m.binds[1].target, "/workspace/data");
	return m;
}

static struct jail_hook good_hook(void)
{
	return (struct jail_hook){.policy_generation = GENERATION, .hook = 1, .id = "ses_1-22"};
}

static struct jail_object good_object(enum jail_object_op op)
{
	return (struct jail_object){.policy_generation = GENERATION,
	        .number = 5,
	        .op = op,
	        .bytes = 4,
	        .type = "text/plain; charset=utf-8",
	        .key = "ses_a/run_b/out/x"};
}

union any {
	struct msg_head head;
	struct jail_simple simple;
	struct jail_make make;
	struct jail_exec exec;
	struct jail_signal signal;
	struct jail_session session;
	struct jail_socket socket;
	struct jail_claim claim;
	struct jail_snapshot_ask snapshot;
	struct jail_hook hook;
	struct jail_object object;
	char bytes[MSG_MAX];
};

/* The expectation, written down apart from the table under test. */
static const struct expect {
	unsigned type;
	size_t size;
	unsigned min, max; /* descriptors */
	bool boot, drain;
} expects[] = {
        {JAIL_HELLO, sizeof(struct jail_simple), 0, 0, true, false},
        {JAIL_MAKE, sizeof(struct jail_make), 0, 1, false, false},
        {JAIL_EXEC, sizeof(struct jail_exec), 1, 1, false, false},
        {JAIL_SIGNAL, sizeof(struct jail_signal), 0, 0, false, true},
        {JAIL_KILL, sizeof(struct jail_simple), 0, 0, false, true},
        {JAIL_WORKER, sizeof(struct jail_simple), 0, 0, false, true},
        {JAIL_RELEASE, sizeof(struct jail_simple), 0, 0, false, true},
        {JAIL_SESSION_DELETE, sizeof(struct jail_session), 0, 0, false, false},
        {JAIL_DOCTOR, sizeof(struct jail_simple), 0, 0, false, true},
        {JAIL_STATS, sizeof(struct jail_simple), 0, 0, false, true},
        {JAIL_RELOAD, sizeof(struct jail_simple), 0, 0, false, false},
        {JAIL_ADOPT, sizeof(struct jail_simple), 0, 0, false, false},
        {JAIL_STDIN_END, sizeof(struct jail_simple), 0, 0, false, true},
        {JAIL_SOCKET, sizeof(struct jail_socket), 0, 0, false, true},
        {JAIL_REST, sizeof(struct jail_simple), 0, 0, false, false},
        {JAIL_CLAIM, sizeof(struct jail_claim), 0, 0, false, false},
        {JAIL_SNAPSHOT, sizeof(struct jail_snapshot_ask), 0, 0, false, false},
        {JAIL_HOOK, sizeof(struct jail_hook), 1, 1, false, false},
        {JAIL_OBJECT, sizeof(struct jail_object), 0, 1, false, false},
        {JAIL_ALIVE, sizeof(struct jail_simple), 0, 0, false, true},
};

static struct jail_claim good_claim(void)
{
	struct jail_claim m = {.jail = 7};
	strcpy(m.session, session_id);
	strcpy(m.run, "run_01jd0000000000000000000000");
	return m;
}

static struct jail_snapshot_ask good_snapshot(void)
{
	struct jail_snapshot_ask m = {.op = JAIL_SNAPSHOT_CREATE, .name = "base"};
	strcpy(m.session, session_id);
	return m;
}

static void fill(union any *m, const struct expect *x)
{
	memset(m, 0, sizeof(*m));
	if (x->type == JAIL_MAKE)
		m->make = good_make();
	else if (x->type == JAIL_SIGNAL)
		m->signal = (struct jail_signal){.jail = 7, .exec = 1, .sig = 15};
	else if (x->type == JAIL_SOCKET)
		m->socket = (struct jail_socket){.jail = 7, .port = 3000};
	else if (x->type == JAIL_HOOK)
		m->hook = good_hook();
	else if (x->type == JAIL_OBJECT)
		m->object = good_object(JAIL_OBJECT_DELETE);
	else if (x->type == JAIL_SNAPSHOT)
		m->snapshot = good_snapshot();
	else if (x->type == JAIL_SESSION_DELETE)
		strcpy(m->session.session, session_id);
	else if (x->type == JAIL_CLAIM)
		m->claim = good_claim();
	else
		m->simple.jail = 7;
	m->head = (struct msg_head){.magic = MSG_MAGIC,
	        .type = (uint16_t)x->type,
	        .size = (uint32_t)x->size,
	        .req = 99};
}

static enum broker_verdict send(struct broker *b, const void *m, size_t n, unsigned nfds,
        struct broker_call *call, struct err *e)
{
	int fds[MSG_FDS];
	for (unsigned i = 0; i < MSG_FDS; i++)
		fds[i] = i < nfds ? exec_memfd() : -1;
	enum broker_verdict v = broker_receive(b, m, n, fds, call, e);
	for (unsigned i = 0; i < MSG_FDS; i++)
		if (fds[i] >= 0)
			root.bad++; /* the fds are to be taken */
	return v;
}

static void in_phase(struct broker *b, enum broker_phase phase)
{
	broker_init(b, &ops, NULL, set);
	b->phase = phase;
}

/* ---- tests ---- */

static void test_table(void)
{
	static const enum broker_phase phases[] = {BROKER_BOOT, BROKER_SERVE, BROKER_DRAIN};
	unsigned wrong = 0, cases = 0;
	for (size_t i = 0; i < ARRAY_LEN(expects); i++) {
		const struct expect *x = &expects[i];
		for (size_t p = 0; p < ARRAY_LEN(phases); p++) {
			for (int delta = -8; delta <= 8; delta += 4) {
				for (unsigned nfds = 0; nfds <= 3; nfds++) {
					union any m;
					fill(&m, x);
					if (x->type == JAIL_MAKE && nfds == 0)
						m.make.flags &= ~(uint32_t)JAIL_MAKE_EXEC;
					struct broker b;
					in_phase(&b, phases[p]);
					struct broker_call call;
					struct err e = {0};
					root.calls = 0;
					size_t size = (size_t)((long)x->size + delta);
					m.head.size = (uint32_t)size;
					enum broker_verdict v = send(&b, &m, size, nfds, &call, &e);
					bool on_table = delta == 0 && nfds >= x->min &&
					                nfds <= x->max &&
					                (phases[p] != BROKER_BOOT || x->boot);
					bool done = on_table &&
					            (phases[p] == BROKER_BOOT ? x->boot
					                    : phases[p] == BROKER_DRAIN
					                            ? x->drain
					                            : x->type != JAIL_HELLO);
					wrong += v != (on_table ? BROKER_REPLY : BROKER_VIOLATION);
					/* Of an object's file this is none. */
					bool asks = done && x->type != JAIL_ALIVE &&
					            (x->type != JAIL_OBJECT || nfds == 0);
					wrong += root.calls != (asks ? 1u : 0u);
					wrong += on_table && call.reply.head.req != 99;
					wrong += on_table && !done &&
					         call.reply.err.code != -ESHUTDOWN;
					cases++;
				}
			}
		}
	}
	ok(wrong == 0, "%u cases of type, phase, size and descriptors are as expected", cases);
}

static void test_unknown_types(void)
{
	unsigned wrong = 0;
	for (unsigned type = 0; type < 65536; type++) {
		bool known = false;
		for (size_t i = 0; i < ARRAY_LEN(expects); i++)
			known |= expects[i].type == type;
		if (known)
			continue;
		union any m = {.head = {.type = (uint16_t)type}};
		struct broker b;
		in_phase(&b, BROKER_SERVE);
		struct broker_call call;
		struct err e = {0};
		wrong += broker_receive(&b, &m, sizeof(struct jail_simple),
		                 (int[MSG_FDS]){-1, -1, -1, -1, -1, -1, -1, -1}, &call,
		                 &e) != BROKER_VIOLATION;
	}
	ok(wrong == 0, "every other type is a violation");
}

static void test_hello(void)
{
	struct broker b;
	broker_init(&b, &ops, NULL, set);
	union any m;
	struct broker_call call;
	struct err e = {0};
	fill(&m, &expects[1]);
	ok(send(&b, &m, expects[1].size, 1, &call, &e) == BROKER_VIOLATION, "MAKE before HELLO");
	is_str(e.text, "MAKE before HELLO", "says so");
	fill(&m, &expects[0]);
	ok(send(&b, &m, expects[0].size, 0, &call, &e) == BROKER_REPLY && b.phase == BROKER_SERVE,
	        "HELLO opens");
	ok(send(&b, &m, expects[0].size, 0, &call, &e) == BROKER_VIOLATION, "once");
	is_str(e.text, "second HELLO", "says so");
	const union any adopt = {.head = {.type = JAIL_ADOPT}};
	ok(send(&b, &adopt, sizeof(adopt.simple), 0, &call, &e) == BROKER_REPLY, "ADOPT");
	ok(send(&b, &adopt, sizeof(adopt.simple), 0, &call, &e) == BROKER_VIOLATION, "once");
	is_str(e.text, "second ADOPT", "says so");
}

/* Only what may take a while is without its reply at once. */
static void test_later(void)
{
	struct broker b;
	broker_init(&b, &ops, NULL, set);
	b.phase = BROKER_SERVE;
	root.later = true;
	for (size_t i = 0; i < ARRAY_LEN(expects); i++) {
		const struct expect *x = &expects[i];
		bool slow = x->type == JAIL_RELOAD || x->type == JAIL_SESSION_DELETE ||
		            x->type == JAIL_SNAPSHOT;
		if (!slow && x->type != JAIL_DOCTOR)
			continue;
		union any m;
		struct broker_call call;
		struct err e = {0};
		fill(&m, x);
		enum broker_verdict v = send(&b, &m, x->size, 0, &call, &e);
		ok(v == (slow ? BROKER_LATER : BROKER_REPLY) && call.reply.head.req == 99,
		        "%s that goes on is answered %s", broker_request_name(x->type),
		        slow ? "later" : "with that");
	}
	root.later = false;
}

/* Every byte of every message, eight values each. */
static void test_mutations(void)
{
	static const uint8_t values[] = {0, 1, 0x2f, 0x2e, 0x7f, 0x80, 0xff};
	unsigned sent = 0, through = 0;
	root.bad = 0;
	int before = fd_count();
	for (size_t i = 0; i < ARRAY_LEN(expects); i++) {
		const struct expect *x = &expects[i];
		for (size_t at = sizeof(struct msg_head); at < x->size; at++) {
			for (size_t v = 0; v <= ARRAY_LEN(values); v++) {
				union any m;
				fill(&m, x);
				m.bytes[at] =
				        (char)(v < ARRAY_LEN(values) ? values[v]
				                                     : (uint8_t)m.bytes[at] ^ 0x55);
				struct broker b;
				in_phase(&b, x->boot ? BROKER_BOOT : BROKER_SERVE);
				struct broker_call call;
				struct err e;
				root.calls = 0;
				/* Descriptors are tested elsewhere; here only MAKE's few
				 * first bytes need a real one. */
				bool fd = x->max > 0;
				(void)send(&b, &m, x->size, fd, &call, &e);
				sent++;
				through += root.calls;
			}
		}
	}
	ok(root.bad == 0, "%u changed messages, %u let through, each within the policies", sent,
	        through);
	ok(through > 0 && through < sent, "some pass, some do not");
	ok(fd_count() == before, "no descriptor is left");
}

static int code_of(union any *m, unsigned type, size_t size, int fd)
{
	struct broker b;
	in_phase(&b, BROKER_SERVE);
	m->head = (struct msg_head){.type = (uint16_t)type, .size = (uint32_t)size, .req = 1};
	int fds[MSG_FDS] = {fd, -1, -1, -1, -1, -1, -1, -1};
	struct broker_call call;
	struct err e = {0};
	if (broker_receive(&b, m, size, fds, &call, &e) != BROKER_REPLY)
		return -EPROTO;
	if (call.reply.err.code < 0)
		printf("# %s\n", call.reply.err.text);
	return call.reply.err.code;
}

static int make_code(const struct jail_make *m, int fd)
{
	union any any = {.make = *m};
	return code_of(&any, JAIL_MAKE, sizeof(*m), fd);
}

static int hook_code(const struct jail_hook *m, int fd)
{
	union any any = {.hook = *m};
	return code_of(&any, JAIL_HOOK, sizeof(*m), fd);
}

static int snapshot_code(const struct jail_snapshot_ask *m)
{
	union any any = {.snapshot = *m};
	return code_of(&any, JAIL_SNAPSHOT, sizeof(*m), -1);
}

static void test_snapshot_fields(void)
{
	static const char *const names[] = {"", "../x", "a/b", "A", ".x", "-", "a b"};
	struct jail_snapshot_ask m = good_snapshot();
	ok(snapshot_code(&m) == 0, "a good SNAPSHOT");
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		m = good_snapshot();
		memset(m.name, 0, sizeof(m.name));
		strcpy(m.name, names[i]);
		ok(snapshot_code(&m) == -EINVAL, "a name that is none ('%s')", names[i]);
	}
	memset(m.name, 'a', sizeof(m.name));
	ok(snapshot_code(&m) == -EINVAL, "a name without end");
	m = good_snapshot();
	m.op = JAIL_SNAPSHOT_OPS;
	ok(snapshot_code(&m) == -EINVAL, "an operation that is none");
	m = good_snapshot();
	m.flags = 2;
	ok(snapshot_code(&m) == -EINVAL, "an unknown flag");
	m = good_snapshot();
	strcpy(m.session, "ses_../../etc");
	ok(snapshot_code(&m) == -EINVAL, "not a session");
	m = good_snapshot();
	m.op = JAIL_SNAPSHOT_REMOVE;
	ok(snapshot_code(&m) == -EINVAL, "a session where none is meant");
	memset(m.session, 0, sizeof(m.session));
	ok(snapshot_code(&m) == 0, "one is removed by its name");
	m.op = JAIL_SNAPSHOT_LIST;
	m.name[0] = '\0';
	ok(snapshot_code(&m) == 0, "all are listed without one");
	struct jail_make make = good_make();
	strcpy(make.snapshot, "base");
	ok(make_code(&make, exec_memfd()) == 0, "a MAKE of a session that starts from one");
	strcpy(make.snapshot, "../base");
	ok(make_code(&make, exec_memfd()) == -EINVAL, "from none");
	make = good_make();
	strcpy(make.template, "app");
	ok(make_code(&make, exec_memfd()) == 0, "with a template");
	strcpy(make.template, "/etc");
	ok(make_code(&make, exec_memfd()) == -EINVAL, "which is a name, never a path");
}

static void test_hook_fields(void)
{
	static char large[JAIL_HOOK_BODY + 1];
	struct jail_hook m = good_hook();
	ok(hook_code(&m, fd_sealed_memfd("x", "{}", 2)) == 0, "a good HOOK");
	ok(hook_code(&m, fd_sealed_memfd("x", large, JAIL_HOOK_BODY)) == 0, "the largest body");
	ok(hook_code(&m, fd_sealed_memfd("x", large, sizeof(large))) == -E2BIG, "a larger one");
	ok(hook_code(&m, fd_sealed_memfd("x", "", 0)) == -E2BIG, "none");
	ok(hook_code(&m, memfd_create("x", MFD_CLOEXEC)) == -EINVAL, "one that may still change");
	ok(hook_code(&m, open("/dev/null", O_RDONLY | O_CLOEXEC)) == -EINVAL, "no memfd");
	m.policy_generation++;
	ok(hook_code(&m, fd_sealed_memfd("x", "{}", 2)) == -ESTALE, "a stale generation");
	m = good_hook();
	m.hook = WEBHOOKS;
	ok(hook_code(&m, fd_sealed_memfd("x", "{}", 2)) == -EINVAL, "a webhook out of range");
	static const char *const ids[] = {"", "a b", "a\r\nX: y", "a.b", "a/b"};
	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		m = good_hook();
		memset(m.id, 0, sizeof(m.id));
		strcpy(m.id, ids[i]);
		ok(hook_code(&m, fd_sealed_memfd("x", "{}", 2)) == -EINVAL, "an id that is none");
	}
	memset(m.id, 'a', sizeof(m.id));
	ok(hook_code(&m, fd_sealed_memfd("x", "{}", 2)) == -EINVAL, "an id without end");
}

static int object_code(const struct jail_object *m, int fd)
{
	union any any = {.object = *m};
	return code_of(&any, JAIL_OBJECT, sizeof(*m), fd);
}

/* Of four bytes. */
static int artifact(int flags)
{
	char path[] = "/tmp/broker-XXXXXX";
	int fd = mkstemp(path);
	must(fd >= 0 && write(fd, "1234", 4) == 4, "a file");
	fd_close(fd);
	fd = open(path, flags | O_CLOEXEC);
	(void)unlink(path);
	return fd;
}

static void test_object_fields(void)
{
	static const char *const keys[] = {"", "x", "ses_a", "ses_a/run_b", "ses_a/run_b/",
	        "ses_a/x/y", "run_b/ses_a/x", "ses_a/run_b/../x", "ses_a/run_b/./x",
	        "ses_a//run_b/x", "/ses_a/run_b/x", "ses_a/run_b/x/..", "other/ses_a/run_b/x"};
	struct jail_object m = good_object(JAIL_OBJECT_PUT);
	ok(object_code(&m, artifact(O_RDONLY)) == 0, "a good OBJECT");
	ok(object_code(&m, -1) == -EINVAL, "one without a file");
	ok(object_code(&m, artifact(O_RDWR)) == -EINVAL, "one of a file that can be written");
	ok(object_code(&m, open("/dev/null", O_RDONLY | O_CLOEXEC)) == -EINVAL, "of no file");
	m.bytes = 5;
	ok(object_code(&m, artifact(O_RDONLY)) == -EINVAL, "of one that is shorter");
	m = good_object(JAIL_OBJECT_LINK);
	ok(object_code(&m, -1) == 0, "a link");
	ok(object_code(&m, artifact(O_RDONLY)) == -EINVAL, "which needs no file");
	m.op = JAIL_OBJECT_OPS;
	ok(object_code(&m, -1) == -EINVAL, "an operation that is none");
	m = good_object(JAIL_OBJECT_DELETE);
	m.number = 0;
	ok(object_code(&m, -1) == -EINVAL, "without a number");
	m = good_object(JAIL_OBJECT_DELETE);
	m.policy_generation++;
	ok(object_code(&m, -1) == -ESTALE, "a stale generation");
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		m = good_object(JAIL_OBJECT_DELETE);
		memset(m.key, 0, sizeof(m.key));
		strcpy(m.key, keys[i]);
		ok(object_code(&m, -1) == -EINVAL, "a key that is none ('%s')", keys[i]);
	}
	m = good_object(JAIL_OBJECT_DELETE);
	memset(m.key + 11, 'a', sizeof(m.key) - 11);
	ok(object_code(&m, -1) == -EINVAL, "a key without end");
	m = good_object(JAIL_OBJECT_DELETE);
	strcpy(m.type, "a\r\nb: c");
	ok(object_code(&m, -1) == -EINVAL, "a type that adds a header");
	m = good_object(JAIL_OBJECT_DELETE);
	set->config.bucket.on = 0;
	ok(object_code(&m, -1) == -ESTALE, "where there is no bucket");
	set->config.bucket.on = 1;
}

static void test_make_fields(void)
{
	struct jail_make m = good_make();
	ok(make_code(&m, exec_memfd()) == 0, "a good MAKE");
	ok(root.last.limits.memory_bytes == 1 << 20 && root.last.limits.pids == 100,
	        "limits are the smaller ones");
	m.narrow.memory_bytes = 2ull << 30;
	ok(make_code(&m, exec_memfd()) < 0, "a widening");
	m = good_make();
	m.policy_generation = 2;
	ok(make_code(&m, exec_memfd()) == -ESTALE, "a stale generation");
	m = good_make();
	m.policy = POLICIES;
	ok(make_code(&m, exec_memfd()) == -EINVAL, "a policy out of range");
	m = good_make();
	m.flags |= 1u << 20;
	ok(make_code(&m, exec_memfd()) == -EINVAL, "an unknown flag");
	m = good_make();
	ok(make_code(&m, -1) == -EINVAL, "EXEC without its descriptor");
	m.flags = JAIL_MAKE_SESSION;
	ok(make_code(&m, exec_memfd()) == -EINVAL, "a descriptor without EXEC");
	m.flags = JAIL_MAKE_SESSION | JAIL_MAKE_ROOT;
	ok(make_code(&m, -1) == -EINVAL, "ROOT without EXEC");
	m.flags = JAIL_MAKE_SESSION | JAIL_MAKE_ACP;
	ok(make_code(&m, -1) == -EINVAL, "ACP without EXEC");
	m.flags = JAIL_MAKE_SESSION | JAIL_MAKE_SECRETS;
	ok(make_code(&m, -1) == -EINVAL, "SECRETS without EXEC");
	m = good_make();
	m.flags |= JAIL_MAKE_ACP;
	ok(make_code(&m, exec_memfd()) == 0, "ACP with it");
	m = good_make();
	m.flags &= ~(uint32_t)JAIL_MAKE_SESSION;
	ok(make_code(&m, exec_memfd()) == -EINVAL, "a session id that is not asked for");
	m = good_make();
	strcpy(m.session, "ses_../../../../../../etc/xxxx");
	ok(make_code(&m, exec_memfd()) == -EINVAL, "a session id with a path");
	m = good_make();
	strcpy(m.run, "run_01jd0000000000000000000000");
	ok(make_code(&m, exec_memfd()) == 0, "for a run");
	strcpy(m.run, "run_../../../../../../etc/xxxx");
	ok(make_code(&m, exec_memfd()) == -EINVAL, "a run's id with a path");
	memset(m.run, 'r', sizeof(m.run));
	ok(make_code(&m, exec_memfd()) == -EINVAL, "a run's id without an end");
	m = good_make();
	strcpy(m.run, "run_01jd0000000000000000000000");
	m.flags &= ~(uint32_t)JAIL_MAKE_SESSION;
	memset(m.session, 0, sizeof(m.session));
	ok(make_code(&m, exec_memfd()) == -EINVAL, "a run without a session");
	m = good_make();
	m.flags |= JAIL_MAKE_PROGRAM;
	ok(make_code(&m, exec_memfd()) == -EINVAL, "PROGRAM is for EXEC");
	m = good_make();
	strcpy(m.agent, "../claude");
	ok(make_code(&m, exec_memfd()) == -EINVAL, "an agent with a path");
	m = good_make();
	m.nbinds = JAIL_BINDS + 1;
	ok(make_code(&m, exec_memfd()) == -EINVAL, "too many binds");
	m = good_make();
	m.binds[0].writable = 1;
	ok(make_code(&m, exec_memfd()) == -EACCES, "writing to a read-only source");
	m = good_make();
	m.binds[0].index = 2;
	ok(make_code(&m, exec_memfd()) == -EACCES, "a source that is not listed");
	m = good_make();
	strcpy(m.binds[1].target, "/mnt/a/b");
	ok(make_code(&m, exec_memfd()) == -EINVAL, "a target inside another");
	m = good_make();
	memset(m.binds[0].below, 'a', sizeof(m.binds[0].below));
	ok(make_code(&m, exec_memfd()) == -EINVAL, "text without an end");
	int unsealed = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	(void)!ftruncate(unsealed, 64);
	m = good_make();
	ok(make_code(&m, unsealed) == -EINVAL, "an unsealed exec request");
	ok(make_code(&m, open("/dev/null", O_RDWR | O_CLOEXEC)) == -EINVAL, "a device instead");
	ok(make_code(&m, open("/", O_PATH | O_CLOEXEC)) == -EINVAL, "a directory instead");
	root.keep_fd = true;
	ok(make_code(&m, exec_memfd()) == 0 && fcntl(root.kept, F_GETFD) >= 0,
	        "an operation may keep the descriptor");
	fd_close(root.kept);
	root.keep_fd = false;
}

static void test_paths(void)
{
	static const char *const bad_below[] = {"/", "/etc", "..", "a/..", "../a", "a/../b", "./a",
	        "a//b", "a/", ".", "a/.", "a\nb", "a\x7f"};
	static const char *const good_below[] = {"", "a", "a/b", "..a", "a..", "a/...", ".git"};
	static const char *const bad_target[] = {"", "/", "/mnt", "/mnt/", "/mntx/a", "/etc/a",
	        "mnt/a", "/mnt/../etc", "/mnt/a/", "/mnt//a", "/workspace", "/workspace/",
	        "/workspace/.", "//mnt/a"};
	static const char *const good_target[] = {"/mnt/a", "/mnt/a/b", "/workspace/x"};
	unsigned wrong = 0;
	for (size_t i = 0; i < ARRAY_LEN(bad_below); i++)
		wrong += broker_below_ok(bad_below[i]);
	for (size_t i = 0; i < ARRAY_LEN(good_below); i++)
		wrong += !broker_below_ok(good_below[i]);
	ok(wrong == 0, "paths below a source");
	wrong = 0;
	for (size_t i = 0; i < ARRAY_LEN(bad_target); i++)
		wrong += broker_target_ok(bad_target[i]);
	for (size_t i = 0; i < ARRAY_LEN(good_target); i++)
		wrong += !broker_target_ok(good_target[i]);
	ok(wrong == 0, "targets in a jail");
}

int main(void)
{
	make_set();
	test_table();
	test_unknown_types();
	test_hello();
	test_later();
	test_mutations();
	test_hook_fields();
	test_object_fields();
	test_snapshot_fields();
	test_make_fields();
	test_paths();
	ok(root.bad == 0, "nothing beyond the policies ever reached an operation");
	free(set);
	return done();
}
