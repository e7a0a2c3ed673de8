/* Prometheus text and JSON of the counters; roles of peers. */
#include "supervisor/auth.h"
#include "supervisor/metrics.h"

#include "base/json.h"
#include "tests/t.h"

#include <sys/socket.h>

static int value_is(const char *text, const char *line)
{
	const char *at = strstr(text, line);
	return at && (at == text || at[-1] == '\n') && at[strlen(line)] == '\n';
}

static void test_text(void)
{
	struct stats s = {.runs_running = 3, .events = 7, .egress_denied = 2};
	s.runs_done[RUN_OOM] = 5;
	s.metered_cached = 12;
	s.metered_cost_micro = 1250000;
	stats_observe(&s.duration, 40);
	stats_observe(&s.duration, 400);
	stats_observe(&s.duration, 100000000);
	struct metrics m = {.stats = &s, .sessions = 9, .uptime_ms = 2500};
	auto_buf struct buf b = BUF_INIT(1 << 20);
	metrics_text(&m, &b);
	ok(value_is(b.p, "agentbox_runs_running 3"), "a gauge");
	ok(value_is(b.p, "agentbox_sessions 9"), "sessions");
	ok(value_is(b.p, "agentbox_events_total 7"), "a counter");
	ok(value_is(b.p, "agentbox_runs_total{status=\"oom\"} 5"), "by status");
	ok(value_is(b.p, "agentbox_tokens_total{kind=\"cached\"} 12"), "tokens by kind");
	ok(value_is(b.p, "agentbox_cost_usd_total 1.250000"), "cost in dollars");
	ok(value_is(b.p, "agentbox_runs_total{status=\"succeeded\"} 0"), "zeroes too");
	ok(value_is(b.p, "agentbox_run_duration_seconds_bucket{le=\"0.05\"} 1"), "a bucket");
	ok(value_is(b.p, "agentbox_run_duration_seconds_bucket{le=\"0.5\"} 2"), "is cumulative");
	ok(value_is(b.p, "agentbox_run_duration_seconds_bucket{le=\"+Inf\"} 3"), "up to infinity");
	ok(value_is(b.p, "agentbox_run_duration_seconds_count 3"), "and counted");
	/* Each sample's name was announced by a TYPE line. */
	int bad = 0;
	for (char *p = strtok(b.p, "\n"); p; p = strtok(NULL, "\n"))
		bad += p[0] != '#' && strncmp(p, "agentbox_", 9) != 0;
	ok(bad == 0, "no stray line");
	auto_buf struct buf j = BUF_INIT(1 << 20);
	struct err e;
	metrics_json(&m, &j);
	auto_json struct json *doc = json_parse(j.p, j.len, &e);
	ok(doc && json_int(doc, "runsRunning", 0) == 3, "JSON");
	ok(json_int(json_get(doc, "runs"), "oom", 0) == 5, "by status");
	ok(json_int(json_get(doc, "duration"), "count", 0) == 3, "histograms");
}

static void test_roles(void)
{
	static const gid_t groups[] = {5, 900, 7};
	ok(auth_role_of(0, 1, NULL, 0, 900) == AUTH_ROOT, "root");
	ok(auth_role_of(1000, 900, NULL, 0, 900) == AUTH_USER, "primary group");
	ok(auth_role_of(1000, 100, groups, 3, 900) == AUTH_USER, "another group");
	ok(auth_role_of(1000, 100, groups, 1, 900) == AUTH_NONE, "a stranger");
	int s[2];
	struct auth_peer p;
	struct err e;
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0, "a pair");
	ok(auth_peer(s[0], getgid(), &p, &e) == 0 && p.uid == getuid() && p.pid == getpid() &&
	                p.role >= AUTH_USER,
	        "the kernel tells");
	must(pipe(s) == 0, "a pipe");
	ok(auth_peer(s[0], 0, &p, &e) == -ENOTSOCK, "not of a pipe");
}

int main(void)
{
	test_text();
	test_roles();
	return done();
}
