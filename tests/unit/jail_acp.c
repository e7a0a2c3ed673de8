/* agentbox-acp, with this test as the agent on one side and the supervisor on the other. */
#include "base/fd.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "tests/t.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { PATIENCE_MS = 60000, AGENT_SAYS = 8, AGENT_HEARS = 9 };

/* One end of the conversation, line by line. */
struct reader {
	int fd;
	struct buf b;
	char *line; /* owned: the last one given */
};

static struct {
	pid_t pid;
	int in, say; /* the supervisor's stdin of the program, the agent's stdout */
	struct reader out, hears;
	char dir[64];
} rig;

static char *program(void)
{
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	self[n > 0 ? n : 0] = '\0';
	for (int i = 0; i < 3; i++) /* BUILD/tests/unit/name: programs are in BUILD/bin */
		if (strrchr(self, '/'))
			*strrchr(self, '/') = '\0';
	return xasprintf("%s/bin/agentbox-acp", self);
}

static void child(const char *path, const char *const *argv, const int *fds)
{
	for (int i = 0; i < 4; i++) { /* above those they go to */
		int to = i < 2 ? i : AGENT_SAYS + i - 2;
		if (dup2(fds[i], to) < 0)
			_exit(120);
	}
	execv(path, (char *const *)(uintptr_t)argv);
	_exit(121);
}

/* Starts it over an agent that passes on what this test says for it. */
static void start_agent(const char *serves, const char *script)
{
	int in[2], out[2], say[2], hear[2];
	auto_free char *path = program();
	must(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0 &&
	                pipe2(say, O_CLOEXEC) == 0 && pipe2(hear, O_CLOEXEC) == 0,
	        "pipes");
	int fds[4] = {fcntl(in[0], F_DUPFD_CLOEXEC, 20), fcntl(out[1], F_DUPFD_CLOEXEC, 20),
	        fcntl(say[0], F_DUPFD_CLOEXEC, 20), fcntl(hear[1], F_DUPFD_CLOEXEC, 20)};
	const char *argv[] = {"/bin/sh", "-c", script, NULL};
	setenv("AGENTBOX_ACP", serves, 1);
	rig.pid = fork();
	if (rig.pid == 0)
		child(path, argv, fds);
	for (int i = 0; i < 4; i++)
		close(fds[i]);
	close(in[0]);
	close(out[1]);
	close(say[0]);
	close(hear[1]);
	rig.in = in[1];
	rig.say = say[1];
	rig.out = (struct reader){.fd = out[0], .b = BUF_INIT(256 << 20)};
	rig.hears = (struct reader){.fd = hear[0], .b = BUF_INIT(256 << 20)};
}

static void start(const char *serves)
{
	start_agent(serves, "cat <&8 & exec 8<&-; cat >&9; kill $! 2>/dev/null; exit 7");
}

static void reader_done(struct reader *r)
{
	close(r->fd);
	buf_done(&r->b);
	free(take(r->line));
}

/* How the program ended, once the agent has: as waitpid says it. */
static int stop(void)
{
	int status = -1;
	close(rig.in);
	close(rig.say);
	reader_done(&rig.hears);
	(void)waitpid(rig.pid, &status, 0);
	reader_done(&rig.out);
	return status;
}

/* The next line, without its newline; "" when none comes. */
static const char *next(struct reader *r)
{
	free(take(r->line));
	for (size_t from = 0;;) {
		char *nl = r->b.len > from ? memchr(r->b.p + from, '\n', r->b.len - from) : NULL;
		if (nl) {
			size_t n = (size_t)(nl - r->b.p);
			r->line = xstrndup(r->b.p, n);
			buf_consume(&r->b, n + 1);
			return r->line;
		}
		from = r->b.len;
		struct pollfd p = {r->fd, POLLIN, 0};
		if (buf_reserve(&r->b, 1 << 20) < 0 || poll(&p, 1, PATIENCE_MS) <= 0)
			return "";
		ssize_t n = read(r->fd, r->b.p + r->b.len, 1 << 20);
		if (n <= 0)
			return "";
		r->b.len += (size_t)n;
	}
}

