#include "abctl/fail.h"
#include "abctl/query.h"
#include "base/clock.h"

#include <stdio.h>

#include <time.h>

/* The supervisor that answered has 10 s to make room, agentboxd 4 s to give up; the new one
 * compiles policies, reads secrets and proves the layers, at most 25 s. */
enum { PATIENCE_MS = 60000, LOOK_MS = 20 };

static int done(const struct cli *cli)
{
	puts(cli->json ? "{\"reloaded\":true}" : "reloaded");
	return EXIT_DONE;
}

/* New programs were found.  The one that said so makes room for a supervisor that knows more: until
 * then it answers, nobody does, or agentboxd has not told it yet. */
static int wait_for_next(const struct cli *cli)
{
	const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
	int64_t until = clock_mono_ms() + PATIENCE_MS;
	struct err e = {0};
	for (int64_t left = PATIENCE_MS; left > 0; left = until - clock_mono_ms()) {
		auto_json struct json *now = query_version(cli, (int)left, &e);
		const struct json *root = json_get(now, "agentboxd");
		const char *stays = json_str(root, "stays", NULL);
		if (root && !json_bool(root, "renewing", false))
			return stays ? fail_system("%s", stays) : done(cli);
		(void)nanosleep(&pause, NULL);
	}
	return fail_system(
	        "new programs are found well, but no supervisor has taken up from the one "
	        "before within %d s; agentboxd's log tells more%s%s",
	        PATIENCE_MS / 1000, e.code < 0 ? ": " : "", e.code < 0 ? e.text : "");
}

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	(void)args, (void)argc, (void)argv;
	struct client_request req = {.method = "POST", .path = "/v1/reload"};
	auto_json struct json *j = NULL;
	int r = query_send(cli, &req, &j);
	if (r)
		return r;
	return json_bool(j, "renewing", false) ? wait_for_next(cli) : done(cli);
}

const struct verb cmd_reload = {
        .name = "reload",
        .synopsis = "",
        .summary = "read policies and configuration again, use new binaries",
        .help = "Running runs go on with what they began with, also under new binaries, that of\n"
                "agentboxd included; commands of `abctl exec` and `abctl jail` end with the old\n"
                "supervisor. A file that is wrong keeps the policies in use and is named; a new\n"
                "agentboxd that cannot take over leaves everything as it is. It ends when all is\n"
                "in place and serves, or has failed; what hangs is given up after 60 s.\n",
        .run = run,
};
