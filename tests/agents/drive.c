/*
 * drive.c - runs a real agent through its driver, outside any jail.
 *
 * For checking a driver against the product it speaks to: starts what the
 * driver says, feeds it what the driver says, prints the events as lines
 * (tests/driver_record.h) and exits 0 when the outcome is "succeeded".  Started
 * as root it runs the agent as --uid, because Claude refuses to work unasked as
 * root.  drive.sh uses it; nothing is installed.
 *
 *	drive --home DIR --cwd DIR [--uid N] [--program P] [--arg A]... [--model M]
 *	      [--allow RULE]... [--deny RULE]... [--mcp NAME=PROGRAM:ARG]... [--mcp-env K=V]...
 *	      [--max-turns N] [--resume ID] [--system TEXT] [--permissions auto|ask|deny]
 *	      [--answer deny|once|always] [--interrupt SECONDS] [--env K=V]...
 *	      [--raw FILE] DRIVER PROMPT
 */
#include "base/limits.h"
#include "tests/driver_record.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LIST_MAX = 32 };

struct drive {
	const char *home, *cwd, *raw;
	unsigned uid;
	enum driver_answer answer;
	double interrupt_after; /* seconds; 0: never */
	const char *allow[LIST_MAX], *deny[LIST_MAX], *env[LIST_MAX], *args[LIST_MAX],
	        *mcp_env[LIST_MAX];
	struct driver_mcp mcp[LIST_MAX];
	char *mcp_words[LIST_MAX][3];
	struct driver_spec spec;
	const struct driver *driver;
	struct record rec;
	struct driver_run *run;
	struct buf to_stdin;
	int in, out, err; /* our ends of its pipes, or -1 */
	FILE *raw_file;
};

static void die(const char *what)
{
	perror(what);
	exit(111);
}

static void push(const char **list, const char *value)
{
	size_t n = 0;
	while (list[n])
		n++;
	if (n + 1 < LIST_MAX)
		list[n] = value;
}

/* NAME=PROGRAM:ARG */
static void push_mcp(struct drive *d, char *text)
{
	char *program = strchr(text, '='), *arg = program ? strchr(program, ':') : NULL;
	if (!arg || d->spec.nmcp == LIST_MAX)
		exit(100);
	*program++ = *arg++ = '\0';
	char **words = d->mcp_words[d->spec.nmcp];
	words[0] = program;
	words[1] = arg;
	d->mcp[d->spec.nmcp++] = (struct driver_mcp){
	        .name = text, .command = (const char *const *)words, .env = d->mcp_env};
}

static void set_option(struct drive *d, const char *name, char *value)
{
	if (strcmp(name, "--home") == 0)
		d->home = value;
	else if (strcmp(name, "--cwd") == 0)
		d->cwd = value;
	else if (strcmp(name, "--raw") == 0)
		d->raw = value;
	else if (strcmp(name, "--uid") == 0)
		d->uid = (unsigned)strtoul(value, NULL, 10);
	else if (strcmp(name, "--program") == 0)
		d->spec.program = value;
	else if (strcmp(name, "--model") == 0)
		d->spec.model = value;
	else if (strcmp(name, "--resume") == 0)
		d->spec.resume = value;
	else if (strcmp(name, "--system") == 0)
		d->spec.system_prompt = value;
	else if (strcmp(name, "--max-turns") == 0)
		d->spec.max_turns = (uint32_t)strtoul(value, NULL, 10);
	else if (strcmp(name, "--interrupt") == 0)
		d->interrupt_after = strtod(value, NULL);
	else if (strcmp(name, "--permissions") == 0)
		d->spec.permissions = *value == 'd'     ? PERMISSIONS_DENY
		                      : value[1] == 's' ? PERMISSIONS_ASK
		                                        : PERMISSIONS_AUTO;
	else if (strcmp(name, "--answer") == 0)
		d->answer = *value == 'o'   ? ANSWER_ONCE
		            : *value == 'a' ? ANSWER_ALWAYS
		                            : ANSWER_DENY;
	else if (strcmp(name, "--allow") == 0) {
		d->spec.tools_allow = d->allow;
		push(d->allow, *value ? value : NULL);
	} else if (strcmp(name, "--deny") == 0) {
		d->spec.tools_deny = d->deny;
		push(d->deny, value);
	} else if (strcmp(name, "--arg") == 0) {
		d->spec.args = d->args;
		push(d->args, value);
	} else if (strcmp(name, "--env") == 0)
		push(d->env, value);
	else if (strcmp(name, "--mcp-env") == 0)
		push(d->mcp_env, value);
	else if (strcmp(name, "--mcp") == 0)
		push_mcp(d, value);
	else
		exit(100);
}

