/*
 * Theory of operation: one pass over the bytes.  A level of the document has a
 * place, which is all that is remembered of the way to it: the root, an object
 * in it that may hold usage (Anthropic's `message`, OpenAI's `response`), the
 * usage itself.  Arrays are where they stand.  A member that is wanted is known
 * by its place and its name, so that the same words in a tool's input or a
 * schema are none.
 */
#include "egress/meter.h"

#include "base/mem.h"

#include <string.h>
#include <strings.h>

enum place { PLACE_ELSEWHERE, PLACE_ROOT, PLACE_INNER, PLACE_USAGE, PLACE_DETAILS };
enum state { STATE_VALUE, STATE_STRING, STATE_WORD };
enum line { LINE_FIELD, LINE_SPACE, LINE_DATA, LINE_OTHER };

/* Names of members. */
enum key {
	KEY_OTHER,
	KEY_MESSAGE, /* leads to PLACE_INNER */
	KEY_USAGE,
	KEY_DETAILS,
	KEY_MODEL,
	KEY_TEXT,
	KEY_RPC,
	KEY_COUNTS, /* and from here on: a field of struct meter_counts */
};

#define COUNT(name, field)                                                                         \
	{                                                                                          \
		name, KEY_COUNTS, offsetof(struct meter_counts, field)                             \
	}
static const struct {
	const char *name;
	uint8_t key;
	size_t field;
} names[] = {
        {"message", KEY_MESSAGE, 0},
        {"response", KEY_MESSAGE, 0},
        {"usage", KEY_USAGE, 0},
        {"usageMetadata", KEY_USAGE, 0},
        {"input_tokens_details", KEY_DETAILS, 0},
        {"prompt_tokens_details", KEY_DETAILS, 0},
        {"model", KEY_MODEL, 0},
        {"modelVersion", KEY_MODEL, 0},
        {"text", KEY_TEXT, 0},
        {"thinking", KEY_TEXT, 0},
        {"partial_json", KEY_TEXT, 0},
        {"content", KEY_TEXT, 0},
        {"reasoning_content", KEY_TEXT, 0},
        {"arguments", KEY_TEXT, 0},
        {"delta", KEY_TEXT, 0},
        {"jsonrpc", KEY_RPC, 0},
        COUNT("input_tokens", input),
        COUNT("prompt_tokens", input),
        COUNT("promptTokenCount", input),
        COUNT("toolUsePromptTokenCount", tool_input),
        COUNT("output_tokens", output),
        COUNT("completion_tokens", output),
        COUNT("candidatesTokenCount", output),
        COUNT("thoughtsTokenCount", thoughts),
        COUNT("cache_read_input_tokens", cached_apart),
        COUNT("cache_creation_input_tokens", stored_apart),
        COUNT("cachedContentTokenCount", cached_within),
        COUNT("cached_tokens", cached_within),
};

static enum place place_of(enum place outer, unsigned key)
{
	bool holds_usage = outer == PLACE_ROOT || outer == PLACE_INNER;
	if (outer == PLACE_ROOT && key == KEY_MESSAGE)
		return PLACE_INNER;
	if (holds_usage && key == KEY_USAGE)
		return PLACE_USAGE;
	if (outer == PLACE_USAGE && key == KEY_DETAILS)
		return PLACE_DETAILS;
	return PLACE_ELSEWHERE;
}

/* ---- the document ---- */

static void document(struct meter *m)
{
	m->state = STATE_VALUE;
	m->depth = m->key = m->word_len = 0;
	m->lost = m->is_key = m->escaped = false;
	m->place[0] = PLACE_ROOT;
	m->objects = 0;
}

static bool in_object(const struct meter *m)
{
	return m->depth > 0 && (m->objects >> (m->depth - 1) & 1);
}

/* What the member is whose value begins now. */
static unsigned kind(const struct meter *m)
{
	return m->key ? names[m->key - 1].key : KEY_OTHER;
}

