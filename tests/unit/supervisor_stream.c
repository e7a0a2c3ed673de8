/* Events to clients: frames, backlog, following, resuming, lagging, the result alone. */
#include "supervisor/stream.h"

#include "base/fd.h"
#include "base/json.h"
#include "base/limits.h"
#include "supervisor/daemon.h"
#include "supervisor/http.h"
#include "supervisor/hub.h"
#include "supervisor/loop.h"
#include "supervisor/problem.h"
#include "tests/t.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#define SESSION "ses_01jdsqx0000000000000000000"
#define RUN     "run_01jdsqx0000000000000000001"
#define OTHER   "run_01jdsqx0000000000000000002"

/* ---- pure ---- */

static void test_frames(void)
{
	static const char line[] =
	        "{\"seq\":7,\"ts\":\"2026-01-01T00:00:00.000Z\",\"session\":\"" SESSION
	        "\",\"run\":\"" RUN "\",\"type\":\"agent.message\",\"text\":\"a\\nb\"}";
	struct logline_head h;
	must(logline_head(line, sizeof(line) - 1, &h), "a head");
	auto_buf struct buf b = BUF_INIT(4096);
	frames_put(&b, FRAMES_SSE, &h, line, sizeof(line) - 1);
	ok(strncmp(b.p, "id: 7\nevent: agent.message\ndata: {\"seq\":7,", 42) == 0 &&
	                strcmp(b.p + b.len - 3, "}\n\n") == 0,
	        "an SSE frame");
	int lines = 0;
	for (const char *p = b.p; (p = strchr(p, '\n')); p++)
		lines++;
	ok(lines == 4, "of three lines and an empty one");
	buf_clear(&b);
	frames_put(&b, FRAMES_NDJSON, &h, line, sizeof(line) - 1);
	ok(b.len == sizeof(line) && b.p[b.len - 1] == '\n', "a JSON line");
}

/* ---- the server ---- */

static struct daemon d;
static int dir_fd = -1;

static void append(const char *run, enum event_type t, const char *members)
{
	struct err e;
	if (eventlog_append(d.log, SESSION, run, t, members, strlen(members), &e) < 0) {
		fprintf(stderr, "# %s\n", e.text);
		_exit(3);
	}
}

static void reply_text(struct http_request *r, const char *text)
{
	auto_buf struct buf b = BUF_INIT(1000);
	buf_puts(&b, text);
	http_reply(r, 200, "text/plain", &b);
}

static int64_t on_headers(void *ctx, struct http_request *r)
{
	(void)ctx;
	(void)r;
	return 1000;
}

static void follow(struct http_request *r, const char *run)
{
	struct stream_spec s = {.session = SESSION};
	struct err e;
	(void)str_copy(s.run, sizeof(s.run), run);
	if (stream_wanted(r, &s, &e) < 0)
		problem_err(r, &e, PROBLEM_INTERNAL);
	else
		stream_events(&d, r, &s);
}

/* Puts another descriptor of the session's file in place of the log's: one that only writes makes
 * each reading of the log fail. */
static void reopen(int flags)
{
	auto_close int other = openat(dir_fd, SESSION ".jsonl", flags | O_APPEND | O_CLOEXEC);
	char link[32], name[256];
	for (int fd = 3; other >= 0 && fd < 256; fd++) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		ssize_t n = readlink(link, name, sizeof(name) - 1);
		name[n > 0 ? n : 0] = '\0';
		if (fd != other && strstr(name, "/" SESSION ".jsonl") &&
		        dup3(other, fd, O_CLOEXEC) == fd)
			return;
	}
	fprintf(stderr, "# the log's file is not open\n");
	_exit(3);
}

static void on_request(void *ctx, struct http_request *r)
{
	(void)ctx;
	const char *path = http_path(r);
	if (strcmp(path, "/run") == 0) {
		follow(r, RUN);
	} else if (strcmp(path, "/session") == 0) {
		follow(r, "");
	} else if (strcmp(path, "/result") == 0) {
		stream_result(&d, r, SESSION, RUN, 1);
	} else if (strcmp(path, "/append") == 0) {
		const char *n = http_query(r, "n");
		for (int i = n ? atoi(n) : 1; i > 0; i--) {
			append(RUN, EVENT_AGENT_MESSAGE, "\"text\":\"mine\"");
			append(OTHER, EVENT_AGENT_MESSAGE, "\"text\":\"theirs\"");
		}
		reply_text(r, "appended");
	} else if (strcmp(path, "/break") == 0 || strcmp(path, "/mend") == 0) {
		reopen(path[1] == 'b' ? O_WRONLY : O_RDWR);
		reply_text(r, "as asked");
	} else if (strcmp(path, "/large") == 0) {
		auto_buf struct buf b = BUF_INIT(LIMIT_EVENT);
		buf_puts(&b, "\"text\":\"");
		while (b.len < 8 << 20)
			buf_puts(&b, "0123456789abcdef");
		buf_putc(&b, '"');
		append(RUN, EVENT_AGENT_MESSAGE, b.p);
		reply_text(r, "appended");
	} else {
		append(OTHER, EVENT_RUN_DONE, "\"result\":{\"runId\":\"other\"}");
		append(RUN, EVENT_RUN_DONE,
		        "\"result\":{\"runId\":\"" RUN "\",\"status\":\"succeeded\"}");
		reply_text(r, "done");
	}
}

