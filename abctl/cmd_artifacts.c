#include "abctl/artifact_get.h"
#include "abctl/fail.h"
#include "base/neutral.h"
#include "abctl/query.h"
#include "abctl/show.h"
#include "base/mem.h"

#include <string.h>

#define SYNOPSIS "RUN [--links | get PATH [-o FILE] | get --all -o DIR | get --tar [-o FILE]]"

enum { LINK_LINE = 32 << 10 };

struct artifacts_args {
	const char *out;
	bool all, tar, links;
};

static const struct opt opts[] = {
        {"output", 'o', OPT_TEXT, offsetof(struct artifacts_args, out), "FILE",
                "where `get` writes to; '-' is stdout"},
        {"all", 0, OPT_FLAG, offsetof(struct artifacts_args, all), NULL,
                "`get` all of them, into a new directory"},
        {"tar", 0, OPT_FLAG, offsetof(struct artifacts_args, tar), NULL,
                "`get` all of them, as a tar archive"},
        {"links", 0, OPT_FLAG, offsetof(struct artifacts_args, links), NULL,
                "a link to each that is in the S3 bucket; whoever has it can fetch it for a while"},
        {.name = NULL},
};

static const struct column columns[] = {
        {"PATH", "path", CELL_TEXT},
        {"BYTES", "bytes", CELL_BYTES},
        {"SHA256", "sha256", CELL_SHORT},
        {.heading = NULL},
};
static const struct column stored[] = {
        {"PATH", "path", CELL_TEXT},
        {"BYTES", "bytes", CELL_BYTES},
        {"SHA256", "sha256", CELL_SHORT},
        {"UPLOAD", "upload.status", CELL_TEXT},
        {"WHY", "upload.error", CELL_TEXT},
        {.heading = NULL},
};

static int list(const struct cli *cli, const char *run)
{
	auto_json struct json *all = NULL;
	bool uploaded = false;
	int r = artifact_list(cli, run, &all);
	const struct json *x = r ? NULL : json_first(json_get(all, "artifacts"));
	for (; x && !uploaded; x = json_next(x))
		uploaded = json_get(x, "upload") != NULL;
	return r ? r : show_table(cli, all, "artifacts", uploaded ? stored : columns);
}

/* One line: name and link, or with --json one object. */
static int print_link(const struct cli *cli, const char *run, const char *path)
{
	auto_json struct json *j = NULL;
	auto_buf struct buf b = BUF_INIT(LINK_LINE);
	auto_free char *at = artifact_url(run, path);
	auto_free char *url = at ? xasprintf("%s?link=1", at) : NULL;
	int r = url ? query_get(cli, url, &j) : EXIT_USAGE;
	if (r)
		return r;
	if (cli->json) {
		struct jw w = JW_INIT(&b);
		jw_open(&w, NULL, '{');
		jw_str(&w, "path", path);
		jw_str(&w, "url", json_str(j, "url", ""));
		jw_str(&w, "expiresAt", json_str(j, "expiresAt", ""));
		jw_close(&w, '}');
	} else {
		neutral_line(&b, path, strlen(path));
		buf_puts(&b, "  ");
		neutral_line(&b, json_str(j, "url", ""), strlen(json_str(j, "url", "")));
	}
	buf_putc(&b, '\n');
	return show_text(&b);
}

static int links(const struct cli *cli, const char *run)
{
	auto_json struct json *all = NULL;
	int r = artifact_list(cli, run, &all), n = 0;
	const struct json *x = r ? NULL : json_first(json_get(all, "artifacts"));
	for (; x && !r; x = json_next(x))
		if (strcmp(json_str(json_get(x, "upload"), "status", ""), "done") == 0) {
			r = print_link(cli, run, json_str(x, "path", ""));
			n++;
		}
	return r || n ? r : fail_system("no artifact of run %s is in a bucket", run);
}

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	const struct artifacts_args *a = args;
	if (a->links)
		return argc == 1 && !a->all && !a->tar && !a->out
		               ? links(cli, argv[0])
		               : fail_usage("abctl artifacts " SYNOPSIS);
	bool some = argc > 1 && strcmp(argv[1], "get") == 0;
	if (argc == 1 && !a->all && !a->tar && !a->out)
		return list(cli, argv[0]);
	if (some && argc == 3 && !a->all && !a->tar)
		return artifact_get(cli, argv[0], argv[2], a->out);
	if (some && argc == 2 && a->all && !a->tar && a->out)
		return artifact_get_all(cli, argv[0], a->out);
	if (some && argc == 2 && a->tar && !a->all)
		return artifact_get_tar(cli, argv[0], a->out);
	return fail_usage("abctl artifacts " SYNOPSIS);
}

const struct verb cmd_artifacts = {
        .name = "artifacts",
        .synopsis = SYNOPSIS,
        .summary = "results of a run",
        .help = "What comes is checked by its SHA-256.  Of a download that was cut, the same\n"
                "command fetches the rest.  DIR is a new directory, or an empty one.\n"
                "UPLOAD says what has become of it in the S3 bucket of agentboxd.yaml.\n",
        .opts = opts,
        .args_size = sizeof(struct artifacts_args),
        .min = 1,
        .max = 3,
        .run = run,
};
