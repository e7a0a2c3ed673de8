/*
 * Theory of operation.  A key allows what a person has read, and nothing else.
 * The agent knows this program: it may write what looks like a question, take a
 * question back and put another one in its place, ask while the person types.
 * So the question stands below everything else that was printed, with all that
 * would run or the word that there is more; a key counts when the question
 * has been there for a moment and nothing was typed in the moment before.
 */
#include "abctl/ask.h"
#include "abctl/fail.h"
#include "base/neutral.h"
#include "abctl/say.h"
#include "abctl/table.h"
#include "abctl/term.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/mem.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum {
	TITLE_SHOWN = 512, /* bytes; drivers make titles of 120 */
	NAME_SHOWN = 40,   /* columns */
	INPUT_SHOWN =
	        16 << 20, /* the event has at most 256 KiB, of which each byte may become eight */
	ROWS_LEFT = 6,    /* of the screen, by the input of a question */
	ROWS_MIN = 8,
	MOMENT_MS = 300, /* slower than the second press of a double one, and than who types */
};

struct open {
	struct list link;        /* in ask.open */
	char *id, *title, *tool; /* owned; harmless text, but for the id */
	char *input;             /* owned: harmless lines, or NULL */
	int64_t since_ms;        /* monotonic: when it was put first; 0: not yet */
	bool question;
	bool always; /* may be answered so */
	bool put;    /* it stands below everything else */
	bool viewed; /* and all of its input above it */
};

