#include "base/mem.h"
#include "drivers/acp.h"
#include "drivers/emit.h"

#include <string.h>

/*
 * A call is first heard of in a tool_call, in a permission request, or (gemini)
 * in its last tool_call_update.  Some tell it before its input is whole and
 * then piece by piece: it is held back until it runs, is asked about, or
 * something else is told.  content replaces what there was of it.
 */

/* ---- the calls that have not ended ---- */

static struct acp_call *find(struct driver_run *r, const char *id)
{
	for (size_t i = 0; i < r->nknown; i++)
		if (strcmp(r->known[i].id, id) == 0)
			return &r->known[i];
	return NULL;
}

static bool is_over(const struct driver_run *r, const char *id)
{
	size_t n = r->nover < ACP_OVER_MAX ? r->nover : ACP_OVER_MAX;
	for (size_t i = 0; i < n; i++)
		if (strcmp(r->over[i], id) == 0)
			return true;
	return false;
}

static void free_call(struct driver_run *r, struct acp_call *c)
{
	free(c->id);
	free(c->name);
	free(c->kind);
	free(c->title);
	free(c->input);
	free(c->where);
	free(c->terminal);
	buf_done(&c->output);
	acp_diffs_done(r, c);
}

static void forget(struct driver_run *r, struct acp_call *c)
{
	char **slot = &r->over[r->nover++ % ACP_OVER_MAX];
	acp_terminal_forget(r, c);
	free(*slot);
	*slot = take(c->id);
	calls_finish(&r->calls, *slot);
	free_call(r, c);
	size_t after = (size_t)(r->known + r->nknown - (c + 1));
	memmove(c, c + 1, after * sizeof(*c));
	if (--r->nknown == 0)
		acp_written_tell(r);
}

void acp_tools_done(struct driver_run *r)
{
	for (size_t i = 0; i < r->nknown; i++)
		free_call(r, &r->known[i]);
	free(r->known);
	for (size_t i = 0; i < ACP_OVER_MAX; i++)
		free(r->over[i]);
}

/* ---- what a call is ---- */

static bool is_word(const char *s)
{
	size_t n = s ? strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
	             : 0;
	return n && n <= 64 && !s[n];
}

/* The protocol has no name of a tool; where it is told, and what stands for it otherwise.
 * Returns owned. */
static char *name_of(const struct json *call, const char *id)
{
	const struct json *meta = json_get(call, "_meta"), *input = json_get(call, "rawInput");
	const char *name = json_str(call, "name", NULL), *title = json_str(call, "title", NULL);
	if (!name)
		name = json_str(meta, "toolName", NULL);
	if (!name)
		name = json_str(json_get(meta, "claudeCode"), "toolName", NULL);
	if (calls_text_ok(name))
		return xstrdup(name);
	const char *server = json_str(input, "server", NULL), *tool = json_str(input, "tool", NULL);
	if (is_word(server) && is_word(tool))
		return xasprintf("mcp__%s__%s", server, tool);
	const char *twice = strstr(id, "__"); /* write_file__write_file_1795_0 */
	size_t n = twice ? (size_t)(twice - id) : 0;
	if (n && strncmp(twice + 2, id, n) == 0)
		return xstrndup(id, n);
	/* copilot's title is what the model says of the command */
	bool named = is_word(title) && strcmp(title, json_str(input, "description", "")) != 0;
	return xstrdup(named ? title : json_str(call, "kind", "other"));
}

/* What of a call a person wants to see: the command, where it is told. */
const char *acp_call_title(const struct json *call)
{
	const char *command = json_str(json_get(call, "rawInput"), "command", NULL);
	return command && *command ? command : json_str(call, "title", NULL);
}

static const char *kind_of(const char *kind)
{
	static const char *const kinds[] = {
	        "read", "edit", "delete", "move", "search", "execute", "think", "fetch"};
	for (size_t i = 0; kind && i < ARRAY_LEN(kinds); i++)
		if (strcmp(kind, kinds[i]) == 0)
			return kinds[i];
	return "other"; /* switch_mode, too */
}

/* What is longer is cut: no path is so long, and of a title less is shown. */
static void set(char **to, const char *s)
{
	if (!s)
		return;
	free(*to);
	*to = xstrndup(s, CALLS_PATH_MAX);
}

static void note_input(struct acp_call *c, const struct json *input)
{
	auto_buf struct buf b = EMIT_BUF;
	if (!json_is_object(input) || !json_first(input) || json_print(input, &b) < 0)
		return;
	free(c->input);
	c->input = buf_take(&b);
}

