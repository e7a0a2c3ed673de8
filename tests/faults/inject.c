/*
 * inject.c - lets each system call of a jail's life fail once, and looks at what is left.
 *
 *	inject DAEMON CGROUP STATE quick|all|kill=N/M CLIENT [ARGS...] [::|::few CLIENT
 *[ARGS...]]...
 *
 * DAEMON is a running agentboxd, CGROUP its subtree, STATE its directory, each CLIENT a command
 * that makes a jail and prints "alive" from inside.  It is first run undisturbed, to see the sites;
 * then again for each of those that no client before had, with one call failing (quick: the first
 * one at each site, with the likeliest error; after `::few` one site for each call of each kind of
 * task; all: each occurrence with each error), and with the
 * task at the site killed (quick: once for each call of each kind of task).  Each time: the client
 * says "alive" or names what failed, a child that did not do what it was to do is no jail, all that
 * the jail cost is back, no uid block was given back while a process lived under it, and the next
 * jail works.  Prints TAP.
 *
 * kill=N/M: agentboxd itself is killed, at the site N/M of the way through all sites; no process of
 * a jail may survive it.  Prints the site; starting another daemon is the caller's.
 */
#include "base/mem.h"
#include "tests/faults/calls.h"
#include "tests/faults/trace.h"
#include "tests/faults/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	CLIENT_MS =
	        120000, /* a client that takes longer waits for ever, also on a loaded machine */
	SETTLE_MS = 10000,
	REST_MS = 500,
	LEARN_RUNS = 3,
	GROWTH_KB = 512,
};

static char **client;
static struct held before;
static int count, failed;

static void tap(bool good, const char *what, const char *why)
{
	printf("%sok %d - %s\n", good ? "" : "not ", ++count, what);
	if (!good) {
		printf("# %s\n", why);
		failed++;
	}
	fflush(stdout);
}

/* ---- one client ---- */

struct outcome {
	bool ended;
	int status;
	char said[2048]; /* stdout and stderr */
};

static pid_t start_client(int out)
{
	pid_t pid = fork();
	if (pid != 0)
		return pid;
	int null = open("/dev/null", O_RDONLY);
	if (dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
		_exit(111);
	execv(client[0], client);
	_exit(111);
}

static void run_client(struct outcome *o)
{
	int out = memfd_create("client", MFD_CLOEXEC);
	pid_t pid = start_client(out);
	*o = (struct outcome){.ended = false};
	o->ended = trace_run(CLIENT_MS, pid, &o->status);
	if (!o->ended) {
		(void)kill(pid, SIGKILL);
		(void)trace_run(CLIENT_MS, pid, &o->status);
	}
	ssize_t n = pread(out, o->said, sizeof(o->said) - 1, 0);
	o->said[n > 0 ? n : 0] = '\0';
	close(out);
}

static bool settle(char *why, size_t size)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	int64_t end = t.tv_sec * 1000 + t.tv_nsec / 1000000 + SETTLE_MS, now;
	do {
		struct held h;
		watch_count(&h);
		if (!held_more(&h, &before, why, size))
			return true;
		(void)trace_run(10, -1, NULL);
		clock_gettime(CLOCK_MONOTONIC, &t);
		now = t.tv_sec * 1000 + t.tv_nsec / 1000000;
	} while (now < end && !seen.daemon_ended);
	return false;
}

static bool is_alive(const struct outcome *o)
{
	return o->ended && WIFEXITED(o->status) && WEXITSTATUS(o->status) == 0 &&
	       strstr(o->said, "alive");
}

/* ---- one fault ---- */

/* What an error of a call means is said instead of its name. */
static const struct {
	int nr, error;
	const char *word;
} other_words[] = {
        /* the other end is taken to be gone: of the supervisor, which is started anew, ... */
        {SYS_recvmsg, ECONNRESET, "the daemon closed the connection"},
        {SYS_recvmsg, ECONNRESET, "the connection to the daemon was lost"},
        {SYS_sendmsg, EPIPE, "the daemon closed the connection"},
        {SYS_sendmsg, EPIPE, "the connection to the daemon was lost"},
        /* ... or of PID 1 and agentboxd for each other, which ends the jail */
        {SYS_recvmsg, ECONNRESET, "the command was ended: killed"},
        {SYS_fcntl, EINVAL, "not a sealed memfd"},
        {SYS_mount_setattr, EINVAL, "has no idmapped mounts"},
};

static bool names_it(const struct outcome *o, const struct plan *p)
{
	enum { KILLED = 128 + SIGKILL };
	/* abctl jail ends as its command does */
	if (p->fault != FAULT_ERROR && p->site.kind == KIND_PROGRAM && WIFEXITED(o->status) &&
	        WEXITSTATUS(o->status) == KILLED)
		return true;
	if (p->fault != FAULT_ERROR)
		return strstr(o->said, "killed") || strstr(o->said, "the jail ended by itself");
	for (size_t i = 0; i < ARRAY_LEN(other_words); i++)
		if (p->site.nr == other_words[i].nr && p->error == other_words[i].error &&
		        strstr(o->said, other_words[i].word))
			return true;
	/* what cannot be read back is as bad as what is read back wrong */
	return strstr(o->said, strerror(p->error)) || strstr(o->said, "is not what was set");
}

