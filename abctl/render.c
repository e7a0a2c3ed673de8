#include "abctl/render.h"
#include "abctl/human.h"
#include "base/neutral.h"
#include "abctl/render_summary.h"
#include "abctl/render_tools.h"
#include "base/limits.h"
#include "base/mem.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

enum {
	MESSAGE_KEPT = LIMIT_EVENT, /* of one that comes in deltas, to know its whole again */
	STATUS_TEXT = 4096,
};

enum flow { FLOW_NONE, FLOW_MESSAGE, FLOW_THINKING };

struct render {
	struct writer w;
	struct tools tools;
	enum flow flow;     /* what the unfinished text is */
	char *message_id;   /* owned; of the flow */
	struct buf message; /* owned; what was printed of it in deltas */
	int64_t started_ms; /* monotonic: first event; 0 before */
	bool over;          /* run.done was seen */
	char *harness;      /* owned */
	struct buf usage;   /* owned; the status line's numbers */
	const char *word;   /* static */
	unsigned frame;
};

struct render *render_new(const struct render_options *o)
{
	struct render *r = xnew(struct render);
	r->w.o = *o;
	r->message = (struct buf)BUF_INIT(MESSAGE_KEPT);
	r->usage = (struct buf)BUF_INIT(STATUS_TEXT);
	return r;
}

void render_free(struct render *r)
{
	if (!r)
		return;
	tools_done(&r->tools);
	buf_done(&r->message);
	buf_done(&r->usage);
	free(r->message_id);
	free(r->harness);
	free(r);
}

void render_resize(struct render *r, unsigned width)
{
	r->w.o.width = width;
}

void render_say(struct render *r, const char *word)
{
	r->word = word;
}

/* Milliseconds since 1970 of the event's own time, or `dflt`. */
static int64_t event_ms(const struct json *event, int64_t dflt)
{
	const char *ts = json_str(event, "ts", "");
	struct tm tm = {0};
	const char *rest = strptime(ts, "%Y-%m-%dT%H:%M:%S", &tm);
	if (!rest)
		return dflt;
	int64_t ms = (int64_t)timegm(&tm) * 1000;
	for (int64_t unit = 100; *rest == '.' || (*rest >= '0' && *rest <= '9' && unit); rest++)
		if (*rest != '.') {
			ms += (*rest - '0') * unit;
			unit /= 10;
		}
	return ms;
}

static void end_flow(struct render *r)
{
	writer_fresh_line(&r->w);
	r->flow = FLOW_NONE;
	free(take(r->message_id));
	buf_clear(&r->message);
}

static bool same_flow(const struct render *r, enum flow flow, const char *id)
{
	return r->flow == flow && r->message_id && strcmp(r->message_id, id) == 0;
}

/* A whole message after its deltas repeats them: only what is new is printed. */
static size_t already(const struct render *r, const char *text, size_t n)
{
	size_t have = r->message.len;
	return n >= have && have && memcmp(text, r->message.p, have) == 0 ? have : 0;
}

static void flowing(struct render *r, const struct json *event, enum flow flow)
{
	const char *text = json_str(event, "text", ""), *id = json_str(event, "messageId", "");
	bool delta = json_bool(event, "delta", false);
	size_t n = strlen(text), skip = 0;
	if (same_flow(r, flow, id))
		skip = delta ? 0 : already(r, text, n);
	else
		end_flow(r);
	if (!delta && !skip)
		end_flow(r);
	enum paint paint = flow == FLOW_THINKING ? PAINT_DIM : PAINT_NONE;
	writer_text(&r->w, paint, flow == FLOW_THINKING ? "~ " : NULL, text + skip, n - skip);
	if (!delta) {
		end_flow(r);
		return;
	}
	r->flow = flow;
	if (!r->message_id)
		r->message_id = xstrdup(id);
	/* Beyond its limit the memory of the message is useless, and kept empty. */
	if (buf_put(&r->message, text, n) < 0)
		r->message.len = 0;
}

static void on_message(struct render *r, const struct json *event, int64_t at)
{
	(void)at;
	flowing(r, event, FLOW_MESSAGE);
}

