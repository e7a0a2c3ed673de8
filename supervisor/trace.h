/*
 * trace.h - which trace a run is of, by W3C Trace Context: the client's where it sent a
 * `traceparent`, a pipeline's for its steps, else one of its own.
 *
 * Pure.  What a run brings is a text, kept with it ("00-TRACE-PARENT-FLAGS", and behind a
 * blank a tracestate); a run without one has ids that follow from its own id, so nothing is
 * kept, and whoever tells of it twice tells the same.
 */
#ifndef SUPERVISOR_TRACE_H
#define SUPERVISOR_TRACE_H

#include <stdbool.h>
#include <stdint.h>

enum {
	TRACE_ID = 33,        /* hexadecimal digits, with NUL */
	TRACE_SPAN = 17,      /* likewise */
	TRACE_PARENT = 55,    /* characters of a traceparent of version 00 */
	TRACE_STATE_MAX = 512 /* of a tracestate, as the recommendation wants it at least */
};

struct trace {
	char id[TRACE_ID];
	char parent[TRACE_SPAN]; /* "": it is the first of its trace */
	const char *state;       /* borrowed: of the text; NULL: none */
	bool given;              /* it came with the run, and so did the next */
	bool sampled;
};

/* The text to keep (owned) for what a client has sent; NULL where that is no traceparent, which
 * then does not count.  tracestate may be NULL, and is left out where it is none. */
char *trace_take(const char *traceparent, const char *tracestate);
/* That of a step (owned): its parent is the span of the step. */
char *trace_of_step(const struct trace *pipeline, const char *run, unsigned step);

/* Of a run; text: what is kept of it, or NULL. */
void trace_of(const char *run, const char *text, struct trace *ret);
/* Is it told of?  `part` in millionths of those that bring none. */
bool trace_taken(const struct trace *t, uint32_t part);

/* The id of a span of the run, always the same one: of `what`, the n-th. */
void trace_span(const char *run, const char *what, unsigned n, char ret[TRACE_SPAN]);

#endif
