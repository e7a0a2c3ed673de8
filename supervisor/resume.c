/*
 * Theory of operation.  The end of the session's log is read, in order: prompts come
 * from the store when a run is first seen, the rest from its events.  The run up to which the
 * agent's own conversation goes is known with its id; at that one's end
 * everything so far is forgotten.  Where the log is longer than what is read, runs
 * before that are told by prompt and answer alone.
 */
#include "supervisor/resume.h"

#include "base/json.h"
#include "base/mem.h"
#include "drivers/ability.h"
#include "drivers/driver.h"
#include "supervisor/daemon.h"
#include "supervisor/eventlog.h"
#include "supervisor/harnesses.h"
#include "supervisor/store.h"
#include "supervisor/transcript.h"

#include <string.h>

enum {
	READ_MAX = 4 << 20, /* of the log: it is read while others wait, in some milliseconds */
	OLDER_RUNS = 16,    /* told by prompt and answer */
	CONTEXT_MAX = TRANSCRIPT_MAX + TRANSCRIPT_MARKS,
	CONTEXT_MIN = 2 * TRANSCRIPT_MARKS, /* less room tells nothing */
};

struct reading {
	struct daemon *d;
	const struct resume_ask *q;
	struct transcript *text;
	const char *known;     /* the run up to which the agent knows everything, or "" */
	char run[ID_MAX];      /* the one that is being read */
	char pipeline[ID_MAX]; /* the latest that was seen, and is not read */
	bool first;
};

/* ---- runs that are not in what is read ---- */

struct older {
	struct run_words {
		char id[ID_MAX];
		char *prompt, *answer; /* owned; answer may be NULL */
		size_t prompt_len;
	} runs[OLDER_RUNS];
	size_t n;
	bool more;
	const char *known;
};

/* A prompt that a guardrail has kept from one agent is not told to another. */
static bool was_denied(const struct json *result)
{
	const char *stage = json_str(json_get(result, "guardrail"), "stage", "");
	return strcmp(stage, "input") == 0;
}

static void older_row(void *ctx, const struct store_run *r)
{
	struct older *o = ctx;
	if (r->pipeline)
		return;
	if (strcmp(r->id, o->known) <= 0 || o->n == OLDER_RUNS) {
		o->more |= o->n == OLDER_RUNS;
		return;
	}
	struct run_words *w = &o->runs[o->n++];
	auto_json struct json *result =
	        r->result ? json_parse(r->result, strlen(r->result), NULL) : NULL;
	const char *answer = json_str(result, "finalText", NULL);
	bool no = was_denied(result);
	(void)str_copy(w->id, sizeof(w->id), r->id);
	w->prompt = xstrndup(r->prompt, no ? 0 : r->prompt_len);
	w->prompt_len = no ? 0 : r->prompt_len;
	w->answer = answer ? xstrdup(answer) : NULL;
}

static void tell_older(struct reading *x, const char *before)
{
	struct older o = {.known = x->known};
	struct store_run_filter f = {
	        .session = x->q->session, .cursor = before, .limit = OLDER_RUNS + 1};
	if (store_runs(x->d->store, &f, older_row, &o, NULL) < 0)
		o.more = true; /* unreadable: said as left out */
	if (o.more)
		transcript_older(x->text);
	while (o.n) { /* they came newest first */
		struct run_words *w = &o.runs[--o.n];
		transcript_run(x->text, w->id, "");
		if (w->prompt_len)
			transcript_prompt(x->text, w->prompt, w->prompt_len);
		if (w->answer)
			transcript_answer(x->text, w->answer, strlen(w->answer));
		free(w->prompt);
		free(w->answer);
	}
}

/* ---- the end of the log ---- */

static bool is(const char *p, size_t n, const char *text)
{
	return n == strlen(text) && memcmp(p, text, n) == 0;
}

static void is_pipeline_row(void *ctx, const struct store_run *r)
{
	*(bool *)ctx = r->pipeline != NULL;
}

/* What a pipeline says is said by its steps. */
static bool is_pipeline(struct reading *x, const struct logline_head *h)
{
	char run[ID_MAX];
	bool is_one = false;
	if (is(h->run, h->run_len, x->pipeline))
		return true;
	memcpy(run, h->run, h->run_len);
	run[h->run_len] = '\0';
	if (store_run(x->d->store, run, is_pipeline_row, &is_one, NULL) == 0 && is_one)
		memcpy(x->pipeline, run, sizeof(run));
	return is_one;
}

static void prompt_row(void *ctx, const struct store_run *r)
{
	auto_json struct json *result =
	        r->result ? json_parse(r->result, strlen(r->result), NULL) : NULL;
	if (!was_denied(result))
		transcript_prompt(ctx, r->prompt, r->prompt_len);
}

/* Its first line that is read; one that does not begin there began before. */
static void begin_run(struct reading *x, const struct logline_head *h, const char *line, size_t n)
{
	bool started = is(h->type, h->type_len, "run.started");
	auto_json struct json *event = started ? json_parse(line, n, NULL) : NULL;
	memcpy(x->run, h->run, h->run_len);
	x->run[h->run_len] = '\0';
	if (x->first)
		tell_older(x, x->run);
	x->first = false;
	transcript_run(x->text, x->run, json_str(event, "backend", ""));
	if (store_run(x->d->store, x->run, prompt_row, x->text, NULL) < 0)
		transcript_older(x->text); /* the rest of it is told all the same */
}