struct ask {
	const struct cli *cli; /* borrowed */
	const char *run;       /* borrowed */
	struct list open;
	bool keys;  /* stdin and stdout are a terminal */
	bool keyed; /* it gives keys now: */
	struct termios lines;
	int64_t typed_ms; /* monotonic: the last key */
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
	free(q->tool);
	free(q->input);
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

/* Returns owned. */
static char *harmless(const char *text, size_t n)
{
	auto_buf struct buf b = BUF_INIT(8 * n + 1);
	neutral_line(&b, text, n);
	return buf_take(&b);
}

/* What would run, as lines; returns owned, or NULL: nobody knows. */
static char *input_of(const struct ask *a, const struct json *event)
{
	auto_buf struct buf b = BUF_INIT(INPUT_SHOWN);
	int64_t bytes = json_int(event, "inputBytes", 0);
	const struct json *input = json_get(event, "input");
	if (bytes)
		buf_printf(&b, "  (%" PRId64 " bytes of input: abctl logs %s --json has them)\n",
		        bytes, a->run);
	else if (json_first(input))
		table_tree(&b, input, 1);
	return b.failed || !b.len ? NULL : buf_take(&b);
}

static void opened(struct ask *a, const struct json *event, const char *id, bool question)
{
	const char *title = json_str(event, question ? "text" : "title", "");
	const char *tool = json_str(event, "name", "");
	struct open *q = xnew(struct open);
	q->id = xstrdup(id);
	q->title = harmless(title, strnlen(title, TITLE_SHOWN));
	q->tool = harmless(tool, strlen(tool));
	q->tool[neutral_fit(q->tool, strlen(q->tool), NAME_SHOWN)] = '\0';
	q->input = question ? NULL : input_of(a, event);
	q->question = question;
	for (const struct json *o = json_first(json_get(event, "options")); o; o = json_next(o))
		q->always |= json_text(o) && strcmp(json_text(o), "always") == 0;
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
		opened(a, event, permission, false);
	else if (strcmp(type, "permission.answered") == 0)
		closed(a, permission, false);
	else if (strcmp(type, "question.asked") == 0)
		opened(a, event, question, true);
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

/* Bytes of the lines of `text` that fit into a number of rows of a terminal. */
static size_t fit_rows(const char *text, unsigned rows, unsigned cols)
{
	const char *p = text;
	while (*p && rows) {
		size_t n = strcspn(p, "\n"), width = neutral_width(p, n);
		unsigned need = width ? (unsigned)((width + cols - 1) / cols) : 1;
		if (need > rows)
			return (size_t)(p - text) + neutral_fit(p, n, (size_t)rows * cols);
		rows -= need;
		p += n + (p[n] == '\n');
	}
	return (size_t)(p - text);
}

/* true: there is more of it. */
static bool put_input(const struct open *q, struct buf *out)
{
	unsigned rows = 24, cols = 80;
	if (!q->input)
		return false;
	(void)term_size(STDOUT_FILENO, &rows, &cols); /* else as a terminal was once */
	rows = rows > ROWS_MIN + ROWS_LEFT ? rows - ROWS_LEFT : ROWS_MIN;
	size_t n = fit_rows(q->input, rows, cols);
	buf_put(out, q->input, n);
	if (!q->input[n])
		return false;
	buf_printf(out, "%s  ... %zu bytes more\n", n && q->input[n - 1] != '\n' ? "\n" : "",
	        strlen(q->input + n));
	return true;
}

static void put_keys(struct open *q, struct buf *out)
{
	bool more = !q->viewed && put_input(q, out);
	buf_printf(out, "? allow %s   [y] once%s%s%s  [n] no%s\n", q->title,
	        q->always ? "  [a] always" : "", q->always && *q->tool ? " " : "",
	        q->always ? q->tool : "", more ? "  [v] view all of it" : "");
	if (!q->since_ms)
		q->since_ms = clock_mono_ms();
}

static void put_note(const struct ask *a, const struct open *q)
{
	auto_buf struct buf id = BUF_INIT(4096);
	/* The only one that is open needs no name. */
	const char *word = neutral_word(&id, q->id) ? id.p : "";
	if (q->question)
		fail_note("run %s asks: %s - to answer: abctl answer %s %s TEXT", a->run, q->title,
		        a->run, word);
	else
		fail_note("run %s asks for permission: %s - to answer: abctl approve %s %s, or "
		          "deny; all of it: abctl show %s",
		        a->run, q->title, a->run, word, a->run);
}

static void put(const struct ask *a, struct open *q, struct buf *out)
{
	if (q->put)
		return;
	q->put = true;
	if (a->keys && !q->question)
		put_keys(q, out);
	else
		put_note(a, q);
}

void ask_covered(struct ask *a)
{
	struct open *q = first_permission(a);
	if (q && a->keys)
		q->put = q->viewed = false;
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

static void view(struct open *q, struct buf *out)
{
	if (!q->input)
		return;
	buf_puts(out, q->input);
	q->put = false;
	q->viewed = true;
}

static void answer(struct ask *a, char key, struct buf *out)
{
	static const struct {
		char key;
		const char *answer;
	} keys[] = {{'y', "once"}, {'a', "always"}, {'n', "deny"}};
	struct open *q = first_permission(a);
	if (q && key == 'v')
		view(q, out);
	for (size_t i = 0; q && i < ARRAY_LEN(keys); i++)
		if (keys[i].key == key && (key != 'a' || q->always)) {
			/* Whether taken or not (then it says why), the next event tells. */
			(void)!say_answer_quietly(a->cli, a->run, q->id, keys[i].answer);
			open_free(q);
			return;
		}
}

/* Not what was typed or pasted for something else: one key, a moment after the last one, to a
 * question that has been there as long. */
static bool meant(struct ask *a, ssize_t n)
{
	const struct open *q = first_permission(a);
	int64_t now = clock_mono_ms(), last = a->typed_ms;
	a->typed_ms = now;
	return q && q->put && n == 1 && now - q->since_ms >= MOMENT_MS && now - last >= MOMENT_MS;
}

void ask_read(struct ask *a, struct buf *out)
{
	char keys[256];
	ssize_t n = read(STDIN_FILENO, keys, sizeof(keys));
	if (n > 0) {
		if (meant(a, n))
			answer(a, keys[0], out);
		return;
	}
	a->keys = false; /* the terminal has gone */
	as_lines(a);
}
