/*
 * hostile_supervisor.c - a supervisor that was taken over, started by a real
 * agentboxd in the place of agentbox-supervisor (--libexec).
 *
 * It keeps root's ids on purpose (agentboxd must not rely on what a child gave
 * up) but looks at nothing of root's itself.  Each start does the next part and
 * writes TAP lines to the directory it was given as state; after the last part
 * it lives on quietly.  What must hold is judged by the shell test around it.
 *
 *	part 0		every field of every message changed; replies counted
 *	part 1..		one protocol violation each, after which it must be dead
 */
#include "base/fd.h"
#include "base/mem.h"
#include "policy/policy.h"
#include "proto/build.h"
#include "proto/children.h"
#include "proto/exec.h"
#include "proto/jail.h"

#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WAIT_MS = 20000 };

static const struct policy_set *set;
static int report_fd, tests;
static uint64_t req;
static int keep_fds; /* of replies: open for good */

static void say(int good, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(int good, const char *fmt, ...)
{
	char what[600], line[700];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	int n = snprintf(line, sizeof(line), "%s %d %s\n", good ? "ok" : "not-ok", ++tests, what);
	(void)!write(report_fd, line, (size_t)n);
}

/* ---- speaking ---- */

static int exec_memfd(void)
{
	const char *const argv[] = {"/bin/sh", "-c", "id -u; sleep 300", NULL};
	const char *const env[] = {"PATH=/usr/bin:/bin", NULL};
	const struct exec_spec spec = {argv, env, "/"};
	return exec_pack(&spec, NULL);
}

/* The reply to the last request; events before it are passed over.  -EPIPE: we are cut off. */
static int reply(struct jail_reply *ret)
{
	_Alignas(16) char bytes[MSG_MAX];
	for (;;) {
		struct pollfd p = {.fd = CHILD_CONTROL, .events = POLLIN};
		if (poll(&p, 1, WAIT_MS) <= 0)
			return -ETIME;
		int fds[MSG_FDS];
		int n = msg_recv(CHILD_CONTROL, bytes, fds);
		for (int i = 0; i < MSG_FDS && !keep_fds; i++)
			fd_close(fds[i]);
		if (n == -EAGAIN)
			continue;
		if (n <= 0)
			return -EPIPE;
		const struct msg_head *h = (const void *)bytes;
		if (h->type != JAIL_REPLY || h->req != req)
			continue;
		memcpy(ret, bytes, sizeof(*ret));
		return 0;
	}
}

static int ask(void *m, size_t size, unsigned type, int with_fd, struct jail_reply *ret)
{
	struct msg_head *h = m;
	h->type = (uint16_t)type;
	h->req = ++req;
	auto_close int fd = with_fd ? exec_memfd() : -1;
	int r = msg_send(CHILD_CONTROL, m, size, &fd, with_fd ? 1 : 0);
	return r < 0 ? r : reply(ret);
}

static void get_policies(void)
{
	_Alignas(16) char bytes[MSG_MAX];
	struct pollfd p = {.fd = CHILD_CONTROL, .events = POLLIN};
	int fds[MSG_FDS];
	if (poll(&p, 1, WAIT_MS) <= 0 || msg_recv(CHILD_CONTROL, bytes, fds) <= 0)
		_exit(1);
	struct stat st;
	if (fstat(fds[0], &st) < 0)
		_exit(1);
	set = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fds[0], 0);
	if (set == MAP_FAILED)
		_exit(1);
}

static void hello(void)
{
	struct jail_simple m = {.jail = 0};
	struct jail_reply r;
	if (ask(&m, sizeof(m), JAIL_HELLO, 0, &r) < 0 || r.err.code < 0)
		say(0, "HELLO is answered");
}

static struct jail_make good_make(void)
{
	int i = policy_find(set, "bindable");
	struct jail_make m = {.policy_generation = set->generation,
	        .policy = i < 0 ? 0 : (uint32_t)i,
	        .flags = JAIL_MAKE_EXEC | JAIL_MAKE_SESSION};
	strcpy(m.session, "ses_01jd0000000000000000000000");
	return m;
}

