#include "drivers/oneshot.h"
#include "base/mem.h"
#include "drivers/emit.h"
#include "drivers/launch.h"

#include <string.h>

/* ---- life ---- */

int oneshot_check(const struct driver *d, const struct driver_spec *spec, struct err *e)
{
	if (spec->resume && !launch_id_ok(spec->resume))
		return err_set(e, -ENOEXEC, "resume: '%.80s' is no session id", spec->resume);
	int r = launch_check(d, spec, e);
	if (r == 0)
		r = launch_check_names("tools.deny", spec->tools_deny, e);
	return r < 0 ? r : launch_check_names("tools.allow", spec->tools_allow, e);
}

struct driver_run *oneshot_open(
        const struct driver *d, const struct driver_spec *spec, struct event_sink *sink)
{
	struct driver_run *r = xnew(struct driver_run);
	r->name = d->name;
	r->dialect = d->dialect;
	r->sink = sink;
	r->prompt = prompt_of(spec);
	r->resumed = spec->resume != NULL;
	r->usage.cost_usd = -1;
	return r;
}

void oneshot_close(struct driver_run *r)
{
	if (!r)
		return;
	prompt_done(&r->prompt);
	free(r->session);
	calls_done(&r->calls);
	tail_done(&r->text);
	free(r->message);
	free(r->retry);
	free(r->error);
	free(r);
}

int oneshot_start(struct driver_run *r, struct buf *to_stdin, bool *ret_eof)
{
	return prompt_is_stdin(&r->prompt, to_stdin, ret_eof);
}

int64_t oneshot_turns(const struct driver_run *r)
{
	return r->begun;
}

/* ---- lines ---- */

void oneshot_line(struct driver_run *r, const char *p, size_t n, bool whole, struct buf *to_stdin,
        bool *ret_eof)
{
	(void)to_stdin, (void)ret_eof; /* stdin was closed after the prompt */
	if (n == 0)
		return;
	auto_json struct json *line = whole ? json_parse(p, n, NULL) : NULL;
	bool understood = json_is_object(line) && r->dialect->line(r, line);
	emit_unsaid(r->sink, understood, p, n, whole);
}

void oneshot_error_line(struct driver_run *r, const char *p, size_t n)
{
	r->lost =
	        r->lost || (r->resumed && memmem(p, n, r->dialect->lost, strlen(r->dialect->lost)));
	ending_reason_line(&r->ending, r->dialect->noise, p, n);
	emit_raw(r->sink, "stderr", p, n, false);
}

void oneshot_session(struct driver_run *r, const char *id)
{
	if (!launch_id_ok(id) || (r->session && strcmp(r->session, id) == 0))
		return;
	free(r->session);
	r->session = xstrdup(id);
}

/* ---- what it says ---- */

static const char *usable(const char *id)
{
	return calls_text_ok(id) ? id : NULL;
}

bool oneshot_text(struct driver_run *r, const char *text, bool delta, const char *id)
{
	if (!text)
		return false;
	if (!*text)
		return true;
	id = usable(id);
	if (r->next_is_new || (id && (!r->message || strcmp(r->message, id) != 0))) {
		tail_clear(&r->text);
		free(r->message);
		r->message = id ? xstrdup(id) : NULL;
		r->next_is_new = false;
	}
	tail_add(&r->text, text, strlen(text));
	return emit_text(r->sink, EVENT_AGENT_MESSAGE, text, strlen(text), delta, id, NULL);
}

bool oneshot_thinking(struct driver_run *r, const char *text, bool delta, const char *id)
{
	return text && (!*text || emit_text(r->sink, EVENT_AGENT_THINKING, text, strlen(text),
	                                  delta, usable(id), NULL));
}

bool oneshot_call(struct driver_run *r, const char *id, const char *name, const struct json *input)
{
	const struct looks *looks = &r->dialect->looks;
	if (!calls_text_ok(id) || !calls_text_ok(name) || !calls_start(&r->calls, id, name))
		return false;
	calls_set_path(&r->calls, id, looks_edits(looks, name, input));
	auto_free char *title = looks_title(looks, DRIVER_WORKSPACE, name, input);
	r->next_is_new = true;
	r->won = false;
	bool done = emit_call(r->sink, id, name, looks_kind(looks, name), input, title, NULL);
	if (!done)
		calls_finish(&r->calls, id);
	return done;
}

bool oneshot_result(struct driver_run *r, const char *id, bool ok, const char *output, int code)
{
	const char *name = id ? calls_name(&r->calls, id) : NULL;
	if (!name)
		return false;
	r->next_is_new = true;
	bool done = emit_result(r->sink, id, name, ok, output, strlen(output), code);
	calls_finish(&r->calls, id);
	return done;
}

void oneshot_changed(struct driver_run *r, const char *path, const char *change, const char *diff)
{
	const char *hunks = diff ? strstr(diff, "@@ ") : NULL;
	emit_changed(r->sink, emit_path(path), change, hunks, hunks ? strlen(hunks) : 0);
}

/* ---- the end ---- */

void oneshot_success(struct driver_run *r)
{
	r->won = true;
	free(r->error);
	r->error = NULL;
}

void oneshot_fail(struct driver_run *r, const char *message, const char *code)
{
	r->won = false;
	free(r->error);
	r->error = xstrdup(message);
	emit_error(r->sink, message, code, false);
}

/* NULL: it succeeded; else why not, owned. */
static char *failure(struct driver_run *r, const struct driver_exit *x)
{
	const char *name = r->name;
	auto_free char *how = ending_text(&r->ending, x);
	if (r->error)
		return take(r->error);
	if (!r->won && r->stop && x->code == 0)
		return xasprintf("%s stopped %s", name, r->stop);
	if (!r->won)
		return xasprintf("%s %s, without a result", name, how);
	bool killed = x->code < 0 || x->code > 128;
	if (x->code != 0 && (!killed || r->dialect->exit_is_word))
		return xasprintf("%s reported success and then %s", name, how);
	return NULL;
}

void oneshot_end(struct driver_run *r, const struct driver_exit *x, struct driver_outcome *ret)
{
	bool told = r->error != NULL;
	ret->tool_calls = r->calls.total;
	calls_close_all(&r->calls, r->sink, "The agent ended before the tool answered.");
	ret->error = failure(r, x);
	ret->status = ret->error ? DRIVER_FAILED : DRIVER_SUCCEEDED;
	if (ret->error && !told && !x->interrupted)
		emit_error(r->sink, ret->error, "no_result", false);
	ret->usage = r->usage;
	ret->final_text = tail_take(&r->text);
	ret->max_turns = r->max_turns;
	ret->resume_lost = r->lost && ret->error;
	if (!ret->resume_lost)
		ret->resume = take(r->session);
}
