/*
 * A cursor into the run's events: the stream is read, each event is written
 * out at once, and when the connection breaks before run.done a new one goes on
 * after the last number seen.  Ctrl-C cancels the run and waits for its end;
 * the second one leaves at once.
 */
#include "abctl/follow.h"
#include "abctl/ask.h"
#include "abctl/client.h"
#include "abctl/fail.h"
#include "abctl/query.h"
#include "abctl/render.h"
#include "abctl/say.h"
#include "abctl/term.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum {
	FRAME_MS = 100, /* of the spinner: steady to the eye, and nothing to the processor */
	RECONNECT_MS =
	        15000, /* without an event; a restart of the daemon takes one or two seconds */
	RECONNECT_STEP_MS = 250, /* between two tries, at first; then twice that, and so on */
	RECONNECT_STEP_MAX_MS = 2000,
	HELD_MS = 15000, /* a connection that lasted was in order, though the agent said nothing */
};

struct follow {
	const struct cli *cli;
	const struct follow_options *o;
	struct render *render; /* owned; NULL with o->lines */
	struct ask *ask;       /* owned; NULL without o->asks */
	bool deaf;             /* the agent does not hear messages now */
	struct buf out;        /* owned: for stdout */
	int signals;           /* owned */
	int64_t last;          /* number of the last event seen */
	bool live;             /* a status line is kept */
	bool connected;        /* the last connection got as far as an answer */
	struct err why;        /* what the last connection ended with */
	bool ever;             /* the daemon has answered before: a failure may pass */
	bool cancelling, done;
	int leave; /* an exit code, when it is time to; else -1 */
	int code;
};

const char *follow_payload(const char *line)
{
	if (line[0] == '{')
		return line;
	if (strncmp(line, "data:", 5) != 0)
		return NULL;
	line += 5;
	return *line == ' ' ? line + 1 : line;
}

static void flush(struct follow *f)
{
	int r = fd_write_all(STDOUT_FILENO, f->out.p, f->out.len);
	buf_clear(&f->out);
	if (r < 0 && f->leave < 0)
		f->leave = fail_system(
		        "stdout: %s; the run goes on (abctl logs -f %s)", strerror(-r), f->o->run);
}

/* A run that never came to its command (a refused layer, an agent that is not installed) is not the
 * command's failure. */
static int ending(const struct json *result)
{
	const struct json *how = json_get(result, "exit");
	if (strcmp(json_str(result, "status", "failed"), "succeeded") == 0)
		return EXIT_DONE;
	if (strcmp(json_str(how, "reason", ""), "not started") != 0 || json_get(how, "code"))
		return EXIT_FAILED;
	return fail_system("not started: %s", json_str(result, "error", "no reason given"));
}

static void event(struct follow *f, const char *text, size_t n)
{
	auto_json struct json *j = json_parse(text, n, NULL);
	int64_t seq = json_int(j, "seq", 0);
	/* After a reconnect the server may begin a little earlier. */
	if (!j || (seq && seq <= f->last))
		return;
	if (seq)
		f->last = seq;
	if (f->ask)
		ask_event(f->ask, j);
	if (strcmp(json_str(j, "type", ""), "run.started") == 0)
		f->deaf = false; /* what was typed before that may be heard now */
	if (f->render) {
		render_event(f->render, j, clock_mono_ms(), &f->out);
	} else {
		buf_put(&f->out, text, n);
		buf_putc(&f->out, '\n');
	}
	if (f->out.len > LIMIT_PUMP_READ || f->out.failed)
		flush(f);
	if (strcmp(json_str(j, "type", ""), "run.done") != 0)
		return;
	f->done = true;
	flush(f);
	f->code = ending(json_get(j, "result"));
}

/* ---- what is typed ---- */

static bool wants_stdin(const struct follow *f)
{
	return (f->ask && ask_wants_key(f->ask)) ||
	       (f->o->input && !f->o->input->ended && !f->deaf);
}

static void send_lines(struct follow *f)
{
	size_t n;
	const char *p;
	while (!f->deaf && f->leave < 0 && (p = lines_peek(f->o->input, &n))) {
		int r = n ? say_try(f->cli, f->o->run, p, n) : 0;
		if (r == SAY_LATER)
			f->deaf = true;
		else if (r)
			f->leave = r;
		else
			lines_take(f->o->input);
	}
}

