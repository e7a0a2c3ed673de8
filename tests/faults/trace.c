/*
 * Theory of operation: every traced task stops twice a call.  At the first stop the site is worked
 * out and compared with the plan; to make it fail, it becomes close(-1), which does nothing and
 * which every filter lets through, and at the second stop the registers are as they were and the
 * result is the error.  With `after` the kernel does its work and only the result is replaced:
 * close() frees the descriptor also when it fails.
 *
 * A child shares our attention from its birth.  Its first stop may come before its parent's event
 * that says what it is; until both are there it waits.
 */
#include "tests/faults/trace.h"
#include "tests/faults/calls.h"
#include "tests/faults/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <linux/elf.h>
#include <linux/ptrace.h>

enum { TASKS_MAX = 256, STACK_WORDS = 160, FRAMES = 3, TICK_US = 4000 };

struct text { /* the code of a program */
	uint64_t from, to;
};

struct task {
	pid_t pid; /* 0: free */
	enum kind kind;
	bool known;      /* its kind is */
	bool stopped;    /* at its first stop, until it is known */
	bool inside;     /* between the two stops of a call */
	int error;       /* of the second stop, or 0 */
	struct hit *hit; /* the call it is in; NULL: of no interest */
	bool swapped;    /* `regs` are what the call was made with */
	struct user_regs_struct regs;
	struct text text;
};

struct seen seen;
static struct task tasks[TASKS_MAX];
static struct plan plan;
static struct text daemon_text;
static pid_t daemon_pid;

const char *kind_name(enum kind k)
{
	static const char *const names[KINDS] = {
	        "agentboxd", "user namespace", "child", "helper", "PID 1", "program"};
	return names[k];
}

static void die(const char *what)
{
	printf("Bail out! %s: %s\n", what, strerror(errno));
	exit(1);
}

/* ---- tasks ---- */

static struct task *find(pid_t pid)
{
	for (int i = 0; i < TASKS_MAX; i++)
		if (tasks[i].pid == pid)
			return &tasks[i];
	return NULL;
}

static struct task *add(pid_t pid)
{
	struct task *t = find(0);
	if (!t)
		die("too many tasks");
	*t = (struct task){.pid = pid};
	return t;
}

static struct text text_of(pid_t pid)
{
	char path[64], line[512];
	struct text t = {0, 0};
	(void)snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	FILE *f = fopen(path, "re");
	while (f && !t.to && fgets(line, sizeof(line), f)) {
		unsigned long from, to;
		char flags[8];
		if (sscanf(line, "%lx-%lx %7s", &from, &to, flags) == 3 && flags[2] == 'x')
			t = (struct text){from, to};
	}
	if (f)
		fclose(f);
	return t;
}

/* ---- sites ---- */

static uint64_t mix(uint64_t h, uint64_t v)
{
	return (h ^ v) * 1099511628211ull;
}

/* The return addresses of the program's own code: what lies in libc is skipped, stale words may be
 * taken along. */
static uint64_t where(const struct task *t, uint64_t ip, uint64_t sp)
{
	uint64_t words[STACK_WORDS] = {0}, h = 14695981039346656037ull;
	int frames = 0;
	if (ip >= t->text.from && ip < t->text.to) {
		h = mix(h, ip - t->text.from);
		frames++;
	}
	struct iovec to = {words, sizeof(words)}, from = {(void *)(uintptr_t)sp, sizeof(words)};
	if (process_vm_readv(t->pid, &to, 1, &from, 1, 0) < 0) {
		from.iov_len = to.iov_len = 4096 - sp % 4096; /* the end of the stack */
		if (from.iov_len > sizeof(words))
			return h;
		(void)process_vm_readv(t->pid, &to, 1, &from, 1, 0);
	}
	for (int i = 0; i < STACK_WORDS && frames < FRAMES; i++) {
		if (words[i] < t->text.from || words[i] >= t->text.to)
			continue;
		h = mix(h, words[i] - t->text.from);
		frames++;
	}
	return h;
}

static bool same(const struct site *a, const struct site *b)
{
	return a->kind == b->kind && a->nr == b->nr && a->where == b->where;
}

static void read_path(const struct task *t, uint64_t address, char *out, size_t size)
{
	size_t room = 4096 - address % 4096;
	struct iovec to = {out, size - 1 < room ? size - 1 : room};
	struct iovec from = {(void *)(uintptr_t)address, to.iov_len};
	ssize_t n = process_vm_readv(t->pid, &to, 1, &from, 1, 0);
	out[n > 0 ? n : 0] = '\0';
	for (char *p = out; *p; p++)
		if (*p < ' ' || *p > '~')
			*p = '?';
}

