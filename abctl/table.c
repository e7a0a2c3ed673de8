#include "abctl/table.h"
#include "abctl/human.h"
#include "base/neutral.h"
#include "base/mem.h"

#include <string.h>

enum { COLUMNS_MAX = 12, CELL_BYTES_MAX = 4096, GAP = 2, DEPTH_MAX = 16 };

static const struct json *member(const struct json *object, const char *path)
{
	while (object) {
		size_t n = strcspn(path, ".");
		auto_free char *key = xstrndup(path, n);
		object = json_get(object, key);
		if (!path[n])
			break;
		path += n + 1;
	}
	return object;
}

static void scalar(struct buf *to, const struct json *v)
{
	const char *text = json_text(v);
	auto_buf struct buf b = BUF_INIT(CELL_BYTES_MAX);
	if (json_is_array(v)) {
		/* Lists of short things read well in a cell. */
		for (const struct json *it = json_first(v); it; it = json_next(it)) {
			if (it != json_first(v))
				buf_puts(to, ", ");
			scalar(to, it);
		}
	} else if (!text && v && json_print(v, &b) == 0) {
		text = b.p;
	}
	if (text)
		neutral_line(to, text, strlen(text));
}

static int64_t elements(const struct json *list)
{
	int64_t n = 0;
	for (const struct json *it = json_first(list); it; it = json_next(it))
		n++;
	return n;
}

static void cell(struct buf *to, const struct column *c, const struct json *object)
{
	const struct json *v = member(object, c->member);
	double n;
	bool number = json_number(v, &n);
	if (!v || json_is_null(v))
		buf_putc(to, '-');
	else if (c->kind == CELL_TIME && json_text(v))
		buf_puts(to, human_time(json_text(v)).s);
	else if (c->kind == CELL_SHORT && json_text(v))
		neutral_line(to, json_text(v), strnlen(json_text(v), 12));
	else if (c->kind == CELL_BYTES && number)
		buf_puts(to, human_bytes(n < 0 ? 0 : (uint64_t)n).s);
	else if (c->kind == CELL_MS && number)
		buf_puts(to, human_duration((int64_t)n).s);
	else if (c->kind == CELL_COUNT && number)
		buf_puts(to, human_count((int64_t)n).s);
	else if (c->kind == CELL_COUNT && json_is_array(v))
		buf_puts(to, human_count(elements(v)).s);
	else
		scalar(to, v);
}

static void spaces(struct buf *to, size_t n)
{
	while (n--)
		buf_putc(to, ' ');
}

/* One line of cells, each padded to its column; trailing blanks are not written. */
static void row(
        struct buf *to, const struct buf *cells, const size_t *widths, size_t ncols, size_t width)
{
	auto_buf struct buf line = BUF_INIT((size_t)COLUMNS_MAX * (CELL_BYTES_MAX + 256));
	for (size_t i = 0; i < ncols; i++) {
		size_t n = cells[i].len;
		buf_put(&line, cells[i].p, n);
		if (i + 1 < ncols)
			spaces(&line, widths[i] - neutral_width(cells[i].p, n) + GAP);
	}
	size_t n = line.len;
	if (width)
		n = neutral_fit(line.p, n, width);
	while (n && line.p[n - 1] == ' ')
		n--;
	buf_put(to, line.p, n);
	buf_putc(to, '\n');
}

static void fill(
        struct buf *cells, const struct column *columns, size_t ncols, const struct json *object)
{
	for (size_t i = 0; i < ncols; i++) {
		buf_clear(&cells[i]);
		if (object)
			cell(&cells[i], &columns[i], object);
		else
			buf_puts(&cells[i], columns[i].heading);
	}
}

static void measure(size_t *widths, const struct buf *cells, size_t ncols)
{
	for (size_t i = 0; i < ncols; i++) {
		size_t w = neutral_width(cells[i].p, cells[i].len);
		if (w > widths[i])
			widths[i] = w;
	}
}

void table_write(
        struct buf *to, const struct column *columns, const struct json *list, size_t width)
{
	struct buf cells[COLUMNS_MAX];
	size_t widths[COLUMNS_MAX] = {0}, ncols = 0;
	while (ncols < COLUMNS_MAX && columns[ncols].heading)
		cells[ncols++] = (struct buf)BUF_INIT(CELL_BYTES_MAX);
	fill(cells, columns, ncols, NULL);
	measure(widths, cells, ncols);
	for (const struct json *it = json_first(list); it; it = json_next(it)) {
		fill(cells, columns, ncols, it);
		measure(widths, cells, ncols);
	}
	fill(cells, columns, ncols, NULL);
	row(to, cells, widths, ncols, width);
	for (const struct json *it = json_first(list); it; it = json_next(it)) {
		fill(cells, columns, ncols, it);
		row(to, cells, widths, ncols, width);
	}
	for (size_t i = 0; i < ncols; i++)
		buf_done(&cells[i]);
}

/* A list of plain values fits on its key's line. */
static bool flat(const struct json *v)
{
	if (json_is_object(v))
		return false;
	for (const struct json *it = json_first(v); it; it = json_next(it))
		if (json_is_object(it) || json_is_array(it))
			return false;
	return true;
}

static void text_lines(struct buf *to, const char *text, unsigned depth)
{
	for (; *text; text += *text == '\n') {
		size_t n = strcspn(text, "\n");
		spaces(to, (size_t)depth * 2);
		neutral_line(to, text, n);
		buf_putc(to, '\n');
		text += n;
	}
}

void table_tree(struct buf *to, const struct json *value, unsigned depth)
{
	if (depth > DEPTH_MAX)
		return;
	for (const struct json *it = json_first(value); it; it = json_next(it)) {
		const char *key = json_key(it), *text = json_text(it);
		spaces(to, (size_t)depth * 2);
		if (key)
			neutral_line(to, key, strlen(key));
		buf_puts(to, key ? ":" : "-");
		if (text && strchr(text, '\n')) {
			buf_putc(to, '\n');
			text_lines(to, text, depth + 1);
		} else if (text || flat(it)) {
			buf_putc(to, ' ');
			size_t before = to->len;
			scalar(to, it);
			if (to->len == before)
				buf_putc(to, '-'); /* an empty text or list */
			buf_putc(to, '\n');
		} else if (!json_first(it)) {
			buf_puts(to, " -\n");
		} else {
			buf_putc(to, '\n');
			table_tree(to, it, depth + 1);
		}
	}
}
