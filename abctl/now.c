#include "abctl/now.h"

#include "abctl/query.h"
#include "base/buf.h"
#include "base/json.h"

#include <stdbool.h>
#include <string.h>

/* The members of a jail that a row shows. */
static void jail_members(struct jw *w, const struct json *jail)
{
	static const char *const names[] = {"jail", "ports", "cpuMs", "memoryPeakBytes",
	        "memoryBytes", "pidsPeak", "ioReadBytes", "ioWriteBytes", "egressBytes"};
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

/* A jail that no run has: of `abctl jail`, of a command in a session, or of an agent that waits for
 * the next run of its session. */
static void command_row(struct jw *w, const struct json *jail)
{
	const struct json *waits = json_get(jail, "waits");
	const char *what = waits ? "waits" : "command";
	jw_open(w, NULL, '{');
	jw_str(w, "status", what);
	jw_str(w, "state", what);
	jw_str(w, "runId", json_str(waits, "lastRunId", NULL));
	jw_str(w, "harness", json_str(waits, "harness", NULL));
	jw_str(w, "sessionId", json_str(jail, "sessionId", NULL));
	jw_str(w, "createdAt", json_str(jail, "since", NULL));
	jail_members(w, jail);
	jw_close(w, '}');
}

static int get(const struct cli *cli, const char *path, int quiet_ms, struct json **ret)
{
	struct err e = {0};
	if (!quiet_ms)
		return query_get(cli, path, ret);
	*ret = query_quietly(cli, path, quiet_ms, &e);
	return *ret ? 0 : EXIT_SYSTEM;
}

int now_look(const struct cli *cli, int quiet_ms, struct json **ret)
{
	auto_json struct json *jails = NULL, *running = NULL, *queued = NULL;
	int r = get(cli, "/v1/runs?status=running&limit=1000", quiet_ms, &running);
	if (r == 0)
		r = get(cli, "/v1/runs?status=queued&limit=1000", quiet_ms, &queued);
	if (r == 0)
		r = get(cli, "/v1/jails", quiet_ms, &jails);
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
	*ret = json_parse(b.p, b.len, NULL);
	return *ret ? 0 : EXIT_SYSTEM;
}
