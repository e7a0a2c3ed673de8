#include "base/mem.h"
#include "drivers/acp.h"
#include "drivers/emit.h"
#include "drivers/usage.h"

#include <string.h>

/* ---- usage ---- */

/* A number of tokens, which is what a hostile agent says it is: bounded, so that sums cannot
 * overflow. */
static int64_t tokens(const struct json *j, const char *key)
{
	int64_t n = json_int(j, key, 0);
	return n < 0 ? 0 : n > 1000000000000 ? 1000000000000 : n;
}

/* Some count cached tokens among the input and thoughts among the output, some do not: the total
 * tells which.  Our events count both in. */
static struct driver_usage counted(const struct json *u)
{
	int64_t in = tokens(u, "inputTokens"), out = tokens(u, "outputTokens");
	int64_t read = tokens(u, "cachedReadTokens"), thought = tokens(u, "thoughtTokens");
	int64_t cached = read + tokens(u, "cachedWriteTokens");
	int64_t rest = tokens(u, "totalTokens") - in - out;
	if (cached && rest >= cached) {
		in += cached;
		rest -= cached;
	}
	if (thought && rest >= thought)
		out += thought;
	return (struct driver_usage){
	        .input_tokens = in, .output_tokens = out, .cached_tokens = read};
}

static void add(struct driver_usage *to, const struct driver_usage *more)
{
	to->input_tokens += more->input_tokens;
	to->output_tokens += more->output_tokens;
	to->cached_tokens += more->cached_tokens;
}

static double cost_of(const struct driver_run *r)
{
	if (!r->waited || r->cost < 0)
		return r->cost;
	if (r->before.cost_usd < 0)
		return -1;
	return r->cost > r->before.cost_usd ? r->cost - r->before.cost_usd : 0;
}

/* Of one request to the model, told on the way (qwen). */
void acp_usage_piece(struct driver_run *r, const struct json *usage)
{
	if (!json_is_object(usage) || r->history)
		return;
	struct driver_usage u = counted(usage);
	add(&r->step, &u);
}

/* Of the turn: in the answer's usage, in its quota (gemini), or the pieces of it. */
void acp_usage_turn(struct driver_run *r, const struct json *result)
{
	const struct json *usage = json_get(result, "usage");
	const struct json *quota = json_path(result, "_meta", "quota", "token_count", NULL);
	struct driver_usage u = r->step;
	if (json_is_object(usage)) {
		u = counted(usage);
	} else if (json_get(quota, "input_tokens")) {
		u = (struct driver_usage){.input_tokens = tokens(quota, "input_tokens"),
		        .output_tokens = tokens(quota, "output_tokens")};
	}
	if (r->usage_sums) {
		r->usage.input_tokens = r->usage.output_tokens = r->usage.cached_tokens = 0;
		usage_take_off(&u, &r->before);
	}
	add(&r->usage, &u);
	r->usage.turns++;
	r->step = (struct driver_usage){0};
	/* What a session that goes on has cost before is not known. */
	r->usage.cost_usd = r->loaded ? -1 : cost_of(r);
	if (u.input_tokens || u.output_tokens || r->usage.cost_usd >= 0)
		emit_usage(r->sink, &r->usage);
}

/* ---- how a turn ended ---- */

void acp_fail(struct driver_run *r, const char *message, const char *code)
{
	r->success = false;
	free(r->error);
	r->error = xstrdup(message);
	emit_error(r->sink, message, code, false);
}

/* Does the last piece of text say that the turn failed? */
static bool said_failure(struct driver_run *r)
{
	for (char **f = r->failure_text; f && *f; f++) {
		size_t n = strlen(*f);
		if (n && r->piece.len >= n && memcmp(r->piece.p, *f, n) == 0)
			return true;
	}
	return false;
}

static void ended_turn(struct driver_run *r)
{
	/* Nothing but old words: what was taken for them was the answer. */
	if (r->history && !r->did && r->text.len) {
		r->did = emit_text(
		        r->sink, EVENT_AGENT_MESSAGE, r->text.p, r->text.len, false, NULL, NULL);
		r->history = false;
	}
	if (said_failure(r)) {
		auto_free char *why = xasprintf(
		        "the agent reports a failure: %.*s", (int)r->piece.len, r->piece.p);
		acp_fail(r, why, "agent_error");
	} else if (r->refused) {
		acp_fail(r, "the agent stopped when a permission was refused", "permission_denied");
	} else if (!r->did) {
		acp_fail(r, "the agent ended its turn without a word", "no_answer");
	} else {
		r->success = true;
	}
}

