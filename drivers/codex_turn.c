#include "base/mem.h"
#include "drivers/codex_server.h"
#include "drivers/emit.h"
#include "drivers/launch.h"
#include "drivers/usage.h"

#include <string.h>

static void replace(char **to, const char *with)
{
	free(*to);
	*to = with ? xstrdup(with) : NULL;
}

void codex_fail(struct driver_run *r, const char *message, const char *code, bool *ret_eof)
{
	replace(&r->error, message);
	r->completed = false;
	r->closing = *ret_eof = true;
	emit_error(r->items.sink, message, code, false);
}

/* ---- turns ---- */

/* Has the user more to say?  Then the next turn, else the end. */
void codex_go_on(struct driver_run *r, struct buf *to_stdin, bool *ret_eof)
{
	if (r->turn || r->closing || codex_awaits(r, CODEX_TURN))
		return;
	if (!r->interrupting && codex_awaits(r, CODEX_STEER))
		return; /* its answer tells whether that message waits for a turn */
	if (r->interrupting || !r->nwaiting)
		r->closing = *ret_eof = true;
	else if (!codex_put_turn(r, to_stdin))
		codex_fail(r, "the message is too large for one line", "too_large", ret_eof);
}

void codex_turn_begun(struct driver_run *r, const struct json *turn, struct buf *to_stdin)
{
	const char *id = json_str(turn, "id", NULL);
	if (!launch_id_ok(id) || r->closing || (r->turn && strcmp(r->turn, id) == 0))
		return;
	if (r->ended && strcmp(r->ended, id) == 0)
		return; /* its answer came late */
	replace(&r->turn, id);
	r->completed = false;
	if (r->interrupting) /* it was asked to stop before there was anything to stop */
		(void)codex_put_interrupt(r, to_stdin);
}

void codex_tell_usage(struct driver_run *r)
{
	struct driver_usage now = r->usage;
	usage_add(&now, &r->others);
	if (usage_same(&now, &r->told))
		return;
	r->told = now;
	now.cost_usd = -1; /* it knows no prices */
	emit_usage(r->items.sink, &now);
}

struct driver_usage codex_usage_of(const struct json *u)
{
	return (struct driver_usage){
	        .input_tokens = usage_tokens(u, "inputTokens"), /* with what was cached */
	        .output_tokens = usage_tokens(u, "outputTokens"),
	        .cached_tokens = usage_tokens(u, "cachedInputTokens"),
	};
}

static struct driver_usage minus(struct driver_usage a, struct driver_usage b)
{
	usage_take_off(&a, &b);
	return a;
}

/* Sums of the conversation.  One that goes on begins with what it has used before, which is told
 * in the name of an earlier turn; where it is not told, the first answer's own usage tells. */
bool codex_usage(struct driver_run *r, const struct json *params)
{
	const struct json *u = json_get(params, "tokenUsage");
	struct driver_usage total = codex_usage_of(json_get(u, "total")),
	                    last = codex_usage_of(json_get(u, "last"));
	const char *turn = json_str(params, "turnId", "");
	if (!json_is_object(u))
		return false;
	if (!r->turn || strcmp(turn, r->turn) != 0) {
		if (r->usage.turns == 0)
			r->base = total;
		r->have_base = true;
		return true;
	}
	if (!r->have_base)
		r->base = minus(total, last);
	r->have_base = true;
	int64_t turns = r->usage.turns;
	r->usage = minus(total, r->base);
	r->usage.turns = turns + 1;
	r->answered++;
	r->answering = false;
	return true;
}

int64_t codex_turns(const struct driver_run *r)
{
	return r->answered + r->answering;
}

static char *error_code(const struct json *error)
{
	const struct json *info = json_get(error, "codexErrorInfo");
	const char *word = json_text(info) ? json_text(info) : json_key(json_first(info));
	return xstrdup(word ? word : "turn_failed");
}

static void turn_failed(struct driver_run *r, const struct json *turn, const char *status)
{
	const struct json *error = json_get(turn, "error");
	bool interrupted = strcmp(status, "interrupted") == 0;
	const char *text = json_str(error, "message", NULL);
	if (text || !r->error || interrupted)
		replace(&r->error, text ? text : interrupted ? "interrupted" : "the turn failed");
	if (interrupted && r->interrupting)
		return; /* our own doing, which the supervisor tells */
	auto_free char *code = interrupted ? xstrdup("interrupted") : error_code(error);
	emit_error(r->items.sink, r->error, code, false);
}

bool codex_turn_completed(
        struct driver_run *r, const struct json *params, struct buf *to_stdin, bool *ret_eof)
{
	const struct json *turn = json_get(params, "turn");
	const char *status = json_str(turn, "status", "");
	if (!r->turn || strcmp(json_str(turn, "id", ""), r->turn) != 0)
		return false;
	free(r->ended);
	r->ended = take(r->turn);
	calls_close_all(&r->items.calls, r->items.sink, "The turn ended before the tool answered.");
	r->completed = strcmp(status, "completed") == 0;
	if (r->completed)
		replace(&r->error, NULL);
	else
		turn_failed(r, turn, status);
	codex_tell_usage(r);
	codex_go_on(r, to_stdin, ret_eof);
	return true;
}
