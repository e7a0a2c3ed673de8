#include "abctl/fail.h"
#include "abctl/query.h"
#include "abctl/show.h"
#include "abctl/snapshot_make.h"
#include "base/mem.h"

#include <string.h>

static const struct opt opts[] = {
        {"from", 0, OPT_TEXT, offsetof(struct snapshot_args, from), "SESSION|DIR",
                "what it is made of; a directory of this machine begins with / or ."},
        {"prepare", 0, OPT_TEXT, offsetof(struct snapshot_args, prepare), "CMD",
                "a line for sh, run in a jail with that as its workspace; fails it, no snapshot"},
        {"policy", 0, OPT_TEXT, offsetof(struct snapshot_args, policy), "NAME",
                "of that jail (default: offline)"},
        {"force", 'f', OPT_FLAG, offsetof(struct snapshot_args, force), NULL,
                "take the name from a snapshot that has it"},
        {.name = NULL},
};

static const struct column columns[] = {
        {"SNAPSHOT", "name", CELL_TEXT},
        {"CREATED", "createdAt", CELL_TIME},
        {"FILES", "files", CELL_COUNT},
        {"SIZE", "bytes", CELL_BYTES},
        {"USED BY", "usedBy", CELL_COUNT},
        {.heading = NULL},
};

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	const struct snapshot_args *a = args;
	bool create = strcmp(argv[0], "create") == 0;
	if (!create && (a->from || a->prepare || a->policy || a->force))
		return fail_usage("only `abctl snapshot create` has options");
	if (strcmp(argv[0], "ls") == 0 && argc == 1)
		return show_list(cli, "/v1/snapshots", "snapshots", columns);
	if (argc != 2)
		return fail_usage(
		        "abctl snapshot (ls | show NAME | rm NAME | create NAME --from ...)");
	if (create)
		return a->from ? snapshot_make(cli, a, argv[1])
		               : fail_usage("say of what: --from SESSION, or --from DIR");
	auto_buf struct buf path = BUF_INIT(QUERY_PATH_MAX);
	buf_puts(&path, "/v1/snapshots/");
	url_encode(&path, argv[1]);
	if (path.failed)
		return fail_usage("'%.64s...' is no snapshot's name", argv[1]);
	if (strcmp(argv[0], "show") == 0)
		return show_object(cli, path.p);
	struct client_request req = {.method = "DELETE", .path = path.p};
	return query_say(cli, &req, "removed %s", argv[1]);
}

const struct verb cmd_snapshot = {
        .name = "snapshot",
        .synopsis = "(ls | show NAME | rm NAME | create NAME --from SESSION|DIR)",
        .summary = "trees that workspaces start from",
        .help = "`create` keeps what the workspace of an idle session shows, or a directory of "
                "this\n"
                "machine, which is packed here and unpacked in a jail. A harness names it as\n"
                "workspace.snapshot: new sessions then start from it at once, whatever its size, "
                "and\n"
                "store only what they change. `rm` is refused while a session stands on it.\n",
        .words = "ls show rm create",
        .opts = opts,
        .args_size = sizeof(struct snapshot_args),
        .min = 1,
        .max = 2,
        .run = run,
};
