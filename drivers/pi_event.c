#include "base/mem.h"
#include "drivers/emit.h"
#include "drivers/pi.h"
#include "drivers/usage.h"

#include <string.h>

/*
 * A message is told in pieces (message_update) and then whole (message_end);
 * with it comes how it ended and what it used.  After an error pi may try again
 * (auto_retry_start), so that only the last message counts, once pi says that it
 * has settled: agent_settled, or agent_end of versions before 1.0.  The exit
 * code says nothing: it is 0 also when the API refused.
 */

/* ---- life ---- */

struct driver_run *pi_open(
        const struct driver *d, const struct driver_spec *spec, struct event_sink *sink)
{
	(void)d;
	struct driver_run *r = xnew(struct driver_run);
	r->sink = sink;
	r->permissions = spec->permissions;
	r->prompt = prompt_of(spec);
	r->resumed = spec->resume != NULL;
	return r;
}

void pi_close(struct driver_run *r)
{
	if (!r)
		return;
	prompt_done(&r->prompt);
	free(r->session);
	pi_tools_done(r);
	tail_done(&r->text);
	free(r->stop);
	free(r->error);
	for (size_t i = 0; i < r->nasked; i++) {
		free(r->asked[i].id);
		free(r->asked[i].call);
		free(r->asked[i].tool);
	}
	fresh_done(&r->ids);
	for (size_t i = 0; i < r->nalways; i++)
		free(r->always[i]);
	free(r);
}

static void replace(char **to, const char *with)
{
	free(*to);
	*to = with ? xstrdup(with) : NULL;
}

void pi_session(struct driver_run *r, const char *id)
{
	if (pi_session_ok(id))
		replace(&r->session, id);
}

/* ---- messages ---- */

/* Blocks have no id of their own: the message's number and the block's. */
static char *block_id(const struct driver_run *r, int64_t index)
{
	return xasprintf("m%lld.%lld", (long long)r->messages, (long long)index);
}

/* For final_text: of the last message that has any. */
static void keep_text(struct driver_run *r, const char *text)
{
	if (r->text_of != r->messages)
		tail_clear(&r->text);
	r->text_of = r->messages;
	tail_add(&r->text, text, strlen(text));
}

static bool message_update(struct driver_run *r, const struct json *line)
{
	const struct json *event = json_get(line, "assistantMessageEvent");
	const char *type = json_str(event, "type", ""), *text = json_str(event, "delta", NULL);
	bool thought = strcmp(type, "thinking_delta") == 0;
	if (!thought && strcmp(type, "text_delta") != 0) {
		static const char *const nothing[] = {"start", "text_start", "text_end",
		        "thinking_start", "thinking_end", "toolcall_start", "toolcall_delta",
		        "toolcall_end", "done", "error"};
		for (size_t i = 0; i < ARRAY_LEN(nothing); i++) /* message_end says it whole */
			if (strcmp(type, nothing[i]) == 0)
				return true;
		return false;
	}
	if (!text)
		return false;
	if (!thought)
		keep_text(r, text);
	auto_free char *id = block_id(r, json_int(event, "contentIndex", 0));
	return emit_text(r->sink, thought ? EVENT_AGENT_THINKING : EVENT_AGENT_MESSAGE, text,
	        strlen(text), true, id, NULL);
}

int64_t pi_turns(const struct driver_run *r)
{
	return r->messages;
}

static void add_usage(struct driver_run *r, const struct json *u)
{
	int64_t cached = usage_tokens(u, "cacheRead");
	struct driver_usage one = {
	        .input_tokens = usage_tokens(u, "input") + cached + usage_tokens(u, "cacheWrite"),
	        .output_tokens = usage_tokens(u, "output"),
	        .cached_tokens = cached,
	        .cost_usd = json_num(json_get(u, "cost"), "total", -1),
	        .turns = 1,
	};
	usage_add(&r->usage, &one);
}

static bool blocks(struct driver_run *r, const struct json *content)
{
	bool all = true;
	int64_t index = 0;
	/* What came in pieces is said again whole. */
	if (r->text_of == r->messages)
		tail_clear(&r->text);
	for (const struct json *b = json_first(content); b; b = json_next(b), index++) {
		const char *type = json_str(b, "type", ""), *text = json_str(b, "text", NULL);
		const char *thought = json_str(b, "thinking", NULL);
		auto_free char *id = block_id(r, index);
		if (strcmp(type, "text") == 0 && text) {
			keep_text(r, text);
			all &= !*text || emit_text(r->sink, EVENT_AGENT_MESSAGE, text, strlen(text),
			                         false, id, NULL);
		} else if (strcmp(type, "thinking") == 0 && thought) {
			all &= !*thought || emit_text(r->sink, EVENT_AGENT_THINKING, thought,
			                            strlen(thought), false, id, NULL);
		} else if (strcmp(type, "toolCall") != 0) { /* tool_execution_start says that */
			all = false;
		}
	}
	return all;
}

