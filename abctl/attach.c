/*
 * One poll loop, nothing in it blocks: each direction has one frame in hand and
 * reads no more until that is passed on, so a slow reader slows its writer and
 * never the other direction.
 *
 *	stdin  -> out -> socket		stdin is read only while `out` is empty
 *	socket -> in  -> stdout/stderr	the socket is read only while no frame waits
 *
 * stdin and stdout are shared with other processes, so O_NONBLOCK is not set on
 * them: they are polled, and a pipe that polls writable takes PIPE_BUF bytes
 * without blocking.
 */
#include "abctl/attach.h"
#include "abctl/fail.h"
#include "base/neutral.h"
#include "client/frames.h"
#include "abctl/query.h"
#include "abctl/term.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"

#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* A command that goes on writing this long after its reader left is left, too. */
enum { BROKEN_PIPE_MS = 3000 };
/* At most four for one: a character of two bytes becomes <U+0080>. */
enum { TAMED_MAX = 4 * FRAMES_MAX };

struct attach {
	const struct cli *cli;
	const char *command;
	int sock, signals;   /* owned */
	struct buf in, out;  /* owned: frames from and to the daemon */
	size_t in_at;        /* of `in`, passed on already */
	const uint8_t *data; /* what waits for `data_fd`, in `in` */
	size_t left;
	int data_fd;
	bool stdin_over, tty, quiet, tame;
	struct buf tamed; /* owned: what `data` is of, where stderr is tamed */
	bool raw;         /* the terminal is in raw mode, `saved` is how it was */
	struct termios saved;
	bool closed[3];    /* stdout, stderr: their readers are gone */
	int64_t broken_ms; /* when stdout's was seen to be */
	bool ended;
	int code;
};

enum { P_SOCK, P_SIGNALS, P_STDIN, P_DATA, P_COUNT };

/* Our own lines need a terminal that turns a new line into a carriage return, too. */
static void cooked(struct attach *a)
{
	if (a->raw)
		term_restore(STDIN_FILENO, &a->saved);
	a->raw = false;
}

static void raw(struct attach *a)
{
	a->raw = a->tty && isatty(STDIN_FILENO) && term_raw(STDIN_FILENO, &a->saved) == 0;
}

static void notice(const struct attach *a, const struct frame *f)
{
	auto_json struct json *j = json_parse((const char *)f->data, f->len, NULL);
	const char *message = json_str(j, "message", NULL);
	bool refusal = strcmp(json_str(j, "type", ""), "egress.denied") == 0;
	if (refusal && a->quiet)
		return;
	if (refusal) {
		/* Said with the first of its kind; those that follow are counted. */
		bool first = json_int(j, "times", 1) == 1;
		const char *hint = first ? json_str(j, "hint", NULL) : NULL;
		fail_note("%s%s%s", message ? message : "egress denied",
		        hint ? "; to allow it, " : "", hint ? hint : "");
		return;
	}
	if (message) {
		fail_note("%s", message);
		return;
	}
	auto_buf struct buf missing = BUF_INIT(4096);
	for (const struct json *it = json_first(json_get(j, "missing")); it; it = json_next(it)) {
		const char *name = json_text(it) ? json_text(it) : json_str(it, "layer", "?");
		buf_printf(&missing, "%s%s", missing.len ? ", " : "", name);
	}
	if (missing.len)
		fail_note("this jail is without: %s (see abctl doctor)", missing.p);
}

/* {"code"|"signal","reason","resources"} */
static void ended(struct attach *a, const struct frame *f)
{
	auto_json struct json *j = json_parse((const char *)f->data, f->len, NULL);
	int64_t code = json_int(j, "code", -1), sig = json_int(j, "signal", 0);
	const char *reason = json_str(j, "reason", "exit"), *error = json_str(j, "error", NULL);
	a->ended = true;
	cooked(a);
	if (a->cli->json && j) {
		auto_buf struct buf b = BUF_INIT(FRAMES_MAX);
		json_print(j, &b);
		fprintf(stderr, "%s\n", b.p);
	}
	if (sig <= 0 && code < 0) {
		a->code = fail_system("%s", error ? error : reason);
		return;
	}
	/* 126 and 127 are what a shell says of a command that cannot be started. */
	a->code = sig > 0 ? 128 + (int)(sig & 127) : (int)(code & 255);
	if (error)
		fail_note("%s was not started: %s", a->command, error);
	else if (strcmp(reason, "exit") != 0 && strcmp(reason, "signal") != 0)
		fail_note("the command was ended: %s", reason);
}

