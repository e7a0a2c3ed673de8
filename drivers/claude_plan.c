#include "base/mem.h"
#include "base/utf8.h"
#include "drivers/claude.h"
#include "drivers/emit.h"

#include <string.h>

/*
 * Two generations of tools.  TodoWrite has the whole list in its input.
 * TaskCreate and TaskUpdate change one entry each, and only their results say
 * which: the list is kept here.
 */

static void put_entry(struct jw *w, const char *text, const char *status)
{
	jw_open(w, NULL, '{');
	jw_str(w, "text", text);
	jw_str(w, "status", status);
	jw_close(w, '}');
}

void claude_plan_call(struct driver_run *r, const char *name, const struct json *input)
{
	const struct json *todos = json_get(input, "todos");
	bool whole = strcmp(name, "TodoWrite") == 0 || strcmp(name, "todo_write") == 0;
	if (!whole || !json_is_array(todos))
		return;
	emit_todos(r->sink, todos);
}

static void emit_tasks(struct driver_run *r)
{
	auto_buf struct buf b = EMIT_BUF;
	struct jw w = JW_INIT(&b);
	jw_open(&w, "entries", '[');
	for (size_t i = 0; i < r->ntasks; i++)
		put_entry(&w, r->tasks[i].text, r->tasks[i].status);
	jw_close(&w, ']');
	(void)emit_members(r->sink, EVENT_PLAN_UPDATED, &b);
}

static void free_task(struct claude_task *t)
{
	free(t->id);
	free(t->text);
	free(t->status);
}

static bool created(struct driver_run *r, const struct json *task)
{
	const char *id = json_str(task, "id", NULL), *text = json_str(task, "subject", NULL);
	if (!calls_text_ok(id) || !text || r->ntasks == CLAUDE_TASKS_MAX)
		return false;
	r->tasks = xrealloc(r->tasks, r->ntasks + 1, sizeof(*r->tasks));
	/* 1000 bytes: an entry is one line of a list. */
	size_t n = strlen(text);
	r->tasks[r->ntasks++] = (struct claude_task){
	        .id = xstrdup(id),
	        .text = xstrndup(text, n > 1000 ? utf8_floor(text, 1000) : n),
	        .status = xstrdup("pending"),
	};
	return true;
}

static bool updated(struct driver_run *r, const struct json *detail)
{
	const char *id = json_str(detail, "taskId", NULL);
	const char *to = json_str(json_get(detail, "statusChange"), "to", NULL);
	if (!id || !calls_text_ok(to))
		return false;
	for (size_t i = 0; i < r->ntasks; i++) {
		struct claude_task *t = &r->tasks[i];
		if (strcmp(t->id, id) != 0)
			continue;
		if (strcmp(to, "deleted") == 0) {
			free_task(t);
			memmove(t, t + 1, (r->ntasks - i - 1) * sizeof(*t));
			r->ntasks--;
		} else {
			free(t->status);
			t->status = xstrdup(to);
		}
		return true;
	}
	return false;
}

void claude_plan_result(struct driver_run *r, const char *name, const struct json *detail)
{
	if ((strcmp(name, "TaskCreate") == 0 && created(r, json_get(detail, "task"))) ||
	        (strcmp(name, "TaskUpdate") == 0 && updated(r, detail)))
		emit_tasks(r);
}

void claude_plan_done(struct driver_run *r)
{
	for (size_t i = 0; i < r->ntasks; i++)
		free_task(&r->tasks[i]);
	free(r->tasks);
}
