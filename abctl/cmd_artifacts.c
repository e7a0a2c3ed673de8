#include "abctl/fail.h"
#include "abctl/neutral.h"
#include "abctl/query.h"
#include "abctl/show.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SHOWN_MAX = 1 << 20 }; /* more is not read on a terminal */

struct artifacts_args {
	const char *out;
};

static const struct opt opts[] = {
        {"output", 'o', OPT_TEXT, offsetof(struct artifacts_args, out), "FILE",
                "where `get` writes to; '-' is stdout"},
        {.name = NULL},
};

static const struct column columns[] = {
        {"PATH", "path", CELL_TEXT},
        {"BYTES", "bytes", CELL_BYTES},
        {"SHA256", "sha256", CELL_SHORT},
        {.heading = NULL},
};

/* Copies the body as it comes: artifacts can be larger than memory. */
static int copy(struct client *c, int fd, const char *to)
{
	struct err e = {0};
	/* What one read can bring, and what came with the head. */
	auto_buf struct buf b = BUF_INIT(4 * (size_t)LIMIT_PUMP_READ);
	int more;
	do {
		more = client_pump(c, &e);
		client_drain(c, &b);
		int r = fd_write_all(fd, b.p, b.len);
		buf_clear(&b);
		if (r < 0)
			return fail_system("%s: %s", to, strerror(-r));
	} while (more > 0);
	return more < 0 ? fail_system("%s", e.text) : EXIT_DONE;
}

/* Whole or not at all: a cut file under the right name would be taken for the result. */
static int copy_to_file(struct client *c, const char *to)
{
	auto_free char *part = xasprintf("%s.part", to);
	auto_close int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return fail_usage("%s: %s", part, strerror(errno));
	int r = copy(c, fd, to);
	if (r == 0 && rename(part, to) < 0)
		r = fail_system("%s: %s", to, strerror(errno));
	if (r)
		unlink(part);
	return r;
}

/* Text, made harmless; other bytes are not for a terminal. */
static int show(struct client *c)
{
	struct err e = {0};
	const char *bytes = NULL;
	size_t n = 0;
	int r = client_body(c, &bytes, &n, &e);
	if (r < 0 && r != -ENOBUFS)
		return query_failed(&e);
	if (r < 0 || n > SHOWN_MAX || !neutral_is_text(bytes, n))
		return fail_usage("this artifact is no text for a terminal: give -o FILE");
	auto_buf struct buf b = BUF_INIT(8 * (size_t)SHOWN_MAX);
	neutral_text(&b, bytes, n);
	return show_text(&b);
}

static int get(const struct cli *cli, const char *path, const char *out)
{
	struct err e = {0};
	struct client_request req = {.method = "GET", .path = path, .accept = "*/*"};
	auto_client struct client *c = client_open(cli->socket, &req, &e);
	int status = c ? client_status(c, &e) : e.code;
	if (status < 0)
		return query_failed(&e);
	if (status != 200)
		return query_refused(c);
	if (!out && isatty(STDOUT_FILENO))
		return show(c);
	if (!out || strcmp(out, "-") == 0)
		return copy(c, STDOUT_FILENO, "stdout");
	return copy_to_file(c, out);
}

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	const struct artifacts_args *a = args;
	auto_buf struct buf path = BUF_INIT(QUERY_PATH_MAX);
	buf_puts(&path, "/v1/runs/");
	query_encode(&path, argv[0]);
	buf_puts(&path, "/artifacts");
	if (argc == 1)
		return show_list(cli, path.p, "artifacts", columns);
	if (strcmp(argv[1], "get") != 0 || argc != 3)
		return fail_usage("abctl artifacts RUN [get PATH [-o FILE]]");
	buf_putc(&path, '/');
	query_encode_path(&path, argv[2]);
	if (path.failed)
		return fail_usage("the path is too long");
	return get(cli, path.p, a->out);
}

const struct verb cmd_artifacts = {
        .name = "artifacts",
        .synopsis = "RUN [get PATH [-o FILE]]",
        .summary = "results of a run",
        .opts = opts,
        .args_size = sizeof(struct artifacts_args),
        .min = 1,
        .max = 3,
        .run = run,
};
