/* What attempts have used: added up, told in an event, read from it again. */
#include "supervisor/attempts.h"

#include "base/json.h"
#include "tests/t.h"

static void add(struct attempts *a, const struct driver_outcome *o, uint64_t cpu, uint64_t peak)
{
	const struct jail_resources used = {.cpu_us = cpu, .memory_peak_bytes = peak};
	const struct tokens tokens = {.input = 7, .cached = 2};
	const struct spending spent = {.sum = {.requests = 3, .cost_micro = 250}, .unpriced = 1};
	attempts_add(a, o, &used, &tokens, &spent);
}

int main(void)
{
	struct attempts a = {0};
	const struct driver_outcome o = {
	        .usage = {.input_tokens = 100, .output_tokens = 20, .cost_usd = 0.5, .turns = 2},
	        .tool_calls = 4};
	struct driver_usage sum = attempts_usage(&a, &o.usage);
	ok(sum.input_tokens == 100 && sum.cost_usd == 0.5, "the first attempt alone");
	add(&a, &o, 1000, 500);
	add(&a, &o, 200, 900);
	ok(a.failed == 2 && a.usage.input_tokens == 200 && a.usage.turns == 4 &&
	                a.tool_calls == 8 && a.usage.cost_usd == 1.0,
	        "two of them");
	ok(a.used.cpu_us == 1200 && a.used.memory_peak_bytes == 900, "sums and peaks");
	ok(a.spent.sum.requests == 3 && a.tokens.input == 7, "what was metered is of all of them");

	struct buf b = BUF_INIT(4096);
	struct jw w = JW_INIT(&b);
	jw_open(&w, NULL, '{');
	attempts_write(&a, &w);
	jw_close(&w, '}');
	struct json *event = json_parse(b.p, b.len, NULL);
	must(event, "JSON: %s", b.p);
	struct attempts c = {.failed = 1}; /* of the run.retry before it */
	attempts_read(&c, event);
	ok(memcmp(&a, &c, sizeof(a)) == 0, "is read as it was told");
	json_free(event);

	add(&a, NULL, 0, 0);
	ok(a.usage.cost_usd < 0 && a.usage.input_tokens == 200,
	        "one without an outcome: the cost is not known any more");
	buf_clear(&b);
	w = (struct jw)JW_INIT(&b);
	jw_open(&w, NULL, '{');
	attempts_write(&a, &w);
	jw_close(&w, '}');
	event = json_parse(b.p, b.len, NULL);
	attempts_read(&c, event);
	ok(c.usage.cost_usd < 0 && c.failed == 3, "nor is it then");
	struct attempts d = {0};
	attempts_read(&d, NULL);
	ok(d.failed == 1 && d.usage.input_tokens == 0, "nothing was told: an attempt and no sums");
	json_free(event);
	buf_done(&b);
	return done();
}
