#include "abctl/render_tools.h"
#include "abctl/human.h"
#include "base/neutral.h"
#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

enum {
	TITLE_MAX = 512,  /* kept of a title; lines are cut to the width anyway */
	OUTPUT_LINES = 5, /* of a failed call */
};

static void forget(struct tool_call *c)
{
	free(c->id);
	free(c->name);
	free(c->title);
	*c = (struct tool_call){.id = NULL};
}

void tools_done(struct tools *t)
{
	for (size_t i = 0; i < TOOLS_OPEN; i++)
		forget(&t->open[i]);
}

/* The row of an id; a NULL id finds a free row, or the oldest. */
static struct tool_call *row(struct tools *t, const char *id)
{
	struct tool_call *oldest = &t->open[0];
	for (size_t i = 0; i < TOOLS_OPEN; i++) {
		struct tool_call *c = &t->open[i];
		if (id ? c->id && strcmp(c->id, id) == 0 : !c->id)
			return c;
		if (c->order < oldest->order)
			oldest = c;
	}
	return id ? NULL : oldest;
}

/* What the call is about: its title, or the one member of its input that tells most. */
static const char *about(const struct json *event)
{
	static const char *const telling[] = {"command", "cmd", "file_path", "path", "pattern",
	        "query", "url", "description", "prompt", "text", NULL};
	const char *title = json_str(event, "title", NULL);
	if (title && *title)
		return title;
	const struct json *input = json_get(event, "input");
	if (json_text(input))
		return json_text(input);
	for (size_t i = 0; telling[i]; i++) {
		const char *s = json_str(input, telling[i], NULL);
		if (s && *s)
			return s;
	}
	return "";
}

void tools_call(struct tools *t, const struct json *event, int64_t at_ms)
{
	const char *id = json_str(event, "callId", "");
	struct tool_call *c = row(t, id);
	if (!c)
		c = row(t, NULL);
	forget(c);
	*c = (struct tool_call){
	        .id = xstrdup(id),
	        .name = xstrdup(json_str(event, "name", "tool")),
	        .title = xstrndup(about(event), TITLE_MAX),
	        .since_ms = at_ms,
	        .order = ++t->seen,
	};
}

const struct tool_call *tools_current(const struct tools *t)
{
	const struct tool_call *newest = NULL;
	for (size_t i = 0; i < TOOLS_OPEN; i++)
		if (t->open[i].id && (!newest || t->open[i].order > newest->order))
			newest = &t->open[i];
	return newest;
}

static void line(struct writer *w, enum paint paint, const char *mark, const char *name,
        const char *title, const char *tail)
{
	writer_fresh_line(w);
	writer_own(w, paint, mark);
	size_t reserve = neutral_width(tail, strlen(tail)) + 2;
	writer_cut(w, PAINT_TOOL, reserve, name);
	/* The title often begins with the name: "Bash: ls", "Write out/hello.txt". */
	size_t n = strlen(name);
	if (strncmp(title, name, n) == 0 && (title[n] == ':' || title[n] == ' '))
		title += n + 1;
	title += strspn(title, " ");
	if (*title && strcmp(title, name) != 0) {
		writer_own(w, PAINT_NONE, " ");
		writer_cut(w, PAINT_NONE, reserve, title);
	}
	if (*tail) {
		writer_own(w, PAINT_NONE, "  ");
		writer_own(w, PAINT_DIM, tail);
	}
	writer_newline(w);
}

/* The first lines of what a failed call said. */
static void failed_output(struct writer *w, const char *s)
{
	for (int i = 0; i < OUTPUT_LINES && *s; i++) {
		size_t n = strcspn(s, "\n");
		auto_free char *one = xstrndup(s, n < TITLE_MAX ? n : TITLE_MAX);
		writer_own(w, PAINT_DIM, "    ");
		writer_cut(w, PAINT_DIM, 0, one);
		writer_newline(w);
		s += n + (s[n] == '\n');
	}
	if (*s) {
		writer_own(w, PAINT_DIM, "    ...");
		writer_newline(w);
	}
}

void tools_result(struct tools *t, const struct json *event, int64_t at_ms, struct writer *w)
{
	struct tool_call *c = row(t, json_str(event, "callId", ""));
	bool ok = json_bool(event, "ok", true);
	int64_t code = json_int(event, "exitCode", 0);
	auto_buf struct buf tail = BUF_INIT(256);
	if (code)
		buf_printf(&tail, "exit %" PRId64 "  ", code);
	if (c)
		buf_puts(&tail, human_duration(at_ms - c->since_ms).s);
	const char *name = c ? c->name : json_str(event, "name", "tool");
	line(w, ok ? PAINT_GOOD : PAINT_BAD,
	        ok ? (w->o.utf8 ? "✓ " : "ok ") : (w->o.utf8 ? "✗ " : "failed "), name,
	        c ? c->title : "", tail.p ? tail.p : "");
	if (!ok)
		failed_output(w, json_str(event, "output", ""));
	if (c)
		forget(c);
}

void tools_abandon(struct tools *t, struct writer *w)
{
	for (size_t i = 0; i < TOOLS_OPEN; i++) {
		struct tool_call *c = &t->open[i];
		if (!c->id)
			continue;
		line(w, PAINT_WARN, w->o.utf8 ? "… " : "? ", c->name, c->title, "no outcome");
		forget(c);
	}
}
