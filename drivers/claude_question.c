#include "base/mem.h"
#include "drivers/claude.h"
#include "drivers/emit.h"

#include <string.h>

/*
 * AskUserQuestion is a tool: Claude asks whether it may run, and what a person
 * says goes back in the input it is allowed with, as "answers" by the text of
 * each question.  One call may have several questions; each is put by itself,
 * and the call is answered with the last of them.
 */

struct claude_form {
	char *request, *input; /* owned; input as JSON text */
	size_t n;
	struct {
		char *id, *text, *answer; /* owned; answer NULL: open */
	} part[CLAUDE_PARTS_MAX];
};

static void form_free(struct claude_form *f)
{
	for (size_t i = 0; i < f->n; i++) {
		free(f->part[i].id);
		free(f->part[i].text);
		free(f->part[i].answer);
	}
	free(f->request);
	free(f->input);
	free(f);
}

static struct claude_form *take_form(struct driver_run *r, size_t i)
{
	struct claude_form *f = r->forms[i];
	r->forms[i] = r->forms[--r->nforms];
	return f;
}

/* The labels, and in the text what each means. */
static void emit_part(struct driver_run *r, const char *id, const struct json *question)
{
	auto_buf struct buf text = EMIT_BUF, labels = EMIT_BUF;
	struct jw w = JW_INIT(&labels);
	const struct json *options = json_get(question, "options");
	buf_puts(&text, json_str(question, "question", ""));
	if (json_bool(question, "multiSelect", false))
		buf_puts(&text, " (one or more)");
	jw_open(&w, NULL, '[');
	for (const struct json *o = json_is_array(options) ? json_first(options) : NULL; o;
	        o = json_next(o)) {
		const char *label = json_str(o, "label", NULL);
		const char *means = json_str(o, "description", "");
		jw_str(&w, NULL, label);
		if (label && *means)
			buf_printf(&text, "\n%s: %s", label, means);
	}
	jw_close(&w, ']');
	auto_json struct json *list = json_parse(labels.p, labels.len, NULL);
	emit_question(r->sink, id, text.p, json_first(list) ? list : NULL);
}

/* Nothing is told before all of it can be put. */
static bool read_parts(struct driver_run *r, struct claude_form *f, const struct json *questions)
{
	const struct json *q = json_is_array(questions) ? json_first(questions) : NULL;
	bool single = q && !json_next(q);
	for (; q; q = json_next(q)) {
		const char *text = json_str(q, "question", NULL);
		if (!text || !*text || f->n == CLAUDE_PARTS_MAX)
			return false;
		char *id = single ? xstrdup(f->request) : xasprintf("%s.%zu", f->request, f->n + 1);
		f->part[f->n].text = xstrdup(text);
		f->part[f->n++].id = id;
		if (!single && !fresh_take(&r->ids, id))
			return false;
	}
	return f->n > 0;
}

static bool has_room(const struct driver_run *r, const char *input)
{
	size_t bytes = strlen(input);
	for (size_t i = 0; i < r->nforms; i++)
		bytes += strlen(r->forms[i]->input);
	return r->nforms < CLAUDE_FORMS_MAX && bytes <= CLAUDE_FORM_BYTES;
}

bool claude_question(
        struct driver_run *r, const char *request, const struct json *input, const char *text)
{
	const struct json *questions = json_get(input, "questions");
	if (!has_room(r, text))
		return false;
	struct claude_form *f = xnew(struct claude_form);
	f->request = xstrdup(request);
	f->input = xstrdup(text);
	if (!read_parts(r, f, questions)) {
		form_free(f);
		return false;
	}
	const struct json *q = json_first(questions);
	for (size_t i = 0; i < f->n; i++, q = json_next(q))
		emit_part(r, f->part[i].id, q);
	r->forms[r->nforms++] = f;
	return true;
}

static void tell_open(struct driver_run *r, const struct claude_form *f)
{
	for (size_t i = 0; i < f->n; i++)
		if (!f->part[i].answer)
			emit_question_answered(r->sink, f->part[i].id, "");
}

/* The input as it was, and the answers. */
static void reply_answers(const struct claude_form *f, struct buf *to_stdin)
{
	auto_buf struct buf b = BUF_INIT(to_stdin->limit);
	buf_put(&b, f->input, strlen(f->input) - 1);
	struct jw w = {.to = &b, .comma = true};
	jw_open(&w, "answers", '{');
	for (size_t i = 0; i < f->n; i++)
		jw_str(&w, f->part[i].text, f->part[i].answer);
	jw_close(&w, '}');
	jw_close(&w, '}');
	claude_reply_allow(to_stdin, f->request, b.p);
}

static bool find_part(
        const struct driver_run *r, const char *id, size_t *ret_form, size_t *ret_part)
{
	for (size_t i = 0; i < r->nforms; i++)
		for (size_t k = 0; k < r->forms[i]->n; k++)
			if (!r->forms[i]->part[k].answer &&
			        strcmp(r->forms[i]->part[k].id, id) == 0) {
				*ret_form = i;
				*ret_part = k;
				return true;
			}
	return false;
}

bool claude_reply(struct driver_run *r, const char *question_id, const char *p, size_t n,
        struct buf *to_stdin)
{
	size_t at, part;
	if (r->closing || !find_part(r, question_id, &at, &part))
		return false;
	struct claude_form *f = r->forms[at];
	if (p) {
		f->part[part].answer = xstrndup(p, n);
		emit_question_answered(r->sink, question_id, f->part[part].answer);
		for (size_t i = 0; i < f->n; i++)
			if (!f->part[i].answer)
				return true;
		reply_answers(f, to_stdin);
	} else {
		tell_open(r, f);
		claude_reply_deny(to_stdin, f->request, "Nobody has answered.");
	}
	form_free(take_form(r, at));
	return true;
}

bool claude_question_cancelled(struct driver_run *r, const char *request)
{
	for (size_t i = 0; i < r->nforms; i++) {
		if (strcmp(r->forms[i]->request, request) != 0)
			continue;
		struct claude_form *f = take_form(r, i);
		tell_open(r, f);
		form_free(f);
		return true;
	}
	return false;
}

void claude_question_done(struct driver_run *r)
{
	while (r->nforms)
		form_free(take_form(r, 0));
}
