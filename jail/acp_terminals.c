#include "base/limits.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "jail/acp.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * A terminal is a command with a process group of its own, no input, and one
 * pipe for what it prints.  The last bytes of that are kept until it is released.
 */

enum { CHUNK = 16 << 10, PIPE_READS = 64, VALUE_MAX = 128 << 10, NAME_MAX_BYTES = 32 };

/* ---- the table ---- */

static struct acp_terminal *find(struct acp *a, const char *id, struct span params)
{
	auto_free char *name = acp_text(params, "terminalId", NAME_MAX_BYTES);
	char own[NAME_MAX_BYTES];
	for (size_t i = 0; name && i < ACP_TERMINALS; i++) {
		struct acp_terminal *t = &a->table[i];
		(void)snprintf(own, sizeof(own), "t%u", t->number);
		if (t->number && strcmp(own, name) == 0)
			return t;
	}
	acp_refuse(a, id, ACP_NOT_FOUND, "there is no such terminal");
	return NULL;
}

static void put_name(struct jw *w, const struct acp_terminal *t)
{
	char own[NAME_MAX_BYTES];
	(void)snprintf(own, sizeof(own), "t%u", t->number);
	jw_str(w, "terminalId", own);
}

/* Members of how it ended; the protocol wants both, one of them null. */
static void put_end(struct jw *w, const struct acp_terminal *t)
{
	static const struct {
		int sig;
		const char *name;
	} names[] = {{SIGHUP, "SIGHUP"}, {SIGINT, "SIGINT"}, {SIGQUIT, "SIGQUIT"},
	        {SIGABRT, "SIGABRT"}, {SIGKILL, "SIGKILL"}, {SIGSEGV, "SIGSEGV"},
	        {SIGPIPE, "SIGPIPE"}, {SIGTERM, "SIGTERM"}};
	char number[NAME_MAX_BYTES];
	const char *name = number;
	if (t->code >= 0)
		jw_int(w, "exitCode", t->code);
	else
		jw_null(w, "exitCode");
	(void)snprintf(number, sizeof(number), "SIG%d", t->sig);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (names[i].sig == t->sig)
			name = names[i].name;
	if (t->sig)
		jw_str(w, "signal", name);
	else
		jw_null(w, "signal");
}

/* The process first: one that has just been made has no group yet, nor a child. */
static void kill_group(const struct acp_terminal *t)
{
	if (!t->pid) /* ours until we collect it */
		return;
	(void)kill(t->pid, SIGKILL);
	(void)kill(-t->pid, SIGKILL);
}

/* ---- terminal/create ---- */

struct command {
	char *argv[ACP_ARGS_MAX + 4], *env[ACP_ARGS_MAX + 1]; /* owned, NULL-terminated */
	size_t argc, nenv;
	char *cwd; /* owned, or NULL: ours */
};

static void command_done(struct command *c)
{
	for (size_t i = 0; i < c->argc; i++)
		free(c->argv[i]);
	for (size_t i = 0; i < c->nenv; i++)
		free(c->env[i]);
	free(c->cwd);
}

static char *text_of(struct span value)
{
	struct buf b = BUF_INIT(VALUE_MAX);
	if (scan_text(value, &b) && strlen(b.p) == b.len)
		return b.p;
	buf_done(&b);
	return NULL;
}

/* false: one is no text. */
static bool take_args(struct command *c, struct span params)
{
	struct span args, at = {0};
	bool some = scan_member(params, "args", &args);
	while (some && scan_next(args, &at)) {
		if (c->argc == ACP_ARGS_MAX || !(c->argv[c->argc] = text_of(at)))
			return false;
		c->argc++;
	}
	return true;
}

static bool take_env(struct command *c, struct span params)
{
	struct span list, at = {0};
	bool some = scan_member(params, "env", &list);
	while (some && scan_next(list, &at)) {
		auto_free char *name = acp_text(at, "name", VALUE_MAX);
		auto_free char *value = acp_text(at, "value", VALUE_MAX);
		if (c->nenv == ACP_ARGS_MAX || !name || !*name || strchr(name, '=') || !value)
			return false;
		c->env[c->nenv++] = xasprintf("%s=%s", name, value);
	}
	return true;
}