static void end_jail(uint64_t jail)
{
	struct jail_simple m = {.jail = jail};
	struct jail_reply r = {.err = {.code = 0}};
	(void)!ask(&m, sizeof(m), JAIL_KILL, 0, &r);
	for (int i = 0; i < 400; i++) {
		m.jail = jail;
		if (ask(&m, sizeof(m), JAIL_RELEASE, 0, &r) < 0 || r.err.code != -EBUSY)
			return;
		usleep(5000);
	}
	say(0, "jail %llu is gone after KILL", (unsigned long long)jail);
}

/* ---- part 0: fields ---- */

static unsigned asked, refused, made;

/* A jail that came about in spite of everything must be within the lease range. */
static void judge_make(struct jail_make *m, int fd)
{
	struct jail_reply r;
	int code = ask(m, sizeof(*m), JAIL_MAKE, fd, &r);
	asked++;
	if (code < 0) {
		say(0, "MAKE is answered: %s", strerror(-code));
		_exit(1);
	}
	if (r.err.code < 0) {
		refused++;
		return;
	}
	made++;
	if (r.base_uid < 0x20010000u || r.base_uid >= 0x40000000u || r.base_uid % 65536)
		say(0, "base uid %u is a leased one", r.base_uid);
	end_jail(r.jail);
}

/* Every 32-bit word of the fixed fields, and the first bytes of every text. */
static void mutate_make(void)
{
	static const uint32_t values[] = {1, 0x7fffffff, 0xffffffff, 0x2f2e2e2f};
	for (size_t at = sizeof(struct msg_head); at < offsetof(struct jail_make, binds); at += 4) {
		for (size_t v = 0; v < ARRAY_LEN(values); v++) {
			struct jail_make m = good_make();
			memcpy((char *)&m + at, &values[v], sizeof(values[v]));
			judge_make(&m, 1);
		}
	}
}

static void hostile_binds(void)
{
	static const struct {
		const char *below, *target;
		uint32_t index, writable;
	} binds[] = {
	        {"../../etc", "/mnt/x", 0, 0},
	        {"/etc", "/mnt/x", 0, 0},
	        {"link", "/mnt/x", 0, 0}, /* the test made it: -> /etc */
	        {"link/shadow", "/mnt/x", 0, 0},
	        {"fifo", "/mnt/x", 0, 0},
	        {"socket", "/mnt/x", 0, 0},
	        {"", "/etc", 0, 0},
	        {"", "/mnt/../etc", 0, 0},
	        {"", "/proc", 0, 0},
	        {"", "/", 0, 0},
	        {"", "/mnt/x", 0, 1},
	        {"", "/mnt/x", 1, 0},
	        {"", "/mnt/x", 0xffffffff, 0},
	        {"", "/mnt/x", 0x80000000, 0},
	};
	unsigned before = made;
	for (size_t i = 0; i < ARRAY_LEN(binds); i++) {
		struct jail_make m = good_make();
		m.nbinds = 1;
		strcpy(m.binds[0].below, binds[i].below);
		strcpy(m.binds[0].target, binds[i].target);
		m.binds[0].index = binds[i].index;
		m.binds[0].writable = binds[i].writable;
		judge_make(&m, 1);
		if (made != before)
			say(0, "bind %zu (%s at %s) is refused", i, binds[i].below,
			        binds[i].target);
		before = made;
	}
	say(1, "hostile binds are refused");
}

