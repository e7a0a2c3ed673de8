#include "client/client.h"
#include "abctl/fail.h"
#include "abctl/human.h"
#include "base/neutral.h"
#include "abctl/query.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/mem.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

struct egress_args {
	bool denied;
};

static const struct opt opts[] = {
        {"denied", 0, OPT_FLAG, offsetof(struct egress_args, denied), NULL,
                "only what was refused"},
        {.name = NULL},
};

struct watch {
	const struct cli *cli;
	const char *run; /* or NULL: all jails */
	bool denied;
	struct buf out; /* owned */
};

static void word(struct watch *w, const char *text, const char *after)
{
	neutral_line(&w->out, text, strlen(text));
	buf_puts(&w->out, after);
}

/* TIME [RUN, SESSION or JAIL] VERDICT HOST:PORT PROTOCOL: why; what to add. */
static void human(struct watch *w, const struct json *event)
{
	const char *ts = json_str(event, "ts", ""), *at = strchr(ts, 'T');
	const char *hint = json_str(event, "hint", "");
	bool denied = strcmp(json_str(event, "type", ""), "egress.denied") == 0;
	int64_t times = json_int(event, "times", 1);
	buf_printf(&w->out, "%.8s ", at ? at + 1 : "");
	if (!w->run) {
		const char *run = json_str(event, "run", NULL);
		auto_free char *jail = xasprintf("jail-%" PRId64, json_int(event, "jail", 0));
		word(w, run ? run : json_str(event, "session", jail), " ");
	}
	buf_puts(&w->out, denied ? "denied  " : "allowed ");
	word(w, json_str(event, "host", "?"), "");
	buf_printf(&w->out, ":%" PRId64 " ", json_int(event, "port", 0));
	word(w, json_str(event, "protocol", "?"), ": ");
	word(w, json_str(event, "reason", ""), "");
	if (times > 1)
		buf_printf(&w->out, " (%" PRId64 " times)", times);
	if (!denied)
		buf_printf(&w->out, "; %s in, %s out",
		        human_bytes((uint64_t)json_int(event, "bytesIn", 0)).s,
		        human_bytes((uint64_t)json_int(event, "bytesOut", 0)).s);
	if (*hint) {
		buf_puts(&w->out, "; to allow it, ");
		word(w, hint, "");
	}
	buf_putc(&w->out, '\n');
}

/* True at the end of the run that is watched. */
static bool line(struct watch *w, const char *text, size_t n)
{
	auto_json struct json *event = json_parse(text, n, NULL);
	const char *type = json_str(event, "type", "");
	bool denied = strcmp(type, "egress.denied") == 0;
	if (strcmp(type, "run.done") == 0)
		return w->run != NULL;
	if (strcmp(type, "egress.lost") == 0 && !w->cli->json)
		fail_note("too slow: %" PRId64 " lines are missing", json_int(event, "count", 0));
	else if (strncmp(type, "egress.", 7) != 0 || (w->denied && !denied))
		return false;
	else if (!w->cli->json)
		human(w, event);
	else
		buf_printf(&w->out, "%s\n", text);
	return false;
}

static int flush(struct watch *w)
{
	int r = fd_write_all(STDOUT_FILENO, w->out.p, w->out.len);
	buf_clear(&w->out);
	return r < 0 ? fail_system("stdout: %s", strerror(-r)) : EXIT_DONE;
}

static int watch(struct watch *w)
{
	struct err e = {0};
	auto_free char *path = w->run ? xasprintf("/v1/runs/%s/events?follow=1", w->run)
	                              : xstrdup("/v1/egress?follow=1");
	auto_client struct client *c = NULL;
	int code = query_lines(w->cli, path, &c);
	if (code != EXIT_DONE)
		return code;
	for (int more = 1;;) {
		size_t n;
		bool over = false;
		for (const char *text; !over && (text = client_line(c, &n));)
			over = line(w, text, n);
		code = flush(w);
		if (over || code != EXIT_DONE)
			return code;
		if (more == 0) /* and what came with the end has been looked at */
			return fail_system("the daemon has ended the stream");
		more = client_pump(c, &e);
		if (more < 0)
			return query_failed(&e);
	}
}

static int run(struct cli *cli, const void *args, int argc, char **argv)
{
	const struct egress_args *a = args;
	if (strcmp(argv[0], "watch") != 0)
		return fail_usage("abctl egress watch [RUN] [--denied]");
	if (argc > 1 && !id_valid(argv[1], "run"))
		return fail_usage("'%s' is no run id (see `abctl runs`)", argv[1]);
	struct watch w = {.cli = cli,
	        .run = argc > 1 ? argv[1] : NULL,
	        .denied = a->denied,
	        .out = BUF_INIT(4 * (size_t)LIMIT_EVENT)};
	int code = watch(&w);
	buf_done(&w.out);
	return code;
}

const struct verb cmd_egress = {
        .name = "egress",
        .synopsis = "watch [RUN] [--denied]",
        .summary = "what jails send out and are refused, live",
        .help = "Of one run until it ends, what it did before included; without RUN of all jails,\n"
                "the latest lines first. A refusal says why, and what to add to the policy to\n"
                "allow it. With --json one event a line.\n",
        .words = "watch",
        .opts = opts,
        .args_size = sizeof(struct egress_args),
        .min = 1,
        .max = 2,
        .run = run,
};
