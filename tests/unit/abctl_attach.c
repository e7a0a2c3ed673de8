/*
 * abctl jail's connection against a scripted daemon: each case is a server
 * process that speaks frames, a client process that is attach_run, and this one,
 * which holds the other ends of the client's stdin, stdout and stderr.
 */
#include "abctl/attach.h"
#include "client/frames.h"
#include "base/fd.h"
#include "base/mem.h"
#include "tests/t.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>

enum { BIG = 100 << 20, LIMIT_S = 120 };

static char dir[] = "/tmp/abctl-attach-XXXXXX";
static char path[64];
static bool tame; /* how the next client is asked to be */

/* ---- the daemon's side ---- */

struct peer {
	int sock;
	struct buf in;
	size_t at;
};

static void put_frame(int sock, enum stdio_stream s, const void *p, size_t n)
{
	uint8_t head[STDIO_HEAD];
	stdio_pack(head, s, n);
	if (fd_write_all(sock, head, STDIO_HEAD) < 0 || fd_write_all(sock, p, n) < 0)
		_exit(9); /* the client left */
}

static void put_text(int sock, enum stdio_stream s, const char *text)
{
	put_frame(sock, s, text, strlen(text));
}

/* The next frame of the client, waiting; false at its end. */
static bool get_frame(struct peer *p, struct frame *f)
{
	buf_consume(&p->in, p->at);
	p->at = 0;
	for (;;) {
		int n = frames_next(p->in.p, p->in.len, f, NULL);
		if (n > 0) {
			p->at = (size_t)n;
			return true;
		}
		char bytes[STDIO_FRAME_MAX];
		ssize_t k = read(p->sock, bytes, sizeof(bytes));
		if (k <= 0 || buf_put(&p->in, bytes, (size_t)k) < 0)
			return false;
	}
}

typedef void script_fn(struct peer *p, const char *request);

static void serve(int listener, script_fn *script)
{
	alarm(LIMIT_S);
	struct peer p = {.sock = accept(listener, NULL, NULL), .in = BUF_INIT(1 << 20)};
	struct buf head = BUF_INIT(1 << 20);
	char c;
	while (!(head.p && strstr(head.p, "\r\n\r\n")) && read(p.sock, &c, 1) == 1)
		buf_putc(&head, c);
	const char *length = strstr(head.p, "Content-Length: ");
	for (long n = length ? atol(length + 16) : 0; n > 0 && read(p.sock, &c, 1) == 1; n--)
		buf_putc(&head, c);
	script(&p, head.p);
	_exit(0);
}

static void accept_upgrade(struct peer *p)
{
	static const char yes[] = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
	                          "Upgrade: agentbox-stdio\r\n\r\n";
	if (fd_write_all(p->sock, yes, sizeof(yes) - 1) < 0)
		_exit(9);
}

/* ---- a case ---- */

struct client {
	pid_t pid, server;
	int in, out, err; /* our ends */
};

static int listen_here(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	unlink(path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 4) < 0)
		exit(1);
	return fd;
}

static void be_client(void)
{
	alarm(LIMIT_S);
	signal(SIGPIPE, SIG_IGN);
	struct cli cli = {.peer.socket = path};
	struct buf body = BUF_INIT(64);
	buf_puts(&body, "{\"argv\":[\"x\"]}");
	struct attach_terminal t = {.tame = tame};
	_exit(attach_run(&cli, "/v1/jails", &body, &t, "x"));
}

static void be_client_on(const char *slave)
{
	/* A session of its own, whose terminal this becomes: it is told of size changes. */
	setsid();
	int tty = open(slave, O_RDWR);
	if (tty < 0)
		_exit(99);
	for (int fd = 0; fd < 3; fd++)
		dup2(tty, fd);
	if (ioctl(tty, TIOCSCTTY, 0) < 0)
		_exit(98);
	alarm(LIMIT_S);
	struct cli cli = {.peer.socket = path};
	struct buf body = BUF_INIT(64);
	buf_puts(&body, "{\"argv\":[\"x\"]}");
	struct attach_terminal t = attach_terminal(true);
	int code = attach_run(&cli, "/v1/jails", &body, &t, "x");
	_exit(t.rows == 33 && t.cols == 99 ? code : 97);
}

static struct client start(script_fn *script)
{
	int listener = listen_here(), in[2], out[2], err[2];
	struct client c;
	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0)
		exit(1);
	fflush(stdout);
	c.server = fork();
	if (c.server == 0) {
		int theirs[] = {in[0], in[1], out[0], out[1], err[0], err[1]};
		for (size_t i = 0; i < ARRAY_LEN(theirs); i++)
			fd_close(theirs[i]);
		serve(listener, script);
	}
	c.pid = fork();
	if (c.pid == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		dup2(err[1], 2);
		int mine[] = {in[0], in[1], out[0], out[1], err[0], err[1], listener};
		for (size_t i = 0; i < ARRAY_LEN(mine); i++)
			fd_close(mine[i]);
		be_client();
	}
	fd_close(listener);
	fd_close(in[0]);
	fd_close(out[1]);
	fd_close(err[1]);
	c.in = in[1];
	c.out = out[0];
	c.err = err[0];
	return c;
}

