/*
 * engine.c - what the engine itself takes: runs whose programs do nothing, or
 * sleep, below a stand-in for agentboxd; everything else is real and durable.
 *
 *	engine		200 runs in 20 sessions, 8 at once, each program ends at once
 *	sync		write and fdatasync of a record, one after another, on the same disk
 *	engine_busy	160 runs of 300 ms in 40 sessions, 16 at once, of what 16 slots can do
 *			(ceiling) and of what they do here with two threads and no engine (floor)
 *	light		nine users who ask, wait and think, beside one with 1,000 runs: their p95
 *			of what it is without that one
 *
 * Environment: BIN, ROUNDS (default 9).
 */
#include "bench/fake_agentboxd.h"

enum {
	RUNS_MAX = 1000,
	LIGHTS = 9,
	EACH = 12,
	HEAVY = 1000,
	THINK_MS = 200,
	SYNCS = 400,
	ANSWER = 16384,
};

static const char harness[] = "---\nname: bench\nbackend: exec\ncommand: [true]\n---\n";

struct client {
	int fd;
	size_t n;
	char got[ANSWER];
	int64_t asked_us, asks_us; /* asks_us: when it asks next, 0: it waits or is done */
	int left;
};

static struct client clients[RUNS_MAX];

static void ask(
        const struct rig *g, struct client *c, const char *user, const char *goal, const char *path)
{
	auto_free char *body = xasprintf("{\"session\":{\"userId\":\"%s\",\"goalId\":\"%s\"},"
	                                 "\"harness\":\"bench\",\"prompt\":\"x\"}",
	        user, goal);
	auto_free char *request = xasprintf("POST %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
	                                    "Content-Type: application/json\r\n"
	                                    "Content-Length: %zu\r\n\r\n%s",
	        path, strlen(body), body);
	if (c->fd < 0)
		c->fd = rig_connect(g);
	c->n = 0;
	c->asked_us = clock_mono_us();
	if (c->fd < 0 || fd_write_all(c->fd, request, strlen(request)) < 0)
		die("request");
}

/* true: the whole answer is there. */
static bool hear(struct client *c, const char *want)
{
	ssize_t n = read(c->fd, c->got + c->n, sizeof(c->got) - 1 - c->n);
	if (n < 0)
		die("answer");
	c->n += (size_t)n;
	c->got[c->n] = '\0';
	if (n > 0)
		return false;
	if (!strstr(c->got, want)) {
		fprintf(stderr, "%s\n", c->got);
		die("a run did not succeed");
	}
	fd_close(c->fd);
	c->fd = -1;
	return true;
}

/* Waits until somebody is answered, at most `ms`; gives whom, or -1. */
static int wait_answer(int n, int64_t ms, const char *want)
{
	static struct pollfd p[RUNS_MAX];
	for (int i = 0; i < n; i++)
		p[i] = (struct pollfd){.fd = clients[i].fd, .events = POLLIN};
	if (poll(p, (nfds_t)n, ms < 0 ? -1 : (int)ms) < 0)
		die("poll");
	for (int i = 0; i < n; i++)
		if (p[i].revents && hear(&clients[i], want))
			return i;
	return -1;
}

/* So many runs at once, each waited for: microseconds until the last has ended. */
static int64_t burst(const struct rig *g, int runs, int sessions, int round)
{
	auto_free char *goal = xasprintf("g%d", round);
	for (int i = 0; i < runs; i++)
		clients[i].fd = rig_connect(g);
	int64_t t0 = clock_mono_us();
	for (int i = 0; i < runs; i++) {
		auto_free char *user = xasprintf("u%d", i % sessions);
		ask(g, &clients[i], user, goal, "/v1/runs?wait=1");
	}
	for (int ended = 0; ended < runs;)
		ended += wait_answer(runs, -1, "\"status\":\"succeeded\"") >= 0;
	return clock_mono_us() - t0;
}

/* ---- what the machine gives ---- */

enum { BUSY_RUNS = 160, BUSY_SLOTS = 16, BUSY_MS = 300, TALKS = 2 };

static void *answer_all(void *arg)
{
	const int *fd = arg;
	char byte;
	while (read(*fd, &byte, 1) == 1)
		if (write(*fd, &byte, 1) != 1)
			die("floor");
	return NULL;
}

/* As many sleeps on as many slots, with another thread to be asked twice in between as a run's end
 * and the next one's beginning are, and nothing else: microseconds. */
static int64_t busy_floor(void)
{
	int64_t due[BUSY_SLOTS], t0 = clock_mono_us();
	int pair[2], ended = 0;
	pthread_t other;
	char byte = 0;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0 ||
	        pthread_create(&other, NULL, answer_all, &pair[1]) != 0)
		die("floor");
	for (int i = 0; i < BUSY_SLOTS; i++)
		due[i] = t0 + INT64_C(1000) * BUSY_MS;
	while (ended < BUSY_RUNS) {
		int first = 0;
		for (int i = 1; i < BUSY_SLOTS; i++)
			first = due[i] < due[first] ? i : first;
		int64_t us = due[first] - clock_mono_us();
		struct timespec t = {us / 1000000, us % 1000000 * 1000};
		if (us > 0)
			(void)nanosleep(&t, NULL);
		for (int i = 0; i < TALKS; i++)
			if (write(pair[0], &byte, 1) != 1 || read(pair[0], &byte, 1) != 1)
				die("floor");
		ended++;
		due[first] = clock_mono_us() + INT64_C(1000) * BUSY_MS;
	}
	int64_t took = clock_mono_us() - t0;
	fd_close(pair[0]);
	(void)shutdown(pair[1], SHUT_RDWR);
	(void)pthread_join(other, NULL);
	fd_close(pair[1]);
	return took;
}

