#include "abctl/ask.h"
#include "abctl/fail.h"
#include "abctl/neutral.h"
#include "abctl/say.h"
#include "abctl/term.h"
#include "base/list.h"
#include "base/mem.h"

#include <string.h>
#include <unistd.h>

enum { TITLE_SHOWN = 4096 };

struct open {
	struct list link; /* in ask.open */
	char *id, *title; /* owned; the title is harmless text */
	bool question;
	bool put;
};

struct ask {
	const struct cli *cli; /* borrowed */
	const char *run;       /* borrowed */
	struct list open;
	bool keys;  /* stdin and stdout are a terminal */
	bool keyed; /* it gives keys now: */
	struct termios lines;
};

struct ask *ask_new(const struct cli *cli, const char *run)
{
	struct ask *a = xnew(struct ask);
	a->cli = cli;
	a->run = run;
	a->keys = !cli->json && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	list_init(&a->open);
	return a;
}

static void open_free(struct open *q)
{
	list_remove(&q->link);
	free(q->id);
	free(q->title);
	free(q);
}

static void as_lines(struct ask *a)
{
	if (a->keyed)
		term_restore(STDIN_FILENO, &a->lines);
	a->keyed = false;
}

void ask_free(struct ask *a)
{
	if (!a)
		return;
	as_lines(a);
	list_for_each (q, &a->open, struct open, link)
		open_free(q);
	free(a);
}

/* ---- events ---- */

static void opened(struct ask *a, const char *id, const char *title, bool question)
{
	auto_buf struct buf b = BUF_INIT(TITLE_SHOWN);
	neutral_line(&b, title, strnlen(title, TITLE_SHOWN / 8));
	struct open *q = xnew(struct open);
	q->id = xstrdup(id);
	q->title = xstrdup(b.p ? b.p : "");
	q->question = question;
	list_append(&a->open, &q->link);
}

static void closed(struct ask *a, const char *id, bool question)
{
	list_for_each (q, &a->open, struct open, link)
		if (q->question == question && strcmp(q->id, id) == 0)
			open_free(q);
}

void ask_event(struct ask *a, const struct json *event)
{
	const char *type = json_str(event, "type", "");
	const char *permission = json_str(event, "permissionId", ""),
	           *question = json_str(event, "questionId", "");
	if (strcmp(type, "permission.asked") == 0)
		opened(a, permission, json_str(event, "title", ""), false);
	else if (strcmp(type, "permission.answered") == 0)
		closed(a, permission, false);
	else if (strcmp(type, "question.asked") == 0)
		opened(a, question, json_str(event, "text", ""), true);
	else if (strcmp(type, "question.answered") == 0)
		closed(a, question, true);
}

/* ---- the person ---- */

static struct open *first_permission(const struct ask *a)
{
	list_for_each (q, &a->open, struct open, link)
		if (!q->question)
			return q;
	return NULL;
}

static void put(const struct ask *a, struct open *q, struct buf *out)
{
	if (q->put)
		return;
	q->put = true;
	if (q->question)
		fail_note("run %s asks: %s - to answer: abctl answer %s %s TEXT", a->run, q->title,
		        a->run, q->id);
	else if (a->keys)
		buf_printf(out, "? allow %s   [y] once  [a] always  [n] no\n", q->title);
	else
		fail_note(
		        "run %s asks for permission: %s - to answer: abctl approve %s %s, or deny",
		        a->run, q->title, a->run, q->id);
}

void ask_put(struct ask *a, struct buf *out)
{
	struct open *first = first_permission(a);
	list_for_each (q, &a->open, struct open, link)
		if (q->question || !a->keys || q == first)
			put(a, q, out);
	if (!a->keys || !first)
		as_lines(a);
	else if (!a->keyed)
		a->keyed = term_keys(STDIN_FILENO, &a->lines) == 0;
}

bool ask_wants_key(const struct ask *a)
{
	return a->keyed && first_permission(a);
}

static void answer(struct ask *a, char key)
{
	static const struct {
		char key;
		const char *answer;
	} keys[] = {{'y', "once"}, {'a', "always"}, {'n', "deny"}};
	struct open *q = first_permission(a);
	for (size_t i = 0; q && i < ARRAY_LEN(keys); i++)
		if (keys[i].key == key) {
			/* Whether taken or not (then it says why), the next event tells. */
			(void)!say_answer_quietly(a->cli, a->run, q->id, keys[i].answer);
			open_free(q);
			return;
		}
}

void ask_read(struct ask *a)
{
	char key;
	if (read(STDIN_FILENO, &key, 1) == 1) {
		answer(a, key);
		return;
	}
	a->keys = false; /* the terminal has gone */
	as_lines(a);
}