/* What a child on its way into the jail can do without: closing what the exec closes, and leading a
 * session when it leads one already. */
static bool may_fail(const struct plan *p)
{
	return p->fault == FAULT_ERROR && (p->site.nr == SYS_close || p->site.nr == SYS_setsid);
}

/* An empty text: as it should be. */
static void judge(const struct outcome *o, const struct plan *p, char *why, size_t size)
{
	why[0] = '\0';
	if (seen.daemon_ended)
		(void)snprintf(why, size, "agentboxd ended with status %#x", seen.daemon_status);
	else if (seen.early[0])
		(void)snprintf(why, size, "%s", seen.early);
	else if (!o->ended)
		(void)snprintf(why, size, "the client waits for ever: %s", o->said);
	else if (!is_alive(o) && !names_it(o, p))
		(void)snprintf(why, size, "status %#x and no clear word: %s", o->status, o->said);
	else if (is_alive(o) && seen.fired && p->site.kind == KIND_ENTER && !may_fail(p) &&
	         !names_it(o, p)) /* a worker's: the run is what it was, but for its artifacts */
		(void)snprintf(why, size, "a jail was made without it");
}

static void one_line(char *s)
{
	for (; *s; s++)
		if (*s == '\n')
			*s = ' ';
}

static void try(const struct hit *h, const struct plan *p)
{
	char what[512], why[2600], left[400];
	struct outcome o, next;
	trace_arm(p);
	run_client(&o);
	bool back = settle(left, sizeof(left));
	bool fired = seen.fired;
	judge(&o, p, why, sizeof(why));
	one_line(o.said);
	(void)snprintf(what, sizeof(what), "%s: %s #%u %s%s%s: %s%.160s", kind_name(h->site.kind),
	        call_of(h->site.nr)->name, p->nth, h->what, h->what[0] ? " " : "",
	        p->fault == FAULT_ERROR ? error_name(p->error) : "SIGKILL",
	        !fired         ? "not reached"
	        : is_alive(&o) ? "gone on"
	                       : "refused: ",
	        !fired || is_alive(&o) ? "" : o.said);
	if (!why[0] && !back)
		(void)snprintf(why, sizeof(why), "left behind: %s", left);
	/* a client that was served shows it itself */
	if (!why[0] && !is_alive(&o)) {
		trace_arm(NULL);
		run_client(&next);
		if (!is_alive(&next))
			(void)snprintf(why, sizeof(why), "the next jail: %s", next.said);
		else if (seen.daemon_ended || !settle(left, sizeof(left)))
			(void)snprintf(why, sizeof(why), "left behind by the next: %s", left);
	}
	tap(!why[0], what, why);
	if (seen.daemon_ended) {
		printf("Bail out! agentboxd is gone\n");
		exit(1);
	}
}

/* ---- all of them ---- */

static struct hit sites[HITS_MAX];
static unsigned nsites;

static unsigned ndone; /* sites[0 .. ndone) were tried with a client before */

static void learn_from(const struct hit *h)
{
	for (unsigned i = 0; i < nsites; i++) {
		if (memcmp(&sites[i].site, &h->site, sizeof(h->site)) == 0) {
			if (i >= ndone && h->count >= sites[i].count) {
				sites[i].count = h->count;
				sites[i].error = h->error;
			}
			return;
		}
	}
	if (nsites < HITS_MAX)
		sites[nsites++] = *h;
}

static bool learn(void)
{
	struct outcome o = {.ended = false};
	char left[400];
	for (int i = 0; i < LEARN_RUNS; i++) {
		trace_arm(NULL);
		run_client(&o);
		(void)settle(left, sizeof(left));
		if (!is_alive(&o) || seen.unknown >= 0)
			break;
		for (unsigned k = 0; k < seen.nhits; k++)
			learn_from(&seen.hits[k]);
	}
	char why[2600];
	(void)snprintf(why, sizeof(why), "system call without a row in calls.c: %d; said: %s",
	        seen.unknown, o.said);
	bool good = is_alive(&o) && seen.unknown < 0;
	tap(good, "undisturbed, the client says alive", why);
	return good;
}

static void fail_at(const struct hit *h, unsigned nth, bool all)
{
	const struct call *c = call_of(h->site.nr);
	for (int i = 0; i < CALLS_ERRORS && c->errors[i] && (all || i == 0); i++) {
		struct plan p = {.site = h->site,
		        .nth = nth,
		        .fault = FAULT_ERROR,
		        .error = c->errors[i],
		        .after = c->after};
		/* the end of a list, say: nothing would be different */
		if (nth < h->count || p.error != h->error)
			try(h, &p);
	}
}

