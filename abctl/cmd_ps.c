#include "abctl/show.h"
#include "abctl/query.h"
#include "base/buf.h"
#include "base/json.h"

#include <stdbool.h>
#include <string.h>

static const struct column columns[] = {
        {"RUN", "runId", CELL_TEXT},
        {"STATUS", "state", CELL_TEXT},
        {"HARNESS", "harness", CELL_TEXT},
        {"USER", "userId", CELL_TEXT},
        {"GOAL", "goalId", CELL_TEXT},
        {"SINCE", "createdAt", CELL_TIME},
        {"CPU", "cpuMs", CELL_MS},
        {"MEMORY", "memoryPeakBytes", CELL_BYTES},
        {"PIDS", "pidsPeak", CELL_COUNT},
        {"JAIL", "jail", CELL_TEXT},
        {"PORTS", "ports", CELL_TEXT},
        {.heading = NULL},
};

/* The members of a jail that a row shows. */
static void jail_members(struct jw *w, const struct json *jail)
{
	static const char *const names[] = {
	        "jail", "ports", "cpuMs", "memoryPeakBytes", "pidsPeak"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (json_get(jail, names[i]))
			jw_tree(w, names[i], json_get(jail, names[i]));
}

static const struct json *jail_of(const struct json *jails, const char *session)
{
	for (const struct json *x = json_first(json_get(jails, "jails")); x; x = json_next(x))
		if (strcmp(json_str(x, "sessionId", ""), session) == 0)
			return x;
	return NULL;
}

static void run_row(struct jw *w, const struct json *run, const struct json *jails, bool running)
{
	static const char *const names[] = {"runId", "sessionId", "status", "state", "harness",
	        "userId", "goalId", "createdAt", "startedAt", "priority", "fromSeq"};
	jw_open(w, NULL, '{');
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (json_get(run, names[i]))
			jw_tree(w, names[i], json_get(run, names[i]));
	if (running)
		jail_members(w, jail_of(jails, json_str(run, "sessionId", "-")));
	jw_close(w, '}');
}

static bool has_run(const struct json *runs, const char *session)
{
	for (const struct json *x = json_first(json_get(runs, "runs")); x; x = json_next(x))
		if (strcmp(json_str(x, "sessionId", ""), session) == 0)
			return true;
	return false;
}

/* A jail that no run has: of `abctl jail`, or of a command in a session. */
static void command_row(struct jw *w, const struct json *jail)
{
	jw_open(w, NULL, '{');
	jw_str(w, "status", "command");
	jw_str(w, "state", "command");
	jw_str(w, "sessionId", json_str(jail, "sessionId", NULL));
	jw_str(w, "createdAt", json_str(jail, "since", NULL));
	jail_members(w, jail);
	jw_close(w, '}');
}

/* Running ones first, then jails of commands, then those that wait; each list as it comes. */
static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	(void)args, (void)argc, (void)argv;
	auto_json struct json *jails = NULL, *running = NULL, *queued = NULL;
	int r = query_get(cli, "/v1/runs?status=running&limit=1000", &running);
	if (r == 0)
		r = query_get(cli, "/v1/runs?status=queued&limit=1000", &queued);
	if (r == 0)
		r = query_get(cli, "/v1/jails", &jails);
	if (r)
		return r;
	auto_buf struct buf b = BUF_INIT(64 << 20);
	struct jw w = JW_INIT(&b);
	jw_open(&w, NULL, '{');
	jw_open(&w, "runs", '[');
	const struct json *x;
	for (x = json_first(json_get(running, "runs")); x; x = json_next(x))
		run_row(&w, x, jails, true);
	for (x = json_first(json_get(jails, "jails")); x; x = json_next(x))
		if (!has_run(running, json_str(x, "sessionId", "-")))
			command_row(&w, x);
	for (x = json_first(json_get(queued, "runs")); x; x = json_next(x))
		run_row(&w, x, jails, false);
	jw_close(&w, ']');
	jw_close(&w, '}');
	auto_json struct json *all = json_parse(b.p, b.len, NULL);
	return show_table(cli, all, "runs", columns);
}

const struct verb cmd_ps = {
        .name = "ps",
        .synopsis = "",
        .summary = "runs and jails of now, with what they have used",
        .run = run,
};