static void say(const char *line)
{
	must(fd_write_all(rig.say, line, strlen(line)) == 0 && fd_write_all(rig.say, "\n", 1) == 0,
	        "said: %.60s", line);
}

/* What the agent hears when it asks for that; the member `key` of it. */
static const char *asked(const char *method, const char *params)
{
	auto_free char *line = xasprintf("{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"%s\","
	                                 "\"params\":{\"sessionId\":\"s\",%s}}",
	        method, params);
	say(line);
	return next(&rig.hears);
}

static struct json *parsed(const char *line)
{
	return json_parse(line, strlen(line), NULL);
}

static bool content_is(const char *line, const char *want)
{
	auto_json struct json *j = parsed(line);
	return strcmp(json_str(json_get(j, "result"), "content", "?"), want) == 0;
}

static int error_of(const char *line)
{
	auto_json struct json *j = parsed(line);
	return (int)json_int(json_get(j, "error"), "code", 0);
}

static void make_file(const char *name, const char *bytes, size_t n)
{
	auto_free char *path = xasprintf("%s/%s", rig.dir, name);
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	must(fd >= 0 && fd_write_all(fd, bytes, n) == 0, "a file %s", name);
}

static const char *read_file(const char *name, const char *more)
{
	auto_free char *params = xasprintf("\"path\":\"%s/%s\"%s", rig.dir, name, more);
	return asked("fs/read_text_file", params);
}

static const char *write_file(const char *name, const char *json_text)
{
	auto_free char *params =
	        xasprintf("\"path\":\"%s/%s\",\"content\":%s", rig.dir, name, json_text);
	return asked("fs/write_text_file", params);
}

static bool file_is(const char *name, const char *want)
{
	auto_free char *path = xasprintf("%s/%s", rig.dir, name);
	auto_free char *text = NULL;
	size_t n = 0;
	return file_slurp(path, 1 << 20, &text, &n) == 0 && strcmp(text, want) == 0;
}

/* ---- both ways ---- */

static void test_passing(void)
{
	start("files terminals");
	say("{\"a\":1}");
	is_str(next(&rig.out), "{\"a\":1}", "what is no request goes on as it is");
	static const char *const others[] = {"not JSON", "", "{\"method\":\"fs/read_text_file\"}",
	        "{\"id\":1,\"method\":\"session/request_permission\",\"params\":{}}",
	        "{\"id\":[1],\"method\":\"fs/read_text_file\",\"params\":{}}",
	        "{\"id\":null,\"method\":\"terminal/create\"}",
	        "{\"id\":1,\"method\":\"fs/read_text_file\",\"params\":{}",
	        "{\"id\":1,\"method\":\"fs/unlink\",\"params\":{}}", "{\"id\":1,\"method\":7}",
	        "\xff\xfe{\"method\":\"fs/read_text_file\"}"};
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		say(others[i]);
		is_str(next(&rig.out), others[i], "and so does %s", others[i]);
	}
	must(fd_write_all(rig.in, "{\"half\":", 8) == 0, "half a line of the supervisor's");
	make_file("f", "x", 1);
	auto_free char *params = xasprintf("{\"id\":1,\"method\":\"fs/read_text_file\",\"params\":{"
	                                   "\"path\":\"%s/f\"}}",
	        rig.dir);
	say(params);
	say("behind");
	is_str(next(&rig.out), "behind", "a request was served");
	must(fd_write_all(rig.in, "2}\n{\"next\":3}\n", 14) == 0, "the other half");
	is_str(next(&rig.hears), "{\"half\":2}", "no answer comes into a line");
	const char *heard = next(&rig.hears);
	bool first = strstr(heard, "next") != NULL;
	heard = first ? next(&rig.hears) : heard;
	ok(content_is(heard, "x"), "but behind it: %s", heard);
	int status = stop();
	ok(WIFEXITED(status) && WEXITSTATUS(status) == 7, "it ends as the agent does: %#x", status);
}

