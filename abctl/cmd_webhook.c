#include "abctl/fail.h"
#include "base/neutral.h"
#include "abctl/query.h"
#include "abctl/show.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct column columns[] = {
        {"WEBHOOK", "name", CELL_TEXT},
        {"HOST", "host", CELL_TEXT},
        {"COMMAND", "command", CELL_TEXT},
        {"PENDING", "pending", CELL_COUNT},
        {"DELIVERED", "delivered", CELL_COUNT},
        {"RETRIED", "retried", CELL_COUNT},
        {"FAILED", "failed", CELL_COUNT},
        {"LAST", "lastAt", CELL_TIME},
        {"ANSWER", "last", CELL_TEXT},
        {.heading = NULL},
};

/* Whether the receiver has taken it is the exit code. */
static int tell(const struct cli *cli, const char *name, const struct json *answer)
{
	bool taken = json_bool(answer, "delivered", false);
	int64_t status = json_int(answer, "status", 0), ms = json_int(answer, "tookMs", 0);
	if (cli->json) {
		query_print(answer);
	} else if (status) {
		printf("%s: %s (status %" PRId64 ", %" PRId64 " ms)\n", name,
		        taken ? "taken" : "not taken", status, ms);
	} else {
		auto_buf struct buf why = BUF_INIT(4096);
		const char *said = json_str(answer, "said", NULL);
		const char *text = said ? said : json_str(answer, "error", "");
		neutral_line(&why, text, strlen(text));
		printf("%s: %s (%s)\n", name,
		        !said   ? "no answer"
		        : taken ? "taken"
		                : "not taken",
		        why.p ? why.p : "");
	}
	return taken ? EXIT_DONE : EXIT_FAILED;
}

static int test(const struct cli *cli, const char *name)
{
	auto_buf struct buf path = BUF_INIT(QUERY_PATH_MAX);
	buf_puts(&path, "/v1/webhooks/");
	url_encode(&path, name);
	buf_puts(&path, "/test");
	if (path.failed)
		return fail_usage("'%.64s...' is no webhook's name", name);
	struct client_request req = {.method = "POST", .path = path.p};
	auto_json struct json *answer = NULL;
	int code = query_send(cli, &req, &answer);
	return code == EXIT_DONE ? tell(cli, name, answer) : code;
}

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	(void)args;
	if (strcmp(argv[0], "ls") == 0 && argc == 1)
		return show_list(cli, "/v1/webhooks", "webhooks", columns);
	if (strcmp(argv[0], "test") != 0 || argc != 2)
		return fail_usage("abctl webhook (ls | test NAME)");
	return test(cli, argv[1]);
}

const struct verb cmd_webhook = {
        .name = "webhook",
        .synopsis = "(ls | test NAME)",
        .summary = "who is told of runs, and what has become of it",
        .help = "`ls`: how many runs a webhook is still to be told of, the events that were "
                "taken,\n"
                "the attempts that failed and the events that were given up since the supervisor\n"
                "started, and the latest answer. `test` sends an event of type webhook.test and "
                "says\n"
                "what the receiver answers; it exits 1 when that is not success.\n",
        .words = "ls test",
        .min = 1,
        .max = 2,
        .run = run,
};
