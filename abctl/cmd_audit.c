#include "client/client.h"
#include "abctl/fail.h"
#include "base/neutral.h"
#include "abctl/query.h"
#include "base/fd.h"
#include "base/mem.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { OUT_MAX = 1 << 20 };

struct audit_args {
	bool follow;
};

static const struct opt opts[] = {
        {"follow", 'f', OPT_FLAG, offsetof(struct audit_args, follow), NULL,
                "and what comes from now on"},
        {.name = NULL},
};

static void word(struct buf *to, const char *before, const char *text)
{
	if (!text)
		return;
	buf_puts(to, before);
	neutral_line(to, text, strlen(text));
}

/* TIME WHO METHOD PATH STATUS [run] */
static void human(struct buf *to, const char *text, size_t n)
{
	auto_json struct json *x = json_parse(text, n, NULL);
	const char *key = json_str(x, "key", NULL);
	int64_t lost = json_int(x, "lost", 0);
	word(to, "", json_str(x, "ts", "?"));
	if (key) {
		word(to, " key ", key);
		word(to, " of ", json_str(x, "tenant", "?"));
	} else if (json_bool(x, "remote", false)) {
		buf_puts(to, " a stranger");
	} else {
		buf_printf(to, " uid %" PRId64, json_int(x, "uid", -1));
	}
	word(to, " ", json_str(x, "method", "?"));
	word(to, " ", json_str(x, "path", "?"));
	buf_printf(to, " %" PRId64 "%s", json_int(x, "status", 0),
	        json_bool(x, "refused", false) ? " refused" : "");
	word(to, " ", json_str(x, "run", NULL));
	if (lost)
		buf_printf(to, " (%" PRId64 " lines before it are missing)", lost);
	buf_putc(to, '\n');
}

static int print(const struct cli *cli, struct client *c, struct buf *out)
{
	size_t n;
	for (const char *text; (text = client_line(c, &n));) {
		if (cli->json)
			buf_printf(out, "%s\n", text);
		else
			human(out, text, n);
		if (out->len < OUT_MAX / 2)
			continue;
		if (fd_write_all(STDOUT_FILENO, out->p, out->len) < 0)
			return fail_system("stdout: writing failed");
		buf_clear(out);
	}
	int r = fd_write_all(STDOUT_FILENO, out->p, out->len);
	buf_clear(out);
	return r < 0 ? fail_system("stdout: %s", strerror(-r)) : EXIT_DONE;
}

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	const struct audit_args *a = args;
	struct err e = {0};
	auto_buf struct buf out = BUF_INIT(OUT_MAX);
	auto_client struct client *c = NULL;
	(void)argc, (void)argv;
	int code = query_lines(cli, a->follow ? "/v1/audit?follow=1" : "/v1/audit", &c);
	for (int more = 1; code == EXIT_DONE;) {
		code = print(cli, c, &out);
		if (more == 0 && code == EXIT_DONE)
			return a->follow ? fail_system("the daemon has ended the stream") : code;
		if (code == EXIT_DONE && (more = client_pump(c, &e)) < 0)
			return query_failed(&e);
	}
	return code;
}

const struct verb cmd_audit = {
        .name = "audit",
        .synopsis = "[-f]",
        .summary = "who has changed something, or was refused (root)",
        .help = "Requests that change something and requests that were refused, the oldest first:\n"
                "when, who, what, the answer's status, the run that came of it. With --json a\n"
                "line of JSON each, as it is kept.\n",
        .opts = opts,
        .args_size = sizeof(struct audit_args),
        .min = 0,
        .max = 0,
        .run = run,
};
