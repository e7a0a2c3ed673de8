/*
 * A process connected to a client by frames: through the real HTTP server and
 * the real client of agentboxd; agentboxd itself is played by a child that
 * starts plain processes instead of jails.
 */
#include "supervisor/stdio.h"

#include "base/fd.h"
#include "base/json.h"
#include "base/limits.h"
#include "proto/exec.h"
#include "proto/init.h"
#include "proto/stdio.h"
#include "supervisor/daemon.h"
#include "supervisor/http.h"
#include "supervisor/loop.h"
#include "supervisor/policies.h"
#include "supervisor/shared_jail.h"
#include "tests/t.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

/* ---- agentboxd, played ---- */

static int made, released; /* jails */
static struct {
	pid_t pid;
	int live;
} jails[64];

static void answer(int sock, const struct msg_head *q, uint64_t jail, int *fds, int n)
{
	struct jail_reply r = {.jail = jail, .exec = 1};
	r.head.type = JAIL_REPLY;
	r.head.req = q->req;
	if (msg_send(sock, &r, sizeof(r), fds, n) < 0)
		_exit(3);
}

static void start(int sock, const struct msg_head *q, int exec)
{
	int in[2], out[2], err[2];
	char *argv[LIMIT_EXEC_ARGS + 1], *env[LIMIT_EXEC_ENVS + 1], *cwd, *blob;
	size_t n;
	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC) ||
	        fd_slurp(exec, LIMIT_EXEC_BLOB, &blob, &n) < 0 ||
	        exec_unpack(blob, n, argv, env, &cwd) < 0)
		_exit(4);
	pid_t pid = fork();
	if (pid == 0) {
		setpgid(0, 0);
		dup2(in[0], 0);
		dup2(out[1], 1);
		dup2(err[1], 2);
		execvp(argv[0], argv);
		_exit(125);
	}
	setpgid(pid, pid); /* here too: a kill of the group may come before the child runs */
	jails[++made].pid = pid;
	jails[made].live = 1;
	int ours[3] = {in[1], out[0], err[0]};
	for (int i = 0; i < 3; i++)
		if (fd_set_nonblock(ours[i], 1) < 0)
			_exit(5);
	answer(sock, q, (uint64_t)made, ours, 3);
	int all[] = {in[0], in[1], out[0], out[1], err[0], err[1]};
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		fd_close(all[i]);
	free(blob);
}

static void reap(int sock)
{
	int status;
	pid_t pid;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (int i = 1; i <= made; i++) {
			if (jails[i].pid != pid)
				continue;
			struct jail_exited x = {.jail = (uint64_t)i, .exec = 1, .code = -1};
			x.head.type = JAIL_EXITED;
			if (WIFSIGNALED(status))
				x.sig = WTERMSIG(status);
			else if (WEXITSTATUS(status) == 125)
				x.error = ENOENT, x.stage = INIT_STAGE_EXEC;
			else
				x.code = WEXITSTATUS(status);
			if (msg_send(sock, &x, sizeof(x), NULL, 0) < 0)
				_exit(6);
			jails[i].live = 0;
		}
}

static void end(int sock, uint64_t jail, int told)
{
	struct jail_gone g = {.jail = jail, .end = JAIL_END_KILLED};
	g.head.type = JAIL_GONE;
	g.resources.cpu_us = 5000;
	kill(-jails[jail].pid, SIGKILL);
	while (jails[jail].live) {
		poll(NULL, 0, 5);
		reap(sock);
	}
	if (msg_send(sock, &g, sizeof(g), NULL, 0) < 0 || write(told, "k", 1) != 1)
		_exit(7);
}

static void agentboxd(int sock, int told)
{
	static union {
		struct msg_head head;
		struct jail_simple simple;
		struct jail_signal signal;
		char bytes[MSG_MAX];
	} m;
	int fds[MSG_FDS];
	for (;;) {
		struct pollfd p = {.fd = sock, .events = POLLIN};
		reap(sock);
		if (poll(&p, 1, 10) != 1)
			continue;
		int n = msg_recv(sock, m.bytes, fds);
		if (n <= 0)
			_exit(released == made ? 0 : 8);
		if (m.head.type == JAIL_MAKE) {
			start(sock, &m.head, fds[0]);
			fd_close(fds[0]);
			continue;
		}
		if (m.head.type == JAIL_SIGNAL)
			kill(-jails[m.signal.jail].pid, m.signal.sig);
		answer(sock, &m.head, m.simple.jail, NULL, 0);
		if (m.head.type == JAIL_KILL)
			end(sock, m.simple.jail, told);
		released += m.head.type == JAIL_RELEASE;
	}
}

/* ---- the supervisor, in a child ---- */

