/* Prometheus text and JSON of the counters; roles of peers. */
#include "supervisor/auth.h"
#include "supervisor/metrics.h"

#include "base/fd.h"
#include "base/json.h"
#include "base/mem.h"
#include "tests/t.h"

#include <stdbool.h>
#include <sys/socket.h>

static int value_is(const char *text, const char *line)
{
	const char *at = strstr(text, line);
	return at && (at == text || at[-1] == '\n') && at[strlen(line)] == '\n';
}

/* ---- what Prometheus would read: version 0.0.4, told apart without leniency ---- */

enum { FAMILIES = 128, SERIES = 16384 };

struct reading {
	struct {
		char name[96], type[16];
	} families[FAMILIES];
	size_t nfamilies, nseries;
	uint64_t series[SERIES]; /* hashes: each is there once */
	char bucket_of[256];     /* labels of the histogram that is being read, without le */
	double bucket, le;       /* the latest of it */
	int infinite;            /* +Inf was read */
	char wrong[256];
};

static void wrong(struct reading *r, const char *why, const char *at)
{
	if (!r->wrong[0])
		(void)snprintf(r->wrong, sizeof(r->wrong), "%s: %.120s", why, at);
}

static size_t name_len(const char *s)
{
	size_t n = 0;
	while (s[n] == '_' || s[n] == ':' || (s[n] >= 'a' && s[n] <= 'z') ||
	        (s[n] >= 'A' && s[n] <= 'Z') || (n && s[n] >= '0' && s[n] <= '9'))
		n++;
	return n;
}

/* {a="b",...}: what is there without le, in `rest`; le's value, or NaN.  NULL: it is malformed. */
static const char *labels(const char *p, char *rest, size_t room, double *le)
{
	*le = __builtin_nan("");
	rest[0] = '\0';
	if (*p != '{')
		return p;
	for (p++;; p++) {
		size_t n = name_len(p);
		const char *value = p + n + 2;
		if (!n || strncmp(p + n, "=\"", 2) != 0)
			return NULL;
		size_t len = strcspn(value, "\"\\\n");
		if (value[len] != '"')
			return NULL;
		if (n == 2 && strncmp(p, "le", 2) == 0)
			*le = strncmp(value, "+Inf\"", 5) == 0 ? __builtin_inf()
			                                       : strtod(value, NULL);
		else
			(void)snprintf(rest + strlen(rest), room - strlen(rest), "%.*s,",
			        (int)(n + len + 3), p);
		p = value + len + 1;
		if (*p == '}')
			return p + 1;
		if (*p != ',')
			return NULL;
	}
}

static void read_comment(struct reading *r, const char *line)
{
	char name[96], type[16];
	if (sscanf(line, "# TYPE %95s %15s", name, type) == 2) {
		size_t last = r->nfamilies - 1;
		if (!r->nfamilies || strcmp(r->families[last].name, name) != 0)
			wrong(r, "TYPE without its HELP", line);
		else
			memcpy(r->families[last].type, type, sizeof(type));
		return;
	}
	if (sscanf(line, "# HELP %95s", name) != 1 || r->nfamilies == FAMILIES) {
		wrong(r, "a comment that is neither", line);
		return;
	}
	for (size_t i = 0; i < r->nfamilies; i++)
		if (strcmp(r->families[i].name, name) == 0)
			wrong(r, "a family in two places", line);
	memcpy(r->families[r->nfamilies++].name, name, sizeof(name));
	r->bucket_of[0] = '\0';
}

static void read_bucket(struct reading *r, const char *rest, double le, double v, const char *line)
{
	if (strcmp(r->bucket_of, rest) != 0 || r->infinite) {
		(void)snprintf(r->bucket_of, sizeof(r->bucket_of), "%s", rest);
		r->bucket = r->infinite = 0;
		r->le = -1;
	}
	if (!(le > r->le) || v < r->bucket)
		wrong(r, "buckets go down", line);
	r->le = le;
	r->bucket = v;
	r->infinite = le == __builtin_inf();
}

static void read_once(struct reading *r, const char *line, size_t n)
{
	uint64_t h = 14695981039346656037ULL;
	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)line[i]) * 1099511628211ULL;
	for (size_t i = 0; i < r->nseries; i++)
		if (r->series[i] == h)
			wrong(r, "a series twice", line);
	if (r->nseries < SERIES)
		r->series[r->nseries++] = h;
}

