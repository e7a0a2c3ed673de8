#include "base/limits.h"
#include "base/mem.h"
#include "base/version.h"
#include "drivers/codex_server.h"
#include "drivers/launch.h"

#include <string.h>

/* ---- before the start ---- */

int codex_server_check(const struct driver_spec *spec, struct err *e)
{
	if (spec->resume && !launch_id_ok(spec->resume))
		return err_set(e, -ENOEXEC, "resume: '%.80s' is no id of a thread", spec->resume);
	return launch_check(&driver_codex, spec, e);
}

int codex_server_command(const struct driver_spec *spec, struct driver_command *ret, struct err *e)
{
	int r = codex_server_check(spec, e);
	if (r < 0)
		return r;
	launch_arg(ret, spec->program ? spec->program : "/opt/agent/bin/codex");
	launch_arg(ret, "app-server");
	launch_args(ret, spec->args);
	return 0;
}

/* ---- requests ---- */

/* A line is put together aside, so that one which does not fit leaves no half of it. */
#define LINE_BUF BUF_INIT((size_t)LIMIT_PROMPT * 6 + (size_t)LIMIT_YAML_FILE * 6 + 65536)

static bool put_line(struct buf *to, struct buf *line)
{
	buf_putc(line, '\n');
	return line->failed == 0 && buf_put(to, line->p, line->len) == 0;
}

static void open_request(
        struct driver_run *r, struct jw *w, enum codex_request what, const char *method)
{
	struct codex_sent *s = &r->sent[r->nsent++];
	*s = (struct codex_sent){.id = ++r->last_id, .what = what};
	jw_open(w, NULL, '{');
	jw_int(w, "id", s->id);
	jw_str(w, "method", method);
	jw_open(w, "params", '{');
}

static bool close_request(struct driver_run *r, struct jw *w, struct buf *to)
{
	jw_close(w, '}');
	jw_close(w, '}');
	if (put_line(to, w->to))
		return true;
	r->nsent--; /* nobody answers what was not asked */
	return false;
}

bool codex_sent_take(
        struct driver_run *r, const struct json *id, enum codex_request *ret, char **ret_text)
{
	double number;
	if (!json_number(id, &number))
		return false;
	for (size_t i = 0; i < r->nsent; i++) {
		if ((double)r->sent[i].id != number)
			continue;
		*ret = r->sent[i].what;
		*ret_text = r->sent[i].text;
		r->sent[i] = r->sent[--r->nsent];
		return true;
	}
	return false;
}

bool codex_awaits(const struct driver_run *r, enum codex_request what)
{
	for (size_t i = 0; i < r->nsent; i++)
		if (r->sent[i].what == what)
			return true;
	return false;
}

/* ---- the thread ---- */

static void put_server(struct jw *w, const struct driver_mcp *m)
{
	jw_open(w, m->name, '{');
	if (m->url) {
		jw_str(w, "url", m->url);
		launch_put_pairs(w, "http_headers", m->headers, ':', NULL);
	} else {
		jw_str(w, "command", m->command[0]);
		launch_put_args(w, "args", m->command, NULL);
		launch_put_pairs(w, "env", m->env, '=', NULL);
	}
	jw_close(w, '}');
}

/* Where Codex would ask by itself, but for `untrusted`: what may need a question is asked. */
static const char *approval(const struct driver_run *r)
{
	return r->permissions == PERMISSIONS_AUTO ? "never" : "untrusted";
}

static void put_thread(struct driver_run *r, const struct driver_spec *spec, struct jw *w)
{
	if (spec->resume) {
		jw_str(w, "threadId", spec->resume);
		jw_bool(w, "excludeTurns", true); /* what was said is in the log already */
	}
	jw_str(w, "cwd", DRIVER_WORKSPACE);
	jw_str(w, "approvalPolicy", approval(r));
	jw_str(w, "sandbox", "danger-full-access"); /* the jail is the sandbox */
	jw_str(w, "model", spec->model);
	/* Also without any: those of an earlier run must not count. */
	jw_str(w, "developerInstructions", spec->system_prompt ? spec->system_prompt : "");
	if (!spec->nmcp)
		return;
	jw_open(w, "config", '{');
	jw_open(w, "mcp_servers", '{');
	for (size_t i = 0; i < spec->nmcp; i++)
		put_server(w, &spec->mcp[i]);
	jw_close(w, '}');
	jw_close(w, '}');
}