static struct daemon d;

struct launch {
	struct http_request *r;
	struct stdio *s;
	struct shared_jail *jail; /* borrowed of it */
};

static void on_made(void *ctx, const struct jail_reply *reply, int fds[MSG_FDS])
{
	struct launch *l = ctx;
	shared_jail_made(l->jail, reply->jail);
	stdio_attach(l->s, reply, fds, "{\"message\":\"hello\"}");
	http_on_gone(l->r, stdio_abandon, l->s);
	http_upgrade(l->r, STDIO_UPGRADE, stdio_start, l->s);
	free(l);
}

static int64_t on_headers(void *ctx, struct http_request *r)
{
	(void)ctx;
	(void)r;
	return 1 << 20;
}

/* The body is a shell script. */
static void on_request(void *ctx, struct http_request *r)
{
	(void)ctx;
	size_t n;
	const char *script = http_body(r, &n);
	const char *argv[] = {"sh", "-c", script, NULL}, *missing[] = {"no-such-program", NULL};
	const char *env[] = {NULL};
	struct exec_spec e = {strcmp(script, "missing") ? argv : missing, env, "/"};
	struct stdio_spec spec = {
	        .jail = shared_jail_new(&d, strstr(script, "# wall") ? 200 : 0, NULL, NULL)};
	struct jail_make m = {.flags = JAIL_MAKE_EXEC};
	struct launch *l = xnew(struct launch);
	l->r = r;
	l->jail = spec.jail;
	l->s = stdio_new(&d, &spec);
	jails_make(d.jails, &m, exec_pack(&e, NULL), stdio_watch(l->s), on_made, l);
}

static void stop(struct daemon *daemon)
{
	loop_stop(daemon->loop);
}

static void lost(struct daemon *daemon, const char *why)
{
	(void)why;
	loop_stop(daemon->loop);
}

static void supervisor(int listen_fd, int sock)
{
	struct err e;
	struct http_service s = {.headers = on_headers, .request = on_request};
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	d.loop = loop_new(64, &e);
	if (!d.loop || loop_enable(d.loop, &e) < 0)
		_exit(77);
	static const struct jails_calls calls = {.stop = stop, .lost = lost};
	d.policies = policies_new();
	d.jails = jails_new(&d, sock, &calls);
	jails_start(d.jails);
	d.http = http_new(d.loop, listen_fd, -1, getgid(), &s, &e);
	_exit(d.http && loop_run(d.loop, &e) == 0 ? 0 : 1);
}

/* ---- the client ---- */

static struct sockaddr_un address = {.sun_family = AF_UNIX};
static socklen_t address_len;
static int told, launched;

static int launch(const char *script)
{
	char text[2048];
	launched++;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(connect(fd, (struct sockaddr *)&address, address_len) == 0, "connected: %.40s",
	        script);
	int n = snprintf(text, sizeof(text),
	        "POST /x HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: agentbox-stdio\r\n"
	        "Content-Length: %zu\r\n\r\n%s",
	        strlen(script), script);
	struct timeval tv = {.tv_sec = 30};
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	must(send(fd, text, (size_t)n, 0) == n, "asked");
	/* Byte by byte, so that no frame is swallowed. */
	for (n = 0; n < 4 || memcmp(text + n - 4, "\r\n\r\n", 4) != 0; n++)
		if (n >= 2000 || recv(fd, text + n, 1, 0) != 1)
			break;
	must(strncmp(text, "HTTP/1.1 101", 12) == 0, "upgraded");
	return fd;
}

static void frame(int fd, enum stdio_stream s, const void *p, size_t n)
{
	uint8_t head[STDIO_HEAD];
	stdio_pack(head, s, n);
	/* one that breaks off may have closed by now */
	if (send(fd, head, sizeof(head), MSG_NOSIGNAL) < 0 ||
	        (n && send(fd, p, n, MSG_NOSIGNAL) != (ssize_t)n))
		printf("# frame %d not sent\n", s);
}

struct got {
	size_t out, err;
	unsigned long sum;
	char head[64], exit[512], notice[128];
};

/* Reads frames until the end of the connection. */
static struct got collect(int fd)
{
	static char p[STDIO_FRAME_MAX + 1];
	struct got g = {.out = 0};
	uint8_t head[STDIO_HEAD];
	while (fd_read_full(fd, head, sizeof(head)) == STDIO_HEAD) {
		size_t n = stdio_length(head);
		if (n > STDIO_FRAME_MAX || fd_read_full(fd, p, n) != (ssize_t)n)
			break;
		p[n] = '\0';
		if (head[0] == STDIO_STDOUT) {
			for (size_t i = 0; i < n; i++)
				g.sum += (unsigned char)p[i];
			if (g.out == 0)
				snprintf(g.head, sizeof(g.head), "%.60s", p);
			g.out += n;
		}
		if (head[0] == STDIO_STDERR)
			g.err += n;
		if (head[0] == STDIO_EXIT)
			snprintf(g.exit, sizeof(g.exit), "%.500s", p);
		if (head[0] == STDIO_NOTICE)
			snprintf(g.notice, sizeof(g.notice), "%.100s", p);
	}
	fd_close(fd);
	return g;
}

