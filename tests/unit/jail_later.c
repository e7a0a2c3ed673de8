/* Requests that wait for a session's files, and children that are killed and take their time. */
#include "tests/t.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "jail/later.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

static struct poller poller;
static struct reaper reaper;
static struct laters laters;
static struct jail_make msg;
static int asked, told;
static struct jail_make last;

static int add(const char *session, const struct disks_job *from)
{
	struct disks_job job = *from;
	struct err e;
	(void)str_copy(job.ask.session, sizeof(job.ask.session), session);
	return laters_add(&laters, &msg, -1, &job, &e);
}

static void again(void *ctx, const struct jail_make *m, int exec_fd)
{
	(void)ctx;
	(void)exec_fd;
	last = *m;
	struct disks_opened o;
	struct err e = {0};
	asked++;
	told += laters_outcome(&laters, &o, &e) == -EIO && strstr(e.text, "mke2fs") &&
	        !laters_has(&laters, "ses_failing");
	poller.stop = true;
}

static uint64_t promised(void *ctx)
{
	(void)ctx;
	return 0;
}

static bool used(void *ctx, const char *session)
{
	(void)ctx, (void)session;
	return false;
}

/* Each of what follows goes on for so long at most. */
static void on_time(struct alarm *a)
{
	(void)a;
	poller.stop = true;
}

static void run(int ms)
{
	struct alarm a;
	struct err e;
	alarm_init(&a, on_time);
	alarm_set(&poller, &a, ms);
	poller.stop = false;
	must(poller_run(&poller, &e) == 0, "the loop %s", e.text);
	alarm_clear(&a);
}

static struct child start(const char *program, const char *argument)
{
	const char *argv[] = {program, argument, NULL};
	const struct child_spec spec = {.path = program, .argv = argv, .stderr_fd = -1};
	struct child c = CHILD_NONE;
	struct err e;
	must(child_start(&spec, &c, &e) == 0, "a child %s", e.text);
	return c;
}

static void failing(void)
{
	struct disks_job job = DISKS_JOB_NONE;
	job.step = DISKS_FILL;
	job.job.child = start("/bin/false", NULL);
	must(add("ses_failing", &job) == 0 && laters_has(&laters, "ses_failing"), "it waits");
	run(20000);
	ok(asked == 1 && told == 1, "asked %d times, told %d times why it failed", asked, told);
	struct disks_opened o;
	struct err e;
	ok(laters.count == 0 && laters_outcome(&laters, &o, &e) == 0, "nothing waits any more");
}

static struct policy_set *set_of(uint64_t generation, const char *first, const char *second)
{
	struct policy_set *s = xcalloc(1, sizeof(*s) + 2 * sizeof(struct policy));
	s->generation = generation;
	s->count = 2;
	(void)str_copy(s->policies[0].name, sizeof(s->policies[0].name), first);
	(void)str_copy(s->policies[1].name, sizeof(s->policies[1].name), second);
	return s;
}

/* Policies are read again while requests wait: one that is as it was keeps its requests. */
static void followed(void)
{
	auto_free struct policy_set *old = set_of(4, "same", "changed");
	auto_free struct policy_set *now = set_of(5, "changed", "same");
	now->policies[0].flags = POLICY_DEBUG;
	for (uint32_t i = 0; i < old->count; i++) {
		struct disks_job job = DISKS_JOB_NONE;
		job.step = DISKS_FILL;
		job.job.child = start("/bin/false", NULL);
		msg.policy = i;
		msg.policy_generation = old->generation;
		must(add("ses_followed", &job) == 0, "a request under '%s'", old->policies[i].name);
		laters_follow(&laters, old, now);
		run(20000);
		ok(i == 0 ? last.policy == 1 && last.policy_generation == 5
		          : last.policy == 1 && last.policy_generation == 4,
		        "is asked again with number %u of generation %llu", last.policy,
		        (unsigned long long)last.policy_generation);
	}
}

static void full(void)
{
	struct disks_job job = DISKS_JOB_NONE;
	char name[ID_MAX];
	int n = 0;
	job.step = DISKS_WAIT;
	do
		(void)snprintf(name, sizeof(name), "ses_%d", n);
	while (!laters_full(&laters) && add(name, &job) == 0 && n++ < LIMIT_JAILS);
	ok(n == LIMIT_JAILS && laters_full(&laters), "%d wait, and no more may", n);
	ok(laters_working(&laters) == 0, "none is copied");
	laters_drop(&laters);
	ok(laters.count == 0 && !laters_full(&laters), "then none");
}

/* As one that waits for a disk: killed, and still there.  A tracer that does not look has the same
 * effect. */
static struct child undying(pid_t *ret_tracer)
{
	struct child c = start("/bin/sleep", "1000");
	int ends[2];
	must(pipe(ends) == 0, "a pipe");
	*ret_tracer = fork();
	if (*ret_tracer == 0) {
		bool held = ptrace(PTRACE_SEIZE, c.pid, 0, 0) == 0;
		(void)!write(ends[1], &held, 1);
		for (;;)
			pause();
	}
	bool held = false;
	must(read(ends[0], &held, 1) == 1 && held, "it is held");
	fd_close(ends[0]);
	fd_close(ends[1]);
	return c;
}

static void undying_child(void)
{
	pid_t tracer;
	struct disks_job job = DISKS_JOB_NONE;
	job.step = DISKS_FILL;
	job.job.child = undying(&tracer);
	must(add("ses_slow", &job) == 0, "work that does not end");
	int64_t before = clock_mono_ms();
	laters_drop(&laters);
	ok(clock_mono_ms() - before < 1000, "dropping it does not wait for it");
	ok(laters.count == 0 && reaper.count == 1 && reaper_holds(&reaper, "ses_slow") &&
	                !reaper_holds(&reaper, "ses_other"),
	        "but its session is known to be in use");
	struct disks_job wait = DISKS_JOB_NONE;
	wait.step = DISKS_WAIT;
	asked = 0;
	must(add("ses_slow", &wait) == 0, "who wants it waits");
	run(300);
	ok(asked == 0 && laters_has(&laters, "ses_slow"), "while it is there");
	(void)kill(tracer, SIGKILL);
	(void)waitpid(tracer, NULL, 0);
	run(20000);
	ok(asked == 1 && reaper.count == 0, "and is served when it is gone");
}

int main(void)
{
	struct err e;
	struct state state = STATE_NONE;
	struct disks disks = {.state = &state};
	state.sessions = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(poller_init(&poller, &e) == 0, "a loop");
	reaper_init(&reaper, &poller);
	laters_init(&laters, &poller, &disks, &reaper);
	laters.again = again;
	laters.promised = promised;
	laters.used = used;
	failing();
	followed();
	full();
	undying_child();
	int fds = fd_count();
	reaper_drop(&reaper, 1000);
	ok(fds == fd_count(), "no descriptor is left");
	poller_done(&poller);
	fd_close(state.sessions);
	return done();
}
