#include "abctl/fail.h"
#include "abctl/query.h"
#include "base/version.h"

#include <stdio.h>

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	(void)args, (void)argc, (void)argv;
	struct err e = {0};
	auto_json struct json *daemon = query_version(cli, 0, &e);
	if (cli->json) {
		auto_buf struct buf b = BUF_INIT(64 << 10);
		struct jw w = JW_INIT(&b);
		jw_open(&w, NULL, '{');
		jw_str(&w, "abctl", AGENTBOX_VERSION);
		jw_tree(&w, "daemon", daemon);
		jw_close(&w, '}');
		printf("%s\n", b.p);
		return daemon ? EXIT_DONE : fail_system("%s", e.text);
	}
	if (!daemon) {
		printf("abctl %s\n", AGENTBOX_VERSION);
		return fail_system("%s", e.text);
	}
	const struct json *root = json_get(daemon, "agentboxd");
	printf("abctl %s\n", AGENTBOX_VERSION);
	if (json_str(root, "version", NULL)) /* keys and strangers are not told */
		printf("agentboxd %s, since %s\n", json_str(root, "version", "?"),
		        json_str(root, "since", "?"));
	printf("agentbox-supervisor %s\n", json_str(daemon, "version", "?"));
	return EXIT_DONE;
}

const struct verb cmd_version = {
        .name = "version",
        .synopsis = "",
        .summary = "version of abctl and of the daemon",
        .run = run,
};
