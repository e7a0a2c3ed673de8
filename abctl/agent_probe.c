#include "abctl/agent_probe.h"
#include "abctl/attach.h"
#include "abctl/capture.h"
#include "abctl/fail.h"
#include "base/neutral.h"
#include "abctl/query.h"
#include "abctl/show.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum {
	SAID_MAX = 64 << 10, /* a version, and what some add to it */
	LINE_MAX_BYTES = 200,
};

/* ---- in a jail ---- */

struct trial {
	const struct cli *cli;
	const struct buf *body;
	const char *command;
};

static int try_it(const void *ctx)
{
	const struct trial *t = ctx;
	const struct cli plain = {.peer = t->cli->peer};
	const struct attach_terminal none = {.quiet = true};
	auto_close int empty = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (empty < 0 || dup2(empty, STDIN_FILENO) < 0)
		return fail_system("an empty stdin: %s", strerror(errno));
	return attach_run(&plain, "/v1/jails", t->body, &none, t->command);
}

/* A program that hangs is ended with its jail. */
static int run(const struct cli *cli, const char *policy, const struct json *agent, char **ret_said)
{
	auto_buf struct buf body = BUF_INIT(LIMIT_EXEC_BLOB);
	struct jw w = JW_INIT(&body);
	const struct json *probe = json_get(agent, "probe");
	jw_open(&w, NULL, '{');
	jw_tree(&w, "argv", probe);
	jw_str(&w, "agent", json_str(agent, "name", NULL));
	jw_str(&w, "policy", policy);
	jw_open(&w, "limits", '{');
	jw_str(&w, "wall", "120s");
	jw_close(&w, '}');
	jw_close(&w, '}');
	const struct trial t = {cli, &body, json_text(json_first(probe))};
	return capture(try_it, &t, "the agent", SAID_MAX, ret_said);
}

/* ---- what it said ---- */

/* The first line that is not empty, in place. */
static char *first_line(char *text)
{
	char *line = text;
	while (line && (line = strsep(&text, "\n")) && !line[strspn(line, " \t\r")])
		;
	if (line && strlen(line) > LINE_MAX_BYTES)
		line[LINE_MAX_BYTES] = '\0';
	return line;
}

/* Is it one of the words: "codex-cli 0.1.2", "v0.1.2", "Copilot 0.1.2."? */
static bool says(const char *line, const char *version)
{
	size_t n = strlen(version);
	for (const char *at = line; n && (at = strstr(at, version)); at++) {
		bool begins = at == line || at[-1] == ' ' ||
		              (at[-1] == 'v' && (at == line + 1 || at[-2] == ' '));
		const char *end = at + n;
		end += *end == '.' && (!end[1] || end[1] == ' ' || end[1] == '\r');
		if (begins && (!*end || strchr(" ,\r\t", *end)))
			return true;
	}
	return false;
}

/* ---- what is told ---- */

static int tell(const struct cli *cli, const struct json *agent, const char *said, char *taken)
{
	auto_free char *reason = taken;
	const char *name = json_str(agent, "name", "");
	const char *version = json_str(agent, "version", NULL);
	auto_buf struct buf b = BUF_INIT(1 << 20);
	struct jw w = JW_INIT(&b);
	if (cli->json) {
		jw_open(&w, NULL, '{');
		jw_str(&w, "agent", name);
		jw_bool(&w, "ok", !reason);
		jw_str(&w, "reason", reason);
		jw_str(&w, "version", version);
		jw_str(&w, "installed", json_str(agent, "installed", NULL));
		jw_str(&w, "said", said);
		jw_close(&w, '}');
	} else {
		auto_free char *text =
		        reason ? xasprintf("%s: %s", name, reason)
		               : xasprintf("%s %s starts", name, version ? version : said);
		neutral_line(&b, text, strlen(text));
	}
	buf_putc(&b, '\n');
	int r = show_text(&b);
	return r ? r : reason ? EXIT_FAILED : EXIT_DONE;
}

/* What can be said before it is tried; owned, or NULL. */
static char *hopeless(const struct json *agent)
{
	const char *error = json_str(agent, "error", NULL);
	const char *unavailable = json_str(agent, "unavailable", NULL);
	bool files = json_bool(agent, "installable", false);
	const char *name = json_str(agent, "name", "");
	if (error)
		return xstrdup(error);
	if (!json_first(json_get(agent, "probe")))
		return xstrdup("its agent.yaml has no probe");
	if (!files || json_str(agent, "installed", NULL))
		return NULL;
	return unavailable
	               ? xasprintf("it is not installed: %s", unavailable)
	               : xasprintf("it is not installed; remedy: abctl agent install %s, or a file "
	                           "VERSION in the tree that you have put there",
	                         name);
}

static char *wrong(const struct json *agent, int code, const char *said)
{
	const char *version = json_str(agent, "version", NULL);
	const char *installed = json_str(agent, "installed", NULL);
	if (code)
		return xasprintf("it does not start: exit code %d%s%s", code, said ? ": " : "",
		        said ? said : "");
	if (!said)
		return xstrdup("it does not tell its version");
	if (version && !says(said, version))
		return xasprintf("it says '%s', pinned is %s", said, version);
	if (version && installed && strcmp(installed, version) != 0)
		return xasprintf("installed as %s, pinned is %s; remedy: abctl agent install %s",
		        installed, version, json_str(agent, "name", ""));
	return NULL;
}

void agent_path(struct buf *to, const char *name)
{
	buf_puts(to, "/v1/agents/");
	url_encode(to, name);
}

int agent_get(const struct cli *cli, const char *name, struct json **ret)
{
	auto_buf struct buf path = BUF_INIT(QUERY_PATH_MAX);
	agent_path(&path, name);
	return query_get(cli, path.p, ret);
}

int agent_probe(const struct cli *cli, const char *policy, const char *name)
{
	auto_json struct json *agent = NULL;
	int r = agent_get(cli, name, &agent);
	if (r)
		return r;
	char *why = hopeless(agent);
	if (why)
		return tell(cli, agent, NULL, why);
	auto_free char *text = NULL;
	int code = run(cli, policy, agent, &text);
	if (code == EXIT_SYSTEM || code == EXIT_USAGE)
		return code; /* said already */
	const char *said = first_line(text);
	return tell(cli, agent, said, wrong(agent, code, said));
}
