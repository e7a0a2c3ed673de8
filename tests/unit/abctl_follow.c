/*
 * abctl run against a scripted daemon: accept, stream, break off, be asked
 * again, be cancelled.  The daemon is one process that answers one connection
 * after another and writes down what it was asked.
 */
#include "abctl/follow.h"
#include "client/events.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "tests/t.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

enum { LIMIT_S = 120 };

#define RUN "run_01jd0000000000000000000000"

static char dir[] = "/tmp/abctl-follow-XXXXXX";
static char path[64], asked[64];

/* What a connection is answered, in order; NULL ends. `signal`: what the client gets after it. */
struct answer {
	const char *bytes;
	int signal;
};

static const char accepted[] =
        "HTTP/1.1 202 Accepted\r\nContent-Type: application/json\r\nContent-Length: 87\r\n\r\n"
        "{\"runId\":\"" RUN "\",\"sessionId\":\"ses_01jd0000000000000000000000\"}";

#define SSE               "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
#define EVENT(n, members) "id: " #n "\nevent: x\ndata: {\"seq\":" #n "," members "}\n\n"
#define STARTED                                                                                    \
	EVENT(1, "\"type\":\"run.started\",\"harness\":\"hello\",\"backend\":\"exec\","            \
	         "\"policy\":\"default\"")
#define TEXT(n, t) EVENT(n, "\"type\":\"agent.message\",\"text\":\"" t "\"")
#define DONE(n, s)                                                                                 \
	EVENT(n, "\"type\":\"run.done\",\"result\":{\"status\":\"" s "\",\"durationMs\":5}")

/* ---- the daemon's side ---- */

static void serve(int listener, const struct answer *answers, pid_t *client)
{
	alarm(LIMIT_S);
	FILE *log = fopen(asked, "w");
	for (; answers->bytes; answers++) {
		int c = accept(listener, NULL, NULL);
		auto_buf struct buf head = BUF_INIT(1 << 20);
		char byte;
		while (!(head.p && strstr(head.p, "\r\n\r\n")) && read(c, &byte, 1) == 1)
			buf_putc(&head, byte);
		const char *length = strstr(head.p, "Content-Length: ");
		for (long n = length ? atol(length + 16) : 0; n > 0 && read(c, &byte, 1) == 1; n--)
			buf_putc(&head, byte);
		fprintf(log, "%s\n", head.p);
		fflush(log);
		(void)!fd_write_all(c, answers->bytes, strlen(answers->bytes));
		if (answers->signal) {
			usleep(300000); /* until the client has read it */
			kill(*client, answers->signal);
			/* The stream stays open, as it does while a run is on: its end comes with
			 * the next answer, after the DELETE. */
			struct answer next = answers[1];
			int d = accept(listener, NULL, NULL);
			char text[4096];
			ssize_t n = read(d, text, sizeof(text) - 1);
			fprintf(log, "%.*s\n", n > 0 ? (int)n : 0, text);
			fflush(log);
			(void)!fd_write_all(d, accepted, strlen(accepted));
			fd_close(d);
			(void)!fd_write_all(c, next.bytes, strlen(next.bytes));
			answers++;
		}
		fd_close(c);
	}
	_exit(0);
}

static int listen_here(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	unlink(path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 8) < 0)
		exit(1);
	return fd;
}

/* ---- a case ---- */

struct result {
	int code;
	char *out, *err, *asked; /* owned */
};

static void result_done(struct result *r)
{
	free(r->out);
	free(r->err);
	free(r->asked);
}

