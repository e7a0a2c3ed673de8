/*
 * driver_record.h - a sink that writes what a driver does as lines of JSON.
 *
 *	{"type":"agent.message","text":"hi","delta":false}	an event
 *	{"stdin":"..."} {"eof":true}				written to stdin, closed
 *	{"outcome":{...}}					what end() told
 *
 * Used by the replays of recorded runs and by the program that drives a real
 * agent (tests/agents/drive.c).
 */
#ifndef TESTS_DRIVER_RECORD_H
#define TESTS_DRIVER_RECORD_H

#include "base/json.h"
#include "base/mem.h"
#include "drivers/driver.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct record {
	struct event_sink sink;
	struct buf out;
	char *permission; /* owned: id of the last permission.asked, or NULL */
	int events;
};

static void record_emit(struct event_sink *sink, enum event_type t, const char *members, size_t n)
{
	struct record *r = container_of(sink, struct record, sink);
	struct jw w = JW_INIT(&r->out);
	jw_open(&w, NULL, '{');
	jw_str(&w, "type", event_name(t));
	jw_members(&w, members, n);
	jw_close(&w, '}');
	buf_putc(&r->out, '\n');
	r->events++;
	if (t != EVENT_PERMISSION_ASKED)
		return;
	auto_buf struct buf whole = BUF_INIT(1 << 20);
	buf_printf(&whole, "{%.*s}", (int)n, members);
	auto_json struct json *j = json_parse(whole.p, whole.len, NULL);
	free(r->permission);
	r->permission = xstrdup(json_str(j, "permissionId", ""));
}

static inline void record_init(struct record *r)
{
	*r = (struct record){.sink = {.emit = record_emit}, .out = BUF_INIT(256 << 20)};
}

static inline void record_done(struct record *r)
{
	buf_done(&r->out);
	free(r->permission);
}

/* Bytes that are held now, whoever holds them; 0 with the sanitizers. */
static inline size_t record_held(void)
{
	struct mallinfo2 m = mallinfo2();
	return m.uordblks + m.hblkhd;
}

/* A text of n bytes; returns owned. */
static inline char *record_long(size_t n)
{
	char *s = xcalloc(n + 1, 1);
	memset(s, 'x', n);
	return s;
}

/* Notes and empties what is to be written to stdin. */
static inline void record_stdin(struct record *r, struct buf *to_stdin, bool eof)
{
	struct jw w = JW_INIT(&r->out);
	if (to_stdin->len) {
		jw_open(&w, NULL, '{');
		jw_bytes(&w, "stdin", to_stdin->p, to_stdin->len);
		jw_close(&w, '}');
		buf_putc(&r->out, '\n');
	}
	buf_clear(to_stdin);
	if (eof)
		buf_puts(&r->out, "{\"eof\":true}\n");
}

static inline void record_outcome(struct record *r, const struct driver_outcome *o)
{
	struct jw w = JW_INIT(&r->out);
	jw_open(&w, NULL, '{');
	jw_open(&w, "outcome", '{');
	jw_str(&w, "status", o->status == DRIVER_SUCCEEDED ? "succeeded" : "failed");
	jw_str(&w, "finalText", o->final_text);
	jw_str(&w, "error", o->error);
	jw_str(&w, "resume", o->resume);
	if (o->resume_lost)
		jw_bool(&w, "resumeLost", true);
	if (o->max_turns)
		jw_bool(&w, "maxTurns", true);
	jw_int(&w, "inputTokens", o->usage.input_tokens);
	jw_int(&w, "outputTokens", o->usage.output_tokens);
	jw_int(&w, "cachedTokens", o->usage.cached_tokens);
	if (o->usage.cost_usd >= 0)
		jw_num(&w, "costUsd", o->usage.cost_usd);
	jw_int(&w, "turns", o->usage.turns);
	jw_int(&w, "toolCalls", o->tool_calls);
	jw_close(&w, '}');
	jw_close(&w, '}');
	buf_putc(&r->out, '\n');
}

/* A file whole, NUL-terminated; returns owned, or NULL. */
static inline char *read_file(const char *path, size_t *ret_n)
{
	FILE *f = fopen(path, "re");
	if (!f)
		return NULL;
	struct stat st;
	if (fstat(fileno(f), &st) < 0) {
		fclose(f);
		return NULL;
	}
	char *p = xcalloc((size_t)st.st_size + 1, 1);
	*ret_n = fread(p, 1, (size_t)st.st_size, f);
	fclose(f);
	return p;
}

#define LIST(...) ((const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

#endif
