/* Requests that wait for a session's files. */
#include "tests/t.h"
#include "base/fd.h"
#include "base/limits.h"
#include "jail/later.h"

#include <fcntl.h>
#include <poll.h>

static struct poller poller;
static struct laters laters;
static const struct jail_make msg;
static int asked, told, refused;

static int add(enum disks_work work, const struct child *child)
{
	struct disks_job job = DISKS_JOB_NONE;
	struct err e;
	job.work = work;
	(void)snprintf(job.session, sizeof(job.session), "ses_%d", asked);
	if (child)
		job.child = *child;
	return laters_add(&laters, &msg, -1, &job, &e);
}

/* The work fails; then the session is wanted as it is, and that is mounted still, twice. */
static void again(void *ctx, const struct jail_make *m, int exec_fd)
{
	(void)ctx;
	(void)m;
	(void)exec_fd;
	const struct err *failed = laters_failed(&laters);
	told += failed && failed->code == -EIO && strstr(failed->text, "counting");
	refused += add(DISKS_IMAGE, NULL) == -EIO;
	poller.stop = ++asked == 3 || add(DISKS_WAIT, NULL) < 0;
}

static uint64_t promised(void *ctx)
{
	(void)ctx;
	return 0;
}

static void failing(void)
{
	static const char *const argv[] = {"false", NULL};
	const struct child_spec spec = {.path = "/bin/false", .argv = argv, .stderr_fd = -1};
	struct child c = CHILD_NONE;
	struct err e;
	must(child_start(&spec, &c, &e) == 0, "work that fails");
	struct pollfd ended = {.fd = c.pidfd, .events = POLLIN};
	must(poll(&ended, 1, 10000) == 1 && add(DISKS_ADOPT, &c) == 0, "it is waited for");
	must(poller_run(&poller, &e) == 0, "it ends");
	ok(asked == 3 && told == 3, "asked %d times, told %d times why it failed", asked, told);
	ok(refused == 3, "and no work was begun a second time");
	ok(laters.count == 0 && !laters_failed(&laters), "nothing waits any more");
}

static void full(void)
{
	int n = 0;
	while (n < LIMIT_JAILS && !laters_full(&laters) && add(DISKS_WAIT, NULL) == 0)
		n++;
	ok(n == LIMIT_JAILS && laters_full(&laters), "%d wait, and no more may", n);
	laters_drop(&laters);
	ok(laters.count == 0 && !laters_full(&laters), "then none");
}

int main(void)
{
	struct err e;
	struct state state = STATE_NONE;
	struct disks disks = {.state = &state};
	state.sessions = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(poller_init(&poller, &e) == 0, "a loop");
	laters_init(&laters, &poller, &disks);
	laters.again = again;
	laters.promised = promised;
	failing();
	full();
	poller_done(&poller);
	fd_close(state.sessions);
	return done();
}