/* abctl's words after "abctl". */
static struct result go(const struct answer *answers, bool json, const char *const *words)
{
	int listener = listen_here(), out[2], err[2], status = 0;
	struct result r = {.code = -1};
	if (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0)
		exit(1);
	fflush(stdout);
	/* The server signals the client, so it has to learn its number: a page they share. */
	pid_t *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t server = fork();
	if (server == 0) {
		/* Or the reading end below would wait for this process, too. */
		fd_close(out[1]);
		fd_close(err[1]);
		serve(listener, answers, shared);
	}
	pid_t client = fork();
	if (client == 0) {
		*shared = getpid();
		alarm(LIMIT_S);
		dup2(out[1], 1);
		dup2(err[1], 2);
		fd_close(out[0]);
		fd_close(err[0]);
		fd_close(listener);
		char *argv[16];
		int argc = 0;
		for (; words[argc]; argc++)
			argv[argc] = xstrdup(words[argc]);
		struct cli cli = {.peer.socket = path, .json = json};
		int code = verb_run(&cli, verb_find(argv[0]), argc - 1, argv + 1);
		fflush(stdout);
		_exit(code);
	}
	fd_close(listener);
	fd_close(out[1]);
	fd_close(err[1]);
	size_t n = 0;
	(void)!fd_slurp(out[0], 1 << 20, &r.out, &n);
	(void)!fd_slurp(err[0], 1 << 20, &r.err, &n);
	waitpid(client, &status, 0);
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	fd_close(out[0]);
	fd_close(err[0]);
	munmap(shared, 4096);
	if (file_slurp(asked, 1 << 20, &r.asked, &n) < 0)
		r.asked = xstrdup("");
	r.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
	return r;
}

static const char *const words[] = {
        "run", "hello", "-s", "ann/site", "-p", "hi \"you\"", "--param", "k=v", NULL};

static void plain(void)
{
	static const struct answer answers[] = {{accepted, 0},
	        {SSE STARTED ": keepalive\n\n" TEXT(2, "hi") DONE(3, "succeeded"), 0}, {NULL, 0}};
	struct result r = go(answers, false, words);
	is_str(r.out, "hello, exec, policy default\nhi\nsucceeded, 5 ms\n", "a run as plain text");
	is_str(r.err, "", "nothing on stderr");
	ok(r.code == 0, "succeeded is 0");
	ok(strstr(r.asked, "POST /v1/runs HTTP/1.1\r\n") != NULL, "it was started");
	ok(strstr(r.asked,
	           "{\"session\":{\"userId\":\"ann\",\"goalId\":\"site\"},\"harness\":\"hello\","
	           "\"prompt\":\"hi \\\"you\\\"\",\"idempotencyKey\":\"cli_") != NULL,
	        "with what was said");
	ok(strstr(r.asked, "\"params\":{\"k\":\"v\"}}") != NULL, "and the parameter");
	ok(strstr(r.asked, "GET /v1/runs/" RUN "/events?from=1&follow=1 HTTP/1.1\r\n") != NULL,
	        "then followed");
	result_done(&r);
}

static void lines(void)
{
	static const struct answer answers[] = {
	        {accepted, 0}, {SSE STARTED TEXT(2, "\\u001b") DONE(3, "timeout"), 0}, {NULL, 0}};
	struct result r = go(answers, true, words);
	is_str(r.out,
	        "{\"seq\":1,\"type\":\"run.started\",\"harness\":\"hello\",\"backend\":\"exec\","
	        "\"policy\":\"default\"}\n"
	        "{\"seq\":2,\"type\":\"agent.message\",\"text\":\"\\u001b\"}\n"
	        "{\"seq\":3,\"type\":\"run.done\",\"result\":{\"status\":\"timeout\","
	        "\"durationMs\":5}}\n",
	        "--json: events as they came, run.done last");
	ok(r.code == 1, "timeout is 1");
	result_done(&r);
}

static void reconnect(void)
{
	static const struct answer answers[] = {{accepted, 0}, {SSE STARTED TEXT(2, "one"), 0},
	        {"HTTP/1.1 503 Draining\r\nContent-Length: 0\r\n\r\n", 0},
	        {SSE TEXT(2, "one") TEXT(3, "two") DONE(4, "failed"), 0}, {NULL, 0}};
	struct result r = go(answers, false, words);
	is_str(r.out, "hello, exec, policy default\none\ntwo\nfailed, 5 ms\n",
	        "a broken stream goes on where it was, nothing twice");
	is_str(r.err, "abctl: notice: connection to the daemon lost, trying again\n",
	        "and says so once");
	ok(strstr(r.asked, "from=3&follow=1") && strstr(r.asked, "Last-Event-ID: 2\r\n"),
	        "from the number after the last");
	ok(r.code == 1, "failed is 1");
	result_done(&r);
}

