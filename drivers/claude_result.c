#include "base/mem.h"
#include "drivers/claude.h"
#include "drivers/emit.h"
#include "drivers/usage.h"

#include <string.h>

/*
 * A turn ends with a result line; a process may have several (a subagent that
 * ended later starts another turn), and the last one is the run's.  Costs and
 * tokens are sums over them.
 */

/* The API reports input without what was cached; our events count it in. */
static struct driver_usage api_usage(const struct driver_run *r, const struct json *u)
{
	int64_t cached = usage_tokens(u, "cache_read_input_tokens");
	return (struct driver_usage){
	        .input_tokens = usage_tokens(u, "input_tokens") + (r->dialect->sums ? 0 : cached) +
	                        usage_tokens(u, "cache_creation_input_tokens"),
	        .output_tokens = usage_tokens(u, "output_tokens"),
	        .cached_tokens = cached,
	        .cost_usd = -1,
	};
}

/* Per model since the last result, subagents and interrupted answers included, which `usage`
 * leaves out (fixtures max-budget, subagent). */
static bool model_usage(const struct json *line, struct driver_usage *ret)
{
	const struct json *models = json_get(line, "model_usage_since_last_result");
	if (!json_is_object(models) || !json_first(models))
		return false;
	struct driver_usage sum = {0};
	for (const struct json *m = json_first(models); m; m = json_next(m)) {
		int64_t cached = usage_tokens(m, "cacheReadInputTokens");
		struct driver_usage one = {
		        .input_tokens = usage_tokens(m, "inputTokens") + cached +
		                        usage_tokens(m, "cacheCreationInputTokens"),
		        .output_tokens = usage_tokens(m, "outputTokens"),
		        .cached_tokens = cached,
		        .cost_usd = json_num(m, "costUSD", -1),
		};
		usage_add(&sum, &one);
	}
	*ret = sum;
	return true;
}

/* total_cost_usd counts from the start of the conversation, also over a resume. */
static double cost_since(const struct driver_run *r, const struct json *line)
{
	double total = json_num(line, "total_cost_usd", -1);
	if (total < 0 || r->cost_before < 0)
		return -1;
	return total > r->cost_before ? total - r->cost_before : 0;
}

static int64_t less(int64_t now, int64_t before)
{
	return now > before ? now - before : 0;
}

/* Of a conversation that goes on, what it had used before is not known: then it is what the
 * messages told. */
static struct driver_usage used_since(struct driver_run *r, const struct json *line)
{
	struct driver_usage now = api_usage(r, json_get(line, "usage")), u = r->turn;
	if (r->before_known) {
		u.input_tokens = less(now.input_tokens, r->before.input_tokens);
		u.output_tokens = less(now.output_tokens, r->before.output_tokens);
		u.cached_tokens = less(now.cached_tokens, r->before.cached_tokens);
	}
	r->before = now;
	r->before_known = true;
	return u;
}

static void count_turn(struct driver_run *r, const struct json *line)
{
	struct driver_usage u;
	if (r->dialect->sums) {
		u = used_since(r, line);
	} else if (!model_usage(line, &u)) {
		u = api_usage(r, json_get(line, "usage"));
		u.cost_usd = cost_since(r, line);
		if (u.input_tokens == 0 && u.output_tokens == 0 && u.cost_usd < 0)
			u.cost_usd = 0; /* nothing was asked of a model, so nothing was paid */
	}
	u.turns = usage_tokens(line, "num_turns");
	r->cost_before = json_num(line, "total_cost_usd", -1);
	usage_add(&r->usage, &u);
	r->turn = (struct driver_usage){.cost_usd = -1};
}

void claude_seen_message(struct driver_run *r, const struct json *message, bool first)
{
	/* A message comes as one line a block, each with the same usage. */
	if (!first)
		return;
	struct driver_usage u = api_usage(r, json_get(message, "usage"));
	/* Or as one message a block, of which the last has all. */
	u.turns = !r->dialect->sums || u.input_tokens || u.output_tokens;
	usage_add(&r->turn, &u);
}

void claude_fail(struct driver_run *r, const char *message, const char *code)
{
	/* An API error comes twice: as a message of the agent and in the result. */
	bool told = r->error && strcmp(r->error, message) == 0;
	free(r->error);
	r->error = xstrdup(message);
	if (!told)
		emit_error(r->sink, message, code, false);
}

