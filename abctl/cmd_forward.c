#include "abctl/fail.h"
#include "abctl/forward.h"
#include "abctl/query.h"
#include "base/mem.h"

struct forward_args {
	bool stdio;
};

static const struct opt opts[] = {
        {"stdio", 0, OPT_FLAG, offsetof(struct forward_args, stdio), NULL,
                "one connection: stdin and stdout, no listener"},
        {.name = NULL},
};

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	const struct forward_args *a = args;
	struct forward_spec specs[FORWARD_MAX];
	struct err e;
	for (int i = 1; i < argc; i++)
		if (forward_parse(argv[i], &specs[i - 1], &e) < 0)
			return fail_usage("%s", e.text);
	if (a->stdio && argc != 2)
		return fail_usage("--stdio carries one port");
	auto_free char *session = NULL;
	int r = query_session(cli, argv[0], &session);
	if (r)
		return r;
	return a->stdio ? forward_stdio(cli, session, specs[0].port)
	                : forward_listen(cli, session, specs, argc - 1);
}

const struct verb cmd_forward = {
        .name = "forward",
        .synopsis = "SESSION [OPTIONS] [ADDRESS:][LOCAL:]PORT...",
        .summary = "reach a server inside a session's jail",
        .help = "SESSION is an id or USER/GOAL. Listens on LOCAL (as PORT where it is left out, "
                "0: any)\n"
                "of 127.0.0.1 or ADDRESS, and carries each connection to PORT of the jail, as far "
                "as\n"
                "`ports:` of its policy goes. Ends with the jail.\n",
        .opts = opts,
        .args_size = sizeof(struct forward_args),
        .min = 2,
        .max = 1 + FORWARD_MAX,
        .run = run,
};
