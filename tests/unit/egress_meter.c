/* What an answer took, from recorded bodies of the stand-in model: the four protocols as one
 * document and as a stream, in pieces of any size; words that only look like counts. */
#include "egress/meter.h"

#include "base/fd.h"
#include "base/limits.h"
#include "base/mem.h"
#include "tests/t.h"

#include <fcntl.h>

static char *slurp(const char *name, size_t *ret_n)
{
	auto_free char *path = xasprintf("tests/fixtures/meter/%s", name);
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text = NULL;
	must(fd >= 0 && fd_slurp(fd, 1 << 20, &text, ret_n) == 0, "%s is there", path);
	return text;
}

static void feed(struct meter *m, enum meter_form form, const char *p, size_t n, size_t piece)
{
	meter_begin(m, form);
	for (size_t k; n; p += k, n -= k) {
		k = n < piece ? n : piece;
		meter_feed(m, p, k);
	}
}

static bool same(const struct tokens *a, const struct tokens *b)
{
	bool r = memcmp(a, b, sizeof(*a)) == 0;
	if (!r)
		printf("# in %llu out %llu cached %llu stored %llu\n", (unsigned long long)a->input,
		        (unsigned long long)a->output, (unsigned long long)a->cached,
		        (unsigned long long)a->stored);
	return r;
}

static void recorded(void)
{
	static const struct {
		const char *file, *model;
		struct tokens want;
	} all[] = {
	        {"anthropic.json", "claude-sonnet-4-5", {200, 85, 700, 300}},
	        {"anthropic.sse", "claude-sonnet-4-5", {200, 85, 700, 300}},
	        {"chat.json", "gpt-5", {500, 85, 700, 0}},
	        {"chat.sse", "gpt-5", {500, 85, 700, 0}},
	        {"responses.json", "gpt-5", {500, 85, 700, 0}},
	        {"responses.sse", "gpt-5", {500, 85, 700, 0}},
	        {"gemini.json", "gemini-2.5-pro", {500, 115, 700, 0}},
	        {"gemini.sse", "gemini-2.5-pro", {500, 115, 700, 0}},
	};
	static const size_t pieces[] = {1, 7, 4096};
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		for (size_t k = 0; k < ARRAY_LEN(pieces); k++) {
			size_t n = 0;
			auto_free char *text = slurp(all[i].file, &n);
			struct meter m;
			feed(&m, strstr(all[i].file, "sse") ? METER_SSE : METER_JSON, text, n,
			        pieces[k]);
			struct tokens t = meter_tokens(&m, true);
			ok(m.told && same(&t, &all[i].want), "%s in pieces of %zu", all[i].file,
			        pieces[k]);
			is_str(m.model, all[i].model, "and its model");
		}
}

/* The output of a message_start is 1; the text that came since says more. */
static void cut(void)
{
	size_t n = 0;
	auto_free char *text = slurp("anthropic.sse", &n);
	const char *end = strstr(text, "event: message_delta");
	must(end, "its last count");
	struct meter m;
	feed(&m, METER_SSE, text, (size_t)(end - text), 100);
	struct tokens t = meter_tokens(&m, false);
	ok(t.input == 200 && t.cached == 700, "a stream that was cut: what it told of the input");
	ok(t.output > 40 && t.output < 80, "and the output by its text: %llu",
	        (unsigned long long)t.output);
	t = meter_tokens(&m, true);
	ok(t.output == 1, "which a whole answer's count outweighs");

	auto_free char *chat = slurp("chat.sse", &n);
	end = strstr(chat, "\"choices\":[],\"usage\"");
	must(end, "its only count");
	feed(&m, METER_SSE, chat, (size_t)(end - chat), 100);
	t = meter_tokens(&m, true);
	ok(!m.told && t.input == 0 && t.output > 30, "a stream that never tells, by its text");
}

static struct tokens of(enum meter_form form, const char *text)
{
	struct meter m;
	feed(&m, form, text, strlen(text), 3);
	return meter_tokens(&m, true);
}

static void forms(void)
{
	struct tokens t = of(METER_JSON, "[{\"usageMetadata\":{\"promptTokenCount\":5}},\n"
	                                 "{\"usageMetadata\":{\"promptTokenCount\":5,"
	                                 "\"candidatesTokenCount\":7}}]");
	ok(t.input == 5 && t.output == 7, "Gemini's stream as an array");
	t = of(METER_JSON,
	        "{\"response\":{\"usageMetadata\":{\"candidatesTokenCount\": 9}}}\n{}\n");
	ok(t.output == 9, "lines of JSON");
	t = of(METER_SSE, "data:{\"usage\":\r\ndata: {\"output_tokens\"\r\ndata::12}}\r\n\r\n");
	ok(t.output == 12, "an event of several lines, CR LF, without the space");
	t = of(METER_SSE, "data: {\"usage\":{\"output_tokens\":\n\ndata: 12}}\n\n");
	ok(t.output == 0, "an event does not go on in the next one");
	t = of(METER_SSE,
	        ": {\"usage\":{\"output_tokens\":3}}\nid: {\"usage\"\n"
	        "event: data\ndata\n\ndata: [DONE]\n\ndata: {\"usage\":{\"output_tokens\":4}}\n");
	ok(t.output == 4, "only data is read, and what is no JSON passes");
}

