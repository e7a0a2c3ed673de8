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

enum { POLICIES = 2 };
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
	root.bad += c->exec_fd < 0 ||
	            (m->flags & ~(JAIL_MAKE_TTY | JAIL_MAKE_ROOT | JAIL_MAKE_PROGRAM));
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
};

/* ---- what is sent ---- */

static void make_set(void)
{
	set = xcalloc(1, sizeof(*set) + POLICIES * sizeof(struct policy));
	set->magic = POLICY_SET_MAGIC;
	set->count = POLICIES;
	set->generation = 3;
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
	struct jail_make m = {.policy_generation = 3,
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

union any {
	struct msg_head head;
	struct jail_simple simple;
	struct jail_make make;
	struct jail_exec exec;
	struct jail_signal signal;
	struct jail_session session;
	struct jail_socket socket;
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
};

static void fill(union any *m, const struct expect *x)
{
	memset(m, 0, sizeof(*m));
	if (x->type == JAIL_MAKE)
		m->make = good_make();
	else if (x->type == JAIL_SIGNAL)
		m->signal = (struct jail_signal){.jail = 7, .exec = 1, .sig = 15};
	else if (x->type == JAIL_SOCKET)
		m->socket = (struct jail_socket){.jail = 7, .port = 3000};
	else if (x->type == JAIL_SESSION_DELETE)
		strcpy(m->session.session, session_id);
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
					wrong += root.calls != (done ? 1u : 0u);
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
		bool slow = x->type == JAIL_RELOAD || x->type == JAIL_SESSION_DELETE;
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

static int make_code(const struct jail_make *m, int fd)
{
	struct broker b;
	in_phase(&b, BROKER_SERVE);
	union any any = {.make = *m};
	any.head = (struct msg_head){.type = JAIL_MAKE, .size = sizeof(*m), .req = 1};
	int fds[MSG_FDS] = {fd, -1, -1, -1, -1, -1, -1, -1};
	struct broker_call call;
	struct err e = {0};
	if (broker_receive(&b, &any, sizeof(*m), fds, &call, &e) != BROKER_REPLY)
		return -EPROTO;
	if (call.reply.err.code < 0)
		printf("# %s\n", call.reply.err.text);
	return call.reply.err.code;
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
	test_make_fields();
	test_paths();
	ok(root.bad == 0, "nothing beyond the policies ever reached an operation");
	free(set);
	return done();
}