static void test_long_lines(void)
{
	size_t n = LIMIT_LINE + (3 << 20);
	char *line = xcalloc(n + 1, 1);
	memset(line, 'a', n);
	start("files terminals");
	pid_t writer = fork();
	if (writer == 0) { /* a pipe does not hold it */
		bool done = fd_write_all(rig.say, line, n) == 0 &&
		            fd_write_all(rig.say, "\nb\n", 3) == 0;
		_exit(done ? 0 : 1);
	}
	const char *got = next(&rig.out);
	ok(strlen(got) == n && strspn(got, "a") == n, "a line of 19 MiB goes on whole");
	is_str(next(&rig.out), "b", "and the one behind it");
	int status = 0;
	ok(waitpid(writer, &status, 0) == writer && status == 0, "all was said");
	free(line);
	(void)stop();
}

static void test_ends(void)
{
	start_agent("files", "kill -KILL $$");
	int status = stop();
	ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "a signal is passed on: %#x",
	        status);
	start_agent("files", "printf last; exit 0");
	(void)poll(NULL, 0, 300);
	struct pollfd p = {rig.out.fd, POLLIN, 0};
	char last[16] = "";
	ok(poll(&p, 1, PATIENCE_MS) == 1 && read(rig.out.fd, last, 15) == 4 &&
	                strcmp(last, "last") == 0,
	        "a last line without an end");
	(void)stop();
	start_agent("files", "trap 'exit 3' TERM; echo up; while :; do sleep 1; done");
	is_str(next(&rig.out), "up", "an agent that minds SIGTERM");
	kill(rig.pid, SIGTERM); /* the group's in a jail: here the program alone, which stays */
	(void)poll(NULL, 0, 300);
	ok(waitpid(rig.pid, &status, WNOHANG) == 0, "the program itself does not end of it");
	kill(rig.pid, SIGKILL);
	(void)stop();
	start_agent("files", "exec env");
	bool clean = true;
	for (const char *line = next(&rig.out); *line; line = next(&rig.out))
		clean &= strncmp(line, "AGENTBOX_ACP=", 13) != 0;
	ok(clean, "the agent's environment has nothing of ours");
	(void)stop();
}

/* ---- files ---- */

