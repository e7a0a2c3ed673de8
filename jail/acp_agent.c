#include "base/mem.h"
#include "jail/acp.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

_Noreturn void acp_die(const char *what)
{
	fprintf(stderr, "agentbox-acp: %s: %s\n", what, strerror(errno));
	_exit(111);
}

/* ---- signals ---- */

static const int passed_on[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

static void on_signal(int sig)
{
	(void)sig; /* it only interrupts ppoll */
}

/* What the agent is to hear must not end us before it.  Handlers, because what is ignored would
 * stay so in the agent. */
void acp_mind_signals(void)
{
	struct sigaction act = {.sa_handler = on_signal};
	for (size_t i = 0; i < ARRAY_LEN(passed_on); i++)
		sigaction(passed_on[i], &act, NULL);
	sigaction(SIGCHLD, &act, NULL);
	sigaction(SIGPIPE, &act, NULL);
	sigaction(SIGXFSZ, &act, NULL); /* a file that grows too long is refused, not our end */
	sigset_t block;
	sigemptyset(&block);
	sigaddset(&block, SIGCHLD);
	sigprocmask(SIG_SETMASK, &block, NULL);
}

void acp_child_signals(void)
{
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* ---- the agent ---- */

/* Who looks at the jail's processes is to know us from the agent. */
char **acp_take_argv(int argc, char **argv)
{
	static const char name[] = "agentbox-acp";
	char **copy = xcalloc((size_t)argc + 1, sizeof(*copy));
	for (int i = 0; i < argc; i++) {
		copy[i] = xstrdup(argv[i]);
		memset(argv[i], 0, strlen(argv[i]));
	}
	const char *last = copy[argc - 1];
	size_t room = (size_t)(argv[argc - 1] - argv[0]) + strlen(last);
	memcpy(argv[0], name, room < sizeof(name) ? room : sizeof(name));
	prctl(PR_SET_NAME, name);
	return copy;
}

void acp_start_agent(struct acp *a, char **argv)
{
	int in[2], out[2];
	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
		acp_die("pipe");
	a->agent = fork();
	if (a->agent < 0)
		acp_die("fork");
	if (a->agent == 0) {
		acp_child_signals();
		if (dup2(in[0], 0) < 0 || dup2(out[1], 1) < 0)
			acp_die("stdio");
		execvp(argv[0], argv);
		fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
		_exit(errno == ENOENT ? 127 : 126);
	}
	close(in[0]);
	close(out[1]);
	a->to_agent = in[1];
	a->from_agent = out[0];
	const int all[] = {STDIN_FILENO, STDOUT_FILENO, in[1], out[0]};
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (fcntl(all[i], F_SETFL, O_NONBLOCK) < 0)
			acp_die("pipe");
}

/* As it ended. */
_Noreturn void acp_end_as(int status)
{
	if (WIFEXITED(status))
		_exit(WEXITSTATUS(status));
	sigset_t none;
	sigemptyset(&none);
	(void)signal(WTERMSIG(status), SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	(void)raise(WTERMSIG(status));
	_exit(128 + WTERMSIG(status));
}