static void events(struct follow *f, struct client *c)
{
	if (f->render)
		render_hide(f->render, &f->out);
	size_t n;
	for (const char *line; f->leave < 0 && !f->done && (line = client_line(c, &n));) {
		const char *text = follow_payload(line);
		if (text)
			event(f, text, n - (size_t)(text - line));
	}
	if (f->ask && !f->done)
		ask_put(f->ask, &f->out);
	if (f->o->input && !f->done)
		send_lines(f);
	if (f->render)
		render_status(f->render, clock_mono_ms(), &f->out);
	flush(f);
}

static void cancel(struct follow *f)
{
	f->cancelling = true;
	if (f->live) {
		render_say(f->render, "cancelling, Ctrl-C again to leave;");
	} else {
		fail_note("cancelling run %s (interrupt again to leave)", f->o->run);
	}
	auto_free char *path = xasprintf("/v1/runs/%s", f->o->run);
	struct client_request req = {.method = "DELETE", .path = path};
	struct err e = {0};
	auto_client struct client *c = client_open(f->cli->socket, &req, &e);
	int status = c ? client_status(c, &e) : e.code;
	/* 404 and 409: it has ended meanwhile, and its run.done is on the way. */
	if (status < 0)
		fail_note("cancelling: %s", e.text);
	else if (status >= 400 && status != 404 && status != 409)
		fail_note("cancelling: the daemon answered %d", status);
}

static void interrupted(struct follow *f)
{
	struct signalfd_siginfo si;
	if (read(f->signals, &si, sizeof(si)) != sizeof(si))
		return;
	if (si.ssi_signo == SIGWINCH) {
		unsigned rows, cols;
		if (f->render && f->live && term_size(STDOUT_FILENO, &rows, &cols) == 0)
			render_resize(f->render, cols);
		return;
	}
	if (f->o->cancels && !f->cancelling) {
		cancel(f);
		return;
	}
	if (f->render)
		render_hide(f->render, &f->out);
	flush(f);
	if (f->leave < 0)
		f->leave = fail_system(f->cancelling ? "left while run %s is being cancelled"
		                                     : "left; run %s goes on",
		        f->o->run);
}

static void typed(struct follow *f)
{
	if (f->ask && ask_wants_key(f->ask)) {
		ask_read(f->ask);
		return;
	}
	int r = lines_read(f->o->input);
	if (r < 0)
		f->leave = fail_system("stdin: %s", strerror(-r));
	else
		send_lines(f);
}

/* Waits for the socket (or only for time when c is NULL), serving signals and the spinner. */
static bool ready(struct follow *f, struct client *c, int ms)
{
	int64_t until = clock_mono_ms() + ms;
	while (f->leave < 0) {
		int wait = ms < 0 ? -1 : (int)(until - clock_mono_ms());
		if (ms >= 0 && wait <= 0)
			return false;
		if (f->live && (wait < 0 || wait > FRAME_MS))
			wait = FRAME_MS;
		struct pollfd p[] = {
		        {.fd = f->signals, .events = POLLIN},
		        {.fd = c ? client_fd(c) : -1, .events = POLLIN},
		        {.fd = wants_stdin(f) ? STDIN_FILENO : -1, .events = POLLIN},
		};
		int n = poll(p, ARRAY_LEN(p), wait);
		if (n > 0 && p[0].revents)
			interrupted(f);
		if (n > 0 && p[2].revents)
			typed(f);
		if (n > 0 && p[1].revents)
			return true;
		if (n == 0 && f->live) {
			render_hide(f->render, &f->out);
			render_status(f->render, clock_mono_ms(), &f->out);
			flush(f);
		}
	}
	return false;
}

static struct client *open_stream(struct follow *f, struct err *e)
{
	int64_t from = f->last ? f->last + 1 : f->o->from ? f->o->from : 1;
	auto_free char *path = xasprintf("/v1/runs/%s/events?from=%" PRId64 "%s", f->o->run, from,
	        f->o->live ? "&follow=1" : "");
	struct client_request req = {
	        .method = "GET",
	        .path = path,
	        .accept = f->o->live ? "text/event-stream" : "application/x-ndjson",
	        .last_event_id = f->last,
	};
	return client_open(f->cli->socket, &req, e);
}