/* In a jail the home is DRIVER_HOME; here it is --home. */
static void move_home(const struct drive *d, char **list)
{
	size_t n = strlen(DRIVER_HOME), home = strlen(d->home);
	for (; list && *list; list++) {
		size_t from = 0;
		for (char *at; (at = strstr(*list + from, DRIVER_HOME "/"));) {
			size_t before = (size_t)(at - *list);
			char *moved = xasprintf("%.*s%s%s", (int)before, *list, d->home, at + n);
			free(*list);
			*list = moved;
			from = before + home;
		}
	}
}

static void write_files(const struct drive *d, const struct driver_command *c)
{
	for (size_t i = 0; i < c->nfiles; i++) {
		auto_free char *path = xasprintf("%s/%s", d->home, c->files[i].path);
		*strrchr(path, '/') = '\0';
		if (mkdir(path, 0755) < 0 && errno != EEXIST)
			die(path);
		path[strlen(path)] = '/';
		FILE *f = fopen(path, "we");
		if (!f || fputs(c->files[i].text, f) < 0 || fclose(f) < 0)
			die(path);
	}
}

static void child(const struct drive *d, struct driver_command *c, int in, int out, int err)
{
	if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0 || chdir(d->cwd) < 0)
		die("child");
	if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setgid(d->uid) < 0 || setuid(d->uid) < 0))
		die("setuid");
	setenv("HOME", d->home, 1);
	setenv("PWD", d->cwd, 1); /* some agents believe it */
	for (char **e = c->env; e && *e; e++)
		putenv(*e);
	for (size_t i = 0; d->env[i]; i++) {
		auto_free char *name = xstrndup(d->env[i], strcspn(d->env[i], "="));
		setenv(name, strchr(d->env[i], '=') ? strchr(d->env[i], '=') + 1 : "", 1);
	}
	execvp(c->argv[0], c->argv);
	die(c->argv[0]);
}

static pid_t launch(struct drive *d, struct driver_command *c)
{
	int in[2], out[2], err[2];
	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0)
		die("pipe");
	pid_t pid = fork();
	if (pid < 0)
		die("fork");
	if (pid == 0)
		child(d, c, in[0], out[1], err[1]);
	close(in[0]);
	close(out[1]);
	close(err[1]);
	d->in = in[1];
	d->out = out[0];
	d->err = err[0];
	return pid;
}

static void flush_stdin(struct drive *d, bool eof)
{
	if (d->in >= 0 && d->to_stdin.len &&
	        write(d->in, d->to_stdin.p, d->to_stdin.len) != (ssize_t)d->to_stdin.len)
		die("stdin");
	record_stdin(&d->rec, &d->to_stdin, eof);
	if (eof && d->in >= 0) {
		close(d->in);
		d->in = -1;
	}
}

static void stdout_line(struct drive *d, const char *p, size_t n)
{
	bool eof = false;
	if (d->raw_file)
		fprintf(d->raw_file, "%.*s\n", (int)n, p);
	d->driver->line(d->run, p, n, true, &d->to_stdin, &eof);
	if (d->rec.permission) {
		auto_free char *id = take(d->rec.permission);
		d->driver->answer(d->run, id, d->answer, &d->to_stdin);
	}
	flush_stdin(d, eof);
}