static void kill_at(const struct hit *h, unsigned nth)
{
	struct plan p = {.site = h->site, .nth = nth, .fault = FAULT_KILL};
	if (h->site.kind != KIND_DAEMON)
		try(h, &p);
}

/* One place of this call by this kind of task, from that site on, was tried already. */
static bool like_one_before(unsigned i, unsigned from)
{
	for (unsigned k = from; k < i; k++)
		if (sites[k].site.kind == sites[i].site.kind &&
		        sites[k].site.nr == sites[i].site.nr)
			return true;
	return false;
}

static unsigned everything(bool all, bool few)
{
	unsigned tried = 0;
	for (unsigned first = ndone; ndone < nsites; ndone++) {
		const struct hit *h = &sites[ndone];
		bool another = like_one_before(ndone, 0);
		if (!all && another && h->site.nr == SYS_close) /* a third of all, and all alike */
			continue;
		if (!all && few && like_one_before(ndone, first))
			continue;
		tried++;
		for (unsigned nth = 1; nth <= (all ? h->count : 1); nth++) {
			fail_at(h, nth, all);
			if (all || !another)
				kill_at(h, nth);
		}
	}
	return tried;
}

/* Exit code: 0 when agentboxd was killed there and its jails are gone. */
static int kill_daemon(char **argv, unsigned n, unsigned m)
{
	struct outcome o;
	struct held h;
	client = argv;
	trace_arm(NULL);
	run_client(&o);
	watch_count(&before);
	for (unsigned k = 0; k < seen.nhits; k++)
		learn_from(&seen.hits[k]);
	const struct hit *at = &sites[n * (nsites - 1) / (m > 1 ? m - 1 : 1)];
	struct plan p = {.site = at->site, .nth = 1, .fault = FAULT_KILL_DAEMON};
	trace_arm(&p);
	run_client(&o);
	for (int i = 0; i < SETTLE_MS / 20; i++) {
		(void)trace_run(20, -1, NULL);
		watch_count(&h);
		if (seen.daemon_ended && h.tasks == 0)
			break;
	}
	printf("%s: %s %s\n", kind_name(at->site.kind), call_of(at->site.nr)->name, at->what);
	if (!seen.fired || !seen.daemon_ended)
		printf("not reached\n");
	if (h.tasks > 0)
		printf("%d processes of jails live on\n", h.tasks);
	return seen.fired && seen.daemon_ended && h.tasks == 0 ? 0 : 1;
}

static void memory_stays(long kb, unsigned tried)
{
	char what[128], why[64];
	long now = watch_memory_kb();
#ifdef SANITIZED
	printf("# %u sites; a sanitizer keeps what was freed (%ld kB, was %ld)\n", tried, now, kb);
	return;
#endif
	(void)snprintf(what, sizeof(what), "%u sites; agentboxd's memory stays (%ld kB, was %ld)",
	        tried, now, kb);
	(void)snprintf(why, sizeof(why), "more than %d kB", GROWTH_KB);
	tap(now - kb < GROWTH_KB, what, why);
}

/* What an earlier client left is gone: a child may still be emptying the trash. */
static void count_at_rest(void)
{
	struct held last;
	watch_count(&last);
	for (int i = 0; i < SETTLE_MS / REST_MS; i++) {
		(void)trace_run(REST_MS, -1, NULL);
		watch_count(&before);
		if (before.trash == 0 && before.children == last.children)
			return;
		last = before;
	}
}

static void with_client(char **argv, bool all, bool few)
{
	struct outcome o;
	client = argv;
	trace_arm(NULL);
	for (int i = 0; i < LEARN_RUNS; i++) /* what is made once: logs, templates */
		run_client(&o);
	count_at_rest();
	if (!learn())
		return;
	long kb = watch_memory_kb();
	memory_stays(kb, everything(all, few));
}

/* The next command after "::" or "::few", or NULL; that word becomes the end of the one before. */
static char **next_command(char **argv, bool *ret_few)
{
	while (*argv && strncmp(*argv, "::", 2) != 0)
		argv++;
	if (!*argv)
		return NULL;
	*ret_few = strcmp(*argv, "::few") == 0;
	*argv = NULL;
	return argv + 1;
}

int main(int argc, char **argv)
{
	if (argc < 6) {
		fprintf(stderr, "usage: inject DAEMON CGROUP STATE quick|all|kill=N/M CLIENT "
		                "[ARGS...] [:: ...]\n");
		return 100;
	}
	bool all = strcmp(argv[4], "all") == 0;
	watch_open(atoi(argv[1]), argv[2], argv[3]);
	trace_attach(atoi(argv[1]));
	unsigned n, m;
	if (sscanf(argv[4], "kill=%u/%u", &n, &m) == 2)
		return kill_daemon(argv + 5, n, m);
	bool few = false, next_few = false;
	for (char **at = argv + 5, **next; at; at = next, few = next_few) {
		next = next_command(at, &next_few);
		with_client(at, all, few);
	}
	trace_detach();
	printf("1..%d\n", count);
	return failed > 0;
}