static void on_thinking(struct render *r, const struct json *event, int64_t at)
{
	(void)at;
	flowing(r, event, FLOW_THINKING);
}

/* One line of ours: a mark, what happened, and what of it is from outside. */
static void note(
        struct render *r, enum paint paint, const char *mark, const char *what, const char *outside)
{
	end_flow(r);
	writer_own(&r->w, paint, mark);
	writer_own(&r->w, paint, what);
	writer_cut(&r->w, paint, 0, outside);
	writer_newline(&r->w);
}

static const char *mark_warn(const struct render *r)
{
	return r->w.o.utf8 ? "⚠ " : "! ";
}

static void names(struct buf *to, const struct json *list)
{
	for (const struct json *it = json_first(list); it; it = json_next(it)) {
		const char *name = json_text(it) ? json_text(it) : json_str(it, "layer", NULL);
		if (name)
			buf_printf(to, "%s%s", to->len ? ", " : "", name);
	}
}

static void on_queued(struct render *r, const struct json *event, int64_t at)
{
	(void)at;
	int64_t position = json_int(event, "position", 0);
	if (position <= 0)
		return;
	auto_free char *text = xasprintf("%" PRId64, position);
	note(r, PAINT_DIM, r->w.o.utf8 ? "○ " : "", "queued, position ", text);
}

static void on_started(struct render *r, const struct json *event, int64_t at)
{
	(void)at;
	free(r->harness);
	r->harness = xstrdup(json_str(event, "harness", "run"));
	auto_buf struct buf b = BUF_INIT(STATUS_TEXT);
	const char *between = r->w.o.utf8 ? " · " : ", ";
	const char *model = json_str(event, "model", ""),
	           *agent = json_str(event, "agentVersion", "");
	auto_buf struct buf missing = BUF_INIT(STATUS_TEXT);
	names(&missing, json_get(event, "missing"));
	buf_printf(&b, "%s%s%s", r->harness, between, json_str(event, "backend", "?"));
	if (*agent)
		buf_printf(&b, " %s", agent);
	if (*model)
		buf_printf(&b, "%s%s", between, model);
	if (json_int(event, "steps", 0))
		buf_printf(&b, "%s%" PRId64 " steps", between, json_int(event, "steps", 0));
	else
		buf_printf(&b, "%spolicy %s", between, json_str(event, "policy", "?"));
	if (missing.len)
		buf_printf(&b, "%swithout %s", between, missing.p);
	if (json_int(event, "attempt", 1) > 1)
		buf_printf(&b, "%sattempt %" PRId64, between, json_int(event, "attempt", 1));
	const char *mark = r->w.o.utf8 ? "● " : "";
	if (!missing.len) {
		note(r, PAINT_BOLD, mark, "", b.p);
		return;
	}
	/* Not cut: what a jail lacks is not for the width of a terminal to hide. */
	end_flow(r);
	writer_own(&r->w, PAINT_WARN, mark);
	writer_text(&r->w, PAINT_WARN, NULL, b.p, b.len);
	writer_newline(&r->w);
}

static void on_call(struct render *r, const struct json *event, int64_t at)
{
	end_flow(r);
	tools_call(&r->tools, event, at);
}

static void on_result(struct render *r, const struct json *event, int64_t at)
{
	end_flow(r);
	tools_result(&r->tools, event, at, &r->w);
}

static void on_file(struct render *r, const struct json *event, int64_t at)
{
	(void)at;
	const char *change = json_str(event, "change", "edit");
	note(r, PAINT_DIM, "  ",
	        strcmp(change, "add") == 0      ? "+ "
	        : strcmp(change, "delete") == 0 ? "- "
	                                        : "~ ",
	        json_str(event, "path", "?"));
}

static void on_plan(struct render *r, const struct json *event, int64_t at)
{
	(void)at;
	end_flow(r);
	for (const struct json *it = json_first(json_get(event, "entries")); it;
	        it = json_next(it)) {
		const char *status = json_str(it, "status", "");
		bool done = strcmp(status, "completed") == 0 || strcmp(status, "done") == 0;
		bool now = strcmp(status, "in_progress") == 0;
		note(r, done ? PAINT_DIM : PAINT_NONE,
		        done  ? "  [x] "
		        : now ? "  [>] "
		              : "  [ ] ",
		        "", json_str(it, "text", ""));
	}
}