static void lookalikes(void)
{
	static const char *const none[] = {
	        "{\"input_tokens\":7}", /* count_tokens: asked, not used */
	        "{\"tools\":{\"usage\":{\"input_tokens\":7}}}",
	        "{\"content\":[{\"input\":{\"usage\":{\"input_tokens\":7}}}]}",
	        "{\"x\":\"\\\"usage\\\":{\\\"input_tokens\\\":7}\"}",
	        "{\"usage\":{\"details\":{\"input_tokens\":7}}}",
	        "{\"usage\":{\"input_tokens\":\"7\"}}",
	        "{\"usage\":{\"input_tokens\":-7}}",
	        "{\"usage\":{\"input_tokens\":null}}",
	        "{\"usage\":{\"input_tokens\":true}}",
	        "{\"usage\":null,\"input_tokens\":7}",
	        "{\"usage\":[7,\"input_tokens\",7]}",
	        "}}]]{\"a\":}}",
	        "\"usage\":{\"input_tokens\":",
	};
	for (size_t i = 0; i < ARRAY_LEN(none); i++) {
		struct tokens t = of(METER_JSON, none[i]);
		ok(tokens_sum(&t) == 0, "none in %s", none[i]);
	}
	struct tokens t = of(METER_JSON, "{\"usage\":{\"input_tokens\":99999999999999999999999}}");
	ok(t.input == TOKENS_MAX, "a number beyond reason is the greatest possible");
	t = of(METER_JSON, "{\"usage\":{\"input_tokens\":5,\"input_tokens_details\":"
	                   "{\"cached_tokens\":9}}}");
	ok(t.input == 0 && t.cached == 9, "more cached than there was: no number below 0");
	char deep[200];
	memset(deep, '[', sizeof(deep));
	struct meter m;
	feed(&m, METER_JSON, deep, sizeof(deep), 50);
	meter_feed(&m, "{\"usage\":{\"input_tokens\":5}}", 28);
	ok(m.lost && !m.told, "what is too deep is not looked at");
	meter_begin(&m, METER_NONE);
	meter_feed(&m, "{\"usage\":{\"input_tokens\":5}}", 28);
	ok(!m.told, "nor is what cannot be read");
	static const char event[] = "data: {\"jsonrpc\":\"2.0\",\"id\":1}\n\n";
	feed(&m, METER_SSE, event, sizeof(event) - 1, 5);
	ok(m.rpc, "what is JSON-RPC");
	static const char inside[] = "{\"content\":[{\"input\":{\"jsonrpc\":\"2.0\"}}],\"message\":"
	                             "{\"jsonrpc\":\"2.0\"},\"text\":\"\\\"jsonrpc\\\"\"}";
	feed(&m, METER_JSON, inside, sizeof(inside) - 1, 7);
	ok(!m.rpc, "is not what a model writes into it");
}

#define FORM(type) meter_form((type), sizeof(type) - 1)
static void heads(void)
{
	char model[MODEL_MAX];
	ok(FORM("application/json; charset=utf-8") == METER_JSON, "JSON");
	ok(FORM("application/x-ndjson") == METER_JSON, "lines");
	ok(FORM("Text/Event-Stream") == METER_SSE, "events");
	ok(FORM("text/html") == METER_NONE && FORM("") == METER_NONE, "neither");
	const char *path = "/v1beta/models/gemini-2.5-pro:generateContent?alt=sse";
	meter_model_of_path(path, strlen(path), model);
	is_str(model, "gemini-2.5-pro", "a model in the path");
	meter_model_of_path("/v1/messages", 12, model);
	is_str(model, "", "none there");
}

static void prices(void)
{
	static const struct price table[] = {
	        {"claude-sonnet-4-5", 3000000, 15000000, 300000, 3750000},
	        {"claude-*", 15000000, 75000000, 1500000, 18750000},
	};
	const struct tokens t = {200, 85, 700, 300}, one = {.input = 1};
	const struct price *p = price_find(table, 2, "claude-sonnet-4-5");
	ok(p == &table[0] && price_of(p, &t) == 600 + 1275 + 210 + 1125,
	        "by the first that matches");
	ok(price_find(table, 2, "claude-opus-9") == &table[1], "by a glob");
	ok(!price_find(table, 2, "gpt-5") && !price_find(table, 2, ""), "not known");
	const struct price cheap = {"x", 100000, 0, 0, 0};
	ok(price_of(&cheap, &one) == 1, "less than a millionth is one");
	const struct price dear = {"x", PRICE_MAX, PRICE_MAX, PRICE_MAX, PRICE_MAX};
	const struct tokens all = {TOKENS_MAX, TOKENS_MAX, TOKENS_MAX, UINT64_MAX};
	ok(price_of(&dear, &all) == 4 * TOKENS_MAX * (PRICE_MAX / 1000000), "no sum overflows");
}

int main(void)
{
	recorded();
	cut();
	forms();
	lookalikes();
	heads();
	prices();
	return done();
}
