/*
 * A look, and where there is a terminal, another each interval.  The first one
 * says what is wrong and ends; later ones go on without an answer, for a
 * supervisor may be replaced meanwhile.
 */
#include "abctl/fail.h"
#include "abctl/human.h"
#include "base/neutral.h"
#include "abctl/now.h"
#include "abctl/query.h"
#include "abctl/show.h"
#include "abctl/term.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	INTERVAL_MS = 1000,
	INTERVAL_LEAST_MS = 50,
	INTERVAL_MOST_MS = 3600000,
	PATIENCE_MS = 5000, /* for an answer */
	SCREEN_MAX = 8 << 20,
	CTRL_C = 3,
};

struct top_args {
	bool once;
	const char *sort;
	int64_t interval_ms;
};

static const struct opt opts[] = {
        {"once", 0, OPT_FLAG, offsetof(struct top_args, once), NULL, "one look, then end"},
        {"sort", 0, OPT_TEXT, offsetof(struct top_args, sort), "KEY",
                "age, cpu, memory, pids, io or egress (default cpu)"},
        {"interval", 0, OPT_NUMBER, offsetof(struct top_args, interval_ms), "MS",
                "between two looks (default 1000, at least 50)"},
        {.name = NULL},
};

static const struct column columns[] = {
        {"RUN", "runId", CELL_TEXT},
        {"STATUS", "state", CELL_TEXT},
        {"HARNESS", "harness", CELL_TEXT},
        {"USER", "userId", CELL_TEXT},
        {"AGE", "ageMs", CELL_MS},
        {"CPU", "cpuMs", CELL_MS},
        {"CPU%", "cpuPercent", CELL_COUNT},
        {"MEMORY", "memoryBytes", CELL_BYTES},
        {"PIDS", "pidsPeak", CELL_COUNT},
        {"IO", "ioBytes", CELL_BYTES},
        {"EGRESS", "egressBytes", CELL_BYTES},
        {.heading = NULL},
};

static const struct {
	char key;
	const char *name, *member;
} sorts[] = {
        {'c', "cpu", "cpuMs"},
        {'m', "memory", "memoryBytes"},
        {'a', "age", "ageMs"},
        {'p', "pids", "pidsPeak"},
        {'i', "io", "ioBytes"},
        {'e', "egress", "egressBytes"},
};

struct top {
	struct cli *cli;
	size_t sort;          /* in sorts */
	struct json *before;  /* owned: the latest rows, or NULL */
	int64_t before_ms;    /* when those were */
	struct termios saved; /* the terminal's */
};

/* ---- one look ---- */

/* Percent of one processor since the look before; -1: this jail is new. */
static double cpu_percent(const struct top *t, const struct json *row, int64_t now_ms)
{
	int64_t jail = json_int(row, "jail", 0), gone = now_ms - t->before_ms;
	const struct json *x = json_first(json_get(t->before, "runs"));
	while (x && json_int(x, "jail", -1) != jail)
		x = json_next(x);
	double used = json_num(row, "cpuMs", 0) - json_num(x, "cpuMs", 0);
	return x && gone > 0 && used >= 0 ? used / (double)gone * 100 : -1;
}

static int64_t age_ms(const struct json *row)
{
	const char *from = json_str(row, "startedAt", json_str(row, "createdAt", ""));
	int64_t began = clock_from_rfc3339(from, strlen(from)), now = clock_wall_ms();
	return began > 0 && now > began ? now - began : 0;
}

static void write_row(const struct top *t, struct jw *w, const struct json *row, int64_t now_ms)
{
	static const char *const same[] = {"runId", "sessionId", "state", "harness", "userId",
	        "goalId", "jail", "cpuMs", "pidsPeak", "egressBytes"};
	jw_open(w, NULL, '{');
	for (size_t i = 0; i < ARRAY_LEN(same); i++)
		if (json_get(row, same[i]))
			jw_tree(w, same[i], json_get(row, same[i]));
	jw_int(w, "ageMs", age_ms(row));
	double held = json_num(row, "memoryBytes", json_num(row, "memoryPeakBytes", -1));
	if (held >= 0)
		jw_num(w, "memoryBytes", held);
	if (json_get(row, "jail")) {
		double percent = cpu_percent(t, row, now_ms);
		jw_num(w, "ioBytes",
		        json_num(row, "ioReadBytes", 0) + json_num(row, "ioWriteBytes", 0));
		if (percent >= 0)
			jw_int(w, "cpuPercent", (int64_t)(percent + 0.5));
	}
	jw_close(w, '}');
}

