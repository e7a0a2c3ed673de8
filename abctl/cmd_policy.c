#include "abctl/fail.h"
#include "abctl/local.h"
#include "abctl/query.h"
#include "abctl/show.h"
#include "abctl/suggest.h"
#include "base/mem.h"

#include <string.h>

struct policy_args {
	const char *syscall, *host, *path;
};

static const struct opt opts[] = {
        {"syscall", 0, OPT_TEXT, offsetof(struct policy_args, syscall), "N",
                "explain: would this system call (name or number) be allowed?"},
        {"host", 0, OPT_TEXT, offsetof(struct policy_args, host), "H:P",
                "explain: would a connection to it be let out?"},
        {"path", 0, OPT_TEXT, offsetof(struct policy_args, path), "P",
                "explain: what is at this path of the jail?"},
        {.name = NULL},
};

static const struct column columns[] = {
        {"POLICY", "name", CELL_TEXT},
        {"SOURCE", "source", CELL_TEXT},
        {"DESCRIPTION", "description", CELL_TEXT},
        {.heading = NULL},
};

/* argv: the policy, then the words of the question; options are the short form of one each. */
static int explain(const struct cli *cli, const struct policy_args *a, int argc, char **argv)
{
	const char *args[24] = {"explain"};
	size_t n = 1;
	if (argc > (int)ARRAY_LEN(args) - 8)
		return fail_usage("abctl policy explain: too many words");
	for (int i = 0; i < argc; i++)
		args[n++] = argv[i];
	const struct {
		const char *option, *value;
	} asked[] = {{"--syscall", a->syscall}, {"--host", a->host}, {"--path", a->path}};
	for (size_t i = 0; i < ARRAY_LEN(asked); i++)
		if (asked[i].value) {
			args[n++] = asked[i].option;
			args[n++] = asked[i].value;
		}
	return local_explain(cli, args, n > 2);
}

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	if (strcmp(argv[0], "ls") == 0 && argc == 1)
		return show_list(cli, "/v1/policies", "policies", columns);
	if (strcmp(argv[0], "lint") == 0)
		return local_lint(cli, "policy", argc - 1, argv + 1);
	if (strcmp(argv[0], "explain") == 0 && argc >= 2)
		return explain(cli, args, argc - 1, argv + 1);
	if (strcmp(argv[0], "suggest") == 0 && argc == 2)
		return suggest_policy(cli, argv[1]);
	if (strcmp(argv[0], "show") != 0 || argc != 2)
		return fail_usage("abctl policy (ls | show NAME | lint FILE... | explain NAME | "
		                  "suggest RUN|SESSION)");
	auto_buf struct buf path = BUF_INIT(QUERY_PATH_MAX);
	buf_puts(&path, "/v1/policies/");
	url_encode(&path, argv[1]);
	return show_object(cli, path.p);
}

const struct verb cmd_policy = {
        .name = "policy",
        .synopsis = "(ls | show NAME | lint FILE... | explain NAME|FILE [syscall NAME|N [ARG...] | "
                    "host HOST[:PORT] | path PATH [read|write]] | suggest RUN|SESSION)",
        .summary = "what jails may do; check and explain a policy",
        .help = "`ls` and `show` tell what the daemon has in use. `lint` and `explain` read files "
                "and\n"
                "need no daemon. `explain` answers \"may I?\": what a jail of the policy would "
                "get, "
                "and which\nrule or line decides. `suggest` prints a policy that would "
                "have\nallowed what was refused to a run, or to the runs of a session.\n",
        .words = "ls show lint explain suggest",
        .opts = opts,
        .args_size = sizeof(struct policy_args),
        .min = 1,
        .max = 62,
        .run = run,
};