static int serve(int listen_fd, const char *dir)
{
	struct err e;
	struct http_service s = {.headers = on_headers, .request = on_request};
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	d.loop = loop_new(64, &e);
	if (!d.loop || loop_enable(d.loop, &e) < 0)
		return 77;
	d.hub = hub_new(d.loop);
	d.frames = frames_new();
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d.log = eventlog_new(dir_fd, d.loop, d.hub, NULL, &d.stats);
	if (eventlog_open(d.log, SESSION, &e) < 0) {
		fprintf(stderr, "# %s\n", e.text);
		return 3;
	}
	d.http = http_new(d.loop, listen_fd, -1, getgid(), &s, &e);
	return d.http && loop_run(d.loop, &e) == 0 ? 0 : 1;
}

/* ---- the clients ---- */

static struct sockaddr_un address = {.sun_family = AF_UNIX};
static socklen_t address_len;

/* HTTP/1.0, so that bodies are plain. */
static int ask(const char *target, const char *headers)
{
	char text[512];
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct timeval tv = {.tv_sec = 30};
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	if (connect(fd, (struct sockaddr *)&address, address_len) < 0)
		exit(1);
	int n = snprintf(text, sizeof(text), "GET %s HTTP/1.0\r\n%s\r\n", target, headers);
	if (send(fd, text, (size_t)n, MSG_NOSIGNAL) != n)
		printf("# not sent\n");
	return fd;
}

static char text[40 << 20];

static const char *get(int fd, const char *end)
{
	size_t n = 0;
	ssize_t k;
	text[0] = '\0';
	while (n + 1 < sizeof(text) && (k = recv(fd, text + n, sizeof(text) - 1 - n, 0)) > 0) {
		n += (size_t)k;
		text[n] = '\0';
		if (end && strstr(text, end))
			return text;
	}
	fd_close(fd);
	return text;
}

static int times(const char *hay, const char *needle)
{
	int n = 0;
	for (; (hay = strstr(hay, needle)); hay++)
		n++;
	return n;
}

static void tell(const char *target)
{
	(void)get(ask(target, ""), NULL);
}

#define SSE "Accept: text/event-stream\r\n"

static void test_backlog(void)
{
	tell("/append?n=3");
	const char *a = get(ask("/run", SSE), NULL);
	ok(times(a, "event: agent.message") == 3 && !strstr(a, "theirs"),
	        "one run's, as it is now");
	ok(strstr(a, "text/event-stream") && strstr(a, "id: 1\n") && strstr(a, "id: 5\n"),
	        "numbered");
	a = get(ask("/session", ""), NULL);
	ok(times(a, "\n{\"seq\":") == 6 && strstr(a, "application/x-ndjson"), "all, as JSON lines");
	a = get(ask("/session?from=5", ""), NULL);
	ok(times(a, "\n{\"seq\":") == 2 && strstr(a, "{\"seq\":5,"), "from a number on");
	a = get(ask("/session?from=5", "Last-Event-ID: 2\r\n"), NULL);
	ok(times(a, "\n{\"seq\":") == 4 && strstr(a, "{\"seq\":3,"), "after the last one seen");
	a = get(ask("/session?from=1000", ""), NULL);
	ok(strstr(a, "200") && times(a, "\n{\"seq\":") == 0, "beyond the end there is nothing");
	ok(strstr(get(ask("/session?from=x", ""), NULL), " 400 "), "not a number");
	ok(strstr(get(ask("/session?follow=maybe", ""), NULL), " 400 "), "not a flag");
}

static void test_follow(void)
{
	int all = ask("/session?follow=1&from=7", SSE), mine = ask("/run?follow=1", SSE),
	    result = ask("/result", ""), lazy = ask("/run?follow=1", "");
	(void)get(mine, "id: 5\n");
	tell("/append");
	ok(strstr(get(mine, "id: 7\n"), "mine"), "what is appended comes at once");
	ok(strstr(get(all, "id: 8\n"), "theirs"), "to each that follows");
	tell("/large");
	const char *a = get(mine, "\"}\n\n");
	ok(strlen(a) > 8 << 20 && strncmp(a, "id: 9\n", 6) == 0, "an event of 8 MB is whole");
	tell("/append?n=2000");
	tell("/done");
	a = get(mine, NULL);
	ok(times(a, "event: agent.message") == 2000 && times(a, "event: run.done") == 1,
	        "2000 more and the end, which ends the stream");
	a = get(result, NULL);
	ok(strstr(a, "\r\n\r\n{\"runId\":\"" RUN "\",\"status\":\"succeeded\"}"),
	        "the result alone");
	a = get(lazy, NULL);
	ok(times(a, "\n{\"seq\":") == 3 + 1 + 1 + 2000 + 1,
	        "one that read nothing so far lost nothing");
	a = get(ask("/result", ""), NULL);
	ok(strstr(a, "succeeded"), "a result that is there already");
	a = get(ask("/run?follow=1&from=4000", SSE), NULL);
	ok(strstr(a, "event: run.done"), "following what has ended ends");
	(void)get(all, "\"runId\":\"" RUN "\"");
	tell("/append");
	ok(strstr(get(all, "mine"), "mine"), "a session goes on after its run");
	fd_close(all);
}