static void hostile_names(void)
{
	static const char *const sessions[] = {"", "..", "ses_", "ses_../../../../../../../etc",
	        "run_01jd0000000000000000000000", "ses_01jd000000000000000000000/",
	        "ses_01JD0000000000000000000000"};
	static const char *const agents[] = {"..", ".", "/etc", "a/b", "Claude", "evil"};
	for (size_t i = 0; i < ARRAY_LEN(sessions); i++) {
		struct jail_make m = good_make();
		memset(m.session, 0, sizeof(m.session));
		strcpy(m.session, sessions[i]);
		judge_make(&m, 1);
		struct jail_session d = {.head = {.pad = 0}};
		strcpy(d.session, sessions[i]);
		struct jail_reply r;
		if (ask(&d, sizeof(d), JAIL_SESSION_DELETE, 0, &r) < 0 || r.err.code >= 0)
			say(0, "SESSION_DELETE '%s' is refused", sessions[i]);
	}
	unsigned before = made;
	for (size_t i = 0; i < ARRAY_LEN(agents); i++) {
		struct jail_make m = good_make();
		strcpy(m.agent, agents[i]);
		judge_make(&m, 1);
	}
	say(made == before, "hostile names are refused");
}

static void hostile_numbers(void)
{
	static const uint64_t jails[] = {0, 1, 4095, 4096, 4097, 1ull << 32, ~0ull};
	static const unsigned types[] = {
	        JAIL_KILL, JAIL_WORKER, JAIL_RELEASE, JAIL_STATS, JAIL_STDIN_END, JAIL_REST};
	int good = 1;
	struct jail_reply r;
	for (size_t i = 0; i < ARRAY_LEN(jails); i++) {
		for (size_t t = 0; t < ARRAY_LEN(types); t++) {
			struct jail_simple m = {.jail = jails[i]};
			good &= ask(&m, sizeof(m), types[t], 0, &r) == 0 && r.err.code == -ENOENT;
		}
		struct jail_exec x = {.jail = jails[i]};
		good &= ask(&x, sizeof(x), JAIL_EXEC, 1, &r) == 0 && r.err.code == -ENOENT;
		struct jail_socket p = {.jail = jails[i], .port = 3000};
		good &= ask(&p, sizeof(p), JAIL_SOCKET, 0, &r) == 0 && r.err.code == -ENOENT;
		struct jail_claim c = {.jail = jails[i]};
		strcpy(c.session, "ses_01jd0000000000000000000000");
		strcpy(c.run, "run_01jd0000000000000000000000");
		good &= ask(&c, sizeof(c), JAIL_CLAIM, 0, &r) == 0 && r.err.code == -ENOENT;
		struct jail_signal s = {.jail = jails[i], .exec = 1, .sig = 9};
		good &= ask(&s, sizeof(s), JAIL_SIGNAL, 0, &r) == 0 && r.err.code == -ENOENT;
	}
	say(good, "numbers of jails that are not there are refused");
}

