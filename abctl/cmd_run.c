#include "abctl/checkout.h"
#include "abctl/fail.h"
#include "abctl/follow.h"
#include "abctl/query.h"
#include "abctl/show.h"
#include "abctl/start.h"
#include "abctl/verb.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct run_args {
	const char *session, *prompt, *file, *key, *repo;
	struct opt_list params;
	int64_t priority;
	bool detach, dirty;
};

static const struct opt opts[] = {
        {"session", 's', OPT_TEXT, offsetof(struct run_args, session), "USER/GOAL",
                "the session: whose run it is, and of which goal"},
        {"prompt", 'p', OPT_TEXT, offsetof(struct run_args, prompt), "TEXT",
                "the prompt; '-' reads stdin"},
        {"file", 'f', OPT_TEXT, offsetof(struct run_args, file), "FILE",
                "read the prompt from a file"},
        {"param", 0, OPT_LIST, offsetof(struct run_args, params), "K=V",
                "a value for {{K}} in the prompts"},
        {"repo", 0, OPT_TEXT, offsetof(struct run_args, repo), "DIR|URL[#REF]",
                "check a new session's workspace out from it"},
        {"dirty", 0, OPT_FLAG, offsetof(struct run_args, dirty), NULL,
                "with what is not committed in DIR"},
        {"detach", 'd', OPT_FLAG, offsetof(struct run_args, detach), NULL,
                "print the run's id and return at once"},
        {"priority", 0, OPT_NUMBER, offsetof(struct run_args, priority), "N",
                "0 to 9, 9 first among the user's own runs"},
        {"idempotency-key", 0, OPT_TEXT, offsetof(struct run_args, key), "KEY",
                "the same key gives the same run"},
        {.name = NULL},
};

/* *ret is owned. */
static int read_prompt(const struct run_args *a, char **ret, size_t *ret_len)
{
	if (a->prompt && a->file)
		return fail_usage("-p and -f exclude each other");
	if (a->prompt && strcmp(a->prompt, "-") != 0) {
		*ret = xstrdup(a->prompt);
		*ret_len = strlen(a->prompt);
		return 0;
	}
	/* Some task types need none; stdin is read only when asked for: it may never end. */
	if (!a->prompt && !a->file) {
		*ret = xstrdup("");
		*ret_len = 0;
		return 0;
	}
	int r = a->file ? file_slurp(a->file, LIMIT_PROMPT, ret, ret_len)
	                : fd_slurp(STDIN_FILENO, LIMIT_PROMPT, ret, ret_len);
	if (r == -E2BIG)
		return fail_usage("the prompt is larger than %d bytes", LIMIT_PROMPT);
	return r < 0 ? fail_usage("%s: %s", a->file ? a->file : "stdin", strerror(-r)) : 0;
}

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	(void)argc;
	const struct run_args *a = args;
	struct start s = {.session = a->session,
	        .harness = argv[0],
	        .key = a->key,
	        .priority = a->priority,
	        .params = &a->params};
	auto_free char *prompt = NULL;
	auto_json struct json *j = NULL;
	auto_checkout struct checkout repo = {0};
	const struct checkout_ask ask = {
	        .session = a->session, .harness = argv[0], .what = a->repo, .dirty = a->dirty};
	int r = read_prompt(a, &prompt, &s.prompt_len);
	s.prompt = prompt;
	if (r == 0 && a->dirty && !a->repo)
		r = fail_usage("--dirty goes with --repo DIR");
	if (r == 0 && a->repo)
		r = checkout_bring(cli, &ask, &repo);
	s.repo = a->repo ? &repo : NULL;
	if (r == 0)
		r = start_run(cli, &s, &j);
	if (r)
		return r;
	const char *id = json_str(j, "runId", "");
	if (a->detach && cli->json)
		query_print(j);
	else if (a->detach)
		puts(id);
	if (a->detach)
		return EXIT_DONE;
	struct follow_options o = {
	        .run = id, .live = true, .lines = cli->json, .cancels = true, .asks = true};
	return follow_run(cli, &o);
}

/* The parameters that a harness declares: `abctl run HARNESS --help`. */
static void parameters(const struct cli *cli, const char *harness)
{
	static const struct column columns[] = {
	        {"PARAMETER", "name", CELL_TEXT},
	        {"REQUIRED", "required", CELL_TEXT},
	        {"DEFAULT", "default", CELL_TEXT},
	        {"ONE OF", "enum", CELL_TEXT},
	        {"PATTERN", "pattern", CELL_TEXT},
	        {"DESCRIPTION", "description", CELL_TEXT},
	        {.heading = NULL},
	};
	enum { HELP_WAIT_MS = 2000 };
	struct cli plain = *cli;
	struct err e = {0};
	auto_buf struct buf path = BUF_INIT(QUERY_PATH_MAX);
	buf_puts(&path, "/v1/harnesses/");
	url_encode(&path, harness);
	auto_json struct json *j = query_quietly(cli, path.p, HELP_WAIT_MS, &e);
	plain.json = false;
	printf("\n");
	if (!j || !json_get(j, "name"))
		printf("No daemon tells of a harness of that name, nor of its parameters.\n");
	else if (!json_get(j, "params"))
		printf("It declares no parameters: --param has what its text or the prompt has.\n");
	else
		(void)show_table(&plain, j, "params", columns);
}

const struct verb cmd_run = {
        .name = "run",
        .synopsis = "HARNESS -s USER/GOAL [-p PROMPT | -p - | -f FILE]",
        .summary = "run a harness and follow it",
        .help = "Starts a run and shows what the agent does until it is done. On a terminal\n"
                "a status line tells elapsed time, tokens and cost; otherwise the output is plain\n"
                "text, and with --json one event a line, run.done last.\n\n"
                "What the agent asks is answered with a key (y, a or n) on a terminal; elsewhere "
                "it\n"
                "says how to answer.\n\n"
                "--repo has the workspace of a new session checked out from a repository, and "
                "gives\n"
                "what became of it as the artifacts changes.patch and changes.bundle. Of a "
                "directory\n"
                "your git makes a bundle; what is not committed stays behind without --dirty.\n\n"
                "Ctrl-C cancels the run and waits for its end; a second one leaves at once.\n"
                "With --help behind HARNESS the parameters that it declares are listed.\n"
                "Exits 0 when the run succeeded, 1 when it did not, 111 when it could not be "
                "started.\n",
        .more_help = parameters,
        .opts = opts,
        .args_size = sizeof(struct run_args),
        .min = 1,
        .max = 1,
        .run = run,
};