/* errors[] joined, without those that are notes to Claude's developers; returns owned. */
static char *errors_text(const struct json *line)
{
	const struct json *errors = json_get(line, "errors");
	auto_buf struct buf b = BUF_INIT(65536);
	if (json_is_array(errors))
		for (const struct json *it = json_first(errors); it; it = json_next(it)) {
			const char *text = json_text(it);
			if (!text || strncmp(text, "[ede_diagnostic]", 16) == 0)
				continue;
			if (b.len)
				buf_puts(&b, "; ");
			buf_puts(&b, text);
		}
	return b.len ? buf_take(&b) : NULL;
}

static void failed_result(struct driver_run *r, const struct json *line, const char *subtype)
{
	const char *reason = json_str(line, "terminal_reason", "");
	bool aborted = strncmp(reason, "aborted", 7) == 0 ||
	               (r->interrupting && strcmp(subtype, "error_during_execution") == 0);
	r->max_turns = strcmp(subtype, "error_max_turns") == 0;
	auto_free char *why = errors_text(line);
	const char *message = json_str(json_get(line, "error"), "message", NULL);
	if (!why && message)
		why = xstrdup(message);
	if (!why && r->result && *r->result)
		why = xstrdup(r->result);
	if (!why)
		why = xstrdup(aborted ? "interrupted" : subtype);
	if (r->resume && strstr(why, r->dialect->lost))
		r->resume_lost = true;
	if (aborted && r->interrupting) { /* our own doing, which the supervisor tells */
		free(r->error);
		r->error = take(why);
		return;
	}
	/* {"subtype":"success","is_error":true} is how Claude says that the API failed. */
	bool api = strcmp(subtype, "success") == 0;
	claude_fail(r, why, api ? "api_error" : aborted ? "interrupted" : subtype);
}

void claude_result(struct driver_run *r, const struct json *line)
{
	const char *subtype = json_str(line, "subtype", "");
	r->have_result = true;
	r->success = strcmp(subtype, "success") == 0 && !json_bool(line, "is_error", true);
	r->max_turns = r->resume_lost = false;
	free(r->result);
	r->result = json_str(line, "result", NULL) ? xstrdup(json_str(line, "result", "")) : NULL;
	count_turn(r, line);
	emit_usage(r->sink, &r->usage);
	if (r->success) {
		free(r->error);
		r->error = NULL;
	} else {
		failed_result(r, line, subtype);
	}
}

/* ---- the end ---- */

/* NULL: it succeeded; else why not, owned. */
static char *failure(struct driver_run *r, const struct driver_exit *x)
{
	const char *name = r->name;
	if (r->fault)
		return take(r->fault);
	auto_free char *how = ending_text(&r->ending, x);
	if (!r->have_result)
		return r->error ? take(r->error) : xasprintf("%s %s, without a result", name, how);
	if (!r->success)
		return r->error ? take(r->error) : xstrdup("failed without a reason");
	/* After its result it may be killed by whoever waits no longer (a signal, or 128 + N);
	 * a small code is Claude's own word that something is wrong. */
	if (x->code > 0 && x->code <= 128)
		return xasprintf("%s reported success and then %s", name, how);
	return NULL;
}

void claude_end(struct driver_run *r, const struct driver_exit *x, struct driver_outcome *ret)
{
	ret->tool_calls = r->calls.total;
	calls_close_all(&r->calls, r->sink, "The agent ended before the tool answered.");
	if (!r->have_result && strstr(r->ending.last, r->dialect->lost))
		r->resume_lost = r->resume != NULL;
	if (!r->have_result && r->dialect->turns_code && x->code == r->dialect->turns_code)
		r->max_turns = true;
	bool told = !r->have_result && r->error;
	ret->error = failure(r, x);
	ret->status = ret->error ? DRIVER_FAILED : DRIVER_SUCCEEDED;
	if (!r->have_result && !r->interrupting && !told)
		emit_error(
		        r->sink, ret->error, r->max_turns ? "error_max_turns" : "no_result", false);
	if (!r->have_result || r->turn.turns) {
		usage_add(&r->usage, &r->turn); /* the turn that was cut off */
		if (r->turn.turns)
			emit_usage(r->sink, &r->usage);
	}
	ret->usage = r->usage;
	if (r->success && r->result) {
		tail_clear(&r->text);
		tail_add(&r->text, r->result, strlen(r->result));
	}
	ret->final_text = tail_take(&r->text);
	ret->max_turns = r->max_turns;
	ret->resume_lost = r->resume_lost;
	if (r->session && !r->resume_lost)
		ret->resume = take(r->session);
}