/* The largest first. */
static int compare(const void *a, const void *b, void *member)
{
	double x = json_num(*(const struct json *const *)a, member, -1);
	double y = json_num(*(const struct json *const *)b, member, -1);
	return (x < y) - (x > y);
}

static void write_sorted(const struct top *t, struct jw *w, const struct json *rows)
{
	size_t n = 0;
	for (const struct json *x = json_first(rows); x; x = json_next(x))
		n++;
	auto_free const struct json **all = xcalloc(n + 1, sizeof(const struct json *));
	n = 0;
	for (const struct json *x = json_first(rows); x; x = json_next(x))
		all[n++] = x;
	char member[32];
	(void)str_copy(member, sizeof(member), sorts[t->sort].member);
	qsort_r(all, n, sizeof(const struct json *), compare, member);
	for (size_t i = 0; i < n; i++)
		jw_tree(w, NULL, all[i]);
}

static int stats_look(const struct top *t, int quiet_ms, struct json **ret)
{
	struct err e = {0};
	if (!quiet_ms)
		return query_get(t->cli, "/v1/stats", ret);
	*ret = query_quietly(t->cli, "/v1/stats", quiet_ms, &e);
	return *ret ? 0 : EXIT_SYSTEM;
}

/* {"stats":{},"runs":[]} */
static int look(struct top *t, int quiet_ms, struct json **ret)
{
	auto_json struct json *now = NULL, *stats = NULL;
	int r = now_look(t->cli, quiet_ms, &now);
	if (r == 0)
		r = stats_look(t, quiet_ms, &stats);
	if (r)
		return r;
	int64_t now_ms = clock_mono_ms();
	auto_buf struct buf b = BUF_INIT(SCREEN_MAX), sorted = BUF_INIT(SCREEN_MAX);
	struct jw w = JW_INIT(&b), s = JW_INIT(&sorted);
	jw_open(&w, NULL, '{');
	jw_open(&w, "runs", '[');
	for (const struct json *x = json_first(json_get(now, "runs")); x; x = json_next(x))
		write_row(t, &w, x, now_ms);
	jw_close(&w, ']');
	jw_close(&w, '}');
	struct json *rows = json_parse(b.p, b.len, NULL);
	json_free(t->before);
	t->before = rows;
	t->before_ms = now_ms;
	jw_open(&s, NULL, '{');
	jw_tree(&s, "stats", stats);
	jw_open(&s, "runs", '[');
	write_sorted(t, &s, json_get(rows, "runs"));
	jw_close(&s, ']');
	jw_close(&s, '}');
	*ret = json_parse(sorted.p, sorted.len, NULL);
	return *ret ? 0 : fail_system("more runs than can be shown");
}

/* ---- showing it ---- */

static size_t users(const struct json *rows)
{
	size_t n = 0;
	for (const struct json *x = json_first(rows); x; x = json_next(x)) {
		const char *user = json_str(x, "userId", NULL);
		const struct json *y = json_first(rows);
		while (y != x && strcmp(json_str(y, "userId", ""), user ? user : "") != 0)
			y = json_next(y);
		n += user && y == x;
	}
	return n;
}

static void put_pressure(struct buf *to, const struct json *host)
{
	const struct json *all = json_get(host, "pressure");
	for (const struct json *p = json_first(all); p; p = json_next(p))
		buf_printf(to, "  %s %.0f%%", json_key(p), json_num(p, "some", 0) * 100);
}

static void put_head(const struct top *t, struct buf *to, const struct json *all)
{
	const struct json *s = json_get(all, "stats"), *host = json_get(s, "host");
	buf_printf(to, "%" PRId64 " running, %" PRId64 " queued, %zu users, %" PRId64 " jails, %s",
	        json_int(s, "runsRunning", 0), json_int(s, "runsQueued", 0),
	        users(json_get(all, "runs")), json_int(s, "jails", 0),
	        human_money(json_num(s, "costUsd", 0)).s);
	if (host) {
		buf_printf(to, "  load %.2f  pressure:", json_num(host, "load1", 0));
		put_pressure(to, host);
	}
	buf_printf(to, "\nby %s\n", sorts[t->sort].name);
}

static int show_once(struct top *t, const struct json *all)
{
	if (t->cli->json) {
		query_print(all);
		return EXIT_DONE;
	}
	auto_buf struct buf b = BUF_INIT(SCREEN_MAX);
	put_head(t, &b, all);
	table_write(&b, columns, json_get(all, "runs"), term_of(STDOUT_FILENO).width);
	return show_text(&b);
}