static void on_usage(struct render *r, const struct json *event, int64_t at)
{
	(void)at;
	buf_clear(&r->usage);
	summary_usage(&r->usage, event, r->w.o.utf8 ? " · " : ", ");
}

static void on_permission(struct render *r, const struct json *event, int64_t at)
{
	(void)at;
	note(r, PAINT_WARN, "? ", "asks permission: ", json_str(event, "title", ""));
}

/* What the rules of the harness allow is as if nobody had asked. */
static void on_answered(struct render *r, const struct json *event, int64_t at)
{
	(void)at;
	const char *answer = json_str(event, "answer", ""), *by = json_str(event, "by", "");
	const char *reason = json_str(event, "reason", "");
	bool denied = strcmp(answer, "deny") == 0;
	if (!*answer && !*reason) {
		note(r, PAINT_DIM, "  ", "answered: ", json_str(event, "text", ""));
	} else if (strcmp(by, "user") == 0) {
		const char *key = json_str(event, "key", NULL);
		auto_free char *who = key ? xasprintf("%s, by key %s", denied ? "" : answer, key)
		                          : xasprintf("%s, by uid %" PRId64, denied ? "" : answer,
		                                    json_int(event, "uid", -1));
		note(r, PAINT_DIM, "  ", denied ? "denied" : "allowed ", who);
	} else if (*reason) {
		note(r, denied ? PAINT_WARN : PAINT_DIM, "  ",
		        denied                                         ? "denied: "
		        : !*answer || strcmp(answer, "cancelled") == 0 ? "not answered: "
		                                                       : "allowed: ",
		        reason);
	}
}

static void on_user(struct render *r, const struct json *event, int64_t at)
{
	(void)at;
	const char *text = json_str(event, "text", "");
	end_flow(r);
	writer_text(&r->w, PAINT_BOLD, "> ", text, strlen(text));
	end_flow(r);
}

static void on_question(struct render *r, const struct json *event, int64_t at)
{
	(void)at;
	const char *text = json_str(event, "text", "");
	auto_buf struct buf options = BUF_INIT(STATUS_TEXT);
	names(&options, json_get(event, "options"));
	end_flow(r);
	writer_own(&r->w, PAINT_WARN, "? asks: ");
	/* Not cut: a person is to answer all of it. */
	writer_text(&r->w, PAINT_WARN, NULL, text, strlen(text));
	end_flow(r);
	if (options.len)
		note(r, PAINT_DIM, "  ", "one of: ", options.p);
}

static void on_denied(struct render *r, const struct json *event, int64_t at)
{
	(void)at;
	int64_t times = json_int(event, "times", 1);
	const char *hint = json_str(event, "hint", "");
	auto_free char *often = times > 1 ? xasprintf(" (%" PRId64 " times)", times) : NULL;
	auto_free char *text = xasprintf("%s:%" PRId64 " %s%s", json_str(event, "host", "?"),
	        json_int(event, "port", 0), json_str(event, "reason", ""), often ? often : "");
	note(r, PAINT_WARN, r->w.o.utf8 ? "⊘ " : "! ", "egress denied: ", text);
	if (*hint && times == 1) /* repeats come after the first of their kind */
		note(r, PAINT_DIM, "  ", "to allow it: ", hint);
}

static void on_limit(struct render *r, const struct json *event, int64_t at)
{
	(void)at;
	const char *limit = json_str(event, "limit", "?");
	int64_t left = json_int(event, "left", 0); /* of the disk */
	if (left <= 0) {
		note(r, PAINT_BAD, mark_warn(r), "limit reached: ", limit);
		return;
	}
	auto_free char *text =
	        xasprintf("%s, %s left: larger writes fail", limit, human_bytes((uint64_t)left).s);
	note(r, PAINT_BAD, mark_warn(r), "limit nearly reached: ", text);
}

