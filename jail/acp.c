/*
 * agentbox-acp: fs/ and terminal/ of the Agent Client Protocol, for an agent in
 * a jail (jail/acp.h).
 *
 * Theory of operation: PID 1 starts it in place of the agent, with the agent's
 * argv, environment and stdio; it starts the agent as its child, on pipes of its
 * own, and passes the lines both ways.  Those that ask for a file or a terminal
 * it answers; what the driver should know of that it says in notifications of
 * its own.  When the agent has ended it ends in the same way.  Signals for the
 * agent reach the agent too, as it is in our process group.
 *
 * AGENTBOX_ACP says what is served: "files", "terminals" or both.
 */
#include "jail/acp.h"
#include "base/limits.h"
#include "base/mem.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHUNK = 64 << 10, OURS = 4, PIPE_ROUNDS = 64 };

/* ---- bytes ---- */

/* false: nothing more comes from there. */
static bool take_from(struct acp *a, int fd, void (*into)(struct acp *, const char *, size_t))
{
	static char chunk[CHUNK];
	ssize_t n = read(fd, chunk, sizeof(chunk));
	if (n > 0)
		into(a, chunk, (size_t)n);
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

/* false: nobody reads there any more. */
static bool give_to(int fd, struct buf *b)
{
	ssize_t n = b->len ? write(fd, b->p, b->len) : 0;
	if (n > 0)
		buf_consume(b, (size_t)n);
	return n >= 0 || errno == EAGAIN || errno == EINTR;
}

static void close_end(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* ---- the loop ---- */

struct loop {
	struct acp a;
	int in, out; /* our stdio, or -1 */
};

/* Without a wish an end is left out: poll would tell of its other end's death again and again. */
static struct pollfd wish(int fd, bool wanted, short events)
{
	return (struct pollfd){wanted ? fd : -1, events, 0};
}

static void look(const struct loop *l, struct pollfd *p)
{
	const struct acp *a = &l->a;
	p[0] = wish(l->in, a->down.len < ACP_QUEUE_HIGH, POLLIN);
	p[1] = wish(l->out, a->up.len, POLLOUT);
	p[2] = wish(a->to_agent, a->down.len, POLLOUT);
	p[3] = wish(a->from_agent, !a->stalled, POLLIN);
	for (size_t i = 0; i < ACP_TERMINALS; i++) {
		const struct acp_terminal *t = &a->table[i];
		p[OURS + i] = wish(t->out, t->number && a->up.len < ACP_QUEUE_HIGH, POLLIN);
	}
}

static void move(struct loop *l, const struct pollfd *p)
{
	struct acp *a = &l->a;
	if (p[0].revents && !take_from(a, l->in, acp_from_supervisor))
		close_end(&l->in);
	if (p[3].revents && !take_from(a, a->from_agent, acp_from_agent))
		close_end(&a->from_agent);
	for (size_t i = 0; i < ACP_TERMINALS; i++)
		if (p[OURS + i].revents && a->table[i].number)
			(void)acp_terminal_readable(a, &a->table[i]);
	if (l->out >= 0 && !give_to(l->out, &a->up))
		close_end(&l->out);
	if (a->to_agent >= 0 && !give_to(a->to_agent, &a->down))
		close_end(&a->to_agent);
	if (a->stalled)
		acp_work(a);
	if (a->from_agent < 0 && !a->stalled)
		acp_end_of_lines(a);
	/* What nobody reads is dropped. */
	if (l->out < 0)
		buf_clear(&a->up);
	if (a->to_agent < 0)
		buf_clear(&a->down);
	if (l->in < 0 && !a->down.len)
		close_end(&a->to_agent);
	if (a->from_agent < 0 && !a->stalled && !a->up.len)
		close_end(&l->out);
	if (a->up.failed || a->down.failed || a->mine.failed || a->lines.failed) {
		errno = ENOBUFS;
		acp_die("what waits to be read");
	}
}

static bool drain(struct loop *l)
{
	struct pollfd p = {l->out, POLLOUT, 0};
	while (l->out >= 0 && l->a.up.len) {
		(void)poll(&p, 1, -1);
		if (!give_to(l->out, &l->a.up))
			return false;
	}
	return l->out >= 0;
}

/* The agent's last lines, which are in its pipe; then all that waits for our reader. */
static void finish(struct loop *l)
{
	struct acp *a = &l->a;
	bool more = a->from_agent >= 0;
	acp_terminals_end(a);
	buf_clear(&a->down); /* which nobody reads any more */
	for (int i = 0; (more || a->stalled) && i < PIPE_ROUNDS; i++) {
		errno = 0;
		if (a->stalled)
			acp_work(a);
		else
			more = take_from(a, a->from_agent, acp_from_agent) && errno != EAGAIN;
		buf_clear(&a->down);
		if (!drain(l))
			return;
	}
	acp_end_of_lines(a);
	(void)drain(l);
}

static void collect(struct loop *l)
{
	int status;
	pid_t pid;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == l->a.agent) {
			finish(l);
			acp_end_as(status);
		}
		acp_terminal_ended(&l->a, pid, status);
	}
}

static bool serves(const char *what)
{
	const char *list = getenv("AGENTBOX_ACP");
	return list && strstr(list, what);
}

int main(int argc, char **argv)
{
	static struct loop l = {.in = STDIN_FILENO,
	        .out = STDOUT_FILENO,
	        .a = {.up = BUF_INIT(ACP_QUEUE_MAX),
	                .down = BUF_INIT(ACP_QUEUE_MAX),
	                .mine = BUF_INIT(ACP_QUEUE_MAX),
	                .lines = BUF_INIT(LIMIT_LINE + 2 * CHUNK)}};
	static struct pollfd p[OURS + ACP_TERMINALS];
	sigset_t none;
	if (argc < 1)
		return 100;
	argv = acp_take_argv(argc, argv);
	l.a.files = serves("files");
	l.a.terminals = serves("terminals");
	unsetenv("AGENTBOX_ACP");
	acp_mind_signals();
	acp_start_agent(&l.a, argv);
	sigemptyset(&none);
	for (;;) {
		look(&l, p);
		int n = ppoll(p, OURS + ACP_TERMINALS, NULL, &none);
		if (n < 0 && errno != EINTR)
			acp_die("poll");
		if (n > 0)
			move(&l, p);
		collect(&l);
	}
}
