/* The ring: operations, cancelling, many at once, and who frees what when. */
#include "supervisor/loop.h"

#include "base/clock.h"
#include "base/fd.h"
#include "tests/t.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

struct probe {
	struct op op;
	int calls, res;
	bool more;
};

static struct loop *loop;
static int wanted; /* completions until the loop stops */

static void count(void)
{
	if (--wanted == 0)
		loop_stop(loop);
}

static void on_probe(struct op *op, int res, uint32_t flags)
{
	struct probe *p = container_of(op, struct probe, op);
	p->calls++;
	p->res = res;
	p->more = loop_more(flags);
	count();
}

static void run(int completions)
{
	struct err e;
	wanted = completions;
	if (loop_run(loop, &e) < 0)
		printf("# %s\n", e.text);
}

static void test_read_write(void)
{
	int p[2];
	char got[8] = "";
	struct probe r = {.calls = 0}, w = {.calls = 0};
	must(pipe2(p, O_CLOEXEC | O_NONBLOCK) == 0, "a pipe");
	loop_write(loop, &w.op, p[1], "hello", 5, on_probe);
	run(1);
	ok(w.res == 5 && !w.op.inflight, "written");
	loop_read(loop, &r.op, p[0], got, sizeof(got), on_probe);
	ok(r.op.inflight && r.calls == 0, "no callback runs inside the call");
	run(1);
	ok(r.res == 5 && memcmp(got, "hello", 5) == 0, "read");
	fd_close(p[1]);
	loop_read(loop, &r.op, p[0], got, sizeof(got), on_probe);
	run(1);
	ok(r.res == 0, "end of file");
	fd_close(p[0]);
	loop_read(loop, &r.op, p[0], got, sizeof(got), on_probe);
	run(1);
	ok(r.res == -EBADF, "a closed descriptor is an error, not a crash");
}

static void test_time(void)
{
	struct probe t = {.calls = 0};
	int64_t before = clock_mono_ms();
	loop_timeout(loop, &t.op, 30, on_probe);
	run(1);
	int64_t took = clock_mono_ms() - before;
	ok(t.res == -ETIME, "it fires");
	ok(took >= 29 && took < 5000, "after 30 ms (%d)", (int)took);
	loop_timeout(loop, &t.op, 1000000, on_probe);
	loop_cancel(loop, &t.op);
	run(1);
	ok(t.res == -ECANCELED && !t.op.inflight, "or is cancelled");
	loop_cancel(loop, &t.op);
	ok(!t.op.inflight, "cancelling what is not in flight does nothing");
}

static void test_cancel_read(void)
{
	int p[2];
	char c;
	struct probe r = {.calls = 0};
	must(pipe2(p, O_CLOEXEC) == 0, "a pipe");
	loop_read(loop, &r.op, p[0], &c, 1, on_probe);
	loop_cancel(loop, &r.op);
	run(1);
	ok(r.res == -ECANCELED || r.res == -EINTR, "a waiting read is cancelled (%d)", r.res);
	fd_close(p[0]);
	fd_close(p[1]);
}

static void test_multishot(void)
{
	int p[2];
	char c;
	struct probe m = {.calls = 0};
	must(pipe2(p, O_CLOEXEC | O_NONBLOCK) == 0, "a pipe");
	loop_poll(loop, &m.op, p[0], POLLIN, true, on_probe);
	for (int i = 1; i <= 3; i++) {
		must(write(p[1], "x", 1) == 1, "write %d", i);
		run(1);
		ok(m.calls == i && (m.res & POLLIN) && m.more && m.op.inflight, "poll tells %d", i);
		must(read(p[0], &c, 1) == 1, "read %d", i);
	}
	loop_cancel(loop, &m.op);
	run(1);
	ok(m.res == -ECANCELED && !m.more && !m.op.inflight, "and ends when cancelled");
	fd_close(p[0]);
	fd_close(p[1]);
}

