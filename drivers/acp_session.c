#include "base/mem.h"
#include "drivers/acp.h"
#include "drivers/emit.h"

#include <string.h>

/*
 * One request of ours is open at a time, and its answer leads to the next:
 * initialize, (authenticate), session/new or session/load, the mode, the
 * model, session/prompt.  What goes wrong on the way ends the run.
 */

enum { AUTH_REQUIRED = -32000 };

/* ---- requests ---- */

static struct jw request_open(struct driver_run *r, struct buf *to, const char *method)
{
	struct jw w = JW_INIT(to);
	jw_open(&w, NULL, '{');
	jw_str(&w, "jsonrpc", "2.0");
	jw_int(&w, "id", ++r->request);
	jw_str(&w, "method", method);
	jw_open(&w, "params", '{');
	return w;
}

static void request_close(struct jw *w)
{
	jw_close(w, '}');
	jw_close(w, '}');
	buf_putc(w->to, '\n');
}

void acp_initialize(struct driver_run *r, struct buf *to_stdin)
{
	struct jw w = request_open(r, to_stdin, "initialize");
	jw_int(&w, "protocolVersion", 1);
	jw_open(&w, "clientCapabilities", '{');
	/* Served in the jail, by agentbox-acp. */
	jw_open(&w, "fs", '{');
	jw_bool(&w, "readTextFile", r->files);
	jw_bool(&w, "writeTextFile", r->files);
	jw_close(&w, '}');
	jw_bool(&w, "terminal", r->serves_terminals);
	if (r->permissions == PERMISSIONS_ASK) /* somebody is there to be asked */
		jw_raw(&w, "elicitation", "{\"form\":{}}", 11);
	jw_close(&w, '}');
	jw_open(&w, "clientInfo", '{');
	jw_str(&w, "name", "agentbox");
	jw_str(&w, "title", "agentbox");
	jw_str(&w, "version", "1");
	jw_close(&w, '}');
	request_close(&w);
}

static void authenticate(struct driver_run *r, struct buf *to_stdin)
{
	struct jw w = request_open(r, to_stdin, "authenticate");
	jw_str(&w, "methodId", r->auth);
	request_close(&w);
	r->authenticated = true;
	r->state = ACP_AUTHENTICATE;
}

static void fail_and_close(struct driver_run *r, const char *why, const char *code)
{
	acp_fail(r, why, code);
	r->state = ACP_CLOSED;
}

static void session(struct driver_run *r, struct buf *to_stdin)
{
	if (r->mcp_http && !r->http) {
		fail_and_close(r, "this agent cannot reach MCP servers at URLs", "mcp_failed");
		return;
	}
	if (r->resume && !r->load && !r->resumes) {
		r->resume_lost = true;
		fail_and_close(r, "this agent cannot go on with an earlier session", "resume");
		return;
	}
	struct jw w = request_open(r, to_stdin,
	        !r->resume ? "session/new"
	        : r->load  ? "session/load"
	                   : "session/resume");
	jw_str(&w, "sessionId", r->resume);
	jw_str(&w, "cwd", DRIVER_WORKSPACE);
	jw_raw(&w, "mcpServers", r->mcp, strlen(r->mcp));
	request_close(&w);
	r->state = ACP_SESSION;
}

void acp_note_prompt(struct driver_run *r, const char *p, size_t n)
{
	char *text = xcalloc(n + 1, 1);
	if (n)
		memcpy(text, p, n);
	r->prompts = xrealloc(r->prompts, r->nprompts + 1, sizeof(*r->prompts));
	r->prompts[r->nprompts++] = (struct acp_message){text, n};
}

static void put_text(struct jw *w, const char *p, size_t n)
{
	jw_open(w, NULL, '{');
	jw_str(w, "type", "text");
	jw_bytes(w, "text", p, n);
	jw_close(w, '}');
}

/* The protocol has no place for a system prompt: it goes in front of the first one, marked. */
void acp_prompt(struct driver_run *r, struct buf *to_stdin)
{
	struct acp_message m = r->prompts[0];
	memmove(r->prompts, r->prompts + 1, --r->nprompts * sizeof(m));
	struct jw w = request_open(r, to_stdin, "session/prompt");
	jw_str(&w, "sessionId", r->session);
	jw_open(&w, "prompt", '[');
	if (r->system && !r->loaded) {
		auto_free char *marked =
		        xasprintf("<system-instructions>\n%s\n</system-instructions>", r->system);
		put_text(&w, marked, strlen(marked));
		free(r->system);
		r->system = NULL;
	}
	put_text(&w, m.p, m.n);
	jw_close(&w, ']');
	request_close(&w);
	free(m.p);
	r->did = r->refused = false;
	r->text_ended = true;
	r->step = (struct driver_usage){0};
	r->state = ACP_PROMPT;
}

void acp_cancel(struct driver_run *r, struct buf *to_stdin)
{
	struct jw w = JW_INIT(to_stdin);
	jw_open(&w, NULL, '{');
	jw_str(&w, "jsonrpc", "2.0");
	jw_str(&w, "method", "session/cancel");
	jw_open(&w, "params", '{');
	jw_str(&w, "sessionId", r->session);
	request_close(&w);
}

/* ---- mode and model ---- */

/* Is it one of the values, which may come in groups? */
static bool offers(const struct json *list, const char *key, const char *value)
{
	if (!json_is_array(list))
		return false;
	for (const struct json *o = json_first(list); o; o = json_next(o)) {
		if (strcmp(json_str(o, key, ""), value) == 0)
			return true;
		const struct json *group = json_get(o, "options");
		if (!json_is_array(group))
			continue;
		for (const struct json *g = json_first(group); g; g = json_next(g))
			if (strcmp(json_str(g, key, ""), value) == 0)
				return true;
	}
	return false;
}

