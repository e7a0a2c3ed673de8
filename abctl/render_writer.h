/*
 * render_writer.h - where the cursor is: text, colour and the status line.
 *
 * The lower half of render.h: appends harmless text to a buffer and knows the
 * column it ends in, so that a status line can be put below unfinished text and
 * taken away again.
 */
#ifndef ABCTL_RENDER_WRITER_H
#define ABCTL_RENDER_WRITER_H

#include "abctl/render.h"

enum paint { PAINT_NONE, PAINT_DIM, PAINT_BOLD, PAINT_GOOD, PAINT_BAD, PAINT_WARN, PAINT_TOOL };

struct writer {
	struct render_options o;
	struct buf *out;  /* borrowed: for the call that set it */
	size_t column;    /* of the cursor; 0: at the start of a line */
	bool status;      /* the status line is on the screen */
	size_t came_from; /* column to return to when it is taken away */
};

/* Text of any kind, with its lines. `mark` stands in front of each line (NULL: nothing). */
void writer_text(struct writer *w, enum paint paint, const char *mark, const char *s, size_t n);
/* One line's worth, new lines as spaces, leaving `reserve` columns of the line free. */
void writer_cut(struct writer *w, enum paint paint, size_t reserve, const char *s);
/* Our own words: trusted, printed as they are. */
void writer_own(struct writer *w, enum paint paint, const char *s);
void writer_newline(struct writer *w);
void writer_fresh_line(struct writer *w); /* a new line unless at the start of one */

void writer_hide(struct writer *w);
/* `line` is harmless already, and is cut to the width. */
void writer_status(struct writer *w, const char *line, size_t n);

#endif