static void one_jail(void)
{
	struct jail_make m = good_make();
	struct jail_reply r;
	if (ask(&m, sizeof(m), JAIL_MAKE, 1, &r) < 0 || r.err.code < 0) {
		say(0, "an honest MAKE works: %s", r.err.text);
		return;
	}
	say(1, "an honest MAKE works");
	uint64_t jail = r.jail;
	struct jail_simple simple = {.jail = jail};
	say(ask(&simple, sizeof(simple), JAIL_RELEASE, 0, &r) == 0 && r.err.code == -EBUSY,
	        "a live jail is not released");
	struct jail_make again = good_make();
	say(ask(&again, sizeof(again), JAIL_MAKE, 1, &r) == 0 && r.err.code == -EBUSY,
	        "a session has one live jail");
	struct jail_session d = {.head = {.pad = 0}};
	strcpy(d.session, m.session);
	say(ask(&d, sizeof(d), JAIL_SESSION_DELETE, 0, &r) == 0 && r.err.code == -EBUSY,
	        "the session of a live jail is not deleted");
	struct jail_signal s = {.jail = jail, .exec = 2, .sig = 9};
	say(ask(&s, sizeof(s), JAIL_SIGNAL, 0, &r) == 0 && r.err.code == -ENOENT,
	        "a program that was not started is not signalled");
	s = (struct jail_signal){.jail = jail, .exec = 1, .sig = 65};
	say(ask(&s, sizeof(s), JAIL_SIGNAL, 0, &r) == 0 && r.err.code == -EINVAL,
	        "signal 65 is refused");
	struct jail_exec x = {.jail = jail, .flags = JAIL_MAKE_PROGRAM};
	say(ask(&x, sizeof(x), JAIL_EXEC, 1, &r) == 0 && r.err.code == -EINVAL,
	        "a jail of no run has no program to be kept");
	/* Policy `default` lets nobody in. */
	static const uint16_t ports[] = {1, 53, 80, 443, 3000, 65535};
	int shut = 1;
	for (size_t i = 0; i < ARRAY_LEN(ports); i++) {
		struct jail_socket p = {.jail = jail, .port = ports[i], .v6 = i & 1};
		shut &= ask(&p, sizeof(p), JAIL_SOCKET, 0, &r) == 0 && r.err.code == -EACCES;
	}
	say(shut, "a port that its policy does not name is not reached");
	int workers = 0;
	keep_fds = 1;
	for (int i = 0; i < 20; i++) {
		simple.jail = jail;
		workers += ask(&simple, sizeof(simple), JAIL_WORKER, 0, &r) == 0 && r.err.code == 0;
	}
	keep_fds = 0;
	say(workers > 0 && workers <= 4, "%d workers of 20 asked for", workers);
	end_jail(jail);
}

static bool make_for_run(struct jail_make *m, struct jail_reply *r)
{
	strcpy(m->run, "run_01jd0000000000000000000000");
	if (ask(m, sizeof(*m), JAIL_MAKE, 1, r) >= 0 && r->err.code >= 0)
		return true;
	say(0, "a MAKE for a run works: %s", r->err.text);
	return false;
}

/* Only one that rests is claimed, for its own session; what rests is in nobody's way. */
static void resting_jail(void)
{
	struct jail_make m = good_make();
	struct jail_reply r;
	if (!make_for_run(&m, &r))
		return;
	struct jail_simple simple = {.jail = r.jail};
	struct jail_claim c = {.jail = r.jail};
	strcpy(c.session, m.session);
	strcpy(c.run, "run_01jd0000000000000000000001");
	say(ask(&c, sizeof(c), JAIL_CLAIM, 0, &r) == 0 && r.err.code == -EPERM,
	        "a jail that does not rest is not claimed");
	say(ask(&simple, sizeof(simple), JAIL_REST, 0, &r) == 0 && r.err.code == 0 &&
	                ask(&simple, sizeof(simple), JAIL_REST, 0, &r) == 0 && r.err.code == 0,
	        "a jail rests, twice");
	struct jail_exec x = {.jail = simple.jail};
	say(ask(&x, sizeof(x), JAIL_EXEC, 1, &r) == 0 && r.err.code == -ESRCH,
	        "nothing is started in one that rests");
	strcpy(c.session, "ses_01jd0000000000000000000009");
	say(ask(&c, sizeof(c), JAIL_CLAIM, 0, &r) == 0 && r.err.code == -EPERM,
	        "it is not claimed for another session");
	strcpy(c.session, "../../../../../../../etc/passwd");
	say(ask(&c, sizeof(c), JAIL_CLAIM, 0, &r) == 0 && r.err.code == -EINVAL,
	        "nor for what is none");
	strcpy(c.session, m.session);
	say(ask(&c, sizeof(c), JAIL_CLAIM, 0, &r) == 0 && r.err.code == 0 &&
	                ask(&c, sizeof(c), JAIL_CLAIM, 0, &r) == 0 && r.err.code == -EPERM,
	        "but for its own, once");
	end_jail(simple.jail);
}