static void read_sample(struct reading *r, const char *line)
{
	char rest[256], *end;
	double le;
	size_t n = name_len(line);
	const char *at = labels(line + n, rest, sizeof(rest), &le);
	if (!n || !at || *at != ' ') {
		wrong(r, "no sample", line);
		return;
	}
	read_once(r, line, (size_t)(at - line));
	double v = strtod(at + 1, &end);
	if (end == at + 1 || *end)
		wrong(r, "no number", line);
	const char *family = r->nfamilies ? r->families[r->nfamilies - 1].name : "";
	const char *type = r->nfamilies ? r->families[r->nfamilies - 1].type : "";
	size_t len = strlen(family);
	bool its = n >= len && strncmp(line, family, len) == 0;
	const char *suffix = its ? line + len : "?";
	size_t slen = its ? n - len : 1;
	bool histogram = strcmp(type, "histogram") == 0;
	if (strcmp(type, "counter") == 0 &&
	        (v < 0 || (len > 6 && strcmp(family + len - 6, "_total") != 0)))
		wrong(r, "a counter", line);
	if (!histogram && slen)
		wrong(r, "not of the family above", line);
	else if (histogram && slen == 7 && strncmp(suffix, "_bucket", 7) == 0)
		read_bucket(r, rest, le, v, line);
	else if (histogram && slen == 6 && strncmp(suffix, "_count", 6) == 0) {
		if (!r->infinite || v != r->bucket || strcmp(rest, r->bucket_of) != 0)
			wrong(r, "the count is not the last bucket", line);
	} else if (histogram && !(slen == 4 && strncmp(suffix, "_sum", 4) == 0))
		wrong(r, "a histogram has no such", line);
}

static struct reading *exposition(const char *text)
{
	static struct reading r;
	auto_free char *copy = xstrdup(text);
	r = (struct reading){.nfamilies = 0};
	if (!text[0] || text[strlen(text) - 1] != '\n')
		wrong(&r, "no newline at the end", "");
	for (char *line = copy, *next; *line; line = next) {
		next = strchrnul(line, '\n');
		if (*next)
			*next++ = '\0';
		if (line[0] == '#')
			read_comment(&r, line);
		else
			read_sample(&r, line);
	}
	return &r;
}

/* A reader that takes anything would prove nothing. */
static void test_reader(void)
{
#define HEAD "# HELP a_total x\n# TYPE a_total counter\n"
#define HIST "# HELP h x\n# TYPE h histogram\n"
	static const char *const bad[] = {
	        HEAD "a_total 1",
	        HEAD "b_total 1\n",
	        HEAD "a_total{x=1} 1\n",
	        HEAD "a_total{x=\"1\"} one\n",
	        HEAD "a_total 1\na_total 2\n",
	        HEAD HEAD,
	        "# TYPE a gauge\na 1\n",
	        "# HELP a x\n# TYPE a counter\na 1\n# HELP b x\n# TYPE b counter\nb -1\n",
	        HIST "h_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 1\nh_sum 1\nh_count 1\n",
	        HIST "h_bucket{le=\"1\"} 1\nh_sum 1\nh_count 1\n",
	        HIST "h_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 2\nh_sum 1\nh_count 1\n",
	        HIST "h_bucket{le=\"2\"} 1\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 1\n",
	        HIST "h_mean 1\n",
	};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ok(exposition(bad[i])->wrong[0], "refused: %s", exposition(bad[i])->wrong);
	is_str(exposition(HEAD "a_total{x=\"1\"} 1\n" HIST "h_bucket{y=\"2\",le=\"1\"} 1\n"
	                       "h_bucket{y=\"2\",le=\"+Inf\"} 1\nh_sum{y=\"2\"} 1\n"
	                       "h_count{y=\"2\"} 1\n")
	                ->wrong,
	        "", "and taken");
}

static void run(struct stats *s, const char *harness, enum run_status status, int64_t us)
{
	struct stats_harness *h = stats_done(s, harness, status);
	stats_observe(&h->duration[status], us);
	stats_observe(&h->queued, us / 2);
	stats_observe(&h->start, us / 4);
}