void codex_put_start(struct driver_run *r, const struct driver_spec *spec)
{
	r->start = (struct buf)LINE_BUF;
	auto_buf struct buf hello = LINE_BUF, thread = LINE_BUF;
	struct jw w = JW_INIT(&hello);
	open_request(r, &w, CODEX_INITIALIZE, "initialize");
	jw_open(&w, "clientInfo", '{');
	jw_str(&w, "name", "agentbox");
	jw_str(&w, "version", AGENTBOX_VERSION);
	jw_close(&w, '}');
	(void)close_request(r, &w, &r->start); /* a failure stays in r->start */
	buf_puts(&r->start, "{\"method\":\"initialized\"}\n");
	w = (struct jw)JW_INIT(&thread);
	open_request(r, &w, CODEX_THREAD, spec->resume ? "thread/resume" : "thread/start");
	put_thread(r, spec, &w);
	if (!close_request(r, &w, &r->start))
		r->start.failed = r->start.failed ? r->start.failed : -ENOBUFS;
}

/* ---- turns ---- */

static void put_text(struct jw *w, const char *text)
{
	jw_open(w, NULL, '{');
	jw_str(w, "type", "text");
	jw_str(w, "text", text);
	jw_open(w, "text_elements", '[');
	jw_close(w, ']');
	jw_close(w, '}');
}

bool codex_put_turn(struct driver_run *r, struct buf *to_stdin)
{
	if (r->nsent == CODEX_REQUESTS_MAX)
		return false;
	auto_buf struct buf line = LINE_BUF;
	struct jw w = JW_INIT(&line);
	open_request(r, &w, CODEX_TURN, "turn/start");
	jw_str(&w, "threadId", r->thread);
	jw_open(&w, "input", '[');
	for (size_t i = 0; i < r->nwaiting; i++)
		put_text(&w, r->waiting[i]);
	jw_close(&w, ']');
	jw_str(&w, "approvalPolicy", approval(r));
	/* Asks as it would with a sandbox, and makes none. */
	jw_open(&w, "sandboxPolicy", '{');
	jw_str(&w, "type", "externalSandbox");
	jw_str(&w, "networkAccess", "enabled");
	jw_close(&w, '}');
	if (!close_request(r, &w, to_stdin))
		return false;
	while (r->nwaiting)
		free(r->waiting[--r->nwaiting]);
	return true;
}

bool codex_put_steer(struct driver_run *r, const char *text, struct buf *to_stdin)
{
	if (r->nsent == CODEX_REQUESTS_MAX)
		return false;
	auto_buf struct buf line = LINE_BUF;
	struct jw w = JW_INIT(&line);
	open_request(r, &w, CODEX_STEER, "turn/steer");
	jw_str(&w, "threadId", r->thread);
	jw_str(&w, "expectedTurnId", r->turn);
	jw_open(&w, "input", '[');
	put_text(&w, text);
	jw_close(&w, ']');
	if (!close_request(r, &w, to_stdin))
		return false;
	r->sent[r->nsent - 1].text = xstrdup(text);
	return true;
}

bool codex_put_interrupt(struct driver_run *r, struct buf *to_stdin)
{
	if (r->nsent == CODEX_REQUESTS_MAX)
		return false;
	auto_buf struct buf line = LINE_BUF;
	struct jw w = JW_INIT(&line);
	open_request(r, &w, CODEX_INTERRUPT, "turn/interrupt");
	jw_str(&w, "threadId", r->thread);
	jw_str(&w, "turnId", r->turn);
	return close_request(r, &w, to_stdin);
}
