/*
 * A cursor into the run's events: the stream is read, each event is written
 * out at once, and when the connection breaks before run.done a new one goes on
 * after the last number seen.  Ctrl-C cancels the run and waits for its end;
 * the second one leaves at once.
 */
#include "abctl/follow.h"
#include "abctl/ask.h"
#include "abctl/fail.h"
#include "abctl/query.h"
#include "abctl/render.h"
#include "abctl/say.h"
#include "abctl/term.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "client/client.h"
#include "client/events.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { FRAME_MS = 100 }; /* of the spinner: steady to the eye, and nothing to the processor */

struct follow {
	const struct cli *cli;
	const struct follow_options *o;
	struct render *render; /* owned; NULL with o->lines */
	struct ask *ask;       /* owned; NULL without o->asks */
	bool deaf;             /* the agent does not hear messages now */
	struct buf out;        /* owned: for stdout */
	int signals;           /* owned */
	struct events *events; /* owned */
	bool live;             /* a status line is kept */
	bool cancelling, done;
	int leave; /* an exit code, when it is time to; else -1 */
	int code;
};

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

/* What the run of a step says, to its end, in the place where the pipeline tells of it. */
static void follow_step(struct follow *f, const struct json *event)
{
	const char *id = json_str(event, "runId", "");
	if (!f->render || !id_valid(id, "run"))
		return;
	struct follow_options o = *f->o;
	o.run = id;
	o.pipeline = f->o->run;
	o.from = 0;
	flush(f);
	int code = f->leave < 0 ? follow_run(f->cli, &o) : EXIT_DONE;
	if (code == EXIT_SYSTEM)
		f->leave = code;
}

static void event(struct follow *f, const struct json *j, const char *text, size_t n)
{
	if (f->ask)
		ask_event(f->ask, j);
	if (strcmp(json_str(j, "type", ""), "run.started") == 0)
		f->deaf = false; /* what was typed before that may be heard now */
	if (f->render) {
		size_t before = f->out.len;
		render_event(f->render, j, clock_mono_ms(), &f->out);
		if (f->ask && f->out.len > before)
			ask_covered(f->ask);
	} else {
		buf_put(&f->out, text, n);
		buf_putc(&f->out, '\n');
	}
	if (f->out.len > LIMIT_PUMP_READ || f->out.failed)
		flush(f);
	if (strcmp(json_str(j, "type", ""), "step.started") == 0)
		follow_step(f, j);
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
		int r = n && !say_cut(n) ? say_try(f->cli, f->o->run, p, n) : 0;
		if (r == SAY_LATER)
			f->deaf = true;
		else if (r)
			f->leave = r;
		else
			lines_take(f->o->input);
	}
}

static void show(struct follow *f)
{
	if (f->render)
		render_hide(f->render, &f->out);
	size_t n;
	const char *text;
	while (f->leave < 0 && !f->done) {
		auto_json struct json *j = events_next(f->events, &text, &n);
		if (!j)
			break;
		event(f, j, text, n);
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
	const char *run = f->o->pipeline ? f->o->pipeline : f->o->run;
	f->cancelling = true;
	if (f->o->input)
		lines_drop(f->o->input); /* as a terminal does with what it holds */
	if (f->live) {
		render_say(f->render, "cancelling, Ctrl-C again to leave;");
	} else {
		fail_note("cancelling run %s (interrupt again to leave)", run);
	}
	auto_free char *path = xasprintf("/v1/runs/%s", run);
	struct client_request req = {.method = "DELETE", .path = path};
	struct err e = {0};
	auto_client struct client *c = client_open(&f->cli->peer, &req, &e);
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
		if (f->render)
			render_hide(f->render, &f->out);
		ask_read(f->ask, &f->out);
		ask_put(f->ask, &f->out);
		flush(f);
		return;
	}
	int r = lines_read(f->o->input);
	if (r < 0)
		f->leave = fail_system("stdin: %s", strerror(-r));
	else
		send_lines(f);
}

/* Waits for what the stream waits for, serving signals and the spinner. */
static void ready(struct follow *f)
{
	while (f->leave < 0) {
		int wait = events_wait_ms(f->events);
		if (wait == 0)
			return;
		if (f->live && (wait < 0 || wait > FRAME_MS))
			wait = FRAME_MS;
		struct pollfd p[] = {
		        {.fd = f->signals, .events = POLLIN},
		        {.fd = events_fd(f->events), .events = POLLIN},
		        {.fd = wants_stdin(f) ? STDIN_FILENO : -1, .events = POLLIN},
		};
		int n = poll(p, ARRAY_LEN(p), wait);
		if (n > 0 && p[0].revents)
			interrupted(f);
		if (n > 0 && p[2].revents)
			typed(f);
		if (n > 0 && p[1].revents)
			return;
		if (n == 0 && f->live) {
			render_hide(f->render, &f->out);
			render_status(f->render, clock_mono_ms(), &f->out);
			flush(f);
		}
	}
}

static void lost(struct follow *f)
{
	if (f->live)
		render_say(f->render, "connection lost, trying again;");
	else
		fail_note("connection to the daemon lost, trying again");
}

static void follow(struct follow *f)
{
	enum events_state state = EVENTS_WAIT;
	while (f->leave < 0 && !f->done && state != EVENTS_OVER) {
		struct err e = {0};
		ready(f);
		if (f->leave >= 0)
			return;
		state = events_turn(f->events, &e);
		if (state == EVENTS_CAME && f->render)
			render_say(f->render, f->cancelling ? "cancelling;" : NULL);
		if (state == EVENTS_CAME)
			show(f);
		else if (state == EVENTS_LOST)
			lost(f);
		else if (state == EVENTS_REFUSED)
			f->leave = query_refused(events_answer(f->events));
		else if (state == EVENTS_FAILED)
			f->leave = query_failed(&e);
		else if (state == EVENTS_GIVEN_UP)
			f->leave = fail_system(
			        "%s; the run may go on (abctl logs -f %s)", e.text, f->o->run);
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
	        .out = BUF_INIT(4 * (size_t)LIMIT_EVENT)};
	if (!o->lines) {
		struct term t = term_of(STDOUT_FILENO);
		f.live = t.smart && o->live;
		struct render_options ro = {t.colour, f.live, t.tty && t.utf8, t.width};
		f.render = render_new(&ro);
	}
	f.ask = o->asks ? ask_new(cli, o->run) : NULL;
	/* Who may cancel it has started it: the daemon has answered before. */
	f.events = events_new(&cli->peer, o->run, o->from, o->live, o->cancels);
	follow(&f);
	events_free(f.events);
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