/* A command without arguments is a line for the shell: agents send both kinds. */
static const char *take_command(struct command *c, struct span params)
{
	struct span cwd;
	char *program = acp_text(params, "command", VALUE_MAX);
	if (!program || !*program) {
		free(program);
		return "command must be a text";
	}
	c->argv[c->argc++] = program;
	if (!take_args(c, params) || !take_env(c, params))
		return "args and env must be lists of texts, of names and values";
	if (c->argc == 1) {
		c->argv[0] = xstrdup("/bin/sh");
		c->argv[1] = xstrdup("-c");
		c->argv[2] = program;
		c->argc = 3;
	}
	bool elsewhere = scan_member(params, "cwd", &cwd) && *cwd.p != 'n';
	c->cwd = elsewhere ? acp_text(params, "cwd", ACP_PATH_MAX) : NULL;
	return elsewhere && (!c->cwd || *c->cwd != '/') ? "cwd must be an absolute path" : NULL;
}

static _Noreturn void run(const struct command *c, int out)
{
	int null = open("/dev/null", O_RDONLY);
	acp_child_signals();
	if (setsid() < 0 || null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
		_exit(127);
	if (c->cwd && chdir(c->cwd) < 0) {
		dprintf(2, "%s: %s\n", c->cwd, strerror(errno));
		_exit(127);
	}
	for (size_t i = 0; i < c->nenv; i++)
		putenv(c->env[i]);
	execvp(c->argv[0], c->argv);
	dprintf(2, "%s: %s\n", c->argv[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

/* 0, or an errno. */
static int start(struct acp_terminal *t, const struct command *c)
{
	int pair[2];
	if (pipe2(pair, O_CLOEXEC) < 0)
		return errno;
	pid_t pid = fork();
	if (pid == 0)
		run(c, pair[1]);
	int error = pid < 0 ? errno : 0;
	close(pair[1]);
	if (error || fcntl(pair[0], F_SETFL, O_NONBLOCK) < 0) {
		close(pair[0]);
		return error ? error : errno;
	}
	t->pid = pid;
	t->out = pair[0];
	return 0;
}

static struct acp_terminal *free_slot(struct acp *a)
{
	for (size_t i = 0; i < ACP_TERMINALS; i++)
		if (!a->table[i].number)
			return &a->table[i];
	return NULL;
}

static void create(struct acp *a, const char *id, struct span params, const struct command *c)
{
	struct span value;
	uint64_t keep = ACP_TERMINAL_KEEP;
	struct acp_terminal *t = free_slot(a);
	if (!t) {
		acp_refuse(a, id, ACP_INTERNAL, "too many terminals: release some");
		return;
	}
	if (scan_member(params, "outputByteLimit", &value) && !scan_number(value, &keep))
		keep = ACP_TERMINAL_KEEP;
	if (keep > ACP_TERMINAL_KEEP)
		keep = ACP_TERMINAL_KEEP;
	*t = (struct acp_terminal){.out = -1,
	        .code = -1,
	        .keep = (size_t)keep,
	        .output = BUF_INIT(2 * ACP_TERMINAL_KEEP + CHUNK)};
	int error = start(t, c);
	if (error) {
		acp_refuse_errno(a, id, error, c->argv[0]);
		return;
	}
	t->number = ++a->last;
	auto_buf struct buf b = BUF_INIT(LIMIT_LINE);
	struct jw w = acp_reply_open(&b, id);
	put_name(&w, t);
	acp_reply_close(a, &w);
}

void acp_terminal_create(struct acp *a, const char *id, struct span params)
{
	struct command *c = xnew(struct command);
	const char *why = take_command(c, params);
	if (why)
		acp_refuse(a, id, ACP_INVALID_PARAMS, why);
	else
		create(a, id, params, c);
	command_done(c);
	free(c);
}

/* ---- output ---- */

/* The first bytes go; not within a character. */
static void keep_last(struct acp_terminal *t)
{
	struct buf *b = &t->output;
	if (b->len <= t->keep)
		return;
	size_t drop = b->len - t->keep;
	drop += utf8_rest(b->p + drop, t->keep);
	buf_consume(b, drop);
	t->truncated = true;
}

static void note_output(struct acp *a, struct acp_terminal *t, const char *p, size_t n)
{
	size_t room = ACP_TERMINAL_TOLD - t->told;
	t->told += n < room ? n : room;
	if (n > room)
		n = utf8_floor(p, room);
	if (!n)
		return;
	auto_buf struct buf b = BUF_INIT(LIMIT_LINE);
	struct jw w = acp_note_open(&b, "_agentbox/terminal");
	put_name(&w, t);
	jw_bytes(&w, "output", p, n);
	acp_note_close(a, &w);
}

bool acp_terminal_readable(struct acp *a, struct acp_terminal *t)
{
	static char text[sizeof(t->half) + CHUNK];
	char *chunk = text + t->nhalf;
	memcpy(text, t->half, t->nhalf);
	ssize_t n = read(t->out, chunk, CHUNK);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		note_output(a, t, text, t->nhalf);
		t->nhalf = 0;
		close(t->out);
		t->out = -1;
		return false;
	}
	(void)buf_put(&t->output, chunk, (size_t)n); /* fits: see create */
	/* Now and then: each time would move a megabyte for each piece. */
	if (t->output.len > 2 * t->keep)
		keep_last(t);
	size_t all = t->nhalf + (size_t)n, whole = utf8_floor(text, all);
	note_output(a, t, text, whole);
	t->nhalf = all - whole;
	memcpy(t->half, text + whole, t->nhalf);
	return true;
}

/* ---- the end of one ---- */

static void answer_wait(struct acp *a, const char *id, const struct acp_terminal *t)
{
	auto_buf struct buf b = BUF_INIT(LIMIT_LINE);
	struct jw w = acp_reply_open(&b, id);
	put_end(&w, t);
	acp_reply_close(a, &w);
}

static void answer_waits(struct acp *a, const struct acp_terminal *t)
{
	for (size_t i = 0; i < ACP_WAITS; i++) {
		struct acp_wait *wait = &a->waits[i];
		if (wait->terminal != t->number)
			continue;
		answer_wait(a, wait->id, t);
		free(wait->id);
		*wait = (struct acp_wait){0};
	}
}

static void note_end(struct acp *a, const struct acp_terminal *t)
{
	auto_buf struct buf b = BUF_INIT(LIMIT_LINE);
	struct jw w = acp_note_open(&b, "_agentbox/terminal");
	put_name(&w, t);
	put_end(&w, t);
	acp_note_close(a, &w);
}

void acp_terminal_ended(struct acp *a, pid_t pid, int status)
{
	for (size_t i = 0; i < ACP_TERMINALS; i++) {
		struct acp_terminal *t = &a->table[i];
		if (!t->number || t->pid != pid)
			continue;
		t->pid = 0;
		t->code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
		t->sig = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
		/* What it has printed is in the pipe; others may go on printing. */
		for (int reads = 0; t->out >= 0 && reads < PIPE_READS; reads++)
			if (!acp_terminal_readable(a, t))
				break;
		note_end(a, t);
		answer_waits(a, t);
	}
}

/* ---- the other requests ---- */

void acp_terminal_output(struct acp *a, const char *id, struct span params)
{
	struct acp_terminal *t = find(a, id, params);
	if (!t)
		return;
	keep_last(t);
	auto_buf struct buf b = BUF_INIT(LIMIT_LINE);
	struct jw w = acp_reply_open(&b, id);
	const char *p = t->output.p ? t->output.p : "";
	/* While there may be more, its end may be half a character. */
	jw_bytes(&w, "output", p, t->out < 0 ? t->output.len : utf8_floor(p, t->output.len));
	jw_bool(&w, "truncated", t->truncated);
	if (!t->pid) {
		jw_open(&w, "exitStatus", '{');
		put_end(&w, t);
		jw_close(&w, '}');
	}
	acp_reply_close(a, &w);
}

void acp_terminal_wait(struct acp *a, const char *id, struct span params)
{
	struct acp_terminal *t = find(a, id, params);
	if (!t)
		return;
	if (!t->pid) {
		answer_wait(a, id, t);
		return;
	}
	for (size_t i = 0; i < ACP_WAITS; i++)
		if (!a->waits[i].terminal) {
			a->waits[i] = (struct acp_wait){t->number, xstrdup(id)};
			return;
		}
	acp_refuse(a, id, ACP_INTERNAL, "too many requests wait");
}

void acp_terminal_kill(struct acp *a, const char *id, struct span params)
{
	struct acp_terminal *t = find(a, id, params);
	if (!t)
		return;
	kill_group(t);
	acp_reply(a, id, "{}");
}

void acp_terminal_release(struct acp *a, const char *id, struct span params)
{
	struct acp_terminal *t = find(a, id, params);
	if (!t)
		return;
	int status;
	kill_group(t);
	if (t->pid && waitpid(t->pid, &status, 0) == t->pid)
		acp_terminal_ended(a, t->pid, status);
	if (t->out >= 0)
		close(t->out);
	buf_done(&t->output);
	*t = (struct acp_terminal){0};
	acp_reply(a, id, "{}");
}

void acp_terminals_end(struct acp *a)
{
	for (size_t i = 0; i < ACP_TERMINALS; i++)
		if (a->table[i].number)
			kill_group(&a->table[i]);
}