/* Reads what is there; false at the end. */
static bool pump(struct drive *d, int fd, struct buf *b)
{
	if (buf_reserve(b, 65536) < 0)
		die("line too long");
	ssize_t n = read(fd, b->p + b->len, 65536);
	if (n <= 0)
		return false;
	b->len += (size_t)n;
	char *nl;
	while ((nl = memchr(b->p, '\n', b->len))) {
		size_t len = (size_t)(nl - b->p);
		if (fd == d->out)
			stdout_line(d, b->p, len);
		else
			d->driver->error_line(d->run, b->p, len);
		buf_consume(b, len + 1);
	}
	if (fd == d->out && d->driver->flush)
		d->driver->flush(d->run);
	return true;
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void loop(struct drive *d)
{
	auto_buf struct buf out = BUF_INIT(LIMIT_LINE), err = BUF_INIT(LIMIT_LINE);
	struct pollfd p[2] = {{.fd = d->out, .events = POLLIN}, {.fd = d->err, .events = POLLIN}};
	double until = d->interrupt_after > 0 ? now() + d->interrupt_after : 0;
	while (p[0].fd >= 0 || p[1].fd >= 0) {
		if (poll(p, 2, 100) < 0)
			die("poll");
		if (p[0].revents && !pump(d, d->out, &out))
			p[0].fd = -1;
		if (p[1].revents && !pump(d, d->err, &err))
			p[1].fd = -1;
		if (until > 0 && now() > until) {
			until = 0;
			if (d->driver->interrupt && d->driver->interrupt(d->run, &d->to_stdin))
				flush_stdin(d, false);
		}
	}
}

static int run(struct drive *d)
{
	struct err e;
	struct driver_command c = {0};
	if (d->driver->command(&d->spec, &c, &e) < 0) {
		fprintf(stderr, "drive: %s\n", e.text);
		return 100;
	}
	move_home(d, c.argv);
	move_home(d, c.env);
	write_files(d, &c);
	for (char **a = c.argv; *a; a++)
		fprintf(stderr, "%s%s", **a ? *a : "''", a[1] ? " " : "\n");
	d->run = d->driver->open(d->driver, &d->spec, &d->rec.sink);
	pid_t pid = launch(d, &c);
	bool eof = false;
	if (d->driver->start(d->run, &d->to_stdin, &eof) < 0)
		die("start");
	flush_stdin(d, eof);
	loop(d);
	int status;
	if (waitpid(pid, &status, 0) < 0)
		die("waitpid");
	struct driver_exit x = {.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
	        .sig = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
	        .interrupted = d->interrupt_after > 0};
	struct driver_outcome o = {0};
	d->driver->end(d->run, &x, &o);
	record_outcome(&d->rec, &o);
	fwrite(d->rec.out.p, 1, d->rec.out.len, stdout);
	int code = o.status == DRIVER_SUCCEEDED ? 0 : 1;
	driver_outcome_done(&o);
	driver_command_done(&c);
	d->driver->close(d->run);
	return code;
}

int main(int argc, char **argv)
{
	struct drive d = {.uid = 4242, .to_stdin = BUF_INIT(64 << 20), .in = -1};
	d.spec.mcp = d.mcp;
	int i = 1;
	for (; i + 1 < argc && strncmp(argv[i], "--", 2) == 0; i += 2)
		set_option(&d, argv[i], argv[i + 1]);
	if (i + 2 != argc || !d.home || !d.cwd || !(d.driver = driver_find(argv[i])))
		return 100;
	d.spec.prompt = argv[i + 1];
	d.spec.prompt_len = strlen(argv[i + 1]);
	signal(SIGPIPE, SIG_IGN);
	record_init(&d.rec);
	d.raw_file = d.raw ? fopen(d.raw, "we") : NULL;
	int code = run(&d);
	if (d.raw_file)
		fclose(d.raw_file);
	buf_done(&d.to_stdin);
	record_done(&d.rec);
	return code;
}
