#include "abctl/agent_install.h"
#include "abctl/agent_probe.h"
#include "abctl/fail.h"
#include "abctl/human.h"
#include "abctl/local.h"
#include "base/neutral.h"
#include "abctl/query.h"
#include "abctl/show.h"
#include "base/mem.h"

#include <string.h>

enum { MATRIX_MAX = 1 << 20 };

static const struct column columns[] = {
        {"AGENT", "name", CELL_TEXT},
        {"DRIVER", "driver", CELL_TEXT},
        {"VERSION", "version", CELL_TEXT},
        {"INSTALLED", "installed", CELL_TEXT},
        {"DESCRIPTION", "description", CELL_TEXT},
        {"ERROR", "error", CELL_TEXT},
        {.heading = NULL},
};

struct agent_args {
	struct agent_install_args install;
};

static const struct opt opts[] = {AGENT_INSTALL_OPTS(struct agent_args, install), {.name = NULL}};

/* ---- ls, show ---- */

static int ls(const struct cli *cli, const struct agent_args *a, int argc, char **argv)
{
	(void)a, (void)argc, (void)argv;
	return show_list(cli, "/v1/agents", "agents", columns);
}

static int show(const struct cli *cli, const struct agent_args *a, int argc, char **argv)
{
	(void)a, (void)argc;
	auto_buf struct buf path = BUF_INIT(QUERY_PATH_MAX);
	agent_path(&path, argv[0]);
	return show_object(cli, path.p);
}

/* ---- capabilities ---- */

/* Text of the daemon, in a column as wide as asked. */
static void put(struct buf *to, const char *text, size_t width)
{
	size_t from = to->len;
	neutral_line(to, text, strlen(text));
	for (size_t n = neutral_width(to->p + from, to->len - from); n < width; n++)
		buf_putc(to, ' ');
}

static const char *word(const struct json *agent, const char *ability)
{
	return json_str(json_get(agent, "abilities"), ability, "-");
}

static size_t column_of(const struct json *agent)
{
	const char *name = json_str(agent, "name", "");
	size_t n = neutral_width(name, strlen(name));
	return 2 + (n < strlen("enforced") ? strlen("enforced") : n);
}

/* A line an ability, a column an agent. */
static void matrix(struct buf *to, const struct json *all)
{
	const struct json *agents = json_get(all, "agents");
	put(to, "ABILITY", 15);
	for (const struct json *a = json_first(agents); a; a = json_next(a))
		put(to, json_str(a, "name", ""), column_of(a));
	buf_putc(to, '\n');
	const struct json *abilities = json_get(all, "abilities");
	for (const struct json *x = json_first(abilities); x; x = json_next(x)) {
		const char *name = json_str(x, "name", "");
		put(to, name, 15);
		for (const struct json *a = json_first(agents); a; a = json_next(a))
			put(to, word(a, name), column_of(a));
		buf_putc(to, '\n');
	}
}

/* A line an ability, with what it means. */
static void meaning(struct buf *to, const struct json *all, const struct json *agent)
{
	const struct json *abilities = json_get(all, "abilities");
	for (const struct json *x = json_first(abilities); x; x = json_next(x)) {
		const char *name = json_str(x, "name", ""), *can = word(agent, name);
		put(to, name, 15);
		put(to, can, 10);
		put(to, json_str(x, "what", ""), 0);
		if (strcmp(can, "enforced") == 0) {
			buf_puts(to, ": ");
			put(to, json_str(x, "enforced", ""), 0);
		}
		buf_putc(to, '\n');
	}
}

static int capabilities(const struct cli *cli, const struct agent_args *a, int argc, char **argv)
{
	(void)a;
	auto_json struct json *all = NULL, *one = NULL;
	int r = argc && cli->json ? 0 : query_get(cli, "/v1/agents", &all);
	if (r == 0 && argc)
		r = agent_get(cli, argv[0], &one);
	if (r)
		return r;
	if (cli->json) {
		query_print(one ? one : all);
		return EXIT_DONE;
	}
	auto_buf struct buf b = BUF_INIT(MATRIX_MAX);
	if (one)
		meaning(&b, all, one);
	else
		matrix(&b, all);
	return show_text(&b);
}

