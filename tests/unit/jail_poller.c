/* The loop of agentboxd, and messages that wait for a slow child. */
#include "jail/poller.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "jail/outbox.h"
#include "proto/msg.h"
#include "tests/t.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

static struct poller poller;

/* ---- two watches ready at once, the first removes the second ---- */

struct pair {
	struct watch w[2];
	int called, pipes[2][2];
};

static struct pair *pair_of(struct watch *w)
{
	static struct pair *only;
	if (!w)
		only = xnew(struct pair);
	return only;
}

static void remove_both(struct watch *w, uint32_t events)
{
	(void)events;
	struct pair *p = pair_of(w);
	p->called++;
	poller_remove(&poller, &p->w[0]);
	poller_remove(&poller, &p->w[1]);
}

static struct alarm end, again;
static int fired;

static void stop(struct alarm *a)
{
	(void)a;
	poller.stop = true;
}

static void fire(struct alarm *a)
{
	if (++fired < 3)
		alarm_set(&poller, a, 5);
}

static int idle_calls;
static bool idle(void *ctx)
{
	(void)ctx;
	return ++idle_calls < 4;
}

static void run_for(int64_t ms)
{
	poller.stop = false;
	alarm_set(&poller, &end, ms);
	must(poller_run(&poller, NULL) == 0, "the loop runs and stops");
}

static void test_poller(void)
{
	must(poller_init(&poller, NULL) == 0, "a loop");
	alarm_init(&end, stop);
	alarm_init(&again, fire);
	struct pair *p = pair_of(NULL);
	for (int i = 0; i < 2; i++) {
		must(pipe2(p->pipes[i], O_CLOEXEC) == 0, "a pipe");
		must(write(p->pipes[i][1], "x", 1) == 1, "is readable");
		must(poller_add(&poller, &p->w[i], p->pipes[i][0], EPOLLIN, remove_both, NULL) == 0,
		        "is watched");
	}
	alarm_set(&poller, &again, 1000000);
	alarm_set(&poller, &again, 5); /* moved, not doubled */
	poller.idle = idle;
	int64_t start = clock_mono_ms();
	run_for(100);
	ok(clock_mono_ms() - start >= 100, "an alarm is not early");
	ok(p->called == 1, "a watch that was removed is not called");
	ok(fired == 3, "an alarm fires once each time it is set");
	/* Four at the start, and one after each of the three alarms. */
	ok(idle_calls > 4 && idle_calls <= 7,
	        "idle is called while there is something to do, and again after an alarm");
	alarm_set(&poller, &again, 5);
	alarm_clear(&again);
	run_for(30);
	ok(fired == 3, "a cleared alarm does not fire");
	for (int i = 0; i < 2; i++) {
		fd_close(p->pipes[i][0]);
		fd_close(p->pipes[i][1]);
	}
	free(p);
	poller_done(&poller);
}

/* ---- outbox ---- */

struct numbered {
	struct msg_head head;
	uint64_t n;
	char fill[4000];
};

static void test_outbox(void)
{
	int before = fd_count(), pair[2];
	must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0,
	        "a pair");
	struct outbox o;
	outbox_init(&o, pair[0]);
	struct numbered m = {.n = 0};
	enum { MESSAGES = 500 };
	int bad = 0;
	for (uint64_t i = 0; i < MESSAGES; i++) {
		m.n = i;
		int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		bad += outbox_send(&o, &m, sizeof(m), &fd, 1) != 0;
	}
	ok(bad == 0 && outbox_waits(&o), "a child that does not read: messages wait");
	uint64_t next = 0;
	_Alignas(8) char bytes[MSG_MAX];
	for (int turns = 0; next < MESSAGES && turns < 10000; turns++) {
		int fds[MSG_FDS];
		int n = msg_recv(pair[1], bytes, fds);
		if (n == -EAGAIN) {
			bad += outbox_flush(&o) != 0;
			continue;
		}
		const struct numbered *got = (const void *)bytes;
		bad += n != (int)sizeof(*got) || got->n != next++ || fds[0] < 0;
		fd_close(fds[0]);
	}
	ok(bad == 0 && next == MESSAGES && !outbox_waits(&o), "it gets all, in order, with fds");
	int r = 0;
	unsigned sent = 0;
	while (r == 0 && sent < 2 * OUTBOX_MAX) {
		int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		r = outbox_send(&o, &m, sizeof(struct msg_head), &fd, sent % 64 ? 0 : 1);
		if (sent % 64)
			fd_close(fd);
		sent++;
	}
	ok(r == -ENOBUFS, "there is an end to it");
	outbox_done(&o);
	ok(!outbox_waits(&o), "dropped");
	fd_close(pair[1]);
	outbox_init(&o, pair[0]);
	ok(outbox_send(&o, &m, sizeof(m), NULL, 0) < 0, "a child that is gone");
	outbox_done(&o);
	fd_close(pair[0]);
	ok(fd_count() == before, "no descriptor is left");
}

int main(void)
{
	test_poller();
	test_outbox();
	return done();
}