static bool message_end(struct driver_run *r, const struct json *message)
{
	const char *role = json_str(message, "role", "");
	const struct json *content = json_get(message, "content");
	if (strcmp(role, "assistant") != 0) /* the task, our own words, results that were told */
		return strcmp(role, "system") == 0 || strcmp(role, "user") == 0 ||
		       strcmp(role, "toolResult") == 0;
	if (!json_is_array(content))
		return false;
	replace(&r->stop, json_str(message, "stopReason", ""));
	replace(&r->error, json_str(message, "errorMessage", NULL));
	add_usage(r, json_get(message, "usage"));
	return blocks(r, content);
}

/* ---- other lines ---- */

static void retry(struct driver_run *r, const struct json *line)
{
	auto_free char *text = xasprintf("%.2000s: attempt %lld of %lld follows in %lld ms",
	        json_str(line, "errorMessage", "the API failed"),
	        (long long)json_int(line, "attempt", 0),
	        (long long)json_int(line, "maxAttempts", 0),
	        (long long)json_int(line, "delayMs", 0));
	emit_error(r->sink, text, "api_retry", true);
}

void pi_tell_usage(struct driver_run *r)
{
	if (usage_same(&r->usage, &r->told))
		return;
	r->told = r->usage;
	emit_usage(r->sink, &r->usage);
}

/* Its last word, for now: another prompt may follow. */
static void settled(struct driver_run *r)
{
	r->settled = true;
	pi_tools_close(r);
	pi_tell_usage(r);
}

/* Lines that are known and say nothing that an event does not say better. */
bool pi_is_silent(const char *type)
{
	static const char *const nothing[] = {"turn_start", "turn_end", "auto_retry_end",
	        "entry_appended", "queue_update", "session_info_changed", "thinking_level_changed",
	        "compaction_start"};
	for (size_t i = 0; i < ARRAY_LEN(nothing); i++)
		if (strcmp(type, nothing[i]) == 0)
			return true;
	return false;
}

bool pi_event(struct driver_run *r, const struct json *line)
{
	const char *type = json_str(line, "type", "");
	const struct json *message = json_get(line, "message");
	if (strcmp(type, "message_update") == 0)
		return message_update(r, line);
	if (strcmp(type, "message_end") == 0)
		return message_end(r, message);
	if (strcmp(type, "message_start") == 0) {
		r->messages += strcmp(json_str(message, "role", ""), "assistant") == 0;
		return true;
	}
	if (strcmp(type, "tool_execution_start") == 0)
		return pi_tool_start(r, line);
	if (strcmp(type, "tool_execution_update") == 0)
		return pi_tool_update(r, line);
	if (strcmp(type, "tool_execution_end") == 0)
		return pi_tool_end(r, line);
	if (strcmp(type, "session") == 0) {
		pi_session(r, json_str(line, "id", NULL));
		return r->session != NULL;
	}
	if (strcmp(type, "agent_start") == 0) {
		r->settled = false;
		return true;
	}
	/* Before 1.0 agent_end was the last word, and did not say whether it tries again. */
	if (strcmp(type, "agent_settled") == 0 ||
	        (strcmp(type, "agent_end") == 0 && !json_get(line, "willRetry"))) {
		settled(r);
		return true;
	}
	if (strcmp(type, "auto_retry_start") == 0) {
		retry(r, line);
		return true;
	}
	if (strcmp(type, "extension_error") == 0) {
		emit_error(
		        r->sink, json_str(line, "error", "an extension failed"), "warning", true);
		return true;
	}
	return strcmp(type, "agent_end") == 0 || pi_is_silent(type);
}

/* ---- the end ---- */

void pi_error_line(struct driver_run *r, const char *p, size_t n)
{
	static const char missing[] = "No session found";
	r->lost = r->lost || (r->resumed && memmem(p, n, missing, sizeof(missing) - 1));
	ending_error_line(&r->ending, p, n);
	emit_raw(r->sink, "stderr", p, n, false);
}

/* NULL: it succeeded; else why not, owned. */
static char *failure(struct driver_run *r, const struct driver_exit *x)
{
	auto_free char *how = ending_text(&r->ending, x);
	const char *stop = r->stop ? r->stop : "";
	if (!r->settled || !*stop)
		return r->error ? take(r->error) : xasprintf("pi %s, without a result", how);
	if (strcmp(stop, "length") == 0)
		return xstrdup("the answer was cut at the model's limit of tokens");
	if (strcmp(stop, "stop") != 0)
		return r->error ? take(r->error) : xasprintf("pi stopped: %.80s", stop);
	/* After its last word it may be killed by whoever waits no longer (a signal, or 128 + N);
	 * a small code is its own word that something is wrong. */
	if (x->code > 0 && x->code <= 128)
		return xasprintf("pi settled and then %s", how);
	return NULL;
}

void pi_end(struct driver_run *r, const struct driver_exit *x, struct driver_outcome *ret)
{
	ret->tool_calls = r->calls.total;
	pi_tools_close(r);
	ret->error = failure(r, x);
	ret->status = ret->error ? DRIVER_FAILED : DRIVER_SUCCEEDED;
	if (ret->error && !r->interrupting)
		emit_error(r->sink, ret->error,
		        !r->settled ? "no_result"
		        : r->stop   ? r->stop
		                    : "failed",
		        false);
	pi_tell_usage(r);
	ret->usage = r->usage;
	ret->final_text = tail_take(&r->text);
	ret->resume_lost = r->lost && !r->settled;
	if (!ret->resume_lost)
		ret->resume = take(r->session);
}