static int lint(const struct cli *cli, const struct agent_args *a, int argc, char **argv)
{
	(void)a;
	return local_lint(cli, "agent", argc, argv);
}

/* ---- install, rm ---- */

/* One that agentboxd looks at is tried, too; as JSON there is one answer. */
static int install(const struct cli *cli, const struct agent_args *a, int argc, char **argv)
{
	(void)argc;
	int r = agent_install(cli, &a->install, argv[0]);
	bool tried = r == 0 && !cli->json && !a->install.dir && !a->install.file;
	return tried ? agent_probe(cli, NULL, argv[0]) : r;
}

static int rm(const struct cli *cli, const struct agent_args *a, int argc, char **argv)
{
	(void)argc;
	return agent_rm(cli, &a->install, argv[0]);
}

/* ---- probe ---- */

static int probe(const struct cli *cli, const struct agent_args *a, int argc, char **argv)
{
	(void)argc;
	return agent_probe(cli, a->install.policy, argv[0]);
}

/* ---- the verb ---- */

enum { TAKES_FILE = 1, TAKES_DIR = 2, TAKES_POLICY = 4, TAKES_REGISTRY = 8 };

static const struct word {
	const char *word;
	int min, max; /* operands after it */
	int takes;    /* of the options */
	int (*run)(const struct cli *cli, const struct agent_args *a, int argc, char **argv);
} words[] = {
        {"ls", 0, 0, 0, ls},
        {"show", 1, 1, 0, show},
        {"capabilities", 0, 1, 0, capabilities},
        {"lint", 1, 61, 0, lint},
        {"probe", 1, 1, TAKES_POLICY, probe},
        {"install", 1, 1, TAKES_FILE | TAKES_DIR | TAKES_POLICY | TAKES_REGISTRY, install},
        {"rm", 1, 1, TAKES_DIR, rm},
};

/* An option that would be ignored. */
static int check_options(const struct word *w, const struct agent_install_args *a)
{
	const struct {
		const char *name, *value;
		int bit;
	} given[] = {{"file", a->file, TAKES_FILE}, {"agents", a->dir, TAKES_DIR},
	        {"policy", a->policy, TAKES_POLICY}, {"registry", a->registry, TAKES_REGISTRY}};
	for (size_t i = 0; i < ARRAY_LEN(given); i++)
		if (given[i].value && !(w->takes & given[i].bit))
			return fail_usage("abctl agent %s takes no --%s", w->word, given[i].name);
	return 0;
}

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	const struct agent_args *a = args;
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		const struct word *w = &words[i];
		if (strcmp(argv[0], w->word) != 0 || argc - 1 < w->min || argc - 1 > w->max)
			continue;
		int r = check_options(w, &a->install);
		return r ? r : w->run(cli, a, argc - 1, argv + 1);
	}
	return fail_usage("abctl agent %s", cmd_agent.synopsis);
}

const struct verb cmd_agent = {
        .name = "agent",
        .synopsis = "(ls | show NAME | capabilities [NAME] | lint FILE... | probe NAME | install "
                    "NAME | "
                    "rm NAME)",
        .summary = "coding agents: what they are, what they can",
        .help = "`lint` reads an agent.yaml of yours and needs no daemon; it exits 1 when it is "
                "wrong.\n"
                "`probe` starts an agent in a fresh jail and compares its version with the pinned "
                "one; it exits 1\nwith the reason when that does not hold.\n"
                "`capabilities` says for each ability yes, no, or enforced: the agent cannot, and "
                "agentbox\n"
                "ends a run that does what its harness forbids, once it is seen. A harness that "
                "asks for\nwhat its agent cannot is refused (`abctl harness lint`).\n"
                "`install`, as root, fetches the pinned package from npm's registry in a jail "
                "that reaches\nnothing else, checks its digest outside, and puts the finished "
                "tree where jails see it as\n/opt/agent; no script of it runs. A version that a "
                "jail shows is kept until that jail is gone.\n",
        .words = "ls show capabilities lint probe install rm",
        .opts = opts,
        .args_size = sizeof(struct agent_args),
        .min = 1,
        .max = 62,
        .run = run,
};
