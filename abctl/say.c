#include "abctl/say.h"
#include "abctl/fail.h"
#include "base/neutral.h"
#include "abctl/query.h"
#include "base/fd.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_MAX = 1 << 20 /* what the API takes */ };

static const struct {
	const char *word, *member, *segment;
} kinds[] = {
        [SAY_PERMISSION] = {"permission", "permissionId", "permissions"},
        [SAY_QUESTION] = {"question", "questionId", "questions"},
};

/* ---- which ---- */

static const char *title(const struct json *ask)
{
	return json_str(ask, "title", json_str(ask, "text", ""));
}

static int say_which(const char *run, enum say_kind kind, const struct json *pending)
{
	fprintf(stderr, "run %s waits for more than one answer:\n", run);
	for (const struct json *x = json_first(pending); x; x = json_next(x)) {
		const char *id = json_str(x, kinds[kind].member, NULL);
		if (!id)
			continue;
		auto_buf struct buf b = BUF_INIT(64 << 10);
		neutral_line(&b, id, strlen(id));
		buf_puts(&b, "  ");
		neutral_line(&b, title(x), strlen(title(x)));
		fprintf(stderr, "  %s\n", b.p ? b.p : "");
	}
	return fail_usage("name the %s", kinds[kind].word);
}

/* *ret is owned. */
static int only_one(const struct cli *cli, const char *run, enum say_kind kind, char **ret)
{
	auto_buf struct buf path = BUF_INIT(QUERY_PATH_MAX);
	buf_puts(&path, "/v1/runs/");
	url_encode(&path, run);
	auto_json struct json *j = NULL;
	int r = query_get(cli, path.p, &j);
	if (r)
		return r;
	const char *found = NULL;
	for (const struct json *x = json_first(json_get(j, "pending")); x; x = json_next(x)) {
		const char *id = json_str(x, kinds[kind].member, NULL);
		if (id && found)
			return say_which(run, kind, json_get(j, "pending"));
		found = id ? id : found;
	}
	if (!found)
		return fail_usage("run %s waits for no answer to a %s", run, kinds[kind].word);
	*ret = xstrdup(found);
	return 0;
}

/* ---- saying ---- */

/* Checks and writes {member: text}. */
static int write_body(struct buf *body, const char *member, const char *text, size_t n)
{
	struct jw w = JW_INIT(body);
	if (n > TEXT_MAX)
		return fail_usage("the text is larger than %d bytes", TEXT_MAX);
	if (!neutral_is_text(text, n))
		return fail_usage("the text is not UTF-8");
	jw_open(&w, NULL, '{');
	jw_bytes(&w, member, text, n);
	jw_close(&w, '}');
	return 0;
}

#define BODY BUF_INIT(6 * (size_t)TEXT_MAX + 1024)

static void write_path(struct buf *path, const char *run, const char *segment, const char *id)
{
	buf_puts(path, "/v1/runs/");
	url_encode(path, run);
	buf_printf(path, "/%s", segment);
	if (!id)
		return;
	buf_putc(path, '/');
	url_encode(path, id);
}

static int post(const struct cli *cli, const char *path, const struct buf *body, const char *done)
{
	struct client_request req = {
	        .method = "POST", .path = path, .body = body->p, .body_len = body->len};
	if (done)
		return query_say(cli, &req, "%s", done);
	auto_json struct json *j = NULL;
	return query_send(cli, &req, &j);
}

static int answer(const struct cli *cli, const char *run, enum say_kind kind, const char *id,
        const char *text, size_t n)
{
	if (id && !*id)
		return fail_usage("the %s is empty: without one it is the only one that is open",
		        kinds[kind].word);
	auto_free char *found = id ? xstrdup(id) : NULL;
	int r = found ? 0 : only_one(cli, run, kind, &found);
	if (r || !found)
		return r;
	bool permission = kind == SAY_PERMISSION;
	auto_buf struct buf path = BUF_INIT(QUERY_PATH_MAX), body = BODY,
	                    done = BUF_INIT(QUERY_PATH_MAX);
	write_path(&path, run, kinds[kind].segment, found);
	neutral_line(&done, found, strlen(found));
	buf_printf(&done, ": %s", permission ? text : "answered");
	r = write_body(&body, permission ? "answer" : "text", text, n);
	return r ? r : post(cli, path.p, &body, done.p);
}

int say_answer_quietly(const struct cli *cli, const char *run, const char *id, const char *word)
{
	auto_buf struct buf path = BUF_INIT(QUERY_PATH_MAX), body = BODY;
	write_path(&path, run, kinds[SAY_PERMISSION].segment, id);
	int r = write_body(&body, "answer", word, strlen(word));
	return r ? r : post(cli, path.p, &body, NULL);
}

int say_permission(const struct cli *cli, const char *run, const char *id, const char *word)
{
	return answer(cli, run, SAY_PERMISSION, id, word, strlen(word));
}

int say_reply(const struct cli *cli, const char *run, const char *id, const char *text, size_t n)
{
	return answer(cli, run, SAY_QUESTION, id, text, n);
}

int say_message(const struct cli *cli, const char *run, const char *text, size_t n)
{
	auto_buf struct buf path = BUF_INIT(QUERY_PATH_MAX), body = BODY;
	write_path(&path, run, "input", NULL);
	int r = write_body(&body, "text", text, n);
	return r ? r : post(cli, path.p, &body, "sent");
}

int say_try(const struct cli *cli, const char *run, const char *text, size_t n)
{
	struct err e = {0};
	auto_buf struct buf path = BUF_INIT(QUERY_PATH_MAX), body = BODY;
	write_path(&path, run, "input", NULL);
	int r = write_body(&body, "text", text, n);
	if (r)
		return r;
	struct client_request req = {
	        .method = "POST", .path = path.p, .body = body.p, .body_len = body.len};
	auto_client struct client *c = client_open(&cli->peer, &req, &e);
	int status = c ? client_status(c, &e) : e.code;
	return status < 0      ? query_failed(&e)
	       : status == 409 ? SAY_LATER
	       : status < 300  ? 0
	                       : query_refused(c);
}

bool say_cut(size_t n)
{
	enum { TERMINAL_LINE = 4095 }; /* n_tty drops what is typed beyond, and does not tell */
	if (n < TERMINAL_LINE)
		return false;
	fail_note("not sent: a terminal passes on %d bytes of a line, and this one may have had "
	          "more; "
	          "abctl send RUN - and abctl run -f FILE take any",
	        TERMINAL_LINE);
	return true;
}

int say_text(const char *operand, char **ret, size_t *ret_len)
{
	if (strcmp(operand, "-") != 0) {
		*ret = xstrdup(operand);
		*ret_len = strlen(operand);
		return 0;
	}
	int r = fd_slurp(STDIN_FILENO, TEXT_MAX, ret, ret_len);
	if (r == -E2BIG)
		return fail_usage("the text is larger than %d bytes", TEXT_MAX);
	return r < 0 ? fail_usage("stdin: %s", strerror(-r)) : 0;
}
