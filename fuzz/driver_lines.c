/*
 * Whatever an agent prints: lines through each driver.  Byte 0: bit 0 asks a
 * person, bit 1 restricts the tools, bit 2 resumes, the rest is the driver's
 * place in the table.  What follows is stdout.  Every event must be valid JSON.
 */
#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "drivers/driver.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct check {
	struct event_sink sink;
	char permission[300]; /* the last one asked */
	char question[300];   /* the same */
};

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

static void feed(
        const struct driver *d, struct driver_run *r, struct check *c, const char *p, size_t n)
{
	auto_buf struct buf to_stdin = BUF_INIT(LIMIT_EVENT);
	bool eof = false;
	while (n) {
		const char *nl = memchr(p, '\n', n);
		size_t len = nl ? (size_t)(nl - p) : n;
		d->line(r, p, len, true, &to_stdin, &eof);
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
}

static void begin(const struct driver *d, struct driver_run *r)
{
	auto_buf struct buf to_stdin = BUF_INIT(LIMIT_EVENT);
	bool eof = false;
	assert(d->start(r, &to_stdin, &eof) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	static const char *const allow[] = {"Bash(node:*)", "Read(src/**)", "mcp__a", NULL};
	static const char *const command[] = {"x", NULL};
	struct check c = {.sink = {.emit = emit}};
	struct driver_spec spec = {
	        .permissions = data[0] & 1 ? PERMISSIONS_ASK : PERMISSIONS_AUTO,
	        .tools_allow = data[0] & 2 ? allow : NULL,
	        .resume = data[0] & 4 ? "s" : NULL,
	        .command = command,
	};
	size_t n = 0;
	while (driver_name(n))
		n++;
	const struct driver *d = driver_find(driver_name((data[0] >> 3) % n));
	struct driver_run *r = d->open(&spec, &c.sink);
	begin(d, r);
	feed(d, r, &c, (const char *)data + 1, size - 1);
	struct driver_exit x = {.code = size % 2 ? 0 : 143};
	struct driver_outcome o = {0};
	d->end(r, &x, &o);
	assert(o.final_text && (o.status == DRIVER_SUCCEEDED) == (o.error == NULL));
	driver_outcome_done(&o);
	d->close(r);
	return 0;
}
