#include "abctl/fail.h"
#include "abctl/query.h"
#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

/* Between two supervisors nobody answers for a moment. */
enum { LOOK_MS = 100, PATIENCE_MS = 30000 };

struct drain_args {
	bool wait, undo;
};

static const struct opt opts[] = {
        {"wait", 'w', OPT_FLAG, offsetof(struct drain_args, wait), NULL,
                "until nothing runs any more"},
        {"undo", 0, OPT_FLAG, offsetof(struct drain_args, undo), NULL, "take runs again"},
        {.name = NULL},
};

static int say(const struct cli *cli, const struct json *j)
{
	int64_t running = json_int(j, "runsRunning", 0), queued = json_int(j, "runsQueued", 0);
	if (cli->json)
		query_print(j);
	else if (!json_bool(j, "draining", false))
		puts("runs are taken");
	else
		printf("draining: %" PRId64 " running, %" PRId64 " queued, %" PRId64 " jails\n",
		        running, queued, json_int(j, "jails", 0));
	return EXIT_DONE;
}

/* Jails too: commands of clients have some. */
static bool empty(const struct json *j)
{
	return json_int(j, "runsRunning", -1) == 0 && json_int(j, "jails", -1) == 0;
}

static int wait_empty(const struct cli *cli)
{
	const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
	int64_t until = clock_mono_ms() + PATIENCE_MS;
	struct err e = {0};
	for (;;) {
		auto_json struct json *j = query_quietly(cli, "/v1/drain", PATIENCE_MS, &e);
		int64_t now = clock_mono_ms();
		if (j && !json_bool(j, "draining", false))
			return fail_system(
			        "the daemon takes runs again: somebody has undone it, or it "
			        "was started anew");
		if (j && empty(j))
			return say(cli, j);
		if (j)
			until = now + PATIENCE_MS;
		else if (now >= until)
			return fail_system("%s", e.text);
		(void)nanosleep(&pause, NULL);
	}
}

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	(void)argc, (void)argv;
	const struct drain_args *a = args;
	const struct client_request req = {
	        .method = a->undo ? "DELETE" : "POST", .path = "/v1/drain"};
	auto_json struct json *j = NULL;
	if (a->undo && a->wait)
		return fail_usage("--wait and --undo do not go together");
	int r = query_send(cli, &req, &j);
	if (r)
		return r;
	return a->wait ? wait_empty(cli) : say(cli, j);
}

const struct verb cmd_drain = {
        .name = "drain",
        .synopsis = "[--wait | --undo]",
        .summary = "take no new runs, let those that run end",
        .help = "New runs and jails are refused with 503, queued runs stay queued, and agents "
                "that\n"
                "wait for another run end. It holds over reloads and deaths of the supervisor; "
                "the\n"
                "next start of agentboxd takes runs again and begins the queued ones. Sessions,\n"
                "workspaces and history stay. --wait ends when nothing runs any more and all "
                "jails\n"
                "are gone; then the service can be stopped without interrupting anything.\n",
        .opts = opts,
        .args_size = sizeof(struct drain_args),
        .run = run,
};
