#include "abctl/fail.h"
#include "abctl/pack.h"
#include "base/mem.h"

#include <string.h>

static const struct opt opts[] = {
        {"name", 0, OPT_TEXT, offsetof(struct pack_args, name), "NAME",
                "add: its name here, if not its manifest's or its source's"},
        {"grant", 0, OPT_LIST, offsetof(struct pack_args, grants), "KIND:NAME,...",
                "add, update: what its harnesses may have of what they want; may be given again"},
        {"policy", 0, OPT_TEXT, offsetof(struct pack_args, policy), "NAME",
                "add, update: of the jail that fetches (default: install)"},
        {"registry", 0, OPT_TEXT, offsetof(struct pack_args, registry), "URL",
                "add, update: npm's registry, else npm_config_registry or ~/.npmrc"},
        {"harnesses", 0, OPT_TEXT, offsetof(struct pack_args, harnesses), "DIR",
                "root's directory of harnesses (default: /etc/agentbox/harnesses)"},
        {.name = NULL},
};

static int ls(const struct cli *cli, const struct pack_args *a, const char *none)
{
	(void)none;
	return pack_ls(cli, a);
}

static const struct word {
	const char *word;
	int min, max; /* operands after it */
	bool makes;   /* takes what is for making one */
	int (*run)(const struct cli *cli, const struct pack_args *a, const char *operand);
} words[] = {
        {"add", 1, 1, true, pack_add},
        {"ls", 0, 0, false, ls},
        {"show", 1, 1, false, pack_show},
        {"update", 0, 1, true, pack_update},
        {"verify", 0, 1, false, pack_verify},
        {"rm", 1, 1, false, pack_rm},
};

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	const struct pack_args *a = args;
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		const struct word *w = &words[i];
		if (strcmp(argv[0], w->word) != 0 || argc - 1 < w->min || argc - 1 > w->max)
			continue;
		if (a->name && strcmp(w->word, "add") != 0)
			return fail_usage("abctl pack %s takes no --name", w->word);
		if (!w->makes && (a->grants.n || a->policy || a->registry))
			return fail_usage(
			        "abctl pack %s takes no --grant, --policy, --registry", w->word);
		return w->run(cli, a, argc > 1 ? argv[1] : NULL);
	}
	return fail_usage("abctl pack %s", cmd_pack.synopsis);
}

const struct verb cmd_pack = {
        .name = "pack",
        .synopsis = "(add SOURCE | ls | show NAME | update [NAME] | verify [NAME] | rm NAME)",
        .summary = "harnesses from elsewhere, and what they may",
        .help = "`add`, as root, takes npm:NAME[@VERSION], an https URL of a git repository "
                "(URL[#REF]) or of\na .tgz, a .tgz of this machine, or a directory. It is "
                "fetched in a jail, and its harnesses are\ncalled PACK.NAME.\n"
                "What they want beyond their jail (secrets, a policy, variables, webhooks, "
                "templates, ...) is\nlisted, and each is refused without --grant; also later, "
                "when a file of the pack has changed.\n"
                "`update` fetches anew from the same source: the old one stays where that fails "
                "or the new one\nwants more. `verify` compares the files with the digest of "
                "when they came; it exits 1 where\nthey differ.\n",
        .words = "add ls show update verify rm",
        .opts = opts,
        .args_size = sizeof(struct pack_args),
        .min = 1,
        .max = 2,
        .run = run,
};