static void on_retry(struct render *r, const struct json *event, int64_t at)
{
	(void)at;
	auto_free char *text = xasprintf("attempt %" PRId64 " in %s: %s",
	        json_int(event, "attempt", 2), human_duration(json_int(event, "delayMs", 0)).s,
	        json_str(event, "reason", ""));
	note(r, PAINT_WARN, mark_warn(r), "", text);
}

static void on_resumed(struct render *r, const struct json *event, int64_t at)
{
	(void)at;
	bool lost = json_bool(event, "lost", false);
	const char *how = json_str(event, "how", "");
	const char *last = json_str(event, "fromBackend", "an agent");
	if (lost)
		note(r, PAINT_WARN, mark_warn(r), "the agent has lost its conversation", "");
	if (strcmp(how, "native") == 0)
		return; /* as everyone expects */
	auto_free char *text = xasprintf("%" PRId64 " earlier runs, %s%s, the last by %s",
	        json_int(event, "runs", 0), human_bytes((uint64_t)json_int(event, "bytes", 0)).s,
	        json_bool(event, "cut", false) ? " (older ones left out)" : "", last);
	if (strstr(how, "transcript"))
		note(r, PAINT_DIM, "", "told as text: ", text);
}

static void on_cloned(struct render *r, const struct json *event, int64_t at)
{
	(void)at;
	auto_free char *text = xasprintf(
	        "%s, at %.12s", json_str(event, "source", "?"), json_str(event, "base", "?"));
	note(r, PAINT_DIM, "", "checked out from ", text);
}

static void on_changes(struct render *r, const struct json *event, int64_t at)
{
	(void)at;
	const char *why = json_str(event, "error", NULL);
	int64_t nested = json_int(event, "nestedLeftOut", 0);
	auto_free char *left = xasprintf("%" PRId64, nested);
	if (why)
		note(r, PAINT_WARN, mark_warn(r),
		        "what became of the checkout is not known: ", why);
	else if (!json_bool(event, "changed", false))
		note(r, PAINT_DIM, "", "the checkout is as it was", "");
	if (json_bool(event, "incomplete", false))
		note(r, PAINT_WARN, mark_warn(r),
		        "files that could not be read are not in the changes", "");
	if (nested > 0)
		note(r, PAINT_WARN, mark_warn(r),
		        "repositories within it, not in the changes: ", left);
}

static void on_verify(struct render *r, const struct json *event, int64_t at)
{
	(void)at;
	bool passed = json_bool(event, "passed", false);
	const char *why = json_str(event, "error", json_str(event, "output", ""));
	if (passed || !*why)
		note(r, passed ? PAINT_GOOD : PAINT_BAD, "",
		        passed ? "verified" : "verification failed", "");
	else
		note(r, PAINT_BAD, "", "verification failed: ", why);
}

static void on_guardrail(struct render *r, const struct json *event, int64_t at)
{
	(void)at;
	auto_free char *text = xasprintf(
	        "%s rule %s", json_str(event, "stage", "?"), json_str(event, "rule", "?"));
	note(r, PAINT_BAD, mark_warn(r), "blocked by ", text);
}

static void on_gap(struct render *r, const struct json *event, int64_t at)
{
	(void)at;
	const char *type = json_str(event, "type", "");
	const char *why = "events may be missing here: the host lost power";
	if (strcmp(type, "output.gap") == 0)
		why = "the supervisor was restarted: output of the agent may be missing here";
	else if (strcmp(type, "egress.gap") == 0)
		why = "more requests to the outside than could be told of";
	note(r, PAINT_WARN, mark_warn(r), why, "");
}

/* The human view shows what an agent wrote to stderr; unknown protocol lines are in --json. */
static void on_raw(struct render *r, const struct json *event, int64_t at)
{
	(void)at;
	const char *line = json_str(event, "line", "");
	if (strcmp(json_str(event, "stream", ""), "stderr") != 0)
		return;
	end_flow(r);
	writer_text(&r->w, PAINT_DIM, "| ", line, strlen(line));
	writer_fresh_line(&r->w);
}

static void on_error(struct render *r, const struct json *event, int64_t at)
{
	(void)at;
	const char *text = json_str(event, "message", "error");
	note(r, PAINT_BAD, r->w.o.utf8 ? "✗ " : "error: ", "", text);
}