static double syncs_per_second(const struct rig *g)
{
	static const char record[512] = "x";
	auto_free char *path = xasprintf("%s/syncs", g->dir);
	auto_close int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		die(path);
	int64_t t0 = clock_mono_us();
	for (int i = 0; i < SYNCS; i++)
		if (write(fd, record, sizeof(record)) < 0 || fdatasync(fd) < 0)
			die("fdatasync");
	return SYNCS * 1e6 / (double)(clock_mono_us() - t0);
}

/* ---- one heavy user and nine light ones ---- */

static unsigned think_ms(void)
{
	static unsigned seed = 1;
	seed = seed * 1103515245u + 12345u;
	return (seed >> 8) % THINK_MS;
}

/* Accepted, not waited for. */
static void heavy_asks(const struct rig *g, const char *goal)
{
	for (int i = 0; i < HEAVY; i++) {
		auto_free char *own = xasprintf("%s-%d", goal, i % 20);
		clients[0].fd = -1;
		ask(g, &clients[0], "heavy", own, "/v1/runs");
		while (!hear(&clients[0], " 202 "))
			;
	}
}

static double light_p95(const struct rig *g, const char *goal)
{
	static int64_t took[LIGHTS * EACH];
	int n = 0;
	for (int i = 0; i < LIGHTS; i++) {
		clients[i].fd = -1;
		clients[i].left = EACH;
		clients[i].asks_us = clock_mono_us() + 1000 * (int64_t)think_ms();
	}
	while (n < LIGHTS * EACH) {
		int64_t now = clock_mono_us(), next = now + 1000000;
		for (int i = 0; i < LIGHTS; i++) {
			struct client *c = &clients[i];
			if (c->asks_us && c->asks_us <= now) {
				auto_free char *user = xasprintf("light%d", i);
				c->asks_us = 0;
				ask(g, c, user, goal, "/v1/runs?wait=1");
			}
			if (c->asks_us && c->asks_us < next)
				next = c->asks_us;
		}
		int i = wait_answer(LIGHTS, (next - now + 999) / 1000, "\"status\":\"succeeded\"");
		if (i < 0)
			continue;
		now = clock_mono_us();
		took[n++] = now - clients[i].asked_us;
		if (--clients[i].left)
			clients[i].asks_us = now + 1000 * (int64_t)think_ms() + 1;
	}
	return percentile(took, n, 95);
}

static void pace(struct fake *f, int min_ms, int max_ms)
{
	f->min_ms = min_ms;
	f->max_ms = max_ms;
}

static void bench_idle(void)
{
	static struct fake f;
	static int64_t took[100];
	int rounds = rig_rounds(9, 100);
	fake_start(&f, harness, 8);
	(void)burst(&f.rig, 20, 20, 1000);
	for (int r = 0; r < rounds; r++)
		took[r] = burst(&f.rig, 200, 20, r);
	double syncs = syncs_per_second(&f.rig), runs = 200 * 1e6 / percentile(took, rounds, 50);
	printf("engine\t%.0f\truns/s\n", runs);
	printf("engine_best\t%.0f\truns/s\n", 200 * 1e6 / percentile(took, rounds, 0));
	printf("sync\t%.0f\t1/s\n", syncs);
	printf("engine_vs_sync\t%.2f\tx\n", runs / syncs);
	fake_stop(&f);
}

static void bench_busy(void)
{
	static struct fake f;
	fake_start(&f, harness, 16);
	pace(&f, BUSY_MS, BUSY_MS);
	double took = (double)burst(&f.rig, BUSY_RUNS, 40, 0), floor = (double)busy_floor();
	double ceiling = BUSY_RUNS / (double)BUSY_SLOTS * BUSY_MS * 1e3;
	printf("engine_busy\t%.1f\truns/s\n", BUSY_RUNS * 1e6 / took);
	printf("engine_busy_vs_ceiling\t%.3f\tx\n", ceiling / took);
	printf("engine_busy_vs_floor\t%.3f\tx\n", floor / took);
	pace(&f, 150, 450);
	double alone = light_p95(&f.rig, "alone");
	heavy_asks(&f.rig, "h");
	double beside = light_p95(&f.rig, "beside");
	printf("light_alone_p95\t%.0f\tms\n", alone / 1000);
	printf("light_beside_heavy_p95\t%.0f\tms\n", beside / 1000);
	printf("light_vs_alone\t%.2f\tx\n", beside / alone);
	fake_stop(&f);
}

int main(void)
{
	bench_idle();
	bench_busy();
	return 0;
}
