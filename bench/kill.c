/*
 * kill.c - from the word to "nothing left": a run of 200 processes that do not want to go
 * (tests/fakes/swarm.c), ended by a cancel and by its deadline.
 *
 *	cancel		DELETE .../runs/ID?now=1 -> run.done at the client
 *	timeout		the deadline -> run.done at the client
 *	one		the same cancel of a run of a single sleeping process
 *
 * run.done comes when the jail's cgroup is empty, its pipes are read and the result is on disk.
 *
 * Environment: BIN, TESTS (where fakes/swarm is), ROUNDS (default 100), KIND (of swarm; all).
 */
#include "bench/rig.h"

enum { ROUNDS_MAX = 1000, CROWD = 200, GAP_MS = 30, TIMEOUT_MS = 1500 };

struct bench {
	struct rig rig;
	struct answer stream;
};

/* The prompt is what the agent's shell runs. */
static void open_run(struct bench *b, const char *script)
{
	auto_free char *body = xasprintf("{\"session\":{\"userId\":\"kill\",\"goalId\":\"g\"},"
	                                 "\"harness\":\"bench\",\"prompt\":\"%s\"}",
	        script);
	auto_free char *request =
	        xasprintf("POST /v1/runs HTTP/1.0\r\nAccept: text/event-stream\r\n"
	                  "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
	                strlen(body), body);
	answer_open(&b->stream, &b->rig, request, "HTTP/1.");
}

static const char *wait_text(struct bench *b, const char *text)
{
	const char *at;
	while (!(at = strstr(b->stream.buf + b->stream.at, text)))
		if (!answer_more(&b->stream)) {
			fprintf(stderr, "%s\n", b->stream.buf + b->stream.at);
			die(text);
		}
	return at;
}

static void end_run(struct bench *b, const char *status)
{
	while (answer_more(&b->stream))
		;
	(void)wait_text(b, status);
	fd_close(b->stream.fd);
	poll(NULL, 0, GAP_MS);
}

static int64_t cancel_once(struct bench *b, const char *script)
{
	static struct answer a;
	char id[64] = "";
	open_run(b, script);
	(void)sscanf(wait_text(b, "\"run\":\""), "\"run\":\"%63[a-zA-Z0-9_]", id);
	(void)wait_text(b, "ready");
	poll(NULL, 0, GAP_MS);
	auto_free char *request = xasprintf("DELETE /v1/runs/%s?now=1 HTTP/1.0\r\n\r\n", id);
	int64_t t0 = clock_mono_us();
	answer_open(&a, &b->rig, request, "HTTP/1.");
	(void)wait_text(b, "event: run.done");
	int64_t took = clock_mono_us() - t0;
	fd_close(a.fd);
	end_run(b, "\"status\":\"cancelled\"");
	return took;
}

static int64_t timeout_once(struct bench *b, const char *script)
{
	open_run(b, script);
	(void)wait_text(b, "event: run.started");
	int64_t t0 = clock_mono_us();
	(void)wait_text(b, "ready");
	(void)wait_text(b, "event: run.done");
	int64_t took = clock_mono_us() - t0 - TIMEOUT_MS * INT64_C(1000);
	end_run(b, "\"status\":\"timeout\"");
	return took;
}

static void say(const char *name, int64_t *v, int n)
{
	printf("kill_%s_p50\t%.0f\tus\n", name, percentile(v, n, 50));
	printf("kill_%s_p99\t%.0f\tus\n", name, percentile(v, n, 99));
}

int main(void)
{
	static int64_t cancels[ROUNDS_MAX], timeouts[ROUNDS_MAX], ones[ROUNDS_MAX];
	static struct bench b;
	const char *tests = getenv("TESTS"), *kind = getenv("KIND");
	int rounds = rig_rounds(100, ROUNDS_MAX);
	auto_free char *dir = realpath(tests ? tests : "build/release/tests", NULL);
	if (!dir)
		die("TESTS");
	auto_free char *policy = xasprintf("filesystem:\n  mounts:\n"
	                                   "    - { source: '%s/fakes', target: /fakes }\n",
	        dir);
	auto_free char *harness =
	        xasprintf("---\nname: bench\ndescription: does not want to go\nbackend: exec\n"
	                  "policy: bench\ncommand: [sh]\nlimits: { timeoutMs: %d }\n---\n",
	                TIMEOUT_MS);
	auto_free char *crowd = xasprintf("exec /fakes/swarm %d %s", CROWD, kind ? kind : "");
	rig_start(&b.rig, harness, policy, "");
	for (int i = 0; i < rounds; i++) {
		ones[i] = cancel_once(&b, "echo ready; exec sleep 100");
		cancels[i] = cancel_once(&b, crowd);
		timeouts[i] = timeout_once(&b, crowd);
	}
	rig_stop(&b.rig);
	say("one", ones, rounds);
	say("cancel", cancels, rounds);
	say("timeout", timeouts, rounds);
	printf("kill_vs_one\t%.2f\tx\n",
	        percentile(cancels, rounds, 50) / percentile(ones, rounds, 50));
	return 0;
}