/* The place of that value. */
static uint8_t place_here(const struct meter *m)
{
	if (in_object(m))
		return (uint8_t)place_of(m->place[m->depth], kind(m));
	return m->place[m->depth];
}

static void open_level(struct meter *m, bool object)
{
	if (m->depth == METER_DEPTH) {
		m->lost = true;
		return;
	}
	uint8_t place = place_here(m);
	m->place[++m->depth] = place;
	uint64_t bit = 1ull << (m->depth - 1);
	m->objects = object ? m->objects | bit : m->objects & ~bit;
	m->is_key = object;
	m->key = 0;
}

static void close_level(struct meter *m)
{
	if (m->depth > 0)
		m->depth--;
	m->is_key = false;
}

static bool word_is(const struct meter *m, const char *name)
{
	return strlen(name) == m->word_len && memcmp(m->word, name, m->word_len) == 0;
}

/* Index in names[] + 1, or 0. */
static uint8_t key_of(const struct meter *m)
{
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (word_is(m, names[i].name))
			return (uint8_t)(i + 1);
	return 0;
}

static void number(struct meter *m)
{
	uint64_t value = 0;
	if (m->word_len == 0 || !in_object(m) || kind(m) != KEY_COUNTS)
		return;
	uint8_t place = m->place[m->depth];
	if (place != PLACE_USAGE && place != PLACE_DETAILS)
		return;
	for (size_t i = 0; i < m->word_len && m->word[i] >= '0' && m->word[i] <= '9'; i++)
		value = value < TOKENS_MAX ? value * 10 + (uint64_t)(m->word[i] - '0') : TOKENS_MAX;
	if (m->word[0] < '0' || m->word[0] > '9')
		return;
	value = value < TOKENS_MAX ? value : TOKENS_MAX;
	uint64_t *to = (uint64_t *)(void *)((char *)&m->counts + names[m->key - 1].field);
	*to = value > *to ? value : *to;
	m->told = true;
	m->told_bytes = m->text_bytes;
}

static void string_end(struct meter *m)
{
	uint8_t place = m->place[m->depth];
	if (m->is_key)
		m->key = key_of(m);
	else if (in_object(m) && kind(m) == KEY_MODEL && !m->model[0] &&
	         (place == PLACE_ROOT || place == PLACE_INNER) && m->word_len < MODEL_MAX) {
		memcpy(m->model, m->word, m->word_len);
		m->model[m->word_len] = '\0';
	} else if (in_object(m) && kind(m) == KEY_RPC && place == PLACE_ROOT) {
		m->rpc = true;
	}
}

static void keep(struct meter *m, char c)
{
	if (m->word_len < METER_WORD)
		m->word[m->word_len++] = c;
}

/* To the end of the string or of the piece; where it stopped. */
static size_t in_string(struct meter *m, const char *p, size_t n)
{
	size_t i = 0;
	bool text = !m->is_key && in_object(m) && kind(m) == KEY_TEXT;
	for (; i < n; i++) {
		if (m->escaped) {
			m->escaped = false;
		} else if (p[i] == '\\') {
			m->escaped = true;
		} else if (p[i] == '"') {
			string_end(m);
			m->state = STATE_VALUE;
			m->text_bytes += text ? i : 0;
			return i + 1;
		}
		if (m->word_len < METER_WORD)
			keep(m, p[i]);
	}
	m->text_bytes += text ? i : 0;
	return i;
}

static void structural(struct meter *m, char c)
{
	switch (c) {
	case '{':
	case '[':
		open_level(m, c == '{');
		break;
	case '}':
	case ']':
		close_level(m);
		break;
	case ',':
		m->is_key = in_object(m);
		break;
	case ':':
		m->is_key = false;
		break;
	case '"':
		m->state = STATE_STRING;
		m->word_len = 0;
		break;
	case ' ':
	case '\t':
	case '\r':
	case '\n':
		break;
	default:
		m->state = STATE_WORD;
		m->word_len = 0;
		keep(m, c);
	}
}

