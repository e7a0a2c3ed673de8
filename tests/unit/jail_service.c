/* A child that cannot be told something is started anew: who waits for an answer does not wait for
 * ever. */
#include "jail/service.h"
#include "base/fd.h"
#include "base/mem.h"
#include "proto/msg.h"
#include "tests/t.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { PATIENCE_MS = 20000 };

static struct poller poller;
static struct alarm end;
static int started, ended, pings;

static int no_fds(struct service *s, int *fds)
{
	(void)s;
	(void)fds;
	return 0;
}

static void on_started(struct service *s)
{
	(void)s;
	poller.stop = ++started > 1;
}

static void on_message(struct service *s, void *msg, size_t n, int *fds)
{
	(void)s;
	(void)msg;
	(void)n;
	(void)fds;
}

static void on_ended(struct service *s)
{
	(void)s;
	ended++;
}

static void stop(struct alarm *a)
{
	(void)a;
	poller.stop = true;
}

static const char *const sleeper[] = {"sleep", "1000", NULL};
static void on_ping(struct service *s)
{
	(void)s;
	pings++;
}

static const struct service_ops ops = {.fds = no_fds,
        .started = on_started,
        .message = on_message,
        .ended = on_ended,
        .ping = on_ping};

static void begin(struct service *s)
{
	struct err e = {0};
	*s = (struct service){.name = "sleep",
	        .program = "/bin/sleep",
	        .argv = sleeper,
	        .ops = &ops,
	        .poller = &poller};
	started = ended = 0;
	service_init(s);
	must(service_start(s, &e) == 0, "a child that reads nothing %s", e.text);
}

/* Until a second one was started. */
static void wait_for_next(void)
{
	poller.stop = false;
	alarm_set(&poller, &end, PATIENCE_MS);
	must(poller_run(&poller, NULL) == 0, "the loop runs and stops");
	alarm_clear(&end);
}

static void test_closed(bool stopping)
{
	struct service s;
	struct msg_head m = {.type = 1};
	begin(&s);
	pid_t first = s.child.pid;
	must(shutdown(s.sock, SHUT_WR) == 0, "nothing goes through to it any more");
	if (stopping)
		service_stop(&s);
	service_send(&s, &m, sizeof(m), NULL, 0);
	if (stopping) {
		int status;
		ok(waitpid(first, &status, WNOHANG) == 0 && ended == 0,
		        "one on its way out is left to it");
	} else {
		wait_for_next();
		ok(started == 2 && ended == 1 && s.child.pid != first,
		        "it is ended, and the next one is there");
	}
	service_done(&s);
}

/* More than the socket takes at all: this one does not pass by itself. */
static void test_refused(void)
{
	enum { TOO_MUCH = 64 << 20 };
	struct service s;
	auto_free struct msg_head *m = xcalloc(1, TOO_MUCH);
	begin(&s);
	service_send(&s, m, TOO_MUCH, NULL, 0);
	wait_for_next();
	ok(started == 2 && ended == 1, "what cannot be sent ends it as well");
	service_done(&s);
}

/* A word through the child's own end, which the child leaves alone. */
static void say(const struct service *s)
{
	auto_close int pidfd = (int)syscall(SYS_pidfd_open, s->child.pid, 0);
	auto_close int theirs = (int)syscall(SYS_pidfd_getfd, pidfd, 3, 0);
	struct msg_head m = {.type = 1};
	must(msg_send(theirs, &m, sizeof(m), NULL, 0) == 0, "a word of it");
}

static void test_hung(void)
{
	struct service s;
	begin(&s);
	s.patience_ms = 200;
	pings = 0;
	poller.stop = false;
	alarm_set(&poller, &end, 500);
	must(poller_run(&poller, NULL) == 0, "the loop runs");
	ok(started == 1 && pings == 0, "who has not said a word yet is starting");
	say(&s);
	wait_for_next();
	ok(started == 2 && ended == 1 && pings == 4, "silence after it: %d pings, then the end",
	        pings);
	service_done(&s);
}

int main(void)
{
	must(poller_init(&poller, NULL) == 0, "a loop");
	alarm_init(&end, stop);
	test_closed(false);
	test_closed(true);
	test_refused();
	test_hung();
	ok(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "no child is left");
	poller_done(&poller);
	return done();
}