static void test_text(void)
{
	static struct stats s = {.runs_running = 3, .events = 7, .egress_denied = 2};
	s.metered_cached = 12;
	s.metered_cost_micro = 1250000;
	run(&s, "coder", RUN_OOM, 40000);
	run(&s, "coder", RUN_OOM, 400000);
	run(&s, "coder", RUN_OOM, 100000000000);
	struct metrics m = {.stats = &s, .sessions = 9, .uptime_ms = 2500};
	m.machine.pressure[MACHINE_IO][MACHINE_FULL] =
	        (struct machine_pressure){.known = true, .avg10 = 50, .total_us = 1500000};
	m.machine.used[MACHINE_EGRESS] =
	        (struct machine_used){.known = true, .cpu_ms = 2500, .resident_bytes = 4096};
	auto_buf struct buf b = BUF_INIT(1 << 20);
	metrics_text(&m, &b);
	is_str(exposition(b.p)->wrong, "", "Prometheus would take it");
	ok(value_is(b.p, "agentbox_runs_running 3"), "a gauge");
	ok(value_is(b.p, "agentbox_sessions 9"), "sessions");
	ok(value_is(b.p, "agentbox_events_total 7"), "a counter");
	ok(value_is(b.p, "agentbox_runs_total{status=\"oom\"} 3"), "by status");
	ok(value_is(b.p, "agentbox_harness_runs_total{harness=\"coder\",status=\"oom\"} 3"),
	        "and harness");
	ok(value_is(b.p, "agentbox_tokens_total{kind=\"cached\"} 12"), "tokens by kind");
	ok(value_is(b.p, "agentbox_cost_usd_total 1.250000"), "cost in dollars");
	ok(value_is(b.p, "agentbox_runs_total{status=\"succeeded\"} 0"), "zeroes too");
#define DURATION "agentbox_run_duration_seconds"
#define OF       "harness=\"coder\",status=\"oom\""
	ok(value_is(b.p, DURATION "_bucket{" OF ",le=\"0.05\"} 1"), "a bucket");
	ok(value_is(b.p, DURATION "_bucket{" OF ",le=\"0.5\"} 2"), "is cumulative");
	ok(value_is(b.p, DURATION "_bucket{" OF ",le=\"+Inf\"} 3"), "up to infinity");
	ok(value_is(b.p, DURATION "_count{" OF "} 3"), "and counted");
	ok(value_is(b.p, DURATION "_sum{" OF "} 100000.440000"), "and summed");
	ok(value_is(b.p, "agentbox_run_queue_seconds_bucket{harness=\"coder\",le=\"0.025\"} 1"),
	        "the queue by harness");
	ok(value_is(b.p, "agentbox_host_pressure_ratio{resource=\"io\",stall=\"full\"} 0.500000") &&
	                !strstr(b.p, "resource=\"cpu\""),
	        "pressure where it is known");
	ok(value_is(b.p, "agentbox_process_cpu_seconds_total{process=\"agentbox-egress\"} 2.500"),
	        "a process");
	auto_buf struct buf j = BUF_INIT(1 << 20);
	struct err e;
	metrics_json(&m, &j);
	auto_json struct json *doc = json_parse(j.p, j.len, &e);
	ok(doc && json_int(doc, "runsRunning", 0) == 3, "JSON");
	ok(json_int(json_get(doc, "runs"), "oom", 0) == 3, "by status");
	ok(json_int(json_get(doc, "duration"), "count", 0) == 3, "histograms");
	const struct json *one = json_first(json_get(doc, "harnessRuns"));
	is_str(json_str(one, "harness", ""), "coder", "by harness");
	ok(json_int(json_get(one, "start"), "count", 0) == 3, "its histograms");
}

/* However many harnesses there are, and whatever they are called. */
static void test_cardinality(void)
{
	static struct stats s;
	char name[NAME_MAX_LEN];
	for (int i = 0; i < 1000; i++)
		for (int status = 0; status < RUN_STATUS_COUNT; status++) {
			(void)snprintf(name, sizeof(name), "%063d", i);
			run(&s, i == 5 ? "other" : name, (enum run_status)status, 1000);
		}
	ok(s.nharnesses == STATS_HARNESSES, "so many have a name");
	ok(s.harness[0].done[RUN_BLOCKED] == 1000 - STATS_HARNESSES, "the others are together");
	struct metrics m = {.stats = &s};
	auto_buf struct buf b = BUF_INIT(2 << 20);
	metrics_text(&m, &b);
	ok(b.len < 1 << 20, "the text is bounded: %zu bytes", b.len);
	is_str(exposition(b.p)->wrong, "", "and no series is there twice");
	auto_buf struct buf j = BUF_INIT(1 << 20);
	metrics_json(&m, &j);
	struct err e;
	auto_json struct json *doc = json_parse(j.p, j.len, &e);
	ok(doc && j.len < 100 << 10, "so is the JSON: %zu bytes", j.len);
}

