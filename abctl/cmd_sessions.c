#include "abctl/fail.h"
#include "abctl/query.h"
#include "abctl/show.h"

#include <stddef.h>

struct sessions_args {
	const char *cursor, *user, *limit;
};

static const struct opt opts[] = {
        {"user", 'u', OPT_TEXT, offsetof(struct sessions_args, user), "USER", "only of this user"},
        {"limit", 'n', OPT_TEXT, offsetof(struct sessions_args, limit), "N",
                "at most so many, 1 to 1000 (50 where it is not said)"},
        {"cursor", 0, OPT_TEXT, offsetof(struct sessions_args, cursor), "SESSION",
                "go on after this one"},
        {.name = NULL},
};

static const struct column columns[] = {
        {"SESSION", "sessionId", CELL_TEXT},
        {"USER", "userId", CELL_TEXT},
        {"GOAL", "goalId", CELL_TEXT},
        {"RUNS", "runs", CELL_COUNT},
        {"PINNED", "pinned", CELL_TEXT},
        {"CREATED", "createdAt", CELL_TIME},
        {"USED", "usedAt", CELL_TIME},
        {.heading = NULL},
};

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	(void)argc, (void)argv;
	const struct sessions_args *a = args;
	auto_buf struct buf path = BUF_INIT(QUERY_PATH_MAX);
	buf_puts(&path, "/v1/sessions?limit=");
	url_encode(&path, a->limit ? a->limit : "50"); /* what fits a screen or two */
	if (a->user) {
		buf_puts(&path, "&user=");
		url_encode(&path, a->user);
	}
	if (a->cursor) {
		buf_puts(&path, "&cursor=");
		url_encode(&path, a->cursor);
	}
	if (path.failed)
		return fail_usage("the filter is too long");
	return show_list(cli, path.p, "sessions", columns);
}

const struct verb cmd_sessions = {
        .name = "sessions",
        .synopsis = "[OPTIONS]",
        .summary = "sessions: pairs of user and goal",
        .opts = opts,
        .args_size = sizeof(struct sessions_args),
        .run = run,
};