static void note_content(struct driver_run *r, struct acp_call *c, const struct json *content)
{
	if (!json_is_array(content))
		return;
	for (const struct json *b = json_first(content); b; b = json_next(b)) {
		const char *type = json_str(b, "type", ""), *id = json_str(b, "terminalId", NULL);
		if (strcmp(type, "diff") == 0)
			acp_diff_keep(r, c, b);
		else if (strcmp(type, "terminal") == 0 && calls_text_ok(id))
			set(&c->terminal, id);
	}
}

/* Before the call is told, later news of it tell it better; afterwards only what it did counts. */
static void merge(struct driver_run *r, struct acp_call *c, const struct json *call)
{
	set(&c->where, json_str(json_first(json_get(call, "locations")), "path", NULL));
	note_content(r, c, json_get(call, "content"));
	if (c->announced)
		return;
	set(&c->title, acp_call_title(call));
	set(&c->kind, json_str(call, "kind", NULL));
	note_input(c, json_get(call, "rawInput"));
}

struct acp_call *acp_call_seen(struct driver_run *r, const struct json *call)
{
	const char *id = json_str(call, "toolCallId", NULL);
	if (!calls_text_ok(id) || is_over(r, id))
		return NULL;
	struct acp_call *c = find(r, id);
	if (!c) {
		auto_free char *name = name_of(call, id);
		if (!calls_text_ok(name) || !calls_start(&r->calls, id, name))
			return NULL;
		r->known = xrealloc(r->known, r->nknown + 1, sizeof(*r->known));
		c = &r->known[r->nknown++];
		*c = (struct acp_call){
		        .id = xstrdup(id), .name = take(name), .output = BUF_INIT(ACP_OUTPUT_MAX)};
	}
	merge(r, c, call);
	return c;
}

void acp_call_tell(struct driver_run *r, struct acp_call *c)
{
	if (c->announced)
		return;
	c->announced = r->did = r->text_ended = true;
	r->refused = false;
	auto_free char *title = emit_title(c->title && *c->title ? c->title : c->name);
	auto_buf struct buf b = EMIT_BUF;
	struct jw w = JW_INIT(&b);
	jw_str(&w, "callId", c->id);
	jw_str(&w, "name", c->name);
	jw_str(&w, "kind", kind_of(c->kind));
	jw_raw(&w, "input", c->input ? c->input : "{}", c->input ? strlen(c->input) : 2);
	jw_str(&w, "title", title);
	(void)emit_members(r->sink, EVENT_TOOL_CALL, &b); /* the input is of one line, which fits */
	free(c->input);
	c->input = NULL;
}

void acp_tools_tell(struct driver_run *r, const struct acp_call *but)
{
	for (size_t i = 0; i < r->nknown; i++)
		if (&r->known[i] != but)
			acp_call_tell(r, &r->known[i]);
}

void acp_tools_close(struct driver_run *r, const char *why)
{
	acp_tools_tell(r, NULL);
	calls_close_all(&r->calls, r->sink, why);
	while (r->nknown)
		forget(r, &r->known[0]);
}

/* ---- output ---- */

static void add_text(struct buf *to, const char *text)
{
	if (to->len)
		buf_putc(to, '\n');
	buf_puts(to, text);
}

/* content is a list of {type: content, content: BLOCK}, diffs (told as changed files) and
 * terminals (told by agentbox-acp). */
static void content_text(const struct json *content, struct buf *to)
{
	if (!json_is_array(content))
		return;
	for (const struct json *b = json_first(content); b; b = json_next(b)) {
		const char *type = json_str(b, "type", "");
		if (strcmp(type, "diff") == 0 || strcmp(type, "terminal") == 0)
			continue;
		const struct json *in = strcmp(type, "content") == 0 ? json_get(b, "content") : b;
		const char *text = json_str(in, "text", NULL);
		auto_free char *other =
		        text ? NULL : xasprintf("[%.40s]", json_str(in, "type", "?"));
		add_text(to, text ? text : other);
	}
}

/* rawOutput is what the tool gave, in the agent's own form; as text it is better than content,
 * which some dress up for an editor. */
static void result_text(const struct acp_call *c, const struct json *update, struct buf *to)
{
	static const char *const members[] = {
	        "aggregated_output", "output", "content", "message", "error", "text"};
	const struct json *raw = json_get(update, "rawOutput");
	if (json_text(raw)) {
		buf_puts(to, json_text(raw));
		return;
	}
	content_text(json_get(update, "content"), to);
	for (size_t i = 0; i < ARRAY_LEN(members) && to->len == 0; i++)
		buf_puts(to, json_str(raw, members[i], ""));
	if (to->len == 0 && c->output.len)
		buf_put(to, c->output.p, c->output.len);
}

