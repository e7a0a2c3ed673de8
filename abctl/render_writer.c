#include "abctl/render_writer.h"
#include "base/neutral.h"

#include <string.h>

static const char *const codes[] = {
        [PAINT_NONE] = "",
        [PAINT_DIM] = "\x1b[2m",
        [PAINT_BOLD] = "\x1b[1m",
        [PAINT_GOOD] = "\x1b[32m",
        [PAINT_BAD] = "\x1b[31m",
        [PAINT_WARN] = "\x1b[33m",
        [PAINT_TOOL] = "\x1b[36m",
};

static bool painted(const struct writer *w, enum paint paint)
{
	return w->o.colour && paint != PAINT_NONE;
}

static void on(struct writer *w, enum paint paint)
{
	if (painted(w, paint))
		buf_puts(w->out, codes[paint]);
}

static void off(struct writer *w, enum paint paint)
{
	if (painted(w, paint))
		buf_puts(w->out, "\x1b[0m");
}

/* `s` is harmless and has no new line. */
static void advance(struct writer *w, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (s[i] == '\t') {
			w->column = (w->column + 8) & ~(size_t)7;
			continue;
		}
		size_t k = i;
		while (k < n && s[k] != '\t')
			k++;
		w->column += neutral_width(s + i, k - i);
		i = k - 1;
	}
}

static void piece(struct writer *w, enum paint paint, const char *s, size_t n)
{
	if (n == 0)
		return;
	on(w, paint);
	buf_put(w->out, s, n);
	off(w, paint);
	advance(w, s, n);
}

void writer_newline(struct writer *w)
{
	buf_putc(w->out, '\n');
	w->column = 0;
}

void writer_fresh_line(struct writer *w)
{
	if (w->column)
		writer_newline(w);
}

void writer_text(struct writer *w, enum paint paint, const char *mark, const char *s, size_t n)
{
	auto_buf struct buf safe = BUF_INIT(w->out->limit);
	neutral_text(&safe, s, n);
	for (size_t i = 0; i < safe.len;) {
		const char *nl = memchr(safe.p + i, '\n', safe.len - i);
		size_t len = nl ? (size_t)(nl - safe.p) - i : safe.len - i;
		if (mark && w->column == 0)
			writer_own(w, paint, mark);
		if (len)
			piece(w, paint, safe.p + i, len);
		if (nl)
			writer_newline(w);
		i += len + (nl != NULL);
	}
}

void writer_cut(struct writer *w, enum paint paint, size_t reserve, const char *s)
{
	auto_buf struct buf safe = BUF_INIT(w->out->limit);
	neutral_line(&safe, s, strlen(s));
	if (!safe.len)
		return;
	size_t len = safe.len;
	if (w->o.width) {
		size_t used = w->column + reserve + 1;
		len = neutral_fit(safe.p, safe.len, w->o.width > used ? w->o.width - used : 0);
	}
	piece(w, paint, safe.p, len);
}

void writer_own(struct writer *w, enum paint paint, const char *s)
{
	piece(w, paint, s, strlen(s));
}

void writer_hide(struct writer *w)
{
	if (!w->status)
		return;
	w->status = false;
	buf_puts(w->out, "\r\x1b[2K");
	if (w->came_from)
		buf_printf(w->out, "\x1b[A\x1b[%zuG", w->came_from + 1);
}

void writer_status(struct writer *w, const char *line, size_t n)
{
	if (!w->o.live || w->o.width < 10)
		return;
	writer_hide(w);
	/* A full line wraps by itself at the next character: the cursor is as good as below. */
	w->came_from = w->column % w->o.width;
	if (w->column)
		buf_putc(w->out, '\n');
	if (!w->came_from)
		w->column = 0;
	on(w, PAINT_DIM);
	buf_put(w->out, line, neutral_fit(line, n, w->o.width - 1));
	off(w, PAINT_DIM);
	w->status = true;
}
