#include "abctl/fail.h"
#include "abctl/follow.h"
#include "abctl/query.h"
#include "abctl/say.h"
#include "abctl/start.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct chat_args {
	const char *session;
};

static const struct opt opts[] = {
        {"session", 's', OPT_TEXT, offsetof(struct chat_args, session), "USER/GOAL",
                "the session, with HARNESS"},
        {.name = NULL},
};

struct chat {
	struct cli *cli;
	char *session, *harness; /* owned */
	bool tty;
	struct lines lines;
};

/* Who it is with: the harness of the session's last run. */
static int by_session(struct chat *c, const char *text)
{
	auto_free char *id = NULL;
	int r = query_session(c->cli, text, &id);
	if (r)
		return r;
	auto_buf struct buf path = BUF_INIT(QUERY_PATH_MAX);
	buf_puts(&path, "/v1/runs?limit=1&session=");
	url_encode(&path, id);
	auto_json struct json *j = NULL;
	r = query_get(c->cli, path.p, &j);
	if (r)
		return r;
	const struct json *last = json_first(json_get(j, "runs"));
	if (!last)
		return fail_usage(
		        "session %s has had no run: abctl chat HARNESS -s USER/GOAL", text);
	c->harness = xstrdup(json_str(last, "harness", ""));
	c->session = xasprintf("%s/%s", json_str(last, "userId", ""), json_str(last, "goalId", ""));
	return 0;
}

/* One message, and what comes of it. */
static int turn(struct chat *c, const char *text, size_t n)
{
	const struct start s = {
	        .session = c->session, .harness = c->harness, .prompt = text, .prompt_len = n};
	auto_json struct json *j = NULL;
	int r = start_run(c->cli, &s, &j);
	lines_take(&c->lines);
	if (r)
		return r;
	struct follow_options o = {
	        .run = json_str(j, "runId", ""),
	        .live = true,
	        .lines = c->cli->json,
	        .cancels = true,
	        .asks = true,
	        .input = c->tty ? &c->lines : NULL, /* elsewhere each line is a turn of its own */
	};
	return follow_run(c->cli, &o);
}

static void prompt(const struct chat *c)
{
	if (!c->tty)
		return;
	fputs("> ", stdout);
	fflush(stdout);
}

/* The next line that says something, or NULL at the end. */
static const char *next(struct chat *c, size_t *ret_len, int *ret_code)
{
	const char *p;
	for (;;) {
		while ((p = lines_peek(&c->lines, ret_len)) && *ret_len == 0)
			lines_take(&c->lines);
		if (p || c->lines.ended)
			return p;
		int r = lines_read(&c->lines);
		if (r < 0) {
			*ret_code = fail_system("stdin: %s", strerror(-r));
			return NULL;
		}
	}
}

static int converse(struct chat *c)
{
	int code = EXIT_DONE;
	size_t n;
	const char *line;
	prompt(c);
	while (code != EXIT_USAGE && code != EXIT_SYSTEM && (line = next(c, &n, &code))) {
		if (c->tty && say_cut(n))
			lines_take(&c->lines);
		else
			code = turn(c, line, n);
		if (!c->lines.ended)
			prompt(c);
	}
	return code;
}

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	(void)argc;
	const struct chat_args *a = args;
	struct chat c = {.cli = cli,
	        .tty = !cli->json && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO),
	        .lines = LINES_INIT};
	int r = 0;
	if (a->session) {
		c.harness = xstrdup(argv[0]);
		c.session = xstrdup(a->session);
		r = start_session_check(a->session);
	} else {
		r = by_session(&c, argv[0]);
	}
	if (r == 0)
		r = converse(&c);
	free(c.harness);
	free(c.session);
	lines_done(&c.lines);
	return r;
}

const struct verb cmd_chat = {
        .name = "chat",
        .synopsis = "SESSION | HARNESS -s USER/GOAL",
        .summary = "talk with the agent of a session, line by line",
        .help = "Each line is a message. While the agent works on a terminal, a line goes to it "
                "at\n"
                "once, or waits until it is done if it hears nothing meanwhile; otherwise it "
                "begins\n"
                "a new run in the same session, which goes on where the last one ended. What the\n"
                "agent asks is answered with a key. Ctrl-C interrupts it and drops what was\n"
                "typed for later, Ctrl-D ends.\n"
                "Not on a terminal each line of stdin is a run, one after the other.\n\n"
                "SESSION (an id or USER/GOAL) goes on with the harness of its last run.\n",
        .opts = opts,
        .args_size = sizeof(struct chat_args),
        .min = 1,
        .max = 1,
        .run = run,
};