static int exit_has(const struct got *g, const char *text)
{
	if (strstr(g->exit, text))
		return 1;
	printf("# exit: %s\n", g->exit);
	return 0;
}

static void test_simple(void)
{
	struct got g = collect(launch("echo out; echo err >&2; exit 7"));
	ok(strcmp(g.head, "out\n") == 0 && g.err == 4, "both outputs");
	ok(exit_has(&g, "{\"code\":7,\"reason\":\"exit\",\"resources\":{\"cpuMs\":5,"), "the end");
	ok(strstr(g.notice, "hello"), "a notice");
	g = collect(launch("kill -9 $$"));
	ok(exit_has(&g, "{\"signal\":9,\"reason\":\"signal\""), "a signal");
	g = collect(launch("missing"));
	ok(exit_has(&g, "{\"code\":127,\"reason\":\"start\",\"error\":\"No such file"),
	        "no program");
	g = collect(launch("sleep 100 & echo gone"));
	ok(g.out == 5 && exit_has(&g, "\"code\":0"), "what it leaves behind does not hold the end");
	g = collect(launch("sleep 100 # wall"));
	ok(exit_has(&g, "{\"signal\":9,\"reason\":\"timeout\""), "the wall clock");
	g = collect(launch("head -c 30000000 /dev/zero | tr '\\0' 'x'"));
	ok(g.out == 30000000 && g.sum == 30000000ul * 'x', "30 MB whole (%zu)", g.out);
}

static void test_input(void)
{
	int fd = launch("cat; echo end");
	frame(fd, STDIO_STDIN, "hello ", 6);
	frame(fd, STDIO_STDIN, "", 0);
	frame(fd, STDIO_STDIN, "you\n", 4);
	frame(fd, STDIO_STDIN_EOF, NULL, 0);
	struct got g = collect(fd);
	ok(g.out == 14 && exit_has(&g, "\"code\":0"), "stdin and its end");
	enum { BIG = 20 << 20 };
	fd = launch("cat");
	if (fork() == 0) {
		char *p = malloc(BIG);
		memset(p, 'y', BIG);
		frame(fd, STDIO_STDIN, p, BIG);
		frame(fd, STDIO_STDIN_EOF, NULL, 0);
		_exit(0);
	}
	g = collect(fd);
	ok(g.out == BIG && g.sum == (unsigned long)BIG * 'y', "20 MB there and back (%zu)", g.out);
	wait(NULL);
	fd = launch("exec <&-; sleep 0.2; echo deaf");
	char *p = calloc(1, 1 << 20);
	frame(fd, STDIO_STDIN, p, 1 << 20);
	free(p);
	g = collect(fd);
	ok(g.out == 5 && exit_has(&g, "\"code\":0"), "one that reads nothing");
	fd = launch("trap 'echo usr1; exit 3' USR1; echo ready; while :; do sleep 0.05; done");
	char c[STDIO_HEAD + 1];
	(void)recv(fd, c, 1, MSG_PEEK);
	poll(NULL, 0, 300);
	uint8_t sig = SIGUSR1;
	frame(fd, STDIO_SIGNAL, &sig, 1);
	g = collect(fd);
	ok(exit_has(&g, "\"code\":3"), "a signal frame");
	fd = launch("cat >/dev/null; echo done");
	frame(fd, STDIO_STDIN, "abc", 3);
	shutdown(fd, SHUT_WR);
	g = collect(fd);
	ok(g.out == 5 && exit_has(&g, "\"code\":0"), "half-closed: the end of stdin");
}