static struct hit *note(const struct task *t, const struct call *c, const struct site *s,
        const struct __ptrace_syscall_info *info)
{
	for (unsigned i = 0; i < seen.nhits; i++) {
		if (same(&seen.hits[i].site, s)) {
			seen.hits[i].count++;
			return &seen.hits[i];
		}
	}
	if (seen.nhits == HITS_MAX)
		die("too many sites");
	struct hit *h = &seen.hits[seen.nhits++];
	*h = (struct hit){.site = *s, .count = 1};
	if (c->path)
		read_path(t, info->entry.args[c->path - 1], h->what, sizeof(h->what));
	return h;
}

/* ---- the two stops ---- */

/* A block may be given back when no process has its ids any more, not before. */
static void check_lease(const struct task *t, const struct __ptrace_syscall_info *info)
{
	struct flock l = {.l_type = F_RDLCK};
	struct iovec to = {&l, sizeof(l)},
	             from = {(void *)(uintptr_t)info->entry.args[2], sizeof(l)};
	if (info->entry.nr != SYS_fcntl || info->entry.args[1] != F_OFD_SETLK ||
	        !watch_is_lease_fd((int)info->entry.args[0]) ||
	        process_vm_readv(t->pid, &to, 1, &from, 1, 0) != (ssize_t)sizeof(l) ||
	        l.l_type != F_UNLCK)
		return;
	pid_t pid = watch_process_of_block((uint32_t)l.l_start);
	if (pid)
		(void)snprintf(seen.early, sizeof(seen.early),
		        "block %ld is given back while process %d lives under it", (long)l.l_start,
		        pid);
}

static bool registers(pid_t pid, int request, struct user_regs_struct *r)
{
	struct iovec v = {r, sizeof(*r)};
	return ptrace(request, pid, NT_PRSTATUS, &v) == 0; /* fails when it was killed */
}

static void swap_call(struct task *t)
{
	struct user_regs_struct r;
	if (!registers(t->pid, PTRACE_GETREGSET, &r))
		return;
	t->regs = r;
	t->swapped = true;
	r.orig_rax = SYS_close;
	r.rdi = (unsigned long long)-1;
	(void)registers(t->pid, PTRACE_SETREGSET, &r);
}

static void set_result(struct task *t)
{
	struct user_regs_struct r;
	if (!registers(t->pid, PTRACE_GETREGSET, &r))
		return;
	if (t->swapped)
		r.rdi = t->regs.rdi;
	t->swapped = false;
	r.rax = (unsigned long long)-(long long)t->error;
	(void)registers(t->pid, PTRACE_SETREGSET, &r);
}

static void fire(struct task *t)
{
	seen.fired = true;
	if (plan.fault == FAULT_KILL || plan.fault == FAULT_KILL_DAEMON) {
		(void)kill(plan.fault == FAULT_KILL ? t->pid : daemon_pid, SIGKILL);
		return;
	}
	if (!plan.after)
		swap_call(t);
	t->error = plan.error;
}

static void entered(struct task *t, const struct __ptrace_syscall_info *info)
{
	const struct call *c = call_of((int)info->entry.nr);
	t->inside = true;
	t->hit = NULL;
	if (!c) {
		seen.unknown = (int)info->entry.nr;
		return;
	}
	check_lease(t, info);
	if (!c->errors[0])
		return;
	struct site s = {.kind = t->kind,
	        .nr = c->nr,
	        .where = where(t, info->instruction_pointer, info->stack_pointer)};
	struct hit *h = t->hit = note(t, c, &s, info);
	if (!seen.fired && plan.fault != FAULT_NONE && same(&s, &plan.site) && h->count == plan.nth)
		fire(t);
}

static void on_syscall(struct task *t)
{
	struct __ptrace_syscall_info info;
	if (ptrace(PTRACE_GET_SYSCALL_INFO, t->pid, sizeof(info), &info) < 0)
		return; /* killed */
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
		entered(t, &info);
	} else if (info.op == PTRACE_SYSCALL_INFO_EXIT) {
		t->inside = false;
		if (t->error)
			set_result(t);
		else if (t->hit)
			t->hit->error = info.exit.is_error ? (int)-info.exit.rval : 0;
		t->error = 0;
	}
}

/* ---- births, execs, ends ---- */

