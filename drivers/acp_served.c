#include "base/mem.h"
#include "drivers/acp.h"
#include "drivers/emit.h"

#include <string.h>

/*
 * What agentbox-acp (jail/acp.h) has done for the agent, as it tells in
 * notifications of its own.  A file that was written is mostly told by a call of
 * the agent's too, and better, with a diff: so it is held back while a call is
 * open.  A terminal's output belongs to the call whose content names it, which
 * may come later.  All of this is the agent's word, like the rest: it could
 * write such lines itself.
 */

/* ---- files ---- */

void acp_written_told(struct driver_run *r, const char *path)
{
	for (size_t i = 0; i < r->nwritten; i++) {
		if (strcmp(emit_path(r->written[i].path), emit_path(path)) != 0)
			continue;
		free(r->written[i].path);
		r->written[i] = r->written[--r->nwritten];
		return;
	}
}

void acp_written_tell(struct driver_run *r)
{
	for (size_t i = 0; i < r->nwritten; i++) {
		struct acp_written *w = &r->written[i];
		emit_changed(r->sink, emit_path(w->path), w->added ? "add" : "edit", NULL, 0);
		free(w->path);
	}
	r->nwritten = 0;
}

static bool wrote(struct driver_run *r, const struct json *params)
{
	const char *path = json_str(params, "path", NULL);
	if (!path || !*path || strlen(path) > CALLS_PATH_MAX)
		return false;
	bool added = strcmp(json_str(params, "change", ""), "add") == 0;
	for (size_t i = 0; i < r->nwritten; i++)
		if (strcmp(r->written[i].path, path) == 0)
			return true;
	if (r->nwritten == ACP_WRITTEN_MAX)
		acp_written_tell(r);
	r->written[r->nwritten++] = (struct acp_written){xstrdup(path), added};
	if (!r->nknown)
		acp_written_tell(r);
	r->did = true;
	return true;
}

/* ---- terminals ---- */

static struct acp_terminal *find(struct driver_run *r, const char *id)
{
	for (size_t i = 0; id && i < r->nterminals; i++)
		if (strcmp(r->terminals[i].id, id) == 0)
			return &r->terminals[i];
	return NULL;
}

static void forget(struct driver_run *r, struct acp_terminal *t)
{
	free(t->id);
	buf_done(&t->output);
	size_t after = (size_t)(r->terminals + r->nterminals - (t + 1));
	memmove(t, t + 1, after * sizeof(*t));
	r->nterminals--;
}

static struct acp_terminal *find_or_make(struct driver_run *r, const char *id)
{
	struct acp_terminal *t = find(r, id);
	if (t)
		return t;
	if (r->nterminals == ACP_TERMINALS_MAX)
		forget(r, &r->terminals[0]); /* the oldest, which no call has named */
	t = &r->terminals[r->nterminals++];
	*t = (struct acp_terminal){.id = xstrdup(id), .output = BUF_INIT(ACP_OUTPUT_MAX)};
	return t;
}

void acp_terminal_tell(struct driver_run *r, struct acp_call *c)
{
	struct acp_terminal *t = find(r, c->terminal);
	if (!t || !t->output.len)
		return;
	acp_output_tell(r, c, t->output.p, t->output.len);
	buf_clear(&t->output);
}

bool acp_terminal_code(struct driver_run *r, const struct acp_call *c, int *ret)
{
	const struct acp_terminal *t = find(r, c->terminal);
	if (t && t->ended)
		*ret = t->code;
	return t && t->ended;
}

void acp_terminal_forget(struct driver_run *r, const struct acp_call *c)
{
	struct acp_terminal *t = find(r, c->terminal);
	if (t)
		forget(r, t);
}

static bool terminal(struct driver_run *r, const struct json *params)
{
	const char *id = json_str(params, "terminalId", NULL);
	const char *output = json_str(params, "output", NULL);
	double code = -1;
	if (!id || !calls_text_ok(id))
		return false;
	struct acp_terminal *t = find_or_make(r, id);
	if (!output) {
		(void)json_number(json_get(params, "exitCode"), &code); /* null: by a signal */
		t->ended = true;
		t->code = code >= 0 && code <= 255 ? (int)code : -1;
		return true;
	}
	if (buf_puts(&t->output, output) < 0)
		t->output.failed = 0; /* so much is enough */
	for (size_t i = 0; i < r->nknown; i++)
		if (r->known[i].terminal && strcmp(r->known[i].terminal, id) == 0)
			acp_terminal_tell(r, &r->known[i]);
	return true;
}

/* ---- both ---- */

bool acp_served(struct driver_run *r, const char *method, const struct json *params)
{
	if (strcmp(method, "_agentbox/wrote") == 0)
		return wrote(r, params);
	return strcmp(method, "_agentbox/terminal") == 0 && terminal(r, params);
}

void acp_served_done(struct driver_run *r)
{
	for (size_t i = 0; i < r->nwritten; i++)
		free(r->written[i].path);
	while (r->nterminals)
		forget(r, &r->terminals[0]);
}