/* A request that the dying daemon took, and of which its successor knows nothing. */
static void reset_at_once(void)
{
	static const char *const logs[] = {"logs", RUN, "-f", NULL};
	static const struct answer answers[] = {
	        {"", 0}, {SSE STARTED DONE(2, "succeeded"), 0}, {NULL, 0}};
	struct result r = go(answers, false, logs);
	is_str(r.out, "hello, exec, policy default\nsucceeded, 5 ms\n",
	        "a request that got no answer is made again");
	ok(r.code == 0, "and all is well");
	result_done(&r);
}

/* A daemon that answers and breaks off, each time: it is asked less and less often, then left. */
static void breaks_off(void)
{
	enum { TRIES = 40 }; /* more than there is time for */
	static struct answer answers[TRIES + 3];
	answers[0] = (struct answer){accepted, 0};
	answers[1] = (struct answer){SSE STARTED, 0};
	for (int i = 2; i < TRIES + 2; i++)
		answers[i] = (struct answer){SSE, 0};
	struct result r = go(answers, false, words);
	int asks = 0;
	for (const char *at = r.asked; (at = strstr(at, "GET /v1/runs/")); at++)
		asks++;
	ok(r.code == 111, "left as the system's fault (%d)", r.code);
	ok(asks >= 4 && asks <= 15, "after a few tries: %d", asks);
	const char *last = r.err;
	for (const char *nl; (nl = strchr(last, '\n')) && nl[1];)
		last = nl + 1;
	ok(strstr(last, "abctl: system: the events break off again and again (it ended before the "
	                "run did); the run may go on (abctl logs -f " RUN ")\n") == last,
	        "with the reason on the last line");
	ok(strstr(r.err, "notice: connection") == strstr(r.err, "notice:") &&
	                !strstr(strstr(r.err, "notice:") + 1, "notice:"),
	        "and one notice before it");
	result_done(&r);
}

static void cancel(void)
{
	static const struct answer answers[] = {
	        {accepted, 0}, {SSE STARTED, SIGINT}, {DONE(2, "cancelled"), 0}, {NULL, 0}};
	struct result r = go(answers, false, words);
	ok(strstr(r.asked, "DELETE /v1/runs/" RUN " HTTP/1.1\r\n") != NULL,
	        "an interrupt cancels the run");
	is_str(r.out, "hello, exec, policy default\ncancelled, 5 ms\n", "its end is awaited");
	ok(r.code == 1, "cancelled is 1");
	result_done(&r);
}

static void refusals(void)
{
	static const struct answer none[] = {
	        {"HTTP/1.1 404 Not Found\r\nContent-Type: "
	         "application/problem+json\r\n\r\n"
	         "{\"detail\":\"no harness 'helo'\",\"hint\":\"did you "
	         "mean 'hello'?\"}",
	                0},
	        {NULL, 0}};
	struct result r = go(none, false, words);
	is_str(r.err, "abctl: usage: no harness 'helo': did you mean 'hello'?\n",
	        "an unknown harness");
	ok(r.code == 100, "is the caller's fault");
	result_done(&r);

	static const struct answer full[] = {
	        {"HTTP/1.1 429 Too Many\r\nRetry-After: 2\r\n\r\n{\"title\":\"Queue full\"}", 0},
	        {NULL, 0}};
	r = go(full, false, words);
	is_str(r.err, "abctl: system: Queue full (try again in 2 s)\n", "a full queue");
	ok(r.code == 111, "is the system's");
	result_done(&r);

	static const struct answer garbage[] = {{"nonsense\r\n\r\n", 0}, {NULL, 0}};
	r = go(garbage, false, words);
	ok(r.code == 111 && strstr(r.err, "does not speak HTTP"), "what is not HTTP: %s", r.err);
	result_done(&r);

	static const struct answer nobody[] = {{NULL, 0}};
	static const char *const bad[] = {"run", "hello", "-s", "nogoal", "-p", "x", NULL};
	r = go(nobody, false, bad);
	is_str(r.err, "abctl: usage: give the session as -s USER/GOAL\n", "a session without goal");
	ok(r.code == 100, "is usage");
	result_done(&r);
}