/* As many lines as there is room for, each cut to the width, over what was there. */
static void paint(const char *text, unsigned rows, unsigned width)
{
	auto_buf struct buf to = BUF_INIT(SCREEN_MAX);
	buf_puts(&to, "\x1b[H");
	for (unsigned i = 0; i + 1 < rows && *text; i++) {
		size_t n = strcspn(text, "\n");
		buf_put(&to, text, neutral_fit(text, n, width));
		buf_puts(&to, "\x1b[K\r\n");
		text += n + (text[n] == '\n');
	}
	buf_puts(&to, "\x1b[J");
	(void)!fd_write_all(STDOUT_FILENO, to.p, to.len);
}

static void show_live(struct top *t, const struct json *all)
{
	unsigned rows = 24, width = 80;
	auto_buf struct buf b = BUF_INIT(SCREEN_MAX);
	(void)!term_size(STDOUT_FILENO, &rows, &width);
	if (all)
		put_head(t, &b, all);
	else
		buf_puts(&b, "no daemon answers\n");
	buf_puts(&b, "q quit, by: c cpu, m memory, a age, p pids, i io, e egress\n");
	table_write(&b, columns, json_get(all, "runs"), width);
	paint(b.p, rows, width);
}

/* ---- the terminal ---- */

static volatile sig_atomic_t told_to_end;

static void on_signal(int sig)
{
	(void)sig;
	told_to_end = 1;
}

/* false: that is enough. */
static bool key(struct top *t)
{
	char c;
	ssize_t n = read(STDIN_FILENO, &c, 1);
	if (n == 0 || (n < 0 && errno != EINTR))
		return false;
	for (size_t i = 0; n == 1 && i < ARRAY_LEN(sorts); i++)
		if (sorts[i].key == c)
			t->sort = i;
	return n < 0 || (c != 'q' && c != CTRL_C);
}

static void live(struct top *t, int64_t interval_ms, const struct json *first)
{
	bool go_on = true;
	show_live(t, first);
	while (go_on && !told_to_end) {
		struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
		if (poll(&p, 1, (int)interval_ms) > 0)
			go_on = key(t);
		auto_json struct json *all = NULL;
		if (go_on && !told_to_end) {
			(void)!look(t, PATIENCE_MS, &all);
			show_live(t, all);
		}
	}
}

static int run_live(struct top *t, int64_t interval_ms, const struct json *first)
{
	static const char enter[] = "\x1b[?1049h\x1b[?25l", leave[] = "\x1b[?25h\x1b[?1049l";
	const struct sigaction end = {.sa_handler = on_signal};
	if (sigaction(SIGTERM, &end, NULL) < 0 || sigaction(SIGHUP, &end, NULL) < 0 ||
	        term_raw(STDIN_FILENO, &t->saved) < 0)
		return fail_system("the terminal: %s", strerror(errno));
	(void)!fd_write_all(STDOUT_FILENO, enter, strlen(enter));
	live(t, interval_ms, first);
	(void)!fd_write_all(STDOUT_FILENO, leave, strlen(leave));
	term_restore(STDIN_FILENO, &t->saved);
	return EXIT_DONE;
}

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	(void)argc, (void)argv;
	const struct top_args *a = args;
	struct top t = {.cli = cli};
	const char *by = a->sort ? a->sort : sorts[0].name;
	int64_t ms = a->interval_ms ? a->interval_ms : INTERVAL_MS;
	while (t.sort < ARRAY_LEN(sorts) && strcmp(sorts[t.sort].name, by) != 0)
		t.sort++;
	if (t.sort == ARRAY_LEN(sorts))
		return fail_usage("--sort: age, cpu, memory, pids, io or egress");
	if (ms < INTERVAL_LEAST_MS || ms > INTERVAL_MOST_MS)
		return fail_usage("--interval: %d to %d ms", INTERVAL_LEAST_MS, INTERVAL_MOST_MS);
	auto_json struct json *all = NULL;
	int r = look(&t, 0, &all);
	if (r == 0 && !a->once && !cli->json && term_of(STDOUT_FILENO).smart &&
	        isatty(STDIN_FILENO))
		r = run_live(&t, ms, all);
	else if (r == 0)
		r = show_once(&t, all);
	json_free(t.before);
	return r;
}

const struct verb cmd_top = {
        .name = "top",
        .synopsis = "[--once] [--sort KEY] [--interval MS]",
        .summary = "the same live, the busiest first",
        .opts = opts,
        .args_size = sizeof(struct top_args),
        .run = run,
};
