/*
 * libagentbox against what is no daemon of ours: each case is a server process that sends what it
 * likes, and one call that must end, in time and with an error.
 */
#include "client/agentbox.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "proto/stdio.h"
#include "tests/t.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define RUN              "run_01arz3ndektsv4rrffq69g5fav"
#define SSE              "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
#define UPGRADED         "HTTP/1.1 101 Switching Protocols\r\nUpgrade: agentbox-stdio\r\n\r\n"
#define EVENT(seq, rest) "data: {\"seq\":" #seq "," rest "}\n\n"
#define DONE(seq)        EVENT(seq, "\"type\":\"run.done\",\"result\":{\"status\":\"succeeded\"}")

enum { LIMIT_S = 60, WAIT_MS = 150, SOON_MS = 10000 };

static char dir[] = "/tmp/client-hostile-XXXXXX";
static char path[64];
static pid_t server;
static struct agentbox *ab;
static struct agentbox_error e;

/* ---- the server ---- */

/* Reads the head of a request, and answers `first` and then `again` for ever (NULL: closes). */
static void serve(int listener, const char *first, size_t n, const char *again)
{
	alarm(LIMIT_S);
	signal(SIGPIPE, SIG_IGN);
	for (;;) {
		auto_close int fd = accept(listener, NULL, NULL);
		char head[8192];
		if (fd < 0 || read(fd, head, sizeof(head)) <= 0 || fd_write_all(fd, first, n) < 0)
			continue;
		while (again && fd_write_all(fd, again, strlen(again)) == 0)
			usleep(200);
	}
}

static void begin_bytes(const char *first, size_t n, const char *again)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	(void)str_copy(a.sun_path, sizeof(a.sun_path), path);
	(void)unlink(path);
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0 && listen(fd, 4) == 0, "a server");
	fflush(stdout);
	server = fork();
	if (server == 0)
		serve(fd, first, n, again);
	e = (struct agentbox_error){.code = 0};
}

static void begin(const char *first, const char *again)
{
	begin_bytes(first, strlen(first), again);
}

static void end(void)
{
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
}

/* ---- answers ---- */

static void refused(const char *what, const char *answer, const char *again, const char *why)
{
	begin(answer, again);
	char *text = agentbox_request(ab, "GET", "/v1/runs", NULL, &e);
	ok(!text && e.code < 0 && strstr(e.text, why), "%s: %s", what, e.text);
	free(text);
	end();
}