static int finish(struct client *c)
{
	int status = 0;
	fd_close(c->in);
	fd_close(c->out);
	fd_close(c->err);
	waitpid(c->pid, &status, 0);
	kill(c->server, SIGKILL);
	waitpid(c->server, NULL, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* ---- the cases ---- */

static void script_echo(struct peer *p, const char *request)
{
	bool asked = strstr(request, "POST /v1/jails HTTP/1.1\r\n") &&
	             strstr(request, "Upgrade: agentbox-stdio\r\n") &&
	             strstr(request, "Connection: Upgrade\r\n") &&
	             strstr(request, "{\"argv\":[\"x\"]}");
	accept_upgrade(p);
	put_text(p->sock, STDIO_NOTICE, "{\"layers\":[\"userns\"],\"missing\":[\"limit.memory\"]}");
	put_text(p->sock, STDIO_STDOUT, asked ? "asked\n" : "not asked\n");
	struct frame f;
	while (get_frame(p, &f) && f.stream == STDIO_STDIN)
		put_frame(p->sock, STDIO_STDOUT, f.data, f.len);
	put_text(p->sock, STDIO_STDERR, f.stream == STDIO_STDIN_EOF ? "eof\n" : "what?\n");
	put_frame(p->sock, (enum stdio_stream)77, "later", 5);
	put_text(p->sock, STDIO_EXIT, "{\"code\":7,\"reason\":\"exit\"}");
}

static void echo(void)
{
	struct client c = start(script_echo);
	(void)!write(c.in, "some input", 10);
	fd_close(take_fd(c.in));
	char *out = NULL, *err = NULL;
	size_t n = 0;
	ok(fd_slurp(c.out, 1 << 20, &out, &n) == 0, "stdout ends");
	is_str(out, "asked\nsome input", "the request is right, and stdin comes back");
	ok(fd_slurp(c.err, 1 << 20, &err, &n) == 0, "stderr ends");
	is_str(err, "abctl: notice: this jail is without: limit.memory (see abctl doctor)\neof\n",
	        "missing layers first, then the command's stderr");
	ok(finish(&c) == 7, "the exit code is the command's");
	free(out);
	free(err);
}

static void script_steering(struct peer *p, const char *request)
{
	(void)request;
	accept_upgrade(p);
	put_text(p->sock, STDIO_STDERR, "\x1b]0;mine\a");
	put_text(p->sock, STDIO_STDOUT, "\x1b");
	put_text(p->sock, STDIO_STDERR,
	        "\xc2\x9b"
	        "2J\n");
	put_text(p->sock, STDIO_EXIT, "{\"code\":0}");
}

static void steering(void)
{
	for (int i = 0; i < 2; i++) {
		tame = i == 1;
		struct client c = start(script_steering);
		char *out = NULL, *err = NULL;
		size_t n = 0;
		(void)!fd_slurp(c.out, 1 << 20, &out, &n);
		(void)!fd_slurp(c.err, 1 << 20, &err, &n);
		is_str(out, "\x1b", "stdout is the command's");
		is_str(err,
		        tame ? "^[]0;mine^G<U+009B>2J\n"
		             : "\x1b]0;mine\a\xc2\x9b"
		               "2J\n",
		        tame ? "stderr steers nothing" : "stderr is the command's");
		ok(finish(&c) == 0, "and 0");
		free(out);
		free(err);
	}
	tame = false;
}

static void script_split(struct peer *p, const char *request)
{
	(void)request;
	accept_upgrade(p);
	struct buf all = BUF_INIT(1 << 10);
	frames_put(&all, STDIO_STDOUT, "one", 3);
	frames_put(&all, STDIO_STDOUT, "", 0);
	frames_put(&all, STDIO_STDOUT, "two", 3);
	frames_put(&all, STDIO_EXIT, "{\"signal\":9,\"reason\":\"oom\"}", 27);
	for (size_t i = 0; i < all.len; i++) {
		(void)!write(p->sock, all.p + i, 1);
		usleep(500);
	}
}

static void split(void)
{
	struct client c = start(script_split);
	char *out = NULL, *err = NULL;
	size_t n = 0;
	(void)!fd_slurp(c.out, 1 << 20, &out, &n);
	(void)!fd_slurp(c.err, 1 << 20, &err, &n);
	is_str(out, "onetwo", "frames that come byte by byte");
	is_str(err, "abctl: notice: the command was ended: oom\n", "the reason is told");
	ok(finish(&c) == 128 + 9, "a signal is 128 + N");
	free(out);
	free(err);
}

static void script_big(struct peer *p, const char *request)
{
	(void)request;
	accept_upgrade(p);
	static char bytes[STDIO_FRAME_MAX];
	memset(bytes, 'x', sizeof(bytes));
	for (size_t sent = 0; sent < BIG; sent += sizeof(bytes))
		put_frame(p->sock, STDIO_STDOUT, bytes, sizeof(bytes));
	put_text(p->sock, STDIO_EXIT, "{\"code\":0}");
}

static void big(void)
{
	struct client c = start(script_big);
	static char bytes[1 << 16];
	size_t got = 0;
	bool same = true;
	for (ssize_t n; (n = read(c.out, bytes, sizeof(bytes))) > 0; got += (size_t)n)
		for (ssize_t i = 0; i < n; i += 97)
			same = same && bytes[i] == 'x';
	ok(got == BIG && same, "100 MB of stdout arrive whole");
	ok(finish(&c) == 0, "and 0");
}

/* Takes stdin only after a while, slowly at first, and counts. */
static void script_slow(struct peer *p, const char *request)
{
	(void)request;
	accept_upgrade(p);
	sleep(1);
	struct frame f;
	size_t got = 0;
	while (get_frame(p, &f) && f.stream == STDIO_STDIN)
		got += f.len;
	auto_free char *text = xasprintf("%zu", got);
	put_text(p->sock, STDIO_STDOUT, text);
	put_text(p->sock, STDIO_EXIT, "{\"code\":0}");
}

static void slow(void)
{
	struct client c = start(script_slow);
	static char bytes[1 << 16];
	size_t early = 0, total = 32 << 20, sent = 0;
	int64_t tries = 0;
	(void)!fd_set_nonblock(c.in, 1);
	/* While the reader sleeps only what fits the buffers on the way is taken. */
	for (; tries < 30; tries++) {
		ssize_t n = write(c.in, bytes, sizeof(bytes));
		if (n > 0)
			early += (size_t)n;
		else
			usleep(10000);
	}
	ok(early > 0 && early < 4 << 20, "a reader that sleeps stops its writer");
	(void)!fd_set_nonblock(c.in, 0);
	for (sent = early; sent < total;) {
		size_t n = total - sent < sizeof(bytes) ? total - sent : sizeof(bytes);
		if (fd_write_all(c.in, bytes, n) < 0)
			break;
		sent += n;
	}
	fd_close(take_fd(c.in));
	char *out = NULL;
	size_t n = 0;
	(void)!fd_slurp(c.out, 1 << 10, &out, &n);
	is_str(out, "33554432", "and all of stdin arrives");
	ok(finish(&c) == 0, "and 0");
	free(out);
}

/* Writes until told of a broken pipe, as a process would be. */
static void script_yes(struct peer *p, const char *request)
{
	(void)request;
	accept_upgrade(p);
	for (;;) {
		put_text(p->sock, STDIO_STDOUT, "y\ny\ny\ny\ny\ny\ny\ny\n");
		struct pollfd w = {.fd = p->sock, .events = POLLIN};
		struct frame f;
		if (poll(&w, 1, 0) > 0 && get_frame(p, &f) && f.stream == STDIO_SIGNAL &&
		        f.data[0] == SIGPIPE)
			break;
	}
	put_text(p->sock, STDIO_EXIT, "{\"signal\":13}");
}

static void broken_pipe(void)
{
	struct client c = start(script_yes);
	char two[4];
	ok(read(c.out, two, sizeof(two)) > 0, "some of it is read");
	fd_close(take_fd(c.out));
	ok(finish(&c) == 128 + SIGPIPE, "a closed stdout is SIGPIPE for the command");
}

static void script_stubborn(struct peer *p, const char *request)
{
	(void)request;
	accept_upgrade(p);
	for (;;) {
		put_text(p->sock, STDIO_STDOUT, "still here\n");
		usleep(10000);
	}
}

static void stubborn(void)
{
	struct client c = start(script_stubborn);
	fd_close(take_fd(c.out));
	ok(finish(&c) == 128 + SIGPIPE, "a command that ignores it is left after a while");
}

static void script_signals(struct peer *p, const char *request)
{
	(void)request;
	accept_upgrade(p);
	put_text(p->sock, STDIO_STDOUT, "ready\n");
	struct frame f;
	int seen = 0;
	while (seen != 7 && get_frame(p, &f)) {
		if (f.stream != STDIO_SIGNAL)
			continue;
		seen |= f.data[0] == SIGINT    ? 1
		        : f.data[0] == SIGTERM ? 2
		        : f.data[0] == SIGHUP  ? 4
		                               : 0;
	}
	put_text(p->sock, STDIO_EXIT, "{\"code\":3}");
}

static void signals(void)
{
	struct client c = start(script_signals);
	char ready[16];
	ok(read(c.out, ready, sizeof(ready)) > 0, "ready");
	kill(c.pid, SIGINT);
	kill(c.pid, SIGTERM);
	kill(c.pid, SIGHUP);
	int status = 0;
	waitpid(c.pid, &status, 0);
	ok(WIFEXITED(status) && WEXITSTATUS(status) == 3, "signals are the command's, not ours");
	finish(&c);
}

static void script_refuse(struct peer *p, const char *request)
{
	(void)request;
	static const char no[] = "HTTP/1.1 422 Unprocessable\r\nContent-Type: "
	                         "application/problem+json\r\nContent-Length: 89\r\n\r\n"
	                         "{\"title\":\"Policy unmet\",\"status\":422,\"detail\":\"layer "
	                         "idmap is missing\",\"hint\":\"use ext4\"}";
	(void)!fd_write_all(p->sock, no, sizeof(no) - 1);
}

static void refused(void)
{
	struct client c = start(script_refuse);
	char *err = NULL;
	size_t n = 0;
	(void)!fd_slurp(c.err, 1 << 10, &err, &n);
	is_str(err, "abctl: system: layer idmap is missing: use ext4\n", "a refusal and its hint");
	ok(finish(&c) == 111, "is the system's");
	free(err);
}

static void script_die(struct peer *p, const char *request)
{
	(void)request;
	accept_upgrade(p);
	put_text(p->sock, STDIO_STDOUT, "last words\n");
}

static void lost(void)
{
	struct client c = start(script_die);
	char *out = NULL, *err = NULL;
	size_t n = 0;
	(void)!fd_slurp(c.out, 1 << 10, &out, &n);
	(void)!fd_slurp(c.err, 1 << 10, &err, &n);
	is_str(out, "last words\n", "what came before the end is passed on");
	ok(strstr(err, "abctl: system: the connection to the daemon was lost") != NULL, "then: %s",
	        err);
	ok(finish(&c) == 111, "a lost daemon is 111");
	free(out);
	free(err);
}

static void script_terminal(struct peer *p, const char *request)
{
	(void)request;
	accept_upgrade(p);
	put_text(p->sock, STDIO_STDOUT, "$ ");
	struct frame f;
	bool typed = false, resized = false;
	while (!(typed && resized) && get_frame(p, &f)) {
		/* Ctrl-C is a byte here, and it comes without Enter. */
		typed = typed || (f.stream == STDIO_STDIN && f.len == 1 && f.data[0] == 3);
		resized = resized || (f.stream == STDIO_RESIZE && f.len == 4 && f.data[1] == 50 &&
		                             f.data[3] == 120);
	}
	put_text(p->sock, STDIO_STDOUT, "bye\n");
	put_text(p->sock, STDIO_EXIT, "{\"code\":5}");
}

static void terminal(void)
{
	int listener = listen_here(), status = 0;
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	must(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0, "a terminal");
	struct winsize size = {.ws_row = 33, .ws_col = 99};
	int slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	ioctl(slave, TIOCSWINSZ, &size);
	struct termios before, during, after;
	tcgetattr(slave, &before);
	fflush(stdout);
	pid_t server = fork();
	if (server == 0)
		serve(listener, script_terminal);
	pid_t client = fork();
	if (client == 0)
		be_client_on(ptsname(master));
	char text[64] = "";
	ok(read(master, text, sizeof(text) - 1) == 2 && strcmp(text, "$ ") == 0, "its output");
	tcgetattr(slave, &during);
	ok(!(during.c_lflag & (ICANON | ECHO | ISIG)), "raw mode while it runs");
	(void)!write(master, "\3", 1);
	size = (struct winsize){.ws_row = 50, .ws_col = 120};
	ioctl(slave, TIOCSWINSZ, &size);
	waitpid(client, &status, 0);
	ok(WIFEXITED(status) && WEXITSTATUS(status) == 5,
	        "typed bytes and a new size arrive, the first size was seen (%d)",
	        WEXITSTATUS(status));
	tcgetattr(slave, &after);
	ok(after.c_lflag == before.c_lflag && after.c_iflag == before.c_iflag &&
	                after.c_oflag == before.c_oflag,
	        "the terminal is as it was");
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
	signal(SIGPIPE, SIG_IGN);
	echo();
	steering();
	split();
	big();
	slow();
	broken_pipe();
	stubborn();
	signals();
	refused();
	lost();
	terminal();
	unlink(path);
	rmdir(dir);
	return done();
}
