#include "abctl/fail.h"
#include "abctl/query.h"
#include "abctl/save.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct backup_args {
	const char *out;
};

static const struct opt opts[] = {
        {"output", 'o', OPT_TEXT, offsetof(struct backup_args, out), "FILE",
                "where to; '-' is stdout (agentbox-TIME.tar)"},
        {.name = NULL},
};

/* A backup that a power cut takes is none. */
static int sync_file(const char *path)
{
	auto_free char *dir = xstrdup(path);
	char *slash = strrchr(dir, '/');
	if (slash)
		slash[1] = '\0';
	const char *const both[] = {path, slash ? dir : "."};
	for (size_t i = 0; i < ARRAY_LEN(both); i++) {
		int fd = open(both[i], O_RDONLY | O_CLOEXEC);
		int r = fd < 0 ? -1 : fsync(fd);
		int why = errno;
		if (fd >= 0)
			close(fd);
		if (r < 0)
			return fail_system("%s: %s", both[i], strerror(why));
	}
	return EXIT_DONE;
}

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	(void)argc, (void)argv;
	const struct backup_args *a = args;
	char name[64];
	time_t now = time(NULL);
	struct tm tm;
	(void)strftime(name, sizeof(name), "agentbox-%Y%m%dT%H%M%SZ.tar", gmtime_r(&now, &tm));
	const char *out = a->out ? a->out : name;
	bool to_stdout = strcmp(out, "-") == 0;
	if (to_stdout && isatty(STDOUT_FILENO))
		return fail_usage("a backup is not for a terminal: give -o FILE");
	struct client_request req = {.method = "POST", .path = "/v1/backup", .accept = "*/*"};
	auto_client struct client *c = NULL;
	int r = query_open(cli, &req, &c);
	if (r)
		return r;
	if (to_stdout)
		return save_to(c, STDOUT_FILENO, "stdout");
	r = save_file(c, out, 0600);
	if (r == EXIT_DONE)
		r = sync_file(out);
	if (r == EXIT_DONE && !cli->json)
		puts(out);
	if (r == EXIT_DONE && cli->json) {
		auto_buf struct buf b = BUF_INIT(QUERY_PATH_MAX);
		struct jw w = JW_INIT(&b);
		jw_open(&w, NULL, '{');
		jw_str(&w, "file", out);
		jw_close(&w, '}');
		puts(b.p);
	}
	return r;
}

const struct verb cmd_backup = {
        .name = "backup",
        .synopsis = "[-o FILE]",
        .summary = "the state as a tar archive, while it is in use",
        .help = "Sessions, runs, events and artifacts as of one moment, and a digest of them; "
                "every\n"
                "run that was accepted before is in it. Workspaces (STATE/sessions) and what they\n"
                "stand on (STATE/snapshots, which belongs with them), raw logs, settings and "
                "secrets\n"
                "are not. Root only. `abctl restore` brings it back.\n",
        .opts = opts,
        .args_size = sizeof(struct backup_args),
        .run = run,
};