static void take_output(struct attach *a, const struct frame *f)
{
	a->data_fd = f->stream == STDIO_STDOUT ? STDOUT_FILENO : STDERR_FILENO;
	a->data = f->data;
	a->left = f->len;
	if (a->tame && a->data_fd == STDERR_FILENO) {
		buf_clear(&a->tamed);
		neutral_text(&a->tamed, (const char *)f->data, f->len);
		a->data = (const uint8_t *)a->tamed.p;
		a->left = a->tamed.len;
	}
	if (a->closed[a->data_fd])
		a->left = 0;
}

static void take_frame(struct attach *a, const struct frame *f)
{
	if (f->stream == STDIO_STDOUT || f->stream == STDIO_STDERR) {
		take_output(a, f);
		if (a->broken_ms && a->data_fd == STDOUT_FILENO &&
		        clock_mono_ms() > a->broken_ms + BROKEN_PIPE_MS) {
			a->ended = true;
			a->code = 128 + SIGPIPE;
		}
	} else if (f->stream == STDIO_NOTICE) {
		cooked(a);
		notice(a, f);
		raw(a);
	} else if (f->stream == STDIO_EXIT) {
		ended(a, f);
	} /* streams of later versions mean nothing here */
}

static int take_frames(struct attach *a, struct err *e)
{
	while (!a->left && !a->ended) {
		struct frame f;
		int n = frames_next(a->in.p + a->in_at, a->in.len - a->in_at, &f, e);
		if (n < 0)
			return n;
		if (n == 0) {
			buf_consume(&a->in, a->in_at);
			a->in_at = 0;
			return 0;
		}
		take_frame(a, &f);
		a->in_at += (size_t)n;
	}
	return 0;
}

static int from_socket(struct attach *a, struct err *e)
{
	int r = buf_reserve(&a->in, LIMIT_PUMP_READ);
	if (r < 0)
		return err_set(e, r, "no memory for a frame");
	ssize_t n = recv(a->sock, a->in.p + a->in.len, LIMIT_PUMP_READ, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return err_set(e, -ECONNRESET,
		        "the connection to the daemon was lost: it or its supervisor has ended or "
		        "was replaced, and the command was ended with it");
	a->in.len += (size_t)n;
	return take_frames(a, e);
}

static int to_socket(struct attach *a, struct err *e)
{
	ssize_t n = send(a->sock, a->out.p, a->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n >= 0) {
		buf_consume(&a->out, (size_t)n);
		return 0;
	}
	if (errno == EAGAIN || errno == EINTR)
		return 0;
	if (errno != EPIPE && errno != ECONNRESET)
		return err_errno(e, "sending to the daemon");
	/* It stopped listening; what it still has to say (the exit) is in the other direction. */
	buf_clear(&a->out);
	a->stdin_over = true;
	return 0;
}

static void from_stdin(struct attach *a)
{
	char p[STDIO_FRAME_MAX];
	ssize_t n = read(STDIN_FILENO, p, sizeof(p));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0) {
		frames_put(&a->out, STDIO_STDIN, p, (size_t)n);
		return;
	}
	/* The end, or a terminal that is not ours to read (EIO). */
	a->stdin_over = true;
	frames_put(&a->out, STDIO_STDIN_EOF, NULL, 0);
}

/* Bytes written, or -1 with errno; never blocks for long. */
static ssize_t write_some(int fd, const void *p, size_t n)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return -1;
	if (S_ISSOCK(st.st_mode))
		return send(fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (!S_ISREG(st.st_mode) && n > PIPE_BUF)
		n = PIPE_BUF;
	return write(fd, p, n);
}

static int to_output(struct attach *a, struct err *e)
{
	ssize_t n = write_some(a->data_fd, a->data, a->left);
	if (n >= 0) {
		a->data += n;
		a->left -= (size_t)n;
	} else if (errno == EPIPE || errno == EBADF) {
		a->left = 0;
		a->closed[a->data_fd] = true;
		/* The command shall feel what it would have felt without us in between. */
		if (a->data_fd == STDOUT_FILENO) {
			a->broken_ms = clock_mono_ms();
			frames_put_signal(&a->out, SIGPIPE);
		}
	} else if (errno != EAGAIN && errno != EINTR) {
		return err_errno(
		        e, "writing to %s", a->data_fd == STDOUT_FILENO ? "stdout" : "stderr");
	}
	return take_frames(a, e);
}

static void from_signals(struct attach *a)
{
	struct signalfd_siginfo si;
	if (read(a->signals, &si, sizeof(si)) != sizeof(si))
		return;
	unsigned rows, cols;
	if (si.ssi_signo != SIGWINCH)
		frames_put_signal(&a->out, (int)si.ssi_signo);
	else if (a->tty && term_size(STDIN_FILENO, &rows, &cols) == 0)
		frames_put_resize(&a->out, rows, cols);
}