/* The configuration option of that category which can be set to the value; NULL: none. */
static const char *config_of(const struct json *session, const char *category, const char *value)
{
	const struct json *options = json_get(session, "configOptions");
	if (!json_is_array(options))
		return NULL;
	for (const struct json *o = json_first(options); o; o = json_next(o))
		if (strcmp(json_str(o, "category", ""), category) == 0 &&
		        offers(json_get(o, "options"), "value", value))
			return json_str(o, "id", NULL);
	return NULL;
}

static void set(struct driver_run *r, struct buf *to_stdin, const char *method, const char *config,
        const char *key, const char *value)
{
	struct jw w = request_open(r, to_stdin, config ? "session/set_config_option" : method);
	jw_str(&w, "sessionId", r->session);
	jw_str(&w, "configId", config);
	jw_str(&w, config ? "value" : key, value);
	request_close(&w);
}

static void model(struct driver_run *r, struct buf *to_stdin)
{
	if (!r->model) {
		acp_prompt(r, to_stdin);
		return;
	}
	set(r, to_stdin, "session/set_model", r->model_config, "modelId", r->model);
	r->state = ACP_MODEL;
}

/* A mode is set even where it is the present one: when its answer comes, what was to be told of an
 * old session has been. */
static void mode(struct driver_run *r, const struct json *session, struct buf *to_stdin)
{
	const char *config = NULL;
	if (r->model) {
		const char *by = config_of(session, "model", r->model);
		r->model_config = by ? xstrdup(by) : NULL;
		if (!by && !offers(json_path(session, "models", "availableModels", NULL), "modelId",
		                   r->model)) {
			auto_free char *why =
			        xasprintf("the agent does not offer the model %.200s", r->model);
			fail_and_close(r, why, "model");
			return;
		}
	}
	if (!r->mode) {
		model(r, to_stdin);
		return;
	}
	if (!offers(json_path(session, "modes", "availableModes", NULL), "id", r->mode) &&
	        !(config = config_of(session, "mode", r->mode))) {
		auto_free char *why =
		        xasprintf("the agent does not offer the mode %.200s", r->mode);
		fail_and_close(r, why, "mode");
		return;
	}
	set(r, to_stdin, "session/set_mode", config, "modeId", r->mode);
	r->state = ACP_MODE;
}

/* ---- answers ---- */

static void initialized(struct driver_run *r, const struct json *result, struct buf *to_stdin)
{
	const struct json *can = json_get(result, "agentCapabilities");
	long long version = json_int(result, "protocolVersion", 0);
	if (version != 1) {
		auto_free char *why = xasprintf(
		        "the agent speaks version %lld of the Agent Client Protocol, not 1",
		        version);
		fail_and_close(r, why, "protocol");
		return;
	}
	r->load = json_bool(can, "loadSession", false);
	r->resumes = json_is_object(json_path(can, "sessionCapabilities", "resume", NULL));
	r->http = json_bool(json_get(can, "mcpCapabilities"), "http", false);
	session(r, to_stdin);
}

static void session_made(struct driver_run *r, const struct json *result, struct buf *to_stdin)
{
	const char *id = json_str(result, "sessionId", r->resume);
	if (!calls_text_ok(id)) {
		fail_and_close(r, "the agent made a session without an id", "protocol");
		return;
	}
	r->session = xstrdup(id);
	r->loaded = r->resume != NULL;
	mode(r, result, to_stdin);
}

static void turn_ended(struct driver_run *r, const struct json *result, struct buf *to_stdin)
{
	acp_permissions_cancel(r, NULL);
	acp_tools_close(r, "The turn ended before the tool answered.");
	acp_stopped(r, result);
	if (r->success && r->nprompts && !r->interrupting)
		acp_prompt(r, to_stdin);
	else
		r->state = ACP_CLOSED;
}

static void refused(struct driver_run *r, const struct json *error, struct buf *to_stdin)
{
	bool auth = json_int(error, "code", 0) == AUTH_REQUIRED;
	if (r->state == ACP_SESSION && auth && r->auth && !r->authenticated) {
		authenticate(r, to_stdin);
		return;
	}
	r->resume_lost = r->state == ACP_SESSION && r->resume && !auth;
	if (r->state == ACP_PROMPT)
		acp_permissions_cancel(r, NULL);
	acp_refused(r, error);
	r->state = ACP_CLOSED;
}

bool acp_answered(struct driver_run *r, const struct json *line, struct buf *to_stdin)
{
	const struct json *result = json_get(line, "result"), *error = json_get(line, "error");
	double id = -1;
	if (r->state == ACP_CLOSED || !json_number(json_get(line, "id"), &id) ||
	        id != (double)r->request || (!result && !json_is_object(error)))
		return false;
	if (json_is_object(error)) {
		refused(r, error, to_stdin);
		return true;
	}
	switch (r->state) {
	case ACP_INITIALIZE:
		initialized(r, result, to_stdin);
		break;
	case ACP_AUTHENTICATE:
		session(r, to_stdin);
		break;
	case ACP_SESSION:
		session_made(r, result, to_stdin);
		break;
	case ACP_MODE:
		model(r, to_stdin);
		break;
	case ACP_MODEL:
		acp_prompt(r, to_stdin);
		break;
	case ACP_PROMPT:
		turn_ended(r, result, to_stdin);
		break;
	case ACP_CLOSED:
		break;
	}
	return true;
}
