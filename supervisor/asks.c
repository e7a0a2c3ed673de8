#include "supervisor/asks.h"

#include "base/clock.h"
#include "base/mem.h"

#include <string.h>

void asks_init(struct asks *a)
{
	*a = (struct asks){.nopen = 0};
	list_init(&a->open);
}

static void ask_free(struct asks *a, struct ask *q)
{
	list_remove(&q->link);
	a->nopen--;
	a->bytes -= q->bytes;
	json_free(q->event);
	free(q);
}

void asks_done(struct asks *a)
{
	list_for_each (q, &a->open, struct ask, link)
		ask_free(a, q);
	for (size_t i = 0; i < a->nclosed; i++)
		free(a->closed[i]);
	free(a->closed);
}

/* ---- events ---- */

static void remember(struct asks *a, const char *id)
{
	if (a->nclosed == ASKS_CLOSED_MAX) {
		free(a->closed[0]);
		memmove(a->closed, a->closed + 1, --a->nclosed * sizeof(*a->closed));
	}
	a->closed = xrealloc(a->closed, a->nclosed + 1, sizeof(*a->closed));
	a->closed[a->nclosed++] = xstrdup(id);
}

static void opened(struct asks *a, bool question, struct json *event, size_t bytes)
{
	struct ask *q = xnew(struct ask);
	q->question = question;
	q->event = event;
	q->id = json_str(event, question ? "questionId" : "permissionId", "");
	q->bytes = bytes;
	list_append(&a->open, &q->link);
	a->nopen++;
	a->bytes += bytes;
}

void asks_drop(struct asks *a, struct ask *q)
{
	remember(a, q->id);
	ask_free(a, q);
}

static void closed(struct asks *a, bool question, const struct json *event)
{
	const char *id = json_str(event, question ? "questionId" : "permissionId", "");
	struct ask *q = asks_find(a, question, id);
	if (q)
		asks_drop(a, q);
}

void asks_event(struct asks *a, enum event_type t, const char *members, size_t n)
{
	bool asked = t == EVENT_PERMISSION_ASKED || t == EVENT_QUESTION_ASKED;
	bool answered = t == EVENT_PERMISSION_ANSWERED || t == EVENT_QUESTION_ANSWERED;
	bool question = t == EVENT_QUESTION_ASKED || t == EVENT_QUESTION_ANSWERED;
	struct json *event = asked || answered ? json_parse_members(members, n) : NULL;
	if (event && asked) {
		opened(a, question, event, n);
		return;
	}
	if (event)
		closed(a, question, event);
	json_free(event);
}

/* ---- questions about them ---- */

struct ask *asks_find(const struct asks *a, bool question, const char *id)
{
	list_for_each (q, &a->open, struct ask, link)
		if (q->question == question && strcmp(q->id, id) == 0)
			return q;
	return NULL;
}

bool asks_crowded(const struct asks *a)
{
	return a->nopen > ASKS_OPEN_MAX || a->bytes > ASKS_BYTES_MAX;
}

bool asks_was(const struct asks *a, const char *id)
{
	for (size_t i = 0; i < a->nclosed; i++)
		if (strcmp(a->closed[i], id) == 0)
			return true;
	return false;
}

struct ask *asks_next_due(const struct asks *a)
{
	struct ask *first = NULL;
	list_for_each (q, &a->open, struct ask, link)
		if (q->due_us && (!first || q->due_us < first->due_us))
			first = q;
	return first;
}

bool asks_offers(const struct ask *q, const char *answer)
{
	const struct json *options = json_get(q->event, "options");
	for (const struct json *o = json_first(options); o; o = json_next(o))
		if (json_text(o) && strcmp(json_text(o), answer) == 0)
			return true;
	return false;
}

void asks_show(const struct asks *a, struct jw *w, int64_t now_ms, int64_t now_us)
{
	char text[CLOCK_TEXT_MAX];
	list_for_each (q, &a->open, struct ask, link) {
		jw_open(w, NULL, '{');
		for (const struct json *m = json_first(q->event); m; m = json_next(m))
			jw_tree(w, json_key(m), m);
		clock_rfc3339(q->asked_ms ? q->asked_ms : now_ms, text);
		jw_str(w, "askedAt", text);
		if (q->due_us) {
			clock_rfc3339(now_ms + (q->due_us - now_us) / 1000, text);
			jw_str(w, "expiresAt", text);
		}
		jw_close(w, '}');
	}
}
