#include "base/limits.h"
#include "base/mem.h"
#include "jail/acp.h"

#include <string.h>

/*
 * What comes from the supervisor goes to the agent as it is, and answers of
 * ours between its lines.  What comes from the agent goes to the supervisor,
 * but for the requests that are served here; a line that is no such request,
 * whatever else it is, is not ours to judge.
 */

enum { ID_MAX = 256, METHOD_MAX = 64 };

/* ---- answers ---- */

static void put_open(struct jw *w)
{
	jw_open(w, NULL, '{');
	jw_str(w, "jsonrpc", "2.0");
}

static void put_close(struct jw *w)
{
	jw_close(w, '}');
	buf_putc(w->to, '\n');
}

/* Between two lines of the supervisor's. */
static void to_agent(struct acp *a, const struct buf *line)
{
	(void)buf_put(a->midway ? &a->mine : &a->down, line->p, line->len); /* `failed` ends us */
}

struct jw acp_reply_open(struct buf *to, const char *id)
{
	struct jw w = JW_INIT(to);
	put_open(&w);
	jw_raw(&w, "id", id, strlen(id));
	jw_open(&w, "result", '{');
	return w;
}

void acp_reply_close(struct acp *a, struct jw *w)
{
	jw_close(w, '}');
	put_close(w);
	to_agent(a, w->to);
}

void acp_reply(struct acp *a, const char *id, const char *result)
{
	auto_buf struct buf b = BUF_INIT(LIMIT_LINE);
	struct jw w = JW_INIT(&b);
	put_open(&w);
	jw_raw(&w, "id", id, strlen(id));
	jw_raw(&w, "result", result, strlen(result));
	put_close(&w);
	to_agent(a, &b);
}

void acp_refuse(struct acp *a, const char *id, int code, const char *message)
{
	auto_buf struct buf b = BUF_INIT(LIMIT_LINE);
	struct jw w = JW_INIT(&b);
	put_open(&w);
	jw_raw(&w, "id", id, strlen(id));
	jw_open(&w, "error", '{');
	jw_int(&w, "code", code);
	jw_str(&w, "message", message);
	jw_close(&w, '}');
	put_close(&w);
	to_agent(a, &b);
}

void acp_refuse_errno(struct acp *a, const char *id, int error, const char *path)
{
	auto_free char *text = xasprintf("%s: %s", path, strerror(error));
	acp_refuse(a, id, error == ENOENT ? ACP_NOT_FOUND : ACP_INTERNAL, text);
}

struct jw acp_note_open(struct buf *to, const char *method)
{
	struct jw w = JW_INIT(to);
	put_open(&w);
	jw_str(&w, "method", method);
	jw_open(&w, "params", '{');
	return w;
}

void acp_note_close(struct acp *a, struct jw *w)
{
	jw_close(w, '}');
	put_close(w);
	(void)buf_put(&a->up, w->to->p, w->to->len); /* `failed` ends us */
}

/* ---- requests ---- */

char *acp_text(struct span params, const char *name, size_t max)
{
	struct span value;
	struct buf b = BUF_INIT(max);
	if (!scan_member(params, name, &value) || !scan_text(value, &b) || strlen(b.p) != b.len) {
		buf_done(&b);
		return NULL;
	}
	return b.p;
}

struct method {
	const char *name;
	void (*serve)(struct acp *a, const char *id, struct span params);
	bool terminal;
};
static const struct method methods[] = {
        {"fs/read_text_file", acp_read_file, false},
        {"fs/write_text_file", acp_write_file, false},
        {"terminal/create", acp_terminal_create, true},
        {"terminal/output", acp_terminal_output, true},
        {"terminal/wait_for_exit", acp_terminal_wait, true},
        {"terminal/kill", acp_terminal_kill, true},
        {"terminal/release", acp_terminal_release, true},
};

static const struct method *find(const struct acp *a, const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		if (strcmp(methods[i].name, name) == 0)
			return (methods[i].terminal ? a->terminals : a->files) ? &methods[i] : NULL;
	return NULL;
}

/* A number or a string, which is what an answer can be sent to. */
static char *id_of(struct span line)
{
	struct span id;
	if (!scan_member(line, "id", &id) || id.n > ID_MAX || strchr("[{tfn", *id.p))
		return NULL;
	return xstrndup(id.p, id.n);
}

/* true: it was for us, and is answered or will be. */
static bool serve(struct acp *a, const char *p, size_t n)
{
	struct span line, params = {0};
	if (!memmem(p, n, "\"method\"", 8) || !scan_value((struct span){p, n}, &line))
		return false;
	auto_free char *method = acp_text(line, "method", METHOD_MAX);
	const struct method *m = method ? find(a, method) : NULL;
	auto_free char *id = m ? id_of(line) : NULL;
	if (!id)
		return false;
	(void)scan_member(line, "params", &params); /* none: what it must have is missing */
	m->serve(a, id, params);
	return true;
}

/* ---- lines ---- */

static bool crowded(const struct acp *a)
{
	return a->up.len >= ACP_QUEUE_HIGH || a->down.len + a->mine.len >= ACP_QUEUE_HIGH;
}

static void one_line(struct acp *a, const char *p, size_t n)
{
	if (!a->passing && serve(a, p, n))
		return;
	a->passing = false;
	(void)buf_put(&a->up, p, n); /* `failed` ends us */
	(void)buf_putc(&a->up, '\n');
}

/* All lines that are whole, as long as what comes of them finds room. */
void acp_work(struct acp *a)
{
	size_t at = 0;
	const char *nl = NULL;
	while (!crowded(a) && a->looked < a->lines.len) {
		nl = memchr(a->lines.p + a->looked, '\n', a->lines.len - a->looked);
		if (!nl)
			break;
		size_t end = (size_t)(nl - a->lines.p);
		one_line(a, a->lines.p + at, end - at);
		a->looked = at = end + 1;
	}
	a->stalled = crowded(a);
	if (!a->stalled && (a->passing || a->lines.len - at > LIMIT_LINE)) {
		/* Too long to be for us: what has come of it goes on, and the rest as it comes. */
		(void)buf_put(&a->up, a->lines.p + at, a->lines.len - at);
		a->passing = true;
		at = a->lines.len;
	}
	buf_consume(&a->lines, at);
	a->looked = a->stalled ? a->looked - at : a->lines.len;
}

void acp_from_agent(struct acp *a, const char *p, size_t n)
{
	(void)buf_put(&a->lines, p, n); /* asked for only while it fits */
	acp_work(a);
}

void acp_end_of_lines(struct acp *a)
{
	(void)buf_put(&a->up, a->lines.p, a->lines.len);
	buf_done(&a->lines);
}

void acp_from_supervisor(struct acp *a, const char *p, size_t n)
{
	const char *nl = memrchr(p, '\n', n);
	size_t whole = nl ? (size_t)(nl - p) + 1 : 0;
	(void)buf_put(&a->down, p, whole);
	if (nl) {
		(void)buf_put(&a->down, a->mine.p, a->mine.len);
		buf_done(&a->mine);
	}
	(void)buf_put(&a->down, p + whole, n - whole);
	a->midway = whole < n;
}
