/*
 * Whatever an agent prints, through the drivers.  Byte 0: bit 0 asks a person,
 * bit 1 restricts the tools, bit 2 resumes, bit 3 serves files and terminals and lets the process
 * wait for a second run, to which it says the same again.  The rest of the first line is the
 * driver's name, what follows is stdout, but for lines of our own: "!interrupt",
 * "!input TEXT", "!stderr TEXT", "!flush".  Every event must be valid JSON, and each call get
 * exactly one result.  The driver exec is told its events by the command: it may say anything.
 */
#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "drivers/driver.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct check {
	struct event_sink sink;
	char permission[300], question[300]; /* the last one asked */
	char *open[2048];                    /* owned: calls without a result; a driver has 1024 */
	size_t nopen;
	bool pairs; /* they are looked at */
};

static void call_or_result(struct check *c, enum event_type t, const char *id)
{
	size_t i = 0;
	while (i < c->nopen && strcmp(c->open[i], id) != 0)
		i++;
	assert((i == c->nopen) == (t == EVENT_TOOL_CALL));
	if (t == EVENT_TOOL_CALL) {
		assert(c->nopen < ARRAY_LEN(c->open));
		c->open[c->nopen++] = xstrdup(id);
		return;
	}
	free(c->open[i]);
	c->open[i] = c->open[--c->nopen];
}

static void emit(struct event_sink *sink, enum event_type t, const char *members, size_t n)
{
	struct check *c = container_of(sink, struct check, sink);
	auto_buf struct buf b = BUF_INIT(LIMIT_EVENT);
	buf_putc(&b, '{');
	buf_put(&b, members, n);
	buf_putc(&b, '}');
	/* Nesting beyond what the parser accepts cannot come out of a tree it made. */
	auto_json struct json *j = json_parse(b.p, b.len, NULL);
	assert(j && b.failed == 0);
	if (c->pairs && (t == EVENT_TOOL_CALL || t == EVENT_TOOL_RESULT))
		call_or_result(c, t, json_str(j, "callId", ""));
	if (t == EVENT_PERMISSION_ASKED)
		(void)str_copy(
		        c->permission, sizeof(c->permission), json_str(j, "permissionId", ""));
	if (t == EVENT_QUESTION_ASKED)
		(void)str_copy(c->question, sizeof(c->question), json_str(j, "questionId", ""));
}

static void stdin_is_lines(struct buf *to_stdin)
{
	assert(to_stdin->len == 0 || to_stdin->p[to_stdin->len - 1] == '\n');
	buf_clear(to_stdin);
}

static bool command(
        const struct driver *d, struct driver_run *r, const char *p, size_t n, struct buf *to_stdin)
{
	if (n == 0 || *p != '!')
		return false;
	if (n > 7 && memcmp(p, "!stderr", 7) == 0)
		d->error_line(r, p + 7, n - 7);
	else if (n > 6 && memcmp(p, "!input", 6) == 0 && d->input)
		(void)d->input(r, p + 6, n - 6, to_stdin);
	else if (n == 10 && memcmp(p, "!interrupt", 10) == 0 && d->interrupt)
		(void)d->interrupt(r, to_stdin);
	else if (n == 6 && memcmp(p, "!flush", 6) == 0 && d->flush)
		d->flush(r);
	else
		return false;
	return true;
}

/* Did the driver say that stdin may be closed?  One that stays hears no more then. */
static bool feed(const struct driver *d, struct driver_run *r, struct check *c, bool stays,
        const char *p, size_t n)
{
	auto_buf struct buf to_stdin = BUF_INIT(LIMIT_EVENT);
	bool eof = false;
	(void)d->start(r, &to_stdin, &eof);
	buf_clear(&to_stdin); /* a prompt need not be a line */
	while (n && !(eof && stays)) {
		const char *nl = memchr(p, '\n', n);
		size_t len = nl ? (size_t)(nl - p) : n;
		eof = false;
		if (!command(d, r, p, len, &to_stdin))
			d->line(r, p, len, len % 64 != 63, &to_stdin, &eof);
		stdin_is_lines(&to_stdin);
		if (d->answer && *c->permission) {
			d->answer(r, c->permission, (enum driver_answer)(len % 3), &to_stdin);
			stdin_is_lines(&to_stdin);
			*c->permission = '\0';
		}
		if (d->reply && *c->question) {
			d->reply(r, c->question, p, len % 8, &to_stdin);
			stdin_is_lines(&to_stdin);
			*c->question = '\0';
		}
		p += nl ? len + 1 : len;
		n -= nl ? len + 1 : len;
	}
	if (d->flush)
		d->flush(r);
	return eof;
}

/* What it prints while nobody listens. */
static void idle(const struct driver *d, const char *p, size_t n)
{
	while (n) {
		const char *nl = memchr(p, '\n', n);
		size_t len = nl ? (size_t)(nl - p) : n;
		(void)d->idle(p, len);
		p += nl ? len + 1 : len;
		n -= nl ? len + 1 : len;
	}
}

/* A run from its begin to its end; returns what it left for another one, owned, or NULL. */
static char *run(const struct driver *d, const struct driver_spec *spec, struct check *c,
        const char *p, size_t n)
{
	struct driver_run *r = d->open(d, spec, &c->sink);
	char *live = NULL;
	bool stays = spec->stays && d->rest;
	if (feed(d, r, c, stays, p, n) && stays)
		live = d->rest(r);
	struct driver_exit x = {.code = n % 2 ? 0 : 143};
	struct driver_outcome o = {0};
	d->end(r, &x, &o);
	assert(o.final_text && (o.status == DRIVER_SUCCEEDED) == (o.error == NULL));
	assert(!live || o.status == DRIVER_SUCCEEDED);
	assert(c->nopen == 0);
	driver_outcome_done(&o);
	d->close(r);
	return live;
}

static const struct driver *named(const uint8_t *p, size_t n)
{
	char name[32] = "";
	size_t count = 0;
	memcpy(name, p, n < sizeof(name) ? n : sizeof(name) - 1);
	while (driver_name(count))
		count++;
	const struct driver *d = driver_find(name);
	return d ? d : driver_find(driver_name(n && count ? *p % count : 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *nl = size ? memchr(data, '\n', size) : NULL;
	if (!nl || nl == data)
		return 0;
	static const char *const allow[] = {"Bash(node:*)", "Read(src/**)", "mcp__a", NULL};
	static const char *const argv[] = {"x", NULL}, *const failures[] = {"Error: ", NULL};
	struct check c = {.sink = {.emit = emit}};
	bool stays = data[0] & 8;
	struct driver_spec spec = {
	        .prompt = "Go.",
	        .prompt_len = 3,
	        .permissions = data[0] & 1 ? PERMISSIONS_ASK : PERMISSIONS_AUTO,
	        .tools_allow = data[0] & 2 ? allow : NULL,
	        .resume = data[0] & 4 ? "s" : NULL,
	        .command = argv,
	        .stays = stays,
	        .acp_files = stays,
	        .acp_terminals = stays,
	        .usage_sums = stays,
	        .failure_text = stays ? failures : NULL,
	};
	const struct driver *d = named(data + 1, (size_t)(nl - data) - 1);
	const char *lines = (const char *)nl + 1;
	size_t n = size - (size_t)(nl - data) - 1;
	c.pairs = strcmp(d->name, "exec") != 0;
	auto_free char *live = run(d, &spec, &c, lines, n);
	if (!live)
		return 0;
	idle(d, lines, n);
	spec.live = live;
	free(run(d, &spec, &c, lines, n));
	return 0;
}