static void test_quantiles(void)
{
	struct stats_histogram h = {.count = 0};
	ok(stats_quantile_us(&h, 0.5) == 0, "of nothing");
	for (int i = 0; i < 100; i++)
		stats_observe(&h, i < 90 ? 750 : 200000);
	int64_t p50 = stats_quantile_us(&h, 0.5), p99 = stats_quantile_us(&h, 0.99);
	ok(p50 > 500 && p50 <= 1000, "the middle is in its bucket: %lld us", (long long)p50);
	ok(p99 > 100000 && p99 <= 250000, "and so is the tail: %lld us", (long long)p99);
	stats_observe(&h, -5);
	ok(h.bucket[0] == 1, "a clock that went back");
	stats_observe(&h, INT64_MAX / 2);
	ok(stats_quantile_us(&h, 1) == stats_bounds_us[STATS_BUCKETS - 1], "beyond all bounds");
}

/* docs/METRICS.md is what dashboards are made from. */
static void test_documented(void)
{
	static struct stats s;
	char row[160];
	struct metrics m = {.stats = &s};
	auto_buf struct buf b = BUF_INIT(1 << 20);
	auto_free char *doc = NULL;
	size_t n, rows = 0;
	must(file_slurp("docs/METRICS.md", 1 << 20, &doc, &n) >= 0, "docs/METRICS.md opens");
	metrics_text(&m, &b);
	struct reading *r = exposition(b.p);
	for (size_t i = 0; i < r->nfamilies; i++) {
		(void)snprintf(row, sizeof(row), "| `%s` | %s |", r->families[i].name,
		        r->families[i].type);
		ok(strstr(doc, row), "%s is documented", r->families[i].name);
	}
	for (const char *at = doc; (at = strstr(at, "\n| `agentbox_")); at++)
		rows++;
	ok(rows == r->nfamilies, "and nothing else is: %zu rows, %zu families", rows, r->nfamilies);
}

static void test_machine(void)
{
	struct machine_pressure p[MACHINE_STALLS];
	struct machine_used u;
	machine_read_pressure("some avg10=1.50 avg60=0.10 avg300=0.00 total=1234\n"
	                      "full avg10=0.25 avg60=0.00 avg300=0.00 total=99\n",
	        p);
	ok(p[0].known && p[0].avg10 == 1.5 && p[0].total_us == 1234, "some");
	ok(p[1].known && p[1].avg10 == 0.25 && p[1].total_us == 99, "full");
	machine_read_pressure("some avg10=1.50 avg60=0.10 avg300=0.00 total=7\n", p);
	ok(p[0].known && !p[1].known, "an old kernel has no `full` of the processor");
	machine_read_pressure("", p);
	ok(!p[0].known, "none at all");
	ok(machine_read_stat("7 (a) b) c) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 1 0 99 4096 12 0",
	           100, 4096, &u) &&
	                u.cpu_ms == 2000 && u.resident_bytes == 12 * 4096,
	        "a process whose name is odd");
	ok(!machine_read_stat("7 (a) S 1 2", 100, 4096, &u) && !u.known, "cut short");
	ok(!machine_read_stat("", 100, 4096, &u), "empty");
	struct machine *m = machine_new();
	struct machine_look look;
	machine_see(m, &look);
	ok(look.used[MACHINE_SUPERVISOR].known && look.used[MACHINE_SUPERVISOR].resident_bytes > 0,
	        "this process");
	ok(!look.used[MACHINE_EGRESS].known, "none of that name is its sibling");
	machine_free(m);
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
	test_reader();
	test_text();
	test_cardinality();
	test_quantiles();
	test_documented();
	test_machine();
	test_roles();
	return done();
}