static void test_reading(void)
{
	start("files terminals");
	make_file("lines", "one\ntwo\nthree", 13);
	ok(content_is(read_file("lines", ""), "one\ntwo\nthree"), "a file");
	ok(content_is(read_file("lines", ",\"line\":2"), "two\nthree"), "from a line on");
	ok(content_is(read_file("lines", ",\"line\":2,\"limit\":1"), "two\n"), "one line");
	ok(content_is(read_file("lines", ",\"line\":null,\"limit\":null"), "one\ntwo\nthree"),
	        "null");
	ok(content_is(read_file("lines", ",\"line\":9"), ""), "behind its end");
	ok(content_is(read_file("lines", ",\"limit\":0"), ""), "no line");
	make_file("odd", "a\"\\\x01\0\xffz", 7);
	ok(strstr(read_file("odd", ""), "a\\\"\\\\\\u0001\\u0000\xef\xbf\xbdz"),
	        "bytes that are no text");
	ok(error_of(read_file("nothing", "")) == -32002, "one that is not there");
	ok(error_of(read_file("lines", ",\"line\":-1")) == -32602, "no count");
	ok(error_of(read_file("lines/below", "")) == -32603, "below a file");
	ok(error_of(asked("fs/read_text_file", "\"path\":\"lines\"")) == -32602, "a relative path");
	ok(error_of(asked("fs/read_text_file", "\"path\":7")) == -32602, "a path that is none");
	ok(error_of(asked("fs/read_text_file", "\"path\":\"/etc/pass\\u0000wd\"")) == -32602,
	        "a path with NUL");
	ok(error_of(asked("fs/read_text_file", "\"path\":\"/dev/zero\"")) == -32603, "a device");
	ok(error_of(asked("fs/read_text_file", "\"path\":\"/\"")) == -32603, "a directory");
	auto_free char *fifo = xasprintf("%s/fifo", rig.dir);
	must(mkfifo(fifo, 0666) == 0, "a FIFO");
	ok(error_of(read_file("fifo", "")) == -32603, "is not waited for");
	ok(error_of(write_file("fifo", "\"x\"")) == -32603, "nor to write to it");
	auto_free char *big = xasprintf("%s/big", rig.dir);
	auto_close int fd = open(big, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	must(fd >= 0 && ftruncate(fd, (off_t)1 << 40) == 0, "a file of a terabyte");
	ok(error_of(read_file("big", "")) == -32603, "is more than an answer");
	ok(error_of(read_file("big", ",\"line\":2")) == -32603, "and is not searched for ever");
	auto_free char *sparse = xcalloc(12 << 20, 1);
	memset(sparse, '\x01', (12 << 20) - 1);
	make_file("escaped", sparse, (12 << 20) - 1);
	for (int i = 0; i < 3; i++) { /* all asked before the first answer is read */
		auto_free char *line = xasprintf("{\"id\":%d,\"method\":\"fs/read_text_file\","
		                                 "\"params\":{\"path\":\"%s/escaped\"}}",
		        i, rig.dir);
		say(line);
	}
	bool whole = true;
	for (int i = 0; i < 3; i++)
		whole &= strlen(next(&rig.hears)) > ((size_t)72 << 20) - 6;
	ok(whole, "answers that are large one by one");
	(void)stop();
}

static void test_writing(void)
{
	start("files terminals");
	ok(strstr(write_file("new/dir/f", "\"a\\u00e4\\n\""), "\"result\":{}"), "a new file");
	ok(file_is("new/dir/f", "a\xc3\xa4\n"), "has the text");
	ok(strstr(next(&rig.out), "\"change\":\"add\""), "the driver is told");
	ok(strstr(write_file("new/dir/f", "\"b\""), "\"result\":{}"), "once more");
	ok(file_is("new/dir/f", "b"), "nothing of the old one stays");
	ok(strstr(next(&rig.out), "\"change\":\"edit\""), "that is a change");
	ok(error_of(write_file("new/dir", "\"x\"")) == -32603, "not over a directory");
	ok(error_of(write_file("f", "7")) == -32602, "only text");
	ok(error_of(asked("fs/write_text_file", "\"content\":\"x\"")) == -32602,
	        "only with a path");
	ok(error_of(write_file("../../../../../proc/sys/kernel/nothing/x", "\"x\"")) != 0,
	        "what the kernel refuses");
	(void)stop();
	start("terminals");
	auto_free char *line = xasprintf("{\"id\":1,\"method\":\"fs/write_text_file\",\"params\":{"
	                                 "\"path\":\"%s/g\",\"content\":\"x\"}}",
	        rig.dir);
	say(line);
	is_str(next(&rig.out), line, "what is not served goes on to the driver");
	(void)stop();
	struct rlimit was, small;
	must(getrlimit(RLIMIT_FSIZE, &was) == 0, "limits");
	small = (struct rlimit){4, was.rlim_max};
	must(setrlimit(RLIMIT_FSIZE, &small) == 0, "a small one");
	start("files");
	must(setrlimit(RLIMIT_FSIZE, &was) == 0, "the old one");
	ok(error_of(write_file("long", "\"12345678\"")) == -32603,
	        "what is longer than a file may be is refused");
	ok(strstr(write_file("short", "\"1234\""), "\"result\":{}"), "and nobody ends of it");
	(void)stop();
}

/* ---- terminals ---- */

static char *terminal_of(const char *heard)
{
	auto_json struct json *j = parsed(heard);
	return xstrdup(json_str(json_get(j, "result"), "terminalId", "none"));
}

static const char *of_terminal(const char *method, const char *id)
{
	auto_free char *params = xasprintf("\"terminalId\":\"%s\"", id);
	return asked(method, params);
}

static void test_terminals(void)
{
	start("files terminals");
	auto_free char *line =
	        terminal_of(asked("terminal/create", "\"command\":\"echo a; exit 3\""));
	ok(strstr(of_terminal("terminal/wait_for_exit", line), "\"exitCode\":3,\"signal\":null"),
	        "a line for the shell");
	ok(strstr(of_terminal("terminal/output", line), "\"output\":\"a\\n\",\"truncated\":false,"
	                                                "\"exitStatus\":{\"exitCode\":3"),
	        "what it printed");
	ok(strstr(next(&rig.out), "\"output\":\"a\\n\""), "the driver is told");
	ok(strstr(next(&rig.out), "\"exitCode\":3"), "with its end");
	ok(strstr(of_terminal("terminal/release", line), "\"result\":{}"), "released");
	ok(error_of(of_terminal("terminal/output", line)) == -32002, "it is gone");
	auto_free char *params =
	        xasprintf("\"command\":\"sh\",\"args\":[\"-c\",\"pwd; echo $A; cat; "
	                  "echo e >&2; kill -TERM $$\"],\"env\":[{\"name\":\"A\","
	                  "\"value\":\"v w\"}],\"cwd\":\"%s\"",
	                rig.dir);
	auto_free char *argv = terminal_of(asked("terminal/create", params));
	ok(strstr(of_terminal("terminal/wait_for_exit", argv),
	           "\"exitCode\":null,\"signal\":\"SIGTERM\""),
	        "a program with arguments, ended by a signal");
	auto_free char *want = xasprintf("\"output\":\"%s\\nv w\\ne\\n\"", rig.dir);
	ok(strstr(of_terminal("terminal/output", argv), want), "directory, variable, no input");
	auto_free char *ghost = terminal_of(asked("terminal/create", "\"command\":\"/no/such\","
	                                                             "\"args\":[\"x\"]"));
	ok(strstr(of_terminal("terminal/wait_for_exit", ghost), "\"exitCode\":127"), "no program");
	ok(error_of(asked("terminal/create", "\"args\":[]")) == -32602, "no command");
	ok(error_of(asked("terminal/create", "\"command\":\"a\",\"args\":[1]")) == -32602,
	        "no text");
	ok(error_of(
	           asked("terminal/create", "\"command\":\"a\",\"env\":[{\"name\":\"A=\",\"value\":"
	                                    "\"\"}]")) == -32602,
	        "no variable");
	ok(error_of(asked("terminal/create", "\"command\":\"a\",\"cwd\":\"b\"")) == -32602,
	        "no place");
	(void)stop();
}

static void test_endless(void)
{
	start("files terminals");
	auto_free char *yes = terminal_of(asked("terminal/create",
	        "\"command\":\"printf '\\u00e4'; yes \\u00e4\",\"outputByteLimit\":"
	        "1000"));
	const char *heard = of_terminal("terminal/output", yes);
	for (int i = 0; i < 600 && !strstr(heard, "\"truncated\":true"); i++) {
		(void)poll(NULL, 0, 100);
		heard = of_terminal("terminal/output", yes);
	}
	ok(strstr(heard, "\"truncated\":true") && strlen(heard) < 2000 &&
	                !strstr(heard, "\xef\xbf"),
	        "of one without end the last thousand bytes, in whole characters");
	ok(!strstr(heard, "exitStatus"), "it goes on");
	say("{\"id\":6,\"method\":\"terminal/wait_for_exit\",\"params\":{\"terminalId\":\"t1\"}}");
	ok(strstr(of_terminal("terminal/kill", yes), "\"id\":5,\"result\":{}"), "killed");
	ok(strstr(next(&rig.hears),
	           "\"id\":6,\"result\":{\"exitCode\":null,\"signal\":\"SIGKILL\""),
	        "whoever waits is told");
	ok(strstr(of_terminal("terminal/release", yes), "\"result\""), "released");
	size_t told = 0;
	for (const char *note = next(&rig.out); !strstr(note, "SIGKILL") && *note;
	        note = next(&rig.out))
		told += strlen(note);
	ok(told > 64 << 10 && told < 2 << 20, "the driver was told so much and no more: %zu", told);
	(void)stop();
}

/* A command that is ended before it has got to its own process group. */
static void test_at_once(void)
{
	start("files terminals");
	bool killed = true, released = true;
	for (int i = 1; i <= 40 && killed && released; i++) {
		auto_free char *both = xasprintf(
		        "{\"id\":1,\"method\":\"terminal/create\",\"params\":{\"command\":"
		        "\"sleep\",\"args\":[\"600\"]}}\n"
		        "{\"id\":2,\"method\":\"terminal/%s\",\"params\":{\"terminalId\":\"t%d\"}}",
		        i % 2 ? "kill" : "release", i);
		say(both);
		(void)next(&rig.hears);
		released = strstr(next(&rig.hears), "\"id\":2,\"result\"") != NULL;
		auto_free char *name = xasprintf("t%d", i);
		if (i % 2)
			killed = strstr(of_terminal("terminal/wait_for_exit", name), "SIGKILL");
	}
	ok(released, "one that is released as soon as it is made holds nobody up");
	ok(killed, "one that is killed as soon as it is made has ended");
	kill(rig.pid, SIGKILL);
	(void)stop();
}

/* The children of the program, but for the agent's own. */
static int sleepers(void)
{
	int n = 0;
	DIR *d = opendir("/proc");
	for (struct dirent *e; d && (e = readdir(d));) {
		auto_free char *path = xasprintf("/proc/%.16s/cmdline", e->d_name);
		auto_free char *text = NULL;
		size_t len = 0;
		if (e->d_name[0] >= '0' && e->d_name[0] <= '9' &&
		        file_slurp(path, 4096, &text, &len) == 0 && len > 6 &&
		        memmem(text, len, rig.dir + 5, strlen(rig.dir + 5)))
			n++;
	}
	if (d)
		closedir(d);
	return n;
}

static void test_crowd(void)
{
	start("files terminals");
	auto_free char *params = xasprintf(
	        "\"command\":\"sh\",\"args\":[\"-c\",\"sleep 600; :\",\"%s\"]", rig.dir + 5);
	int made = 0, refused = 0;
	for (int i = 0; i < 1000; i++)
		*(error_of(asked("terminal/create", params)) ? &refused : &made) += 1;
	ok(made == 64 && refused == 936, "64 terminals of a thousand: %d, %d", made, refused);
	int live = 0;
	for (int i = 0; i < 600 && (live = sleepers()) < 64; i++)
		(void)poll(NULL, 0, 100); /* each until its exec */
	ok(live >= 64, "they live: %d", live);
	ok(strstr(of_terminal("terminal/release", "t7"), "\"result\""), "one is released");
	ok(error_of(asked("terminal/create", params)) == 0, "there is room for another");
	for (int i = 0; i < 65; i++) {
		auto_free char *wait =
		        xasprintf("{\"id\":\"w%d\",\"method\":\"terminal/wait_for_exit\","
		                  "\"params\":{\"terminalId\":\"t1\"}}",
		                i);
		say(wait);
	}
	ok(strstr(next(&rig.hears), "\"id\":\"w64\",\"error\""), "no more than 64 wait");
	(void)stop();
	int left = -1;
	for (int i = 0; i < 600 && (left = sleepers()) > 0; i++)
		(void)poll(NULL, 0, 100);
	ok(left == 0, "nothing of them is left: %d", left);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	auto_free char *path = program();
	if (access(path, X_OK) < 0)
		skip_all("agentbox-acp is not built");
	strcpy(rig.dir, "/tmp/agentbox-acp-XXXXXX");
	must(mkdtemp(rig.dir) != NULL, "a directory");
	test_passing();
	test_long_lines();
	test_ends();
	test_reading();
	test_writing();
	test_terminals();
	test_endless();
	test_at_once();
	test_crowd();
	auto_free char *remove = xasprintf("rm -rf %s", rig.dir);
	ok(system(remove) == 0, "cleaned up");
	return done();
}