static void json(struct meter *m, const char *p, size_t n)
{
	for (size_t i = 0; i < n && !m->lost;) {
		if (m->state == STATE_STRING) {
			i += in_string(m, p + i, n - i);
			continue;
		}
		bool ends = strchr("{}[],:\" \t\r\n", p[i]) != NULL; /* NUL too: it ends a word */
		if (m->state == STATE_WORD && !ends) {
			keep(m, p[i++]);
			continue;
		}
		if (m->state == STATE_WORD)
			number(m);
		m->state = STATE_VALUE;
		if (p[i])
			structural(m, p[i]);
		i++;
	}
}

/* ---- an event stream: the data of each event is a document ---- */

static void line_end(struct meter *m)
{
	if (m->line == LINE_FIELD && m->line_len == 0)
		document(m); /* an empty line: the event ends */
	else if (m->line == LINE_DATA)
		json(m, "\n", 1);
	m->line = LINE_FIELD;
	m->line_len = 0;
}

static void field(struct meter *m, char c)
{
	if (c == ':') {
		bool data = m->line_len == 4 && memcmp(m->field, "data", 4) == 0;
		m->line = data ? LINE_SPACE : LINE_OTHER;
	} else if (m->line_len < sizeof(m->field)) {
		m->field[m->line_len++] = c;
	}
}

static size_t line_rest(const char *p, size_t n)
{
	size_t k = 0;
	while (k < n && p[k] != '\n' && p[k] != '\r')
		k++;
	return k;
}

static void sse(struct meter *m, const char *p, size_t n)
{
	for (size_t i = 0; i < n;) {
		size_t k = line_rest(p + i, n - i);
		if (m->line == LINE_SPACE && k) {
			m->line = LINE_DATA;
			i += p[i] == ' ';
		} else if (m->line == LINE_FIELD && k) {
			field(m, p[i++]);
		} else if (k) {
			if (m->line == LINE_DATA)
				json(m, p + i, k);
			i += k;
		} else if (p[i++] == '\n') { /* CR LF: the CR is passed over */
			line_end(m);
		}
	}
}

/* ---- the interface ---- */

static bool holds(const char *p, size_t n, const char *word)
{
	size_t len = strlen(word);
	for (size_t i = 0; i + len <= n; i++)
		if (strncasecmp(p + i, word, len) == 0)
			return true;
	return false;
}

enum meter_form meter_form(const char *type, size_t n)
{
	if (holds(type, n, "text/event-stream"))
		return METER_SSE;
	return holds(type, n, "json") ? METER_JSON : METER_NONE;
}

void meter_begin(struct meter *m, enum meter_form form)
{
	memset(m, 0, sizeof(*m));
	m->form = (uint8_t)form;
	document(m);
}

void meter_feed(struct meter *m, const char *p, size_t n)
{
	if (m->form == METER_JSON)
		json(m, p, n);
	else if (m->form == METER_SSE)
		sse(m, p, n);
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

struct tokens meter_tokens(const struct meter *m, bool whole)
{
	const struct meter_counts *c = &m->counts;
	struct tokens t = {
	        .input = less(c->input, c->cached_within) + c->tool_input,
	        .output = c->output + c->thoughts,
	        .cached = c->cached_apart + c->cached_within,
	        .stored = c->stored_apart,
	};
	uint64_t text = (m->text_bytes - m->told_bytes + METER_TEXT_BYTES - 1) / METER_TEXT_BYTES;
	if (!whole || !m->told)
		t.output += text < TOKENS_MAX ? text : TOKENS_MAX;
	return t;
}

void meter_model_of_path(const char *target, size_t n, char ret[MODEL_MAX])
{
	static const char before[] = "/models/";
	const char *at = memmem(target, n, before, sizeof(before) - 1);
	ret[0] = '\0';
	if (!at)
		return;
	at += sizeof(before) - 1;
	size_t len = 0, most = n - (size_t)(at - target);
	while (len < most && !strchr(":/?", at[len]))
		len++;
	if (len == 0 || len >= MODEL_MAX)
		return;
	memcpy(ret, at, len);
	ret[len] = '\0';
}