static enum kind kind_of_child(enum kind parent, int event)
{
	if (parent == KIND_INIT || parent == KIND_PROGRAM)
		return KIND_PROGRAM;
	if (parent != KIND_DAEMON)
		return KIND_HELPER;
	return event == PTRACE_EVENT_CLONE   ? KIND_USERS
	       : event == PTRACE_EVENT_VFORK ? KIND_ENTER
	                                     : KIND_HELPER;
}

static void go_on(pid_t pid, int sig)
{
	(void)ptrace(PTRACE_SYSCALL, pid, 0, sig); /* ESRCH: killed */
}

static void on_birth(const struct task *parent, int event)
{
	unsigned long pid = 0;
	if (ptrace(PTRACE_GETEVENTMSG, parent->pid, 0, &pid) < 0)
		return;
	struct task *t = find((pid_t)pid);
	if (!t)
		t = add((pid_t)pid);
	t->kind = kind_of_child(parent->kind, event);
	t->text = parent->text;
	t->known = true;
	if (t->stopped)
		go_on(t->pid, 0);
	t->stopped = false;
}

/* False: let go of. */
static bool on_exec(struct task *t)
{
	if (t->kind == KIND_ENTER) {
		t->kind = KIND_INIT;
		t->text = text_of(t->pid);
		return true;
	}
	if (t->kind == KIND_DAEMON)
		return true;
	(void)ptrace(PTRACE_DETACH, t->pid, 0, 0);
	t->pid = 0;
	return false;
}

static void on_stop(struct task *t, int status)
{
	int sig = WSTOPSIG(status), event = status >> 16;
	if (sig == (SIGTRAP | 0x80)) {
		on_syscall(t);
		go_on(t->pid, 0);
	} else if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK ||
	           event == PTRACE_EVENT_CLONE) {
		on_birth(t, event);
		go_on(t->pid, 0);
	} else if (event == PTRACE_EVENT_EXEC) {
		if (on_exec(t))
			go_on(t->pid, 0);
	} else if (event == PTRACE_EVENT_STOP && !t->known) {
		t->stopped = true;
	} else {
		go_on(t->pid, event ? 0 : sig);
	}
}

static void on_end(struct task *t, int status)
{
	if (t->pid == daemon_pid) {
		seen.daemon_ended = true;
		seen.daemon_status = status;
	}
	t->pid = 0;
}

/* ---- use ---- */

static void tick(int sig)
{
	(void)sig;
}

static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

bool trace_run(int ms, pid_t other, int *ret)
{
	int64_t end = now_ms() + ms;
	bool ended = false;
	while (!ended && now_ms() < end) {
		int status;
		pid_t pid = waitpid(-1, &status, __WALL);
		if (pid < 0 && errno == ECHILD) { /* nobody is traced */
			usleep(TICK_US);
			continue;
		}
		if (pid < 0)
			continue; /* the tick */
		struct task *t = find(pid);
		if (pid == other && !t) {
			*ret = status;
			ended = true;
		} else if (!WIFSTOPPED(status)) {
			if (t)
				on_end(t, status);
		} else {
			on_stop(t ? t : add(pid), status);
		}
	}
	return ended;
}

void trace_arm(const struct plan *p)
{
	memset(&seen, 0, sizeof(seen));
	for (int i = 0; i < TASKS_MAX; i++)
		tasks[i].hit = NULL;
	seen.unknown = -1;
	plan = p ? *p : (struct plan){.fault = FAULT_NONE};
}

void trace_attach(pid_t daemon)
{
	static const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK |
	                            PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC;
	struct sigaction a = {.sa_handler = tick};
	struct itimerval every = {{0, TICK_US}, {0, TICK_US}};
	if (sigaction(SIGALRM, &a, NULL) < 0 || setitimer(ITIMER_REAL, &every, NULL) < 0)
		die("timer");
	if (ptrace(PTRACE_SEIZE, daemon, 0, options) < 0 ||
	        ptrace(PTRACE_INTERRUPT, daemon, 0, 0) < 0)
		die("ptrace of agentboxd");
	memset(tasks, 0, sizeof(tasks));
	daemon_pid = daemon;
	daemon_text = text_of(daemon);
	struct task *t = add(daemon);
	t->kind = KIND_DAEMON;
	t->known = true;
	t->text = daemon_text;
	trace_arm(NULL);
}

void trace_detach(void)
{
	for (int i = 0; i < TASKS_MAX; i++) {
		pid_t pid = tasks[i].pid;
		int status;
		if (!pid)
			continue;
		(void)ptrace(PTRACE_INTERRUPT, pid, 0, 0);
		if (waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status))
			(void)ptrace(PTRACE_DETACH, pid, 0, 0);
		tasks[i].pid = 0;
	}
}