static long rss_mib(pid_t child)
{
	char path[64];
	auto_free char *status = NULL;
	snprintf(path, sizeof(path), "/proc/%d/status", child);
	const char *at = file_slurp(path, 64 << 10, &status, NULL) < 0 ? NULL : status;
	at = at ? strstr(at, "VmRSS:") : NULL;
	return at ? strtol(at + 6, NULL, 10) >> 10 : -1;
}

/* An event of 8 MB, sixty times for clients that do not take it. */
static void test_stalled(pid_t child)
{
	enum { MANY = 60 };
	int fds[MANY];
	for (int i = 0; i < MANY; i++)
		fds[i] = ask("/run?from=9", SSE);
	int last = ask("/run?from=9", SSE);
	tell("/append");
	ok(rss_mib(child) < 288 + T_KEPT_MIB, "what nobody takes is not read for each: %ld MiB",
	        rss_mib(child));
	ok(strstr(get(ask("/run?from=10", SSE), "mine"), "mine"), "small events go on");
	for (int i = 0; i < MANY; i++)
		fd_close(fds[i]);
	ok(strlen(get(last, NULL)) > 8 << 20, "and who waited gets it");
}

static void test_many(void)
{
	enum { MANY = 100 };
	int fds[MANY], whole = 0;
	for (int i = 0; i < MANY; i++)
		fds[i] = ask("/session?follow=1&from=4000", SSE);
	for (int i = 0; i < MANY; i += 2)
		fd_close(fds[i]);
	tell("/append");
	for (int i = 1; i < MANY; i += 2) {
		whole += strstr(get(fds[i], "theirs"), "theirs") != NULL;
		fd_close(fds[i]);
	}
	ok(whole == MANY / 2, "a hundred followers, half of whom left: %d", whole);
}

/* Five followers of a log that cannot be read are five streams that end, and one line; once it has
 * been read again, the next failure is said again. */
static void test_unreadable(const char *said)
{
	enum { FOLLOWERS = 5 };
	for (int round = 1; round <= 2; round++) {
		int fds[FOLLOWERS], ended = 0;
		for (int i = 0; i < FOLLOWERS; i++) {
			fds[i] = ask("/session?follow=1&from=4000000", SSE);
			(void)get(fds[i], "\r\n\r\n");
		}
		tell("/break");
		tell("/append");
		for (int i = 0; i < FOLLOWERS; i++)
			ended += !strstr(get(fds[i], NULL), "theirs");
		auto_free char *log = NULL;
		size_t n = 0;
		must(file_slurp(said, 1 << 20, &log, &n) == 0, "the log");
		ok(ended == FOLLOWERS && times(log, ": events of ") == round,
		        "%d streams end, the log has %d line(s)", ended, round);
		tell("/mend");
		ok(strstr(get(ask("/session?from=4000", SSE), NULL), "theirs"), "it is read again");
	}
}

static void remove_dir(const char *dir)
{
	char command[128];
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	if (system(command) != 0)
		printf("# %s is left\n", dir);
}

int main(void)
{
	char dir[] = "/tmp/agentbox-stream-XXXXXX", said[64];
	test_frames();
	int l = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	address_len =
	        (socklen_t)(sizeof(sa_family_t) + 1 +
	                    (size_t)snprintf(address.sun_path + 1, 64, "stream-%d", getpid()));
	must(bind(l, (struct sockaddr *)&address, address_len) == 0 && listen(l, 256) == 0,
	        "listen");
	must(mkdtemp(dir) != NULL, "a directory");
	pid_t child = fork();
	snprintf(said, sizeof(said), "%s/said", dir);
	if (child == 0) {
		if (!freopen(said, "w", stderr))
			exit(3);
		exit(serve(l, dir));
	}
	fd_close(l); /* only the server's: when it dies, the test does not wait for it */
	test_backlog();
	test_follow();
	test_stalled(child);
	test_many();
	test_unreadable(said);
	int status;
	ok(waitpid(child, &status, WNOHANG) == 0, "the server is up");
	kill(child, SIGKILL);
	remove_dir(dir);
	return done();
}