/* Frames no client may send: it is told, and the process does not outlive the connection. */
static void test_broken(void)
{
	static const struct {
		const char *what;
		uint8_t stream;
		const char *p;
		size_t n;
	} bad[] = {
	        {"an unknown stream", 200, "what is this", 12},
	        {"a stream of the other side", STDIO_STDOUT, "x", 1},
	        {"an empty unknown frame", 77, "", 0},
	        {"a long signal", STDIO_SIGNAL, "\1\1\1", 3},
	        {"a signal without a number", STDIO_SIGNAL, "", 0},
	        {"signal 0", STDIO_SIGNAL, "\0", 1},
	        {"signal 255", STDIO_SIGNAL, "\377", 1},
	        {"a short size", STDIO_RESIZE, "\0", 1},
	        {"an end with bytes", STDIO_STDIN_EOF, "x", 1},
	};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		int fd = launch("cat");
		frame(fd, (enum stdio_stream)bad[i].stream, bad[i].p, bad[i].n);
		struct got g = collect(fd);
		ok(strstr(g.notice, "protocol error") && !g.exit[0], "%s: told, and cut (%s)",
		        bad[i].what, g.notice);
	}
	int fd = launch("cat /dev/zero");
	poll(NULL, 0, 100);
	frame(fd, 200, "x", 1);
	struct got g = collect(fd);
	ok(strstr(g.notice, "protocol error"), "also in the middle of output");
}

/* Jails that agentboxd has ended since the last time. */
static int ended(int ms)
{
	struct pollfd p = {.fd = told, .events = POLLIN};
	char c[64];
	return poll(&p, 1, ms) == 1 ? (int)read(told, c, sizeof(c)) : 0;
}

static void test_leaving(void)
{
	/* Those before: their clients hear of the end a little sooner than we do. */
	for (int seen = ended(0); seen < launched; seen += ended(10000))
		continue;
	int fd = launch("sleep 100");
	fd_close(fd);
	ok(ended(10000) == 1, "leaving kills the jail");
	fd = launch("cat /dev/zero");
	poll(NULL, 0, 100);
	fd_close(fd);
	ok(ended(10000) == 1, "in the middle of output too");
	fd = launch("sleep 100");
	char *big = calloc(1, 300000);
	uint8_t head[STDIO_HEAD];
	stdio_pack(head, STDIO_STDIN, 300000);
	(void)send(fd, head, sizeof(head), MSG_DONTWAIT);
	(void)send(fd, big, 150000, MSG_DONTWAIT);
	free(big);
	poll(NULL, 0, 100);
	fd_close(fd);
	ok(ended(10000) == 1, "and when its input is stuck");
}

static void test_end_json(void)
{
	auto_buf struct buf b = BUF_INIT(1000);
	struct stdio_end end = {.gone = true};
	end.jail.end = JAIL_END_OOM;
	stdio_exit_json(&end, &b);
	ok(strncmp(b.p, "{\"signal\":9,\"reason\":\"oom\"", 26) == 0, "out of memory: %s", b.p);
	static const struct {
		int error, stage;
		const char *json;
	} starts[] = {
	        {ENOENT, INIT_STAGE_EXEC, "127,\"reason\":\"start\",\"error\":\"No such file or "},
	        {EACCES, INIT_STAGE_EXEC, "126,\"reason\":\"start\",\"error\":\"Permission denied"},
	        {ENOENT, INIT_STAGE_CWD,
	                "126,\"reason\":\"start\",\"error\":\"working directory: No such file "},
	        {EAGAIN, INIT_STAGE_FORK, "126,\"reason\":\"start\",\"error\":\"fork: "},
	        {EIO, 99, "126,\"reason\":\"start\",\"error\":\"unknown step: "},
	};
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		end = (struct stdio_end){.exited = true};
		end.exit.error = starts[i].error;
		end.exit.stage = starts[i].stage;
		buf_clear(&b);
		stdio_exit_json(&end, &b);
		ok(strstr(b.p, starts[i].json) == b.p + strlen("{\"code\":"), "not started: %s",
		        b.p);
	}
}

int main(void)
{
	int p[2], s[2], l = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	address_len = (socklen_t)(sizeof(sa_family_t) + 1 +
	                          (size_t)snprintf(address.sun_path + 1, 64, "stdio-%d", getpid()));
	must(bind(l, (struct sockaddr *)&address, address_len) == 0 && listen(l, 64) == 0,
	        "listen");
	must(pipe2(p, O_CLOEXEC) == 0, "a pipe");
	must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, s) == 0,
	        "a pair");
	pid_t played = fork();
	if (played == 0) {
		fd_close(s[0]);
		agentboxd(s[1], p[1]);
	}
	fd_close(s[1]);
	pid_t child = fork();
	if (child == 0)
		supervisor(l, s[0]);
	/* Only the children hold these: when one dies, the test does not wait for it. */
	fd_close(l);
	fd_close(p[1]);
	fd_close(s[0]);
	told = p[0];
	test_end_json();
	test_simple();
	test_input();
	test_broken();
	test_leaving();
	poll(NULL, 0, 200);
	kill(child, SIGKILL);
	int status = -1;
	ok(waitpid(played, &status, 0) == played && WIFEXITED(status) && WEXITSTATUS(status) == 0,
	        "every jail was released (%x)", status);
	return done();
}
