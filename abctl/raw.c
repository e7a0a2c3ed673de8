#include "abctl/raw.h"

#include "client/client.h"
#include "abctl/fail.h"
#include "abctl/query.h"
#include "base/base64.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

static int write_out(int fd, const char *p, size_t n)
{
	int r = fd_write_all(fd, p, n);
	return r < 0 ? fail_system(
	                       "%s: %s", fd == STDOUT_FILENO ? "stdout" : "stderr", strerror(-r))
	             : EXIT_DONE;
}

static void gap(const struct json *x)
{
	int64_t bytes = json_int(x, "bytes", 0);
	const char *why = json_str(x, "reason", "");
	if (bytes)
		fail_note("%" PRId64 " bytes are missing here: %s", bytes, why);
	else
		fail_note("bytes are missing here: %s", why);
}

static int show(const struct cli *cli, const char *line, size_t n)
{
	auto_buf struct buf b = BUF_INIT((size_t)8 * LIMIT_PUMP_READ);
	if (cli->json) {
		(void)buf_put(
		        &b, line, n); /* a line of the daemon's fits; else the newline alone */
		(void)buf_putc(&b, '\n');
		return write_out(STDOUT_FILENO, b.p, b.len);
	}
	auto_json struct json *x = json_parse(line, n, NULL);
	const char *stream = json_str(x, "stream", "");
	const char *text = json_str(x, "text", NULL), *coded = json_str(x, "base64", "");
	if (strcmp(stream, "gap") == 0) {
		gap(x);
		return EXIT_DONE;
	}
	if (!text && base64_decode(coded, strlen(coded), &b) < 0)
		return fail_system("the daemon has sent what is no base64");
	if (!text && !b.len)
		return EXIT_DONE;
	return write_out(strcmp(stream, "stderr") == 0 ? STDERR_FILENO : STDOUT_FILENO,
	        text ? text : b.p, text ? strlen(text) : b.len);
}

int raw_run(const struct cli *cli, const char *run, bool follow)
{
	struct err e = {0};
	auto_free char *path = xasprintf("/v1/runs/%s/raw%s", run, follow ? "?follow=1" : "");
	auto_client struct client *c = NULL;
	int code = query_lines(cli, path, &c);
	for (int more = 1; code == EXIT_DONE;) {
		size_t n;
		for (const char *line; code == EXIT_DONE && (line = client_line(c, &n));)
			code = show(cli, line, n);
		if (code != EXIT_DONE || more == 0) /* what came with the end has been shown */
			return code;
		more = client_pump(c, &e);
		if (more < 0)
			return query_failed(&e);
	}
	return code;
}