static int turn(struct attach *a, struct err *e)
{
	struct pollfd p[P_COUNT] = {
	        [P_SOCK] = {.fd = a->sock,
	                .events = (short)((a->left ? 0 : POLLIN) | (a->out.len ? POLLOUT : 0))},
	        [P_SIGNALS] = {.fd = a->signals, .events = POLLIN},
	        [P_STDIN] = {.fd = a->stdin_over || a->out.len ? -1 : STDIN_FILENO,
	                .events = POLLIN},
	        [P_DATA] = {.fd = a->left ? a->data_fd : -1, .events = POLLOUT},
	};
	/* A dead peer polls POLLHUP whatever is asked: not while its last words wait for stdout. */
	if (!p[P_SOCK].events)
		p[P_SOCK].fd = -1;
	if (poll(p, P_COUNT, -1) < 0)
		return errno == EINTR ? 0 : err_errno(e, "poll");
	int r = 0;
	if (p[P_SIGNALS].revents)
		from_signals(a);
	if (p[P_STDIN].revents)
		from_stdin(a);
	if (p[P_DATA].revents)
		r = to_output(a, e);
	if (r == 0 && a->out.len && (p[P_SOCK].revents & (POLLOUT | POLLERR)))
		r = to_socket(a, e);
	if (r == 0 && !a->left && !a->ended && (p[P_SOCK].revents & ~POLLOUT))
		r = from_socket(a, e);
	return r;
}

static int run(struct attach *a)
{
	struct err e = {0};
	raw(a);
	int r = take_frames(a, &e);
	while (r == 0 && !a->ended)
		r = turn(a, &e);
	cooked(a);
	return r < 0 ? fail_system("%s", e.text) : a->code;
}

static int watch_signals(struct err *e)
{
	sigset_t set;
	sigemptyset(&set);
	static const int watched[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH};
	for (size_t i = 0; i < ARRAY_LEN(watched); i++)
		sigaddset(&set, watched[i]);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return err_errno(e, "sigprocmask");
	int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? err_errno(e, "signalfd") : fd;
}

struct attach_terminal attach_terminal(bool wanted)
{
	struct attach_terminal t = {.wanted = wanted};
	if (wanted && term_size(STDIN_FILENO, &t.rows, &t.cols) < 0)
		t.rows = t.cols = 0;
	return t;
}

/* The answer's status; the making of a jail can be given up by a signal. */
static int wait_status(struct client *c, int signals, struct err *e)
{
	struct pollfd p[] = {
	        {.fd = client_fd(c), .events = POLLIN}, {.fd = signals, .events = POLLIN}};
	while (!client_has_head(c)) {
		if (poll(p, ARRAY_LEN(p), -1) < 0 && errno != EINTR)
			return err_errno(e, "poll");
		struct signalfd_siginfo si;
		if (p[1].revents && read(signals, &si, sizeof(si)) == sizeof(si) &&
		        si.ssi_signo != SIGWINCH)
			return err_set(e, -ECANCELED, "interrupted before the command began");
		int r = p[0].revents ? client_pump(c, e) : 0;
		if (r < 0)
			return r;
	}
	return client_status(c, e);
}

int attach_run(const struct cli *cli, const char *path, const struct buf *body,
        const struct attach_terminal *t, const char *command)
{
	struct err e = {0};
	struct client_request req = {.method = "POST",
	        .path = path,
	        .body = body->p,
	        .body_len = body->len,
	        .upgrade = STDIO_UPGRADE};
	/* Before the jail is there: a signal that comes meanwhile is its, not ours to die of. */
	auto_close int signals = watch_signals(&e);
	if (signals < 0)
		return fail_system("%s", e.text);
	auto_client struct client *c = client_open(&cli->peer, &req, &e);
	int status = c ? wait_status(c, signals, &e) : e.code;
	if (status < 0)
		return query_failed(&e);
	if (status != 101)
		return query_refused(c);
	struct attach a = {.cli = cli,
	        .command = command,
	        .signals = signals,
	        .tty = t->wanted,
	        .quiet = t->quiet,
	        .tame = t->tame,
	        .tamed = BUF_INIT(TAMED_MAX),
	        .in = BUF_INIT(FRAMES_MAX + 2 * (size_t)LIMIT_PUMP_READ),
	        .out = BUF_INIT(4 * (size_t)STDIO_FRAME_MAX)};
	a.sock = client_upgraded(c, &a.in);
	int code = run(&a);
	fd_close(a.sock);
	buf_done(&a.in);
	buf_done(&a.out);
	buf_done(&a.tamed);
	return code;
}
