#include "abctl/suggest.h"
#include "client/client.h"
#include "abctl/fail.h"
#include "abctl/local.h"
#include "base/neutral.h"
#include "abctl/query.h"
#include "base/fd.h"
#include "base/id.h"
#include "base/mem.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { ROWS_MAX = 16 << 20 };

struct refusals {
	char *policy; /* owned: of the last run that began; NULL: none did */
	char *doing;  /* owned: the tool that is at work, or NULL */
	struct buf rows;
};

/* A field of a row: tabs and new lines end it.  What an agent wrote is on its way to a terminal. */
static void field(struct buf *to, const char *text, char after)
{
	neutral_line(to, text, strlen(text));
	buf_putc(to, after);
}

static void denied(struct refusals *r, const struct json *event)
{
	const char *add = json_str(event, "add", NULL);
	buf_printf(&r->rows, "%" PRId64 "\t", json_int(event, "times", 1));
	field(&r->rows, json_str(event, "protocol", "tcp"), '\t');
	buf_printf(&r->rows, "%" PRId64 "\t", json_int(event, "port", 0));
	field(&r->rows, json_str(event, "host", "?"), '\t');
	field(&r->rows, add ? "add" : "none", '\t');
	field(&r->rows, r->doing ? r->doing : "", '\t');
	field(&r->rows, add ? "" : json_str(event, "hint", json_str(event, "reason", "")), '\n');
}

static void begin(struct refusals *r, const char *policy)
{
	if (!r->policy || strcmp(r->policy, policy) != 0)
		buf_clear(&r->rows); /* a suggestion is for one policy, the latest */
	free(r->policy);
	r->policy = xstrdup(policy);
	free(take(r->doing));
}

static void on_event(struct refusals *r, const char *text, size_t n)
{
	auto_json struct json *event = json_parse(text, n, NULL);
	const char *type = json_str(event, "type", "");
	if (strcmp(type, "run.started") == 0) {
		begin(r, json_str(event, "policy", "default"));
	} else if (strcmp(type, "tool.call") == 0) {
		free(r->doing);
		r->doing = xasprintf(
		        "%s %.80s", json_str(event, "name", "tool"), json_str(event, "title", ""));
	} else if (strcmp(type, "tool.result") == 0) {
		free(take(r->doing));
	} else if (strcmp(type, "egress.denied") == 0) {
		denied(r, event);
	}
}

static int collect(const struct cli *cli, const char *path, struct refusals *r)
{
	struct err e = {0};
	auto_client struct client *c = NULL;
	int code = query_lines(cli, path, &c);
	if (code != EXIT_DONE)
		return code;
	for (bool whole = false; !whole;) {
		size_t n;
		int more = client_pump(c, &e); /* nothing, where it is all there already */
		whole = more == 0;
		for (const char *text; (text = client_line(c, &n));)
			on_event(r, text, n);
		if (more < 0)
			return query_failed(&e);
	}
	return r->rows.failed ? fail_system("there are too many refusals to read") : EXIT_DONE;
}

/* The rows become the stdin of agentbox-policyc. */
static int ask(const struct cli *cli, const struct refusals *r, const char *of)
{
	const char *const args[] = {"suggest", r->policy, of, NULL};
	auto_close int rows = fd_sealed_memfd("refusals", r->rows.p ? r->rows.p : "", r->rows.len);
	if (rows < 0 || lseek(rows, 0, SEEK_SET) < 0 || dup2(rows, STDIN_FILENO) < 0)
		return fail_system("handing over what was refused: %s", strerror(errno));
	return local_explain(cli, args, false);
}

int suggest_policy(const struct cli *cli, const char *of)
{
	auto_free char *session = NULL;
	bool run = id_valid(of, "run");
	int code = run ? EXIT_DONE : query_session(cli, of, &session);
	if (code != EXIT_DONE)
		return code;
	auto_free char *path = run ? xasprintf("/v1/runs/%s/events", of)
	                           : xasprintf("/v1/sessions/%s/events", session);
	struct refusals r = {.rows = BUF_INIT(ROWS_MAX)};
	code = collect(cli, path, &r);
	if (code == EXIT_DONE && !r.policy)
		code = fail_usage("%s has not begun: nothing was refused to it", of);
	else if (code == EXIT_DONE)
		code = ask(cli, &r, of);
	buf_done(&r.rows);
	free(r.policy);
	free(r.doing);
	return code;
}