static bool on_line(void *ctx, const char *line, size_t n, uint64_t offset)
{
	(void)offset;
	struct reading *x = ctx;
	struct logline_head h;
	if (!logline_head(line, n, &h) || !h.run_len || h.run_len >= ID_MAX ||
	        is(h.run, h.run_len, x->q->run) || is(h.type, h.type_len, "run.queued"))
		return true;
	bool other = !is(h.run, h.run_len, x->run);
	if (other && is_pipeline(x, &h))
		return true;
	if (other)
		begin_run(x, &h, line, n);
	transcript_event(x->text, &h, line, n);
	if (is(h.type, h.type_len, "run.done") && strcmp(x->run, x->known) == 0)
		transcript_clear(x->text);
	return true;
}

static void read_context(
        struct daemon *d, const struct resume_ask *q, const char *known, struct resume *ret)
{
	size_t room = q->room < CONTEXT_MAX ? q->room : CONTEXT_MAX;
	if (room < CONTEXT_MIN)
		return;
	struct reading x = {
	        .d = d,
	        .q = q,
	        .known = known,
	        .text = transcript_new(room - TRANSCRIPT_MARKS),
	        .first = true,
	};
	struct transcript_sum sum;
	eventlog_tail(d->log, q->session, READ_MAX, on_line, &x);
	ret->context = transcript_text(x.text, &ret->context_len, &sum);
	if (ret->context) {
		memcpy(ret->run, sum.run, sizeof(ret->run));
		memcpy(ret->backend, sum.backend, sizeof(ret->backend));
		ret->runs = sum.runs;
		ret->cut = sum.cut;
	}
	transcript_free(x.text);
}

bool resume_converses(struct daemon *d, const char *backend)
{
	struct err e;
	const struct agent *agent;
	bool known = harnesses_agent(d->harnesses, backend, &agent, &e) == 0;
	const struct driver *driver = known ? driver_find(agent->driver) : NULL;
	return driver && ability_in(driver->can, ABILITY_RESUME);
}

void resume_find(struct daemon *d, const struct resume_ask *q, struct resume *ret)
{
	bool native = q->how == HARNESS_RESUME_AUTO || q->how == HARNESS_RESUME_NATIVE;
	bool text = q->how == HARNESS_RESUME_TRANSCRIPT ||
	            (q->how == HARNESS_RESUME_AUTO && q->converses);
	char known[ID_MAX] = "";
	struct resume x = {.lost = q->lost};
	if (native && !q->lost)
		x.id = store_resume(d->store, q->session, q->backend, known);
	if (x.id) {
		memcpy(x.run, known, sizeof(x.run));
		(void)str_copy(x.backend, sizeof(x.backend), q->backend); /* a checked name */
	}
	if (text)
		read_context(d, q, x.id ? known : "", &x);
	*ret = x;
}

void resume_done(struct resume *x)
{
	free(x->id);
	free(x->context);
	*x = (struct resume){0};
}

/* ---- to clients ---- */

bool resume_any(const struct resume *x)
{
	return x->id || x->context || x->lost;
}

void resume_members(const struct resume *x, struct buf *to)
{
	struct jw w = JW_INIT(to);
	jw_str(&w, "how",
	        x->id && x->context ? "native+transcript"
	        : x->id             ? "native"
	        : x->context        ? "transcript"
	                            : "none");
	jw_bool(&w, "lost", x->lost);
	jw_str(&w, "fromRun", x->run[0] ? x->run : NULL);
	jw_str(&w, "fromBackend", x->backend[0] ? x->backend : NULL);
	if (!x->context)
		return;
	jw_int(&w, "runs", (int64_t)x->runs);
	jw_int(&w, "bytes", (int64_t)x->context_len);
	jw_bool(&w, "cut", x->cut);
}

/* ---- in the journal ---- */

struct head {
	uint32_t id_len, has_id;
	uint32_t has_context, lost;
}; /* then the id, its NUL, the context */

void resume_pack(const struct resume *x, struct buf *to)
{
	const char *id = x->id ? x->id : "";
	const struct head h = {(uint32_t)strlen(id), x->id != NULL, x->context != NULL, x->lost};
	(void)buf_put(to, (const char *)&h, sizeof(h)); /* the caller looks at to->failed */
	(void)buf_put(to, id, strlen(id) + 1);
	(void)buf_put(to, x->context ? x->context : "", x->context_len);
}

int resume_unpack(const char *p, size_t n, struct resume *ret, struct err *e)
{
	struct head h;
	if (n <= sizeof(h))
		return err_set(e, -EBADMSG, "its journal is damaged");
	memcpy(&h, p, sizeof(h));
	p += sizeof(h);
	n -= sizeof(h);
	if (h.id_len >= n || p[h.id_len] || strlen(p) != h.id_len)
		return err_set(e, -EBADMSG, "its journal is damaged");
	size_t len = n - h.id_len - 1;
	*ret = (struct resume){
	        .id = h.has_id ? xstrdup(p) : NULL,
	        .context = h.has_context ? xstrndup(p + h.id_len + 1, len) : NULL,
	        .context_len = h.has_context ? len : 0,
	        .lost = h.lost,
	};
	return 0;
}
