#include "drivers/tail.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <string.h>

enum { KEEP = LIMIT_FINAL_TEXT, ROOM = 2 * KEEP };

/* Forgets all but the last KEEP bytes, from the start of a character. */
static void cut(struct tail *t)
{
	if (t->len <= KEEP)
		return;
	size_t from = t->len - KEEP;
	from += utf8_rest(t->p + from, KEEP);
	memmove(t->p, t->p + from, t->len - from);
	t->len -= from;
}

void tail_add(struct tail *t, const char *p, size_t n)
{
	if (n > KEEP) {
		p += n - KEEP;
		size_t rest = utf8_rest(p, KEEP);
		p += rest;
		n = KEEP - rest;
		t->len = 0;
	}
	/* Cutting only when twice the kept size is full keeps the cost per byte constant. */
	if (t->len + n > ROOM)
		cut(t);
	if (t->len + n + 1 > t->room) {
		size_t room = t->room ? t->room : 256;
		while (room < t->len + n + 1)
			room *= 2;
		t->p = xrealloc(t->p, room, 1);
		t->room = room;
	}
	memcpy(t->p + t->len, p, n);
	t->len += n;
	t->p[t->len] = '\0';
}

void tail_clear(struct tail *t)
{
	t->len = 0;
}

char *tail_take(struct tail *t)
{
	cut(t);
	for (size_t i = 0; i < t->len; i++) /* the text is handed on as a string */
		if (t->p[i] == '\0')
			t->p[i] = '?';
	char *text = xstrndup(t->p ? t->p : "", t->len);
	tail_done(t);
	return text;
}

void tail_done(struct tail *t)
{
	free(t->p);
	*t = (struct tail){0};
}
