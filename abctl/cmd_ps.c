#include "abctl/show.h"
#include "abctl/query.h"
#include "base/buf.h"
#include "base/json.h"

static const struct column columns[] = {
        {"RUN", "runId", CELL_TEXT},
        {"STATUS", "status", CELL_TEXT},
        {"HARNESS", "harness", CELL_TEXT},
        {"USER", "userId", CELL_TEXT},
        {"GOAL", "goalId", CELL_TEXT},
        {"SINCE", "createdAt", CELL_TIME},
        {.heading = NULL},
};

/* Running ones first, then those that wait; each list newest first as it comes. */
static int collect(const struct cli *cli, struct jw *w, const char *path)
{
	auto_json struct json *j = NULL;
	int r = query_get(cli, path, &j);
	if (r)
		return r;
	for (const struct json *it = json_first(json_get(j, "runs")); it; it = json_next(it))
		jw_tree(w, NULL, it);
	return 0;
}

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	(void)args, (void)argc, (void)argv;
	auto_buf struct buf b = BUF_INIT(64 << 20);
	struct jw w = JW_INIT(&b);
	jw_open(&w, NULL, '{');
	jw_open(&w, "runs", '[');
	int r = collect(cli, &w, "/v1/runs?status=running&limit=1000");
	if (r == 0)
		r = collect(cli, &w, "/v1/runs?status=queued&limit=1000");
	if (r)
		return r;
	jw_close(&w, ']');
	jw_close(&w, '}');
	auto_json struct json *all = json_parse(b.p, b.len, NULL);
	return show_table(cli, all, "runs", columns);
}

const struct verb cmd_ps = {
        .name = "ps",
        .synopsis = "",
        .summary = "runs that run or wait now",
        .run = run,
};
