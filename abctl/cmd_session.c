#include "abctl/fail.h"
#include "abctl/query.h"
#include "abctl/show.h"
#include "base/mem.h"

#include <string.h>

static int remove_it(const struct cli *cli, const char *path, const char *name)
{
	struct client_request req = {.method = "DELETE", .path = path};
	return query_say(cli, &req, "removed %s", name);
}

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	(void)args, (void)argc;
	bool rm = strcmp(argv[0], "rm") == 0;
	if (!rm && strcmp(argv[0], "show") != 0)
		return fail_usage("unknown 'session %s' (there are: show, rm)", argv[0]);
	auto_free char *id = NULL;
	int r = query_session(cli, argv[1], &id);
	if (r)
		return r;
	auto_buf struct buf path = BUF_INIT(QUERY_PATH_MAX);
	buf_puts(&path, "/v1/sessions/");
	query_encode(&path, id);
	return rm ? remove_it(cli, path.p, id) : show_object(cli, path.p);
}

const struct verb cmd_session = {
        .name = "session",
        .synopsis = "(show | rm) SESSION",
        .summary = "one session: look at it, or remove it",
        .help = "SESSION is an id or USER/GOAL. `rm` deletes workspace, home, events and "
                "artifacts;\n"
                "it is refused while a run of the session runs or waits.\n",
        .words = "show rm",
        .min = 2,
        .max = 2,
        .run = run,
};