/* Far more than the ring has entries, queued in one go. */
static void test_many(void)
{
	enum { MANY = 10000 };
	static struct probe all[MANY];
	for (int i = 0; i < MANY; i++)
		loop_timeout(loop, &all[i].op, i % 7, on_probe);
	run(MANY);
	int good = 0;
	for (int i = 0; i < MANY; i++)
		good += all[i].calls == 1 && all[i].res == -ETIME && !all[i].op.inflight;
	ok(good == MANY, "%d of %d operations, each completed once", good, MANY);
	for (int i = 0; i < MANY; i++)
		loop_timeout(loop, &all[i].op, 1000000, on_probe);
	for (int i = 0; i < MANY; i++)
		loop_cancel(loop, &all[i].op);
	run(MANY);
	good = 0;
	for (int i = 0; i < MANY; i++)
		good += all[i].calls == 2 && all[i].res == -ECANCELED;
	ok(good == MANY, "%d of %d cancelled", good, MANY);
}

/* An owner with two operations: the last completion frees it, whichever that is. */
struct owner {
	struct op read, timer;
	bool closing;
	char byte;
};
static int buried;

static void bury(struct owner *o)
{
	if (!o->closing || o->read.inflight || o->timer.inflight)
		return;
	memset(o, 0xa5, sizeof(*o));
	free(o);
	buried++;
	loop_stop(loop);
}

static void on_owner_read(struct op *op, int res, uint32_t flags)
{
	(void)res;
	(void)flags;
	bury(container_of(op, struct owner, read));
}

static void on_owner_timer(struct op *op, int res, uint32_t flags)
{
	struct owner *o = container_of(op, struct owner, timer);
	(void)res;
	(void)flags;
	o->closing = true;
	loop_cancel(loop, &o->read);
	bury(o);
}

static void test_owner(void)
{
	int p[2];
	struct err e;
	must(pipe2(p, O_CLOEXEC) == 0, "a pipe");
	for (int i = 0; i < 100; i++) {
		struct owner *o = xnew(struct owner);
		loop_read(loop, &o->read, p[0], &o->byte, 1, on_owner_read);
		loop_timeout(loop, &o->timer, i % 3, on_owner_timer);
		must(loop_run(loop, &e) == 0, "run %d", i);
	}
	ok(buried == 100, "each owner went with its last completion");
	fd_close(p[0]);
	fd_close(p[1]);
}

static int hooks;
static void on_hook(struct loop_hook *h)
{
	(void)h;
	if (++hooks < 5)
		loop_again(loop);
	else
		loop_stop(loop);
}

static void test_hook(void)
{
	static struct loop_hook h = {.run = on_hook};
	struct err e;
	loop_hook(loop, &h);
	must(loop_run(loop, &e) == 0, "run");
	ok(hooks == 5, "a hook that has more to do is not left asleep");
	list_remove(&h.link);
}

/* ---- completions that take long, and hooks ---- */

enum { SLOW = 60, SLOW_MS = 1 };
static int slow_done, slow_in_turn, slow_most;

static void on_slow(struct op *op, int res, uint32_t flags)
{
	(void)op;
	(void)res;
	(void)flags;
	int64_t until = clock_mono_us() + SLOW_MS * 1000;
	while (clock_mono_us() < until)
		;
	slow_done++;
	slow_in_turn++;
}

static void on_slow_hook(struct loop_hook *h)
{
	(void)h;
	slow_most = slow_in_turn > slow_most ? slow_in_turn : slow_most;
	slow_in_turn = 0;
	if (slow_done == SLOW)
		loop_stop(loop);
}

static void test_slow(void)
{
	static struct op ops[SLOW];
	static struct loop_hook h = {.run = on_slow_hook};
	struct err e;
	loop_hook(loop, &h);
	for (int i = 0; i < SLOW; i++)
		loop_timeout(loop, &ops[i], 0, on_slow);
	must(loop_run(loop, &e) == 0, "run");
	ok(slow_done == SLOW, "completions that take long: all run");
	ok(slow_most <= SLOW / 6, "and hooks get their turn in between");
	list_remove(&h.link);
}

int main(void)
{
	struct err e;
	/* 8 entries: every test overruns them. */
	loop = loop_new(8, &e);
	if (!loop)
		skip_all(e.text);
	must(loop_enable(loop, &e) == 0, "enabled");
	struct probe first = {.calls = 0};
	loop_timeout(loop, &first.op, 0, on_probe);
	run(1);
	ok(first.calls == 1, "it turns");
	test_read_write();
	test_time();
	test_cancel_read();
	test_multishot();
	test_many();
	test_owner();
	/* The first turn waits for something: give it that. */
	loop_timeout(loop, &first.op, 0, on_probe);
	wanted = -1;
	test_hook();
	test_slow();
	loop_free(loop);
	return done();
}