/* One connection, from request to its end.  *ret_lost: it broke, and may be tried again. */
static void stream(struct follow *f, bool *ret_lost)
{
	struct err e = {0};
	*ret_lost = false;
	f->connected = false;
	(void)err_set(&f->why, -ECONNRESET, "it ended before the run did");
	auto_client struct client *c = open_stream(f, &e);
	int r = c ? 1 : e.code;
	while (r > 0 && f->leave < 0 && !f->done) {
		if (!ready(f, c, -1))
			return;
		r = client_pump(c, &e);
		if (!client_has_head(c))
			continue;
		/* What a dying daemon answers first. */
		if (client_status(c, &e) == 503) {
			(void)err_set(&f->why, -EAGAIN, "it answered 503");
			*ret_lost = true;
			return;
		}
		if (client_status(c, &e) >= 300) {
			f->leave = query_refused(c);
			return;
		}
		f->connected = f->ever = true;
		if (f->render)
			render_say(f->render, f->cancelling ? "cancelling;" : NULL);
		events(f, c);
	}
	if (f->done || f->leave >= 0 || (r >= 0 && !f->o->live))
		return;
	if (r < 0)
		f->why = e;
	if (f->o->live && f->ever)
		*ret_lost = true;
	else
		f->leave = query_failed(&e);
}

static int give_up(const struct follow *f)
{
	return fail_system("%s (%s); the run may go on (abctl logs -f %s)",
	        f->connected ? "the events break off again and again"
	                     : "the daemon does not answer any more",
	        f->why.text, f->o->run);
}

static void follow(struct follow *f)
{
	int64_t since = 0; /* when it last was in order, 0: it is */
	int step = 0;
	for (;;) {
		bool lost;
		int64_t seen = f->last, began = clock_mono_ms();
		stream(f, &lost);
		if (!lost || f->leave >= 0)
			return;
		int64_t now = clock_mono_ms();
		if (f->last > seen || (f->connected && now > began + HELD_MS))
			since = 0;
		if (!since) {
			since = now;
			step = RECONNECT_STEP_MS;
			if (f->live)
				render_say(f->render, "connection lost, trying again;");
			else
				fail_note("connection to the daemon lost, trying again");
		}
		if (now > since + RECONNECT_MS) {
			f->leave = give_up(f);
			return;
		}
		(void)ready(f, NULL, step); /* only the time matters */
		step = 2 * step < RECONNECT_STEP_MAX_MS ? 2 * step : RECONNECT_STEP_MAX_MS;
	}
}

static int watch_signals(sigset_t *ret_before, struct err *e)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGWINCH);
	if (sigprocmask(SIG_BLOCK, &set, ret_before) < 0)
		return err_errno(e, "sigprocmask");
	int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? err_errno(e, "signalfd") : fd;
}

/* What came for this run is not for what is done next. */
static void unwatch_signals(int fd, const sigset_t *before)
{
	struct signalfd_siginfo si;
	while (read(fd, &si, sizeof(si)) == sizeof(si))
		;
	(void)sigprocmask(SIG_SETMASK, before, NULL); /* a mask that was in force */
}

int follow_run(const struct cli *cli, const struct follow_options *o)
{
	struct err e = {0};
	sigset_t before;
	auto_close int signals = watch_signals(&before, &e);
	if (signals < 0)
		return fail_system("%s", e.text);
	struct follow f = {.cli = cli,
	        .o = o,
	        .signals = signals,
	        .leave = -1,
	        .ever = o->cancels,
	        .out = BUF_INIT(4 * (size_t)LIMIT_EVENT)};
	if (!o->lines) {
		struct term t = term_of(STDOUT_FILENO);
		f.live = t.smart && o->live;
		struct render_options ro = {t.colour, f.live, t.tty && t.utf8, t.width};
		f.render = render_new(&ro);
	}
	f.ask = o->asks ? ask_new(cli, o->run) : NULL;
	follow(&f);
	ask_free(f.ask);
	unwatch_signals(signals, &before);
	if (f.render && f.leave < 0)
		render_hide(f.render, &f.out);
	if (f.out.len && f.leave < 0)
		flush(&f);
	render_free(f.render);
	buf_done(&f.out);
	return f.leave >= 0 ? f.leave : f.code;
}