static void answers(void)
{
	refused("none", "", NULL, "middle");
	refused("cut off", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx", NULL, "middle");
	refused("a length below 0", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", NULL,
	        "Content-Length");
	refused("two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
	        NULL, "Content-Length");
	refused("a length that no one has",
	        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999\r\n\r\n", NULL, "middle");
	refused("an endless head", "HTTP/1.1 200 OK\r\n", "X: y\r\n", "head is larger");
	refused("endless heads", "", "HTTP/1.1 100 Continue\r\n\r\n", "head is larger");
	refused("an endless line", "HTTP/1.1 200 ", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
	        "a line of more");
	refused("a chunk of minus one",
	        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", NULL, "chunk size");
	refused("101 that nobody asked for", UPGRADED, "x", "did not ask");
	refused("another API", "HTTP/1.1 200 OK\r\nAgentbox-Version: 9; api=77\r\n\r\n", NULL,
	        "do not understand");
	refused("a refusal that is no JSON", "HTTP/1.1 500 No\r\n\r\n\x1b[2J", NULL,
	        "answered 500");
	refused("a refusal for a long time",
	        "HTTP/1.1 503 No\r\nRetry-After: 999999999999999999\r\nContent-Length: 0\r\n\r\n",
	        NULL, "answered 503");
	ok(e.retry_after > 0, "which is a long time: %d", e.retry_after);
	static const char nul[] = "HTTP/1.1 200 OK\r\n\r\n{\"a\":1}\0{\"b\":2}";
	begin_bytes(nul, sizeof(nul) - 1, NULL);
	char *text = agentbox_request(ab, "GET", "/v1/runs", NULL, &e);
	ok(!text && strstr(e.text, "NUL"), "text that goes on behind a NUL: %s", e.text);
	free(text);
	end();
	begin("HTTP/1.1 202 Accepted\r\n\r\n{\"runId\":\"../../x\"}", NULL);
	const struct agentbox_run want = {sizeof(want), "u", "g", "h", "p", NULL, NULL, 0};
	text = agentbox_start(ab, &want, &e);
	ok(!text && e.code == -EPROTO, "a run whose id is none: %s", e.text);
	free(text);
	end();
}

/* ---- events ---- */

static void waited(const char *what, const char *first, const char *again, int want)
{
	begin(first, again);
	int64_t began = clock_mono_ms();
	char *text = agentbox_wait(ab, RUN, WAIT_MS, &e);
	ok(!text && e.code == want, "%s: %d %s", what, e.code, e.text);
	ok(clock_mono_ms() - began < SOON_MS, "in time");
	free(text);
	end();
}

static void events(void)
{
	waited("a stream of comments", SSE, ": x\n\n", -ETIMEDOUT);
	waited("a stream of events", SSE, "data: {\"type\":\"x\"}\n\n", -ETIMEDOUT);
	waited("a line without an end", SSE "data: {", "\"", -ETIMEDOUT);
	waited("no result", SSE EVENT(1, "\"type\":\"run.done\""), ": x\n", -EPROTO);
	waited("a result that is none", SSE EVENT(1, "\"type\":\"run.done\",\"result\":7"), ": x\n",
	        -EPROTO);
	waited("nothing", SSE, "", -ETIMEDOUT);

	begin(SSE EVENT(3, "\"type\":\"a\"") EVENT(
	              1, "\"type\":\"b\"") "data: [}\n\nnonsense\n\n" EVENT(3, "\"type\":\"c\"")
	                EVENT(4, "\"type\":\"d\"") EVENT(-7, "\"type\":\"e\"") DONE(9)
	                        EVENT(10, "\"type\":\"f\""),
	        NULL);
	struct agentbox_events *v = agentbox_events_open(ab, RUN, 0, &e);
	auto_buf struct buf got = BUF_INIT(1000);
	const char *text;
	size_t n;
	int r;
	while ((r = agentbox_events_next(v, SOON_MS, &text, &n, &e)) > 0)
		buf_printf(&got, "%lld ", (long long)agentbox_events_last(v));
	ok(r == 0, "a stream in disorder ends: %s", e.text);
	is_str(got.p, "3 4 9 ", "each number once, and upwards; nothing after run.done");
	ok(agentbox_events_next(v, 0, &text, &n, &e) == 0, "and stays ended");
	agentbox_events_close(v);
	end();
}

/* ---- frames ---- */

static int read_one(int *ret_stream, size_t *ret_len)
{
	struct agentbox_stdio *s = agentbox_stdio_open(ab, "/v1/jails", "{}", &e);
	const void *p;
	int r = -1;
	must(s != NULL, "connected: %s", e.text);
	r = agentbox_stdio_read(s, WAIT_MS, ret_stream, &p, ret_len, &e);
	agentbox_stdio_close(s);
	return r;
}

static void frames(void)
{
	static char first[sizeof(UPGRADED) - 1 + STDIO_HEAD + (1 << 20)] = UPGRADED;
	uint8_t *head = (uint8_t *)first + sizeof(UPGRADED) - 1;
	int stream = 0;
	size_t n = 0;

	stdio_pack(head, STDIO_STDOUT, 1 << 20);
	begin_bytes(first, sizeof(UPGRADED) - 1 + STDIO_HEAD, "x");
	int64_t began = clock_mono_ms();
	ok(read_one(&stream, &n) == -ETIMEDOUT, "a frame byte by byte: %s", e.text);
	ok(clock_mono_ms() - began < SOON_MS, "in time");
	end();

	begin_bytes(first, sizeof(UPGRADED) - 1 + STDIO_HEAD + 5, NULL);
	ok(read_one(&stream, &n) == -ECONNRESET, "a frame that is cut off: %s", e.text);
	end();

	begin_bytes(first, sizeof(UPGRADED) - 1, NULL);
	ok(read_one(&stream, &n) == 0, "an end between frames is one");
	end();

	begin_bytes(first, sizeof(first), "y");
	ok(read_one(&stream, &n) == 1 && n == 1 << 20, "the longest frame: %s", e.text);
	end();

	memset(head, 0xff, STDIO_HEAD);
	begin_bytes(first, sizeof(UPGRADED) - 1 + STDIO_HEAD, "x");
	ok(read_one(&stream, &n) == -EBADMSG, "a longer one: %s", e.text);
	end();

	begin("HTTP/1.1 200 OK\r\n\r\n", NULL);
	ok(!agentbox_stdio_open(ab, "/v1/jails", "{}", &e) && e.code == -EPROTO, "200: %s", e.text);
	end();
}

/* ---- an artifact ---- */

static void artifact(void)
{
	int ends[2];
	sigset_t pending;
	must(pipe2(ends, O_CLOEXEC) == 0, "a pipe");
	fd_close(ends[0]);
	begin("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", "x");
	ok(agentbox_artifact(ab, RUN, "out/x", ends[1], &e) == -EPIPE,
	        "whoever reads has gone: an error, and no signal: %s", e.text);
	ok(sigpending(&pending) == 0 && !sigismember(&pending, SIGPIPE), "nor later");
	fd_close(ends[1]);
	end();
	begin("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", NULL);
	auto_close int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	ok(agentbox_artifact(ab, RUN, "out/x", null, &e) == -ECONNRESET, "one that is cut off: %s",
	        e.text);
	end();
}

int main(void)
{
	alarm(LIMIT_S);
	must(mkdtemp(dir) != NULL, "a directory");
	snprintf(path, sizeof(path), "%s/sock", dir);
	ab = agentbox_new(path, NULL, NULL, &e);
	must(ab != NULL, "whom to ask");
	answers();
	events();
	frames();
	artifact();
	agentbox_free(ab);
	(void)unlink(path);
	(void)rmdir(dir);
	return done();
}
