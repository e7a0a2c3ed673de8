#include "supervisor/veiled.h"

#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/scan.h"
#include "drivers/emit.h"

#include <stdlib.h>
#include <string.h>

struct veiled {
	struct veil veil;
	/* Of one message what could be the beginning of something: */
	enum event_type type;
	char *id, *parent; /* owned, or NULL */
	struct buf text;
};

/* To an emitter, for emit_text. */
struct outlet {
	struct event_sink sink;
	veiled_fn *fn;
	void *ctx;
	bool goes_on;
};

struct veiled *veiled_new(const struct veil *v)
{
	if (!v->nforms || !veil_ok(v))
		return NULL;
	struct veiled *x = xnew(struct veiled);
	x->veil = *v;
	x->text = (struct buf)BUF_INIT(LIMIT_EVENT + VEIL_WINDOW);
	return x;
}

void veiled_free(struct veiled *x)
{
	if (!x)
		return;
	free(x->id);
	free(x->parent);
	buf_done(&x->text);
	free(x);
}

const struct veil *veiled_veil(const struct veiled *x)
{
	return x ? &x->veil : NULL;
}

char *veiled_text(const struct veiled *x, const char *p, size_t n)
{
	char *copy = xstrndup(p, n);
	(void)veil_text(veiled_veil(x), copy, strlen(copy));
	return copy;
}

bool veiled_has(const struct veiled *x, const char *text)
{
	if (!x || !text)
		return false;
	auto_free char *copy = xstrdup(text);
	return veil_text(&x->veil, copy, strlen(copy)) > 0;
}

static void emit(struct event_sink *sink, enum event_type t, const char *members, size_t n)
{
	struct outlet *o = container_of(sink, struct outlet, sink);
	o->goes_on = o->fn(o->ctx, t, members, n);
}

static bool tell(struct veiled *x, size_t n, veiled_fn *fn, void *ctx)
{
	struct outlet o = {.sink.emit = emit, .fn = fn, .ctx = ctx, .goes_on = true};
	if (n)
		(void)emit_text(&o.sink, x->type, x->text.p, n, true, x->id, x->parent);
	buf_consume(&x->text, n);
	return o.goes_on;
}

bool veiled_end(struct veiled *x, veiled_fn *fn, void *ctx)
{
	return !x || tell(x, x->text.len, fn, ctx);
}

static bool whole(struct veiled *x, enum event_type t, const char *members, size_t n, veiled_fn *fn,
        void *ctx)
{
	auto_buf struct buf copy = BUF_INIT(n + 1);
	if (n && buf_put(&copy, members, n) == 0)
		(void)veil_json(&x->veil, copy.p, copy.len);
	return veiled_end(x, fn, ctx) && fn(ctx, t, copy.p ? copy.p : "", copy.len);
}

static bool same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static char *copied(const char *text)
{
	return text ? xstrdup(text) : NULL;
}

/* Of the message whose piece it is. */
static void begin(struct veiled *x, enum event_type t, const char *id, const char *parent)
{
	free(x->id);
	free(x->parent);
	x->type = t;
	x->id = copied(id);
	x->parent = copied(parent);
}

bool veiled_event(struct veiled *x, enum event_type t, const char *members, size_t n, veiled_fn *fn,
        void *ctx)
{
	if (!x)
		return fn(ctx, t, members, n);
	bool says = t == EVENT_AGENT_MESSAGE || t == EVENT_AGENT_THINKING;
	auto_json struct json *event = says ? json_parse_members(members, n) : NULL;
	auto_buf struct buf text = BUF_INIT(LIMIT_EVENT);
	if (!event || !json_bool(event, "delta", false) ||
	        !scan_members_text(members, n, "text", &text))
		return whole(x, t, members, n, fn, ctx);
	const char *id = json_str(event, "messageId", NULL);
	const char *parent = json_str(event, "parentCallId", NULL);
	if (x->type != t || !same(x->id, id) || !same(x->parent, parent)) {
		if (!veiled_end(x, fn, ctx))
			return false;
		begin(x, t, id, parent);
	}
	if (text.len && buf_put(&x->text, text.p, text.len) == 0) /* an event and what waited */
		(void)veil_text(&x->veil, x->text.p, x->text.len);
	return tell(x, veil_passable(&x->veil, x->text.p, x->text.len), fn, ctx);
}
