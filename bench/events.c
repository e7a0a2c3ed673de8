/*
 * events.c - lines of an agent on their way to a subscriber: a run of a command
 * that prints JSON events of 300 bytes as fast as it is read, followed by one
 * SSE client until run.done.
 *
 * What is compared is processor time, which other work on the machine disturbs
 * least: lines per second of the supervisor's, against json_parse of the same
 * line in this process, measured before each run.  Each line is parsed, encoded
 * with its envelope, written to the log, read back and framed for the client.
 *
 * Environment: BIN, ROUNDS (runs, default 5).
 */
#include "base/err.h"
#include "base/json.h"
#include "bench/rig.h"

#include <dirent.h>
#include <time.h>

enum { LINES = 50000, PARSES = 100000, ROUNDS_MAX = 100 };

#define TEXT                                                                                       \
	"The quick brown fox jumps over the lazy dog, and as it is said of foxes, it does so "     \
	"again: a line of what agents say is two hundred and fifty characters of plain text, "     \
	"now and then with a \\\"quotation\\\", a path such as /workspace/src/main.c and an end."
#define LINE "{\"type\":\"agent.message\",\"text\":\"" TEXT "\",\"delta\":false}"

static const char harness[] = "---\nname: bench\ndescription: prints events\nbackend: exec\n"
                              "command: [sh, -c, 'yes \"$(cat)\" | head -n 50000']\n"
                              "limits: { timeoutMs: 120000, outputBytes: 1G }\n---\n";

/* ---- processor time ---- */

static int64_t own_cpu_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* Parent and processor time of a process; false when it is not called `name`. */
static bool stat_of(const char *pid, const char *name, pid_t *parent, int64_t *us)
{
	auto_free char *path = xasprintf("/proc/%s/stat", pid);
	FILE *f = fopen(path, "re");
	char comm[32];
	long long user, sys;
	int got =
	        f ? fscanf(f, "%*d (%31[^)]) %*c %d %*d %*d %*d %*d %*d %*d %*d %*d %*d %lld %lld",
	                    comm, parent, &user, &sys)
	          : 0;
	if (f)
		fclose(f);
	*us = got == 4 ? (user + sys) * (1000000 / sysconf(_SC_CLK_TCK)) : 0;
	return got == 4 && strcmp(comm, name) == 0;
}

static int64_t supervisor_cpu_us(const struct rig *g)
{
	DIR *d = opendir("/proc");
	int64_t us = -1;
	for (struct dirent *at; d && us < 0 && (at = readdir(d));) {
		pid_t parent;
		int64_t cpu;
		/* A process's name is cut at 15 bytes. */
		if (stat_of(at->d_name, "agentbox-superv", &parent, &cpu) && parent == g->daemon)
			us = cpu;
	}
	if (d)
		closedir(d);
	if (us < 0)
		die("no supervisor");
	return us;
}

/* ---- floor ---- */

static double parse_rate(void)
{
	int64_t t0 = own_cpu_us();
	for (int i = 0; i < PARSES; i++) {
		struct err e;
		auto_json struct json *j = json_parse(LINE, sizeof(LINE) - 1, &e);
		if (!j)
			die("json_parse");
	}
	return PARSES * 1e6 / (double)(own_cpu_us() - t0);
}

/* ---- the run ---- */

static void follow(const struct rig *g, int round)
{
	static struct answer a;
	auto_buf struct buf body = BUF_INIT(64 << 10);
	auto_free char *goal = xasprintf("r%d", round);
	struct jw w = JW_INIT(&body);
	jw_open(&w, NULL, '{');
	jw_open(&w, "session", '{');
	jw_str(&w, "userId", "bench");
	jw_str(&w, "goalId", goal);
	jw_close(&w, '}');
	jw_str(&w, "harness", "bench");
	jw_str(&w, "prompt", LINE);
	jw_close(&w, '}');
	/* 1.0: no chunks in the middle of lines. */
	auto_free char *request =
	        xasprintf("POST /v1/runs HTTP/1.0\r\nAccept: text/event-stream\r\n"
	                  "Content-Type: application/json\r\n"
	                  "Content-Length: %zu\r\n\r\n%s",
	                body.len, body.p);
	answer_open(&a, g, request, "HTTP/1.1 200");
	int lines = 0;
	bool succeeded = false;
	do {
		for (char *end; (end = strchr(a.buf + a.at, '\n'));
		        a.at = (size_t)(end + 1 - a.buf)) {
			*end = '\0';
			const char *line = a.buf + a.at;
			lines += strstr(line, "event: agent.message") != NULL;
			if (strstr(line, "\"type\":\"run.done\""))
				succeeded = strstr(line, "\"status\":\"succeeded\"");
		}
	} while (answer_more(&a));
	fd_close(a.fd);
	if (lines != LINES || !succeeded) {
		fprintf(stderr, "bench events: %d lines of %d came\n", lines, LINES);
		die("the run");
	}
}

int main(void)
{
	static int64_t rate[ROUNDS_MAX], cpu_rate[ROUNDS_MAX], ratio[ROUNDS_MAX];
	int rounds = rig_rounds(5, ROUNDS_MAX);
	struct rig g;
	rig_start(&g, harness, NULL, "");
	for (int r = 0; r < rounds; r++) {
		double floor = parse_rate();
		int64_t t0 = clock_mono_us(), cpu0 = supervisor_cpu_us(&g);
		follow(&g, r);
		rate[r] = (int64_t)LINES * 1000000 / (clock_mono_us() - t0);
		cpu_rate[r] = (int64_t)LINES * 1000000 / (supervisor_cpu_us(&g) - cpu0 + 1);
		ratio[r] = (int64_t)((double)cpu_rate[r] * 10000 / floor);
	}
	rig_stop(&g);
	printf("events_sse\t%.0f\tlines/s\n", percentile(rate, rounds, 50));
	printf("events_supervisor\t%.0f\tlines/s of cpu\n", percentile(cpu_rate, rounds, 50));
	printf("events_vs_parse\t%.3f\tx\n", percentile(ratio, rounds, 50) / 10000);
	return 0;
}
