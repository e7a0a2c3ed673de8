#include "abctl/query.h"
#include "abctl/fail.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/mem.h"

#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

int query_failed(const struct err *e)
{
	return e->code == -EINVAL || e->code == -E2BIG ? fail_usage("%s", e->text)
	                                               : fail_system("%s", e->text);
}

/* What the caller wrote is wrong, as opposed to what the host or the daemon cannot do. */
static bool callers_fault(int status)
{
	return status == 400 || status == 403 || status == 404 || status == 405 || status == 409 ||
	       status == 413;
}

int query_refused(struct client *c)
{
	struct err e = {0};
	int status = client_status(c, &e);
	const char *text = NULL;
	size_t n = 0;
	if (status < 0 || client_body(c, &text, &n, &e) < 0)
		return query_failed(&e);
	auto_json struct json *j = json_parse(text, n, NULL);
	const char *title = json_str(j, "title", NULL), *detail = json_str(j, "detail", title);
	const char *hint = json_str(j, "hint", NULL);
	auto_free char *plain = detail ? NULL : xasprintf("the daemon answered %d", status);
	int64_t wait = client_retry_after(c);
	auto_free char *again =
	        wait < 0 ? xstrdup("") : xasprintf(" (try again in %" PRId64 " s)", wait);
	int (*fail)(const char *, ...) = callers_fault(status) ? fail_usage : fail_system;
	return fail("%s%s%s%s", detail ? detail : plain, hint ? ": " : "", hint ? hint : "", again);
}

enum {
	SILENCE_MS = 1000,
	/* For so long a request is made again that a dying supervisor has taken: another is there
	 * within seconds. */
	AGAIN_MS = 10000,
	AGAIN_STEP_MS = 100,
};

/* agentboxd keeps the socket while no supervisor stays up: whoever asks waits, and is told so. */
static void mind_silence(const struct client *c)
{
	struct pollfd p = {.fd = client_fd(c), .events = POLLIN};
	if (poll(&p, 1, SILENCE_MS) == 0 && client_unread(c))
		fail_note(
		        "the daemon is there, but nobody has taken the request yet: its supervisor "
		        "is starting, busy, or does not stay up (its log says which); waiting");
}

/* Makes the request; its status, or -errno.  *ret: owned, or NULL. */
static int ask(
        const struct cli *cli, const struct client_request *req, struct client **ret, struct err *e)
{
	bool again = req->again || strcmp(req->method, "GET") == 0;
	int64_t until = clock_mono_ms() + AGAIN_MS;
	for (;;) {
		auto_client struct client *c = client_open(&cli->peer, req, e);
		if (c)
			mind_silence(c);
		int status = c ? client_status(c, e) : e->code;
		bool lost = c && status == -ECONNRESET && !client_has_head(c);
		if (!lost || !again || clock_mono_ms() >= until) {
			*ret = take(c);
			return status;
		}
		(void)poll(NULL, 0, AGAIN_STEP_MS);
	}
}

int query_send(const struct cli *cli, const struct client_request *req, struct json **ret)
{
	struct err e = {0};
	auto_client struct client *c = NULL;
	int status = ask(cli, req, &c, &e);
	if (status < 0)
		return query_failed(&e);
	if (status >= 300)
		return query_refused(c);
	const char *text = NULL;
	size_t n = 0;
	if (client_body(c, &text, &n, &e) < 0)
		return query_failed(&e);
	*ret = NULL;
	if (n == 0)
		return 0;
	*ret = json_parse(text, n, &e);
	return *ret ? 0 : fail_system("the daemon's answer to %s: %s", req->path, e.text);
}

struct json *query_quietly(const struct cli *cli, const char *path, int ms, struct err *e)
{
	struct client_request req = {.method = "GET", .path = path};
	auto_client struct client *c = client_open(&cli->peer, &req, e);
	const char *text = NULL;
	size_t n = 0;
	const struct timeval patience = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000L};
	if (c && setsockopt(client_fd(c), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0)
		(void)err_errno(e, "SO_RCVTIMEO");
	else if (c && client_status(c, e) >= 0 && client_body(c, &text, &n, e) >= 0)
		return json_parse(text, n, e);
	return NULL;
}

struct json *query_version(const struct cli *cli, int ms, struct err *e)
{
	return query_quietly(cli, "/v1/version", ms, e);
}

int query_open(const struct cli *cli, const struct client_request *req, struct client **ret)
{
	struct err e = {0};
	auto_client struct client *c = NULL;
	int status = ask(cli, req, &c, &e);
	if (status < 0)
		return query_failed(&e);
	if (status >= 300)
		return query_refused(c);
	*ret = take(c);
	return 0;
}

int query_lines(const struct cli *cli, const char *path, struct client **ret)
{
	const struct client_request req = {
	        .method = "GET", .path = path, .accept = "application/x-ndjson"};
	return query_open(cli, &req, ret);
}

int query_get(const struct cli *cli, const char *path, struct json **ret)
{
	struct client_request req = {.method = "GET", .path = path};
	return query_send(cli, &req, ret);
}

void query_print(const struct json *j)
{
	auto_buf struct buf b = BUF_INIT(64 << 20);
	if (!j || json_print(j, &b) < 0)
		buf_puts(&b, "{}");
	buf_putc(&b, '\n');
	fwrite(b.p, 1, b.len, stdout);
}

int query_say(const struct cli *cli, const struct client_request *req, const char *fmt, ...)
{
	auto_json struct json *j = NULL;
	int r = query_send(cli, req, &j);
	if (r)
		return r;
	if (cli->json) {
		query_print(j);
		return EXIT_DONE;
	}
	va_list ap;
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	return EXIT_DONE;
}

int query_session(const struct cli *cli, const char *text, char **ret)
{
	const char *slash = strchr(text, '/');
	if (!slash) {
		*ret = xstrdup(text);
		return 0;
	}
	auto_free char *user = xstrndup(text, (size_t)(slash - text));
	auto_buf struct buf path = BUF_INIT(QUERY_PATH_MAX);
	buf_puts(&path, "/v1/sessions?user=");
	url_encode(&path, user);
	buf_puts(&path, "&goal=");
	url_encode(&path, slash + 1);
	if (path.failed)
		return fail_usage("'%.64s...' is too long for a session", text);
	auto_json struct json *j = NULL;
	int r = query_get(cli, path.p, &j);
	if (r)
		return r;
	const char *id = json_str(json_first(json_get(j, "sessions")), "sessionId", NULL);
	if (!id)
		return fail_usage("no session '%s' (see `abctl sessions`)", text);
	*ret = xstrdup(id);
	return 0;
}