void acp_output_tell(struct driver_run *r, struct acp_call *c, const char *more, size_t n)
{
	auto_buf struct buf b = EMIT_BUF;
	if (buf_put(&c->output, more, n) < 0)
		return; /* the result has all of it */
	acp_call_tell(r, c);
	struct jw w = JW_INIT(&b);
	jw_str(&w, "callId", c->id);
	jw_bytes(&w, "output", more, n);
	(void)emit_members(r->sink, EVENT_TOOL_UPDATE, &b); /* ACP_OUTPUT_MAX fits */
}

/* What is new of a growing output.  pi-acp gives pieces in _meta instead.  With the last update
 * comes the result, which has all of it. */
static void tell_output(
        struct driver_run *r, struct acp_call *c, const struct json *update, bool last)
{
	auto_buf struct buf all = BUF_INIT(ACP_OUTPUT_MAX);
	const char *piece =
	        json_str(json_path(update, "_meta", "terminal_output", NULL), "data", NULL);
	acp_terminal_tell(r, c);
	if (!last)
		content_text(json_get(update, "content"), &all);
	const char *more = piece;
	if (!more && all.p && all.len > c->output.len && !all.failed &&
	        (!c->output.len || memcmp(all.p, c->output.p, c->output.len) == 0))
		more = all.p + c->output.len;
	if (more && *more)
		acp_output_tell(r, c, more, strlen(more));
}

/* The status of a command, where it is told. */
static bool exit_code(const struct json *update, int *ret)
{
	static const char words[] = "Exit code ";
	const struct json *raw = json_get(update, "rawOutput");
	const struct json *code = json_get(raw, "exit_code");
	const char *text = json_text(raw);
	double n;
	if (text && strncmp(text, words, sizeof(words) - 1) == 0) {
		long n_told = strtol(text + sizeof(words) - 1, NULL, 10);
		*ret = n_told > 0 && n_told < 256 ? (int)n_told : 0;
		return *ret > 0;
	}
	if (!code)
		code = json_get(raw, "exitCode");
	if (!code)
		code = json_path(raw, "metadata", "exit", NULL);
	if (!code)
		code = json_get(json_first(json_get(raw, "contents")), "exitCode");
	if (!code)
		code = json_path(update, "_meta", "terminal_exit", "exit_code", NULL);
	if (!json_number(code, &n) || n < -1 || n > 255)
		return false;
	*ret = (int)n;
	return true;
}

static bool result(struct driver_run *r, struct acp_call *c, const struct json *update, bool ok)
{
	auto_buf struct buf out = EMIT_BUF, b = EMIT_BUF;
	int code = 0;
	acp_call_tell(r, c);
	tell_output(r, c, update, true);
	result_text(c, update, &out);
	bool coded = exit_code(update, &code) || acp_terminal_code(r, c, &code);
	if (out.failed)
		return false;
	struct jw w = JW_INIT(&b);
	jw_str(&w, "callId", c->id);
	jw_str(&w, "name", c->name);
	jw_bool(&w, "ok", ok && code == 0);
	jw_bytes(&w, "output", out.p ? out.p : "", out.len);
	if (coded)
		jw_int(&w, "exitCode", code);
	bool done = emit_members(r->sink, EVENT_TOOL_RESULT, &b);
	if (ok && done)
		acp_diffs_emit(r, c);
	if (done)
		forget(r, c);
	r->text_ended = true;
	return done;
}

bool acp_tool_update(struct driver_run *r, const struct json *update)
{
	const char *status = json_str(update, "status", "");
	bool pending = !*status || strcmp(status, "pending") == 0;
	const struct json *input = json_get(update, "rawInput");
	struct acp_call *c = acp_call_seen(r, update);
	if (!c)
		return false;
	acp_tools_tell(r, c);
	if (strcmp(status, "completed") == 0 || strcmp(status, "failed") == 0)
		return result(r, c, update, strcmp(status, "completed") == 0);
	/* A command without its text (opencode) is not whole yet; a first sight with input is. */
	bool whole = *status && c->input &&
	             (strcmp(kind_of(c->kind), "execute") != 0 || json_get(input, "command"));
	if (!pending || whole)
		acp_call_tell(r, c);
	if (c->announced)
		tell_output(r, c, update, false);
	return true;
}