static void history(void)
{
	static const struct answer answers[] = {
	        {"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n"
	         "Transfer-Encoding: chunked\r\n\r\n"
	         "25\r\n{\"seq\":4,\"type\":\"error\",\"message\":\"no\r\n"
	         "4\r\n!\"}\n\r\n0\r\n\r\n",
	                0},
	        {NULL, 0}};
	static const char *const logs[] = {"logs", RUN, "--from", "4", NULL};
	struct result r = go(answers, false, logs);
	is_str(r.out, "error: no!\n", "events of the past");
	ok(r.code == 0 && strstr(r.asked, "/events?from=4 HTTP/1.1\r\n"), "from a number on");
	result_done(&r);

	static const char *const bad[] = {"logs", "../../x", NULL};
	r = go(answers, false, bad);
	ok(r.code == 100, "what is no run id is not asked for");
	result_done(&r);
}

/* The same on a terminal: what is written to it, sequences and all. */
static void on_a_terminal(void)
{
	static const struct answer answers[] = {
	        {accepted, 0}, {SSE STARTED TEXT(2, "hi") DONE(3, "succeeded"), 0}, {NULL, 0}};
	int listener = listen_here(), status = 0;
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	must(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0, "a terminal");
	int slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	struct winsize size = {.ws_row = 24, .ws_col = 80};
	ioctl(slave, TIOCSWINSZ, &size);
	fflush(stdout);
	pid_t server = fork(), client = -1;
	if (server == 0)
		serve(listener, answers, &client);
	client = fork();
	if (client == 0) {
		alarm(LIMIT_S);
		setenv("TERM", "xterm", 1);
		setenv("LC_ALL", "C.UTF-8", 1);
		unsetenv("NO_COLOR");
		dup2(slave, 1);
		const char *argv[] = {"hello", "-s", "ann/site", "-p", "x"};
		char *copy[ARRAY_LEN(argv)];
		for (size_t i = 0; i < ARRAY_LEN(argv); i++)
			copy[i] = xstrdup(argv[i]);
		struct cli cli = {.peer.socket = path};
		_exit(verb_run(&cli, &cmd_run, ARRAY_LEN(argv), copy));
	}
	waitpid(client, &status, 0);
	auto_buf struct buf got = BUF_INIT(1 << 16);
	char bytes[4096];
	(void)!fd_set_nonblock(master, 1);
	for (ssize_t n; (n = read(master, bytes, sizeof(bytes))) > 0;)
		buf_put(&got, bytes, (size_t)n);
	must(got.len > 0, "something was written");
	ok(strstr(got.p, "\x1b[1m● \x1b[0m\x1b[1mhello · exec") != NULL, "a header in bold");
	const char *summary = strstr(got.p, "\x1b[32m✓ ");
	ok(summary && strstr(summary, "succeeded") && !strstr(summary, "0m0"),
	        "a green summary, and no status line after it");
	ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "and 0");
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	fd_close(master);
	fd_close(slave);
	fd_close(listener);
}

int main(void)
{
	must(mkdtemp(dir) != NULL, "a directory");
	snprintf(path, sizeof(path), "%s/s", dir);
	snprintf(asked, sizeof(asked), "%s/asked", dir);
	signal(SIGPIPE, SIG_IGN);
	is_str(events_payload("data: {}"), "{}", "a frame's data");
	ok(!events_payload(": keepalive") && !events_payload("") && !events_payload("id: 7"),
	        "the other lines of a frame");
	plain();
	lines();
	reconnect();
	reset_at_once();
	breaks_off();
	cancel();
	refusals();
	history();
	on_a_terminal();
	unlink(path);
	unlink(asked);
	rmdir(dir);
	return done();
}
