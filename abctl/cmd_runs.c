#include "abctl/fail.h"
#include "abctl/query.h"
#include "abctl/show.h"
#include "base/clock.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

struct runs_args {
	const char *session, *harness, *status, *since, *until, *cursor, *limit;
};

static const struct opt opts[] = {
        {"session", 's', OPT_TEXT, offsetof(struct runs_args, session), "SESSION",
                "only of this session (id or USER/GOAL)"},
        {"harness", 'H', OPT_TEXT, offsetof(struct runs_args, harness), "NAME",
                "only of this harness"},
        {"status", 0, OPT_TEXT, offsetof(struct runs_args, status), "STATUS",
                "queued, running, succeeded, failed, cancelled, timeout, oom ..."},
        {"since", 0, OPT_TEXT, offsetof(struct runs_args, since), "TIME",
                "accepted from then on: 2026-11-30, 2026-11-30T09:00:00Z, or 90m, 12h, 7d ago"},
        {"until", 0, OPT_TEXT, offsetof(struct runs_args, until), "TIME", "accepted before then"},
        {"limit", 'n', OPT_TEXT, offsetof(struct runs_args, limit), "N",
                "at most so many, 1 to 1000 (50 where it is not said)"},
        {"cursor", 0, OPT_TEXT, offsetof(struct runs_args, cursor), "RUN", "go on after this run"},
        {.name = NULL},
};

static const struct column columns[] = {
        {"RUN", "runId", CELL_TEXT},
        {"STATUS", "status", CELL_TEXT},
        {"HARNESS", "harness", CELL_TEXT},
        {"USER", "userId", CELL_TEXT},
        {"GOAL", "goalId", CELL_TEXT},
        {"CREATED", "createdAt", CELL_TIME},
        {"ENDED", "endedAt", CELL_TIME},
        {.heading = NULL},
};

static void add(struct buf *path, const char *name, const char *value)
{
	if (!value)
		return;
	buf_printf(path, "&%s=", name);
	url_encode(path, value);
}

/* "12h": so long ago; else as it is. */
static void add_time(struct buf *path, const char *name, const char *value)
{
	static const char units[] = "smhd";
	static const int64_t ms[] = {1000, 60000, 3600000, 86400000};
	char *end = NULL, text[CLOCK_TEXT_MAX];
	long n = value ? strtol(value, &end, 10) : 0;
	const char *unit = value && *end && !end[1] && end > value ? strchr(units, *end) : NULL;
	if (unit && n > 0 && n < 1000000) {
		clock_rfc3339(clock_wall_ms() - n * ms[unit - units], text);
		value = text;
	}
	add(path, name, value);
}

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	(void)argc, (void)argv;
	const struct runs_args *a = args;
	const char *slash = a->session ? strchr(a->session, '/') : NULL;
	auto_free char *user = slash ? xstrndup(a->session, (size_t)(slash - a->session)) : NULL;
	auto_buf struct buf path = BUF_INIT(QUERY_PATH_MAX);
	buf_puts(&path, "/v1/runs?limit=");
	url_encode(&path, a->limit ? a->limit : "50"); /* what fits a screen or two */
	add(&path, "user", user);
	add(&path, "goal", slash ? slash + 1 : NULL);
	add(&path, "session", slash ? NULL : a->session);
	add(&path, "harness", a->harness);
	add(&path, "status", a->status);
	add_time(&path, "since", a->since);
	add_time(&path, "until", a->until);
	add(&path, "cursor", a->cursor);
	if (path.failed)
		return fail_usage("the filter is too long");
	return show_list(cli, path.p, "runs", columns);
}

const struct verb cmd_runs = {
        .name = "runs",
        .synopsis = "[OPTIONS]",
        .summary = "history of runs, newest first",
        .opts = opts,
        .args_size = sizeof(struct runs_args),
        .run = run,
};