void acp_stopped(struct driver_run *r, const struct json *result)
{
	static const struct {
		const char *reason, *message;
	} ends[] = {
	        {"max_tokens", "the agent reached its limit of tokens"},
	        {"max_turn_requests", "the agent reached its limit of turns"},
	        {"refusal", "the agent refuses to go on"},
	        {"cancelled", "the agent cancelled its turn"},
	};
	const char *reason = json_str(result, "stopReason", "");
	r->success = false;
	free(r->error);
	r->error = NULL;
	acp_usage_turn(r, result);
	if (strcmp(reason, "end_turn") == 0) {
		ended_turn(r);
		return;
	}
	if (r->interrupting && strcmp(reason, "cancelled") == 0) {
		r->error = xstrdup("interrupted"); /* our own doing, which the supervisor tells */
		return;
	}
	if (r->refused && strcmp(reason, "cancelled") == 0) {
		acp_fail(r, "the agent stopped when a permission was refused", "permission_denied");
		return;
	}
	r->max_turns = strcmp(reason, "max_turn_requests") == 0;
	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		if (strcmp(reason, ends[i].reason) == 0) {
			acp_fail(r, ends[i].message, reason);
			return;
		}
	auto_free char *why = xasprintf("the agent stopped its turn: %.80s", reason);
	acp_fail(r, why, "stopped");
}

/* "Internal error" says nothing: the data does, in one member or another.  gemini's message is what
 * the API has answered. */
void acp_refused(struct driver_run *r, const struct json *error)
{
	const char *message = json_str(error, "message", "the agent reports an error");
	auto_json struct json *api = json_parse(message, strlen(message), NULL);
	message = json_str(json_get(api, "error"), "message", message);
	const struct json *data = json_get(error, "data");
	const char *more = json_text(data);
	if (!more)
		more = json_str(data, "message", json_str(data, "details", NULL));
	auto_free char *why = more && !strstr(message, more) ? xasprintf("%s: %s", message, more)
	                                                     : xstrdup(message);
	auto_free char *code = xasprintf("%lld", (long long)json_int(error, "code", 0));
	acp_fail(r, why, code);
}

/* ---- between two runs ---- */

/* With a program in a terminal it would not be at rest. */
char *acp_rest(const struct driver_run *r)
{
	for (size_t i = 0; i < r->nterminals; i++)
		if (!r->terminals[i].ended)
			return NULL;
	if (!r->success || r->error || r->interrupting || r->nasked || r->remembers || !r->session)
		return NULL;
	auto_buf struct buf b = BUF_INIT(8192);
	struct jw w = JW_INIT(&b);
	jw_open(&w, NULL, '{');
	jw_str(&w, "session", r->session);
	jw_int(&w, "request", r->request);
	jw_bool(&w, "loaded", r->loaded);
	struct driver_usage sums = r->before;
	usage_add(&sums, &r->usage);
	sums.cost_usd = r->cost; /* of the session already */
	usage_put(&w, &sums);
	jw_close(&w, '}');
	return b.failed ? NULL : buf_take(&b);
}

void acp_take_live(struct driver_run *r, const char *live)
{
	auto_json struct json *j = json_parse(live, strlen(live), NULL);
	r->waited = true;
	r->session = xstrdup(json_str(j, "session", ""));
	r->request = (int)json_int(j, "request", 0);
	r->loaded = json_bool(j, "loaded", false);
	r->before = usage_of(j);
	/* The system prompt is said, and nothing old is told once more. */
	free(take(r->system));
	free(take(r->resume));
}

bool acp_idle(const char *p, size_t n)
{
	auto_json struct json *line = json_parse(p, n, NULL);
	const struct json *params = json_get(line, "params");
	const char *kind = json_str(json_get(params, "update"), "sessionUpdate", "");
	if (n == 0)
		return true;
	return strcmp(json_str(line, "method", ""), "session/update") == 0 &&
	       !json_get(line, "id") && (acp_drops(kind) || strcmp(kind, "usage_update") == 0);
}

/* ---- the end ---- */

/* NULL: it succeeded; else why not, owned. */
static char *failure(struct driver_run *r, const struct driver_exit *x)
{
	auto_free char *how = ending_text(&r->ending, x);
	if (r->error)
		return take(r->error);
	if (!r->success || r->state != ACP_CLOSED)
		return xasprintf("the agent %s, without a result", how);
	/* After its answer it may be killed by whoever waits no longer (a signal, or 128 + N); a
	 * small code is the agent's own word that something is wrong. */
	if (x->code > 0 && x->code <= 128)
		return xasprintf("the agent ended its turn and then %s", how);
	return NULL;
}

void acp_end(struct driver_run *r, const struct driver_exit *x, struct driver_outcome *ret)
{
	acp_permissions_cancel(r, NULL);
	acp_tools_close(r, "The agent ended before the tool answered.");
	bool cut = r->state != ACP_CLOSED;
	if (cut && (r->step.input_tokens || r->step.output_tokens)) {
		add(&r->usage, &r->step);
		emit_usage(r->sink, &r->usage);
	}
	ret->error = failure(r, x);
	ret->status = ret->error ? DRIVER_FAILED : DRIVER_SUCCEEDED;
	if (cut && !r->interrupting)
		emit_error(r->sink, ret->error, "no_result", false);
	ret->usage = r->usage;
	ret->tool_calls = r->calls.total;
	ret->final_text = tail_take(&r->text);
	ret->max_turns = r->max_turns;
	ret->resume_lost = r->resume_lost;
	if (r->session && !r->resume_lost)
		ret->resume = take(r->session);
}
