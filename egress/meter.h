/*
 * meter.h - how many tokens a model's answer took, read from the answer as it
 * passes.
 *
 * Pure; fed with the bytes of a body in pieces of any size, keeps a few hundred
 * bytes whatever their number, changes nothing.  It knows where Anthropic
 * (Messages), OpenAI (Chat Completions, Responses) and Gemini say what was
 * used, in one JSON document, in lines of JSON and in server-sent events.
 *
 * Streams repeat their counts as they grow, so the greatest of each counts.  An
 * answer that was cut before it told, or that never tells, is estimated by the
 * text that it brought.
 */
#ifndef EGRESS_METER_H
#define EGRESS_METER_H

#include "policy/prices.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	METER_DEPTH = 64, /* of a JSON document; what is deeper is not looked at */
	METER_WORD = MODEL_MAX,
	/* Bytes of text that pass for a token where nobody says how many they were: English has
	 * about four, code three. */
	METER_TEXT_BYTES = 3,
};

enum meter_form {
	METER_NONE, /* nothing that could be read */
	METER_JSON, /* one document or several, lines or an array of them */
	METER_SSE,
};

/* What an answer has said of each kind; inputs as they come: with or without what was cached. */
struct meter_counts {
	uint64_t input, tool_input, output, thoughts;
	uint64_t cached_apart, cached_within, stored_apart;
};

struct meter {
	uint8_t form; /* enum meter_form */
	/* the line of an event stream */
	uint8_t line, line_len;
	char field[8];
	/* the JSON document */
	uint8_t state, depth, key;
	bool lost; /* until the next document: too deep */
	uint8_t place[METER_DEPTH + 1];
	uint64_t objects; /* bit i: level i is an object */
	bool is_key, escaped;
	uint8_t word_len;
	char word[METER_WORD];
	/* what came of it */
	bool told; /* a count was seen */
	bool rpc;  /* it is JSON-RPC, as MCP servers speak it: no model's words */
	struct meter_counts counts;
	uint64_t text_bytes; /* of what the model wrote, */
	uint64_t told_bytes; /* and of that before the last count */
	char model[MODEL_MAX];
};

enum meter_form meter_form(const char *type, size_t n); /* by the Content-Type */
void meter_begin(struct meter *m, enum meter_form form);
void meter_feed(struct meter *m, const char *p, size_t n);

/* What it told, or 0.  `whole` false: the answer was cut, so the text that came after the last
 * count is estimated. */
struct tokens meter_tokens(const struct meter *m, bool whole);
/* The model that a path names (/v1beta/models/NAME:generateContent), or "". */
void meter_model_of_path(const char *target, size_t n, char ret[MODEL_MAX]);

#endif
