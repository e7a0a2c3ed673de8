/*
 * runs.c - what a run costs beside its work, and what others feel of it.
 *
 *	run		POST of the bundled harness `hello` -> run.done: queue, jail, one
 *			artifact collected and hashed, two commits on disk
 *	floor		posix_spawn of the same commands
 *	flooded		GET /healthz while eight runs print as fast as they are read
 *
 * Environment: BIN, ROUNDS (default 40).
 */
#include "bench/rig.h"

enum { ROUNDS_MAX = 1000, FLOODS = 8, PROBES = 200, PROBE_GAP_MS = 5, GAP_MS = 12 };

static const char harness[] = "---\nname: bench\ndescription: floods\nbackend: exec\n"
                              "command: [sh, -c, 'yes \"$(cat)\"']\n"
                              "limits: { timeoutMs: 60000, outputBytes: 16G }\n---\n";

static const char event[] =
        "{\\\"type\\\":\\\"agent.message\\\",\\\"text\\\":\\\"The quick brown fox "
        "jumps over the lazy dog.\\\",\\\"delta\\\":false}";

static char *post(const char *user, const char *name, const char *prompt, const char *accept)
{
	auto_free char *body = xasprintf("{\"session\":{\"userId\":\"%s\",\"goalId\":\"g\"},"
	                                 "\"harness\":\"%s\",\"prompt\":\"%s\"}",
	        user, name, prompt);
	return xasprintf("POST /v1/runs HTTP/1.0\r\nAccept: %s\r\n"
	                 "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
	        accept, strlen(body), body);
}

/* Reads to the end. */
static const char *whole(struct answer *a)
{
	while (answer_more(a))
		;
	fd_close(a->fd);
	return a->buf + a->at;
}

static int64_t run_once(const struct rig *g, struct answer *a)
{
	auto_free char *request = post("bench", "hello", "x", "text/event-stream");
	int64_t t0 = clock_mono_us();
	answer_open(a, g, request, "HTTP/1.");
	while (!strstr(a->buf + a->at, "event: run.done"))
		if (!answer_more(a))
			die("the stream ended before run.done");
	int64_t took = clock_mono_us() - t0;
	if (!strstr(whole(a), "\"status\":\"succeeded\""))
		die("hello did not succeed");
	return took;
}

static int64_t floor_once(void)
{
	static const char *const argv[] = {"/bin/sh", "-c",
	        "set -eu; text=x; mkdir -p /tmp; printf 'Hello! You said: %s\\n' \"$text\" | "
	        "tee /dev/null >/dev/null",
	        NULL};
	int64_t t0 = clock_mono_us();
	if (rig_wait(rig_spawn(argv, NULL)) != 0)
		die("the floor");
	return clock_mono_us() - t0;
}

static void flood(const struct rig *g, struct answer *a)
{
	for (int i = 0; i < FLOODS; i++) {
		auto_free char *user = xasprintf("flood%d", i);
		auto_free char *request = post(user, "bench", event, "application/json");
		answer_open(a, g, request, "HTTP/1.");
		if (!strstr(whole(a), "\"runId\""))
			die("a flooding run");
	}
}

static int64_t probe(const struct rig *g, struct answer *a)
{
	int64_t t0 = clock_mono_us();
	answer_open(a, g, "GET /healthz HTTP/1.0\r\n\r\n", "HTTP/1.");
	int64_t took = clock_mono_us() - t0;
	(void)whole(a);
	return took;
}

static void say(const char *name, int64_t *v, int n)
{
	printf("%s_p50\t%.0f\tus\n", name, percentile(v, n, 50));
	printf("%s_p99\t%.0f\tus\n", name, percentile(v, n, 99));
}

int main(void)
{
	static int64_t runs[ROUNDS_MAX], floors[ROUNDS_MAX], quiet[PROBES], flooded[PROBES];
	static struct answer a;
	int rounds = rig_rounds(40, ROUNDS_MAX);
	struct rig g;
	rig_start(&g, harness, NULL, "");
	for (int r = 0; r < rounds; r++) {
		runs[r] = run_once(&g, &a);
		poll(NULL, 0, GAP_MS);
		floors[r] = floor_once();
		poll(NULL, 0, GAP_MS);
	}
	for (int i = 0; i < PROBES; i++) {
		quiet[i] = probe(&g, &a);
		poll(NULL, 0, PROBE_GAP_MS);
	}
	flood(&g, &a);
	for (int i = 0; i < PROBES; i++) {
		flooded[i] = probe(&g, &a);
		poll(NULL, 0, PROBE_GAP_MS);
	}
	rig_stop(&g);
	say("run_hello", runs, rounds);
	say("run_floor", floors, rounds);
	printf("run_vs_floor\t%.1f\tx\n",
	        percentile(runs, rounds, 50) / percentile(floors, rounds, 50));
	say("healthz", quiet, PROBES);
	say("healthz_flooded", flooded, PROBES);
	return 0;
}