static void on_done(struct render *r, const struct json *event, int64_t at)
{
	(void)at;
	end_flow(r);
	tools_abandon(&r->tools, &r->w);
	summary_write(&r->w, json_get(event, "result"));
	r->over = true;
}

/* What the step's run says follows it, or is asked for by its id. */
static void on_step(struct render *r, const struct json *event, int64_t at)
{
	(void)at;
	const char *status = json_str(event, "status", NULL);
	auto_free char *text = xasprintf("step %" PRId64 " of %" PRId64 "%s",
	        json_int(event, "step", 0), json_int(event, "of", 0), status ? " " : ": ");
	auto_free char *what = status ? xstrdup(status)
	                              : xasprintf("%s, run %s", json_str(event, "harness", "?"),
	                                        json_str(event, "runId", "?"));
	note(r, PAINT_DIM, r->w.o.utf8 ? "○ " : "", text, what);
}

/* Types without a row (allowed traffic, answers, deltas of tool output) are not shown. */
static const struct {
	const char *type;
	void (*show)(struct render *r, const struct json *event, int64_t at_ms);
} shows[] = {
        {"run.queued", on_queued},
        {"run.started", on_started},
        {"step.started", on_step},
        {"step.done", on_step},
        {"session.resumed", on_resumed},
        {"repo.cloned", on_cloned},
        {"repo.changes", on_changes},
        {"agent.message", on_message},
        {"agent.thinking", on_thinking},
        {"tool.call", on_call},
        {"tool.result", on_result},
        {"file.changed", on_file},
        {"plan.updated", on_plan},
        {"permission.asked", on_permission},
        {"permission.answered", on_answered},
        {"question.asked", on_question},
        {"question.answered", on_answered},
        {"user.message", on_user},
        {"usage", on_usage},
        {"egress.denied", on_denied},
        {"limit.hit", on_limit},
        {"run.retry", on_retry},
        {"verify.done", on_verify},
        {"guardrail.blocked", on_guardrail},
        {"egress.gap", on_gap},
        {"output.gap", on_gap},
        {"log.gap", on_gap},
        {"agent.raw", on_raw},
        {"error", on_error},
        {"run.done", on_done},
};

void render_event(struct render *r, const struct json *event, int64_t now_ms, struct buf *out)
{
	r->w.out = out;
	if (!r->started_ms)
		r->started_ms = now_ms;
	const char *type = json_str(event, "type", "");
	for (size_t i = 0; i < ARRAY_LEN(shows); i++)
		if (strcmp(shows[i].type, type) == 0)
			shows[i].show(r, event, event_ms(event, now_ms));
	r->w.out = NULL;
}

void render_hide(struct render *r, struct buf *out)
{
	r->w.out = out;
	writer_hide(&r->w);
	r->w.out = NULL;
}

void render_status(struct render *r, int64_t now_ms, struct buf *out)
{
	static const char braille[] = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"; /* of three bytes each */
	static const char ascii[] = "|/-\\";
	if (!r->w.o.live || r->over)
		return;
	const char *between = r->w.o.utf8 ? " · " : ", ";
	const struct tool_call *c = tools_current(&r->tools);
	int64_t since = r->started_ms ? now_ms - r->started_ms : 0;
	/* Whole seconds: tenths would flicker. */
	auto_buf struct buf b = BUF_INIT(STATUS_TEXT);
	if (r->w.o.utf8)
		buf_put(&b, braille + (size_t)3 * (r->frame % 10), 3);
	else
		buf_putc(&b, ascii[r->frame % 4]);
	buf_printf(&b, " %s%s%" PRId64 "m%02" PRId64 "s", r->word ? r->word : "",
	        r->word ? " " : "", since / 60000, since / 1000 % 60);
	r->frame++;
	if (r->usage.len)
		buf_printf(&b, "%s%s", between, r->usage.p);
	if (c) {
		buf_puts(&b, between);
		neutral_line(&b, c->name, strlen(c->name));
		buf_putc(&b, ' ');
		neutral_line(&b, c->title, strlen(c->title));
	}
	r->w.out = out;
	writer_status(&r->w, b.p, b.len);
	r->w.out = NULL;
}
