#include "drivers/calls.h"
#include "base/mem.h"
#include "drivers/emit.h"

#include <string.h>

bool calls_text_ok(const char *s)
{
	return s && *s && strnlen(s, CALLS_TEXT_MAX + 1) <= CALLS_TEXT_MAX;
}

static struct call *find(const struct calls *c, const char *id)
{
	for (size_t i = 0; i < c->n; i++)
		if (strcmp(c->open[i].id, id) == 0)
			return &c->open[i];
	return NULL;
}

bool calls_start(struct calls *c, const char *id, const char *name)
{
	if (c->n == CALLS_OPEN_MAX || find(c, id))
		return false;
	c->open = xrealloc(c->open, c->n + 1, sizeof(*c->open));
	c->open[c->n++] = (struct call){.id = xstrdup(id), .name = xstrdup(name)};
	c->total++;
	return true;
}

const char *calls_name(const struct calls *c, const char *id)
{
	const struct call *call = find(c, id);
	return call ? call->name : NULL;
}

void calls_set_path(struct calls *c, const char *id, const char *path)
{
	struct call *call = find(c, id);
	if (!call || !path || !*path || strlen(path) >= CALLS_PATH_MAX)
		return;
	free(call->path);
	call->path = xstrdup(path);
}

const char *calls_path(const struct calls *c, const char *id)
{
	const struct call *call = find(c, id);
	return call ? call->path : NULL;
}

static void call_done(struct call *call)
{
	free(call->id);
	free(call->name);
	free(call->path);
}

void calls_finish(struct calls *c, const char *id)
{
	struct call *call = find(c, id);
	if (!call)
		return;
	call_done(call);
	size_t after = (size_t)(c->open + c->n - (call + 1)); /* keeps the order of the rest */
	memmove(call, call + 1, after * sizeof(*call));
	c->n--;
}

void calls_close_all(struct calls *c, struct event_sink *sink, const char *why)
{
	for (size_t i = 0; i < c->n; i++) { /* a few hundred bytes each, which fit */
		const struct call *call = &c->open[i];
		(void)emit_result(sink, call->id, call->name, false, why, strlen(why), -1);
	}
	int64_t total = c->total;
	calls_done(c);
	c->total = total;
}

void calls_done(struct calls *c)
{
	for (size_t i = 0; i < c->n; i++)
		call_done(&c->open[i]);
	free(c->open);
	*c = (struct calls){0};
}
