/*
 * render_summary.h - the end of a run: its result on a few lines.
 */
#ifndef ABCTL_RENDER_SUMMARY_H
#define ABCTL_RENDER_SUMMARY_H

#include "abctl/render_writer.h"

/* `result` as the API documents it. */
void summary_write(struct writer *w, const struct json *result);

/* "3 turns · 12.3k tokens · $0.02" of a usage object; nothing for what it lacks. */
void summary_usage(struct buf *to, const struct json *usage, const char *between);

#endif