/* One that is kept beyond our end has one program, and is not told of to those who have it. */
static void run_jail(void)
{
	struct jail_make m = good_make();
	struct jail_reply r;
	if (!make_for_run(&m, &r))
		return;
	uint64_t jail = r.jail;
	struct jail_exec x = {.jail = jail, .flags = JAIL_MAKE_PROGRAM};
	say(ask(&x, sizeof(x), JAIL_EXEC, 1, &r) == 0 && r.err.code == -EINVAL,
	        "a run's jail has one program");
	struct jail_simple simple = {.jail = jail};
	say(ask(&simple, sizeof(simple), JAIL_STDIN_END, 0, &r) == 0 && r.err.code == 0 &&
	                ask(&simple, sizeof(simple), JAIL_STDIN_END, 0, &r) == 0 && r.err.code == 0,
	        "the end of its input, twice");
	end_jail(jail);
	simple.jail = 0;
	say(ask(&simple, sizeof(simple), JAIL_ADOPT, 0, &r) == 0 && r.err.code == 0 &&
	                r.former == FORMER_NONE,
	        "nobody was there before");
}

static void part_fields(void)
{
	hello();
	one_jail();
	resting_jail();
	run_jail();
	hostile_numbers();
	hostile_names();
	hostile_binds();
	mutate_make();
	say(refused > 0 && asked == refused + made, "%u MAKEs asked: %u refused, %u made", asked,
	        refused, made);
}

/* ---- parts 1..: one violation each ---- */

static void violation(int i)
{
	union {
		struct msg_head head;
		struct jail_simple simple;
		char bytes[MSG_MAX];
	} m = {.simple = {.jail = 0}};
	size_t size = sizeof(m.simple);
	int fds[3] = {-1, -1, -1}, nfds = 0;
	m.head.type = JAIL_STATS;
	if (i != 1)
		hello();
	switch (i) {
	case 1: /* before HELLO */
		break;
	case 2:
		m.head.type = 77;
		break;
	case 3:
		m.head.type = JAIL_HELLO; /* twice */
		break;
	case 4:
		size += 8;
		break;
	case 5:
		size = sizeof(struct msg_head);
		break;
	case 6:
		nfds = 1;
		break;
	case 7:
		m.head.type = JAIL_REPLY;
		break;
	case 8: {
		struct jail_simple adopt = {.jail = 0};
		struct jail_reply r;
		if (ask(&adopt, sizeof(adopt), JAIL_ADOPT, 0, &r) < 0 ||
		        r.former != FORMER_SUPERVISOR)
			say(0, "ADOPT says that another was there");
		m.head.type = JAIL_ADOPT; /* twice */
		break;
	}
	default: /* no message at all */
		(void)!write(CHILD_CONTROL, "garbage", 7);
		size = 0;
	}
	for (int k = 0; k < nfds; k++)
		fds[k] = exec_memfd();
	if (size > 0)
		(void)!msg_send(CHILD_CONTROL, &m, size, fds, nfds);
	struct jail_reply r;
	req = m.head.req;
	int code = reply(&r);
	say(0, "violation %d ends the supervisor (still here: %d)", i, code);
}

enum { VIOLATIONS = 9 };

int main(int argc, char **argv)
{
	struct err e;
	if (build_check(argc, argv, &e) != 0)
		return argc != 3;
	report_fd = openat(CHILD_STATE, "report", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	char *text = NULL;
	long part = 0;
	if (file_slurp_at(CHILD_STATE, "part", 64, &text, NULL) == 0)
		part = strtol(text, NULL, 10);
	free(text);
	auto_close int fd =
	        openat(CHILD_STATE, "part", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	dprintf(fd, "%ld\n", part + 1);
	get_policies();
	if (part == 0) {
		part_fields();
		_exit(0);
	}
	if (part <= VIOLATIONS) {
		violation((int)part);
		_exit(1);
	}
	hello();
	say(1, "all parts were done");
	struct pollfd p = {.fd = CHILD_CONTROL, .events = 0};
	poll(&p, 1, -1); /* until agentboxd is gone */
	return 0;
}
