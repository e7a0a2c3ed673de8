/* Any bytes as the body of an answer: the same counts in one piece and in single bytes. */
#include "egress/meter.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void compare(const char *p, size_t n, enum meter_form form)
{
	struct meter whole, bytes;
	meter_begin(&whole, form);
	meter_feed(&whole, p, n);
	meter_begin(&bytes, form);
	for (size_t i = 0; i < n; i++)
		meter_feed(&bytes, p + i, 1);
	struct tokens a = meter_tokens(&whole, false), b = meter_tokens(&bytes, false);
	if (memcmp(&a, &b, sizeof(a)) != 0 || strcmp(whole.model, bytes.model) != 0)
		abort();
	if (whole.depth > METER_DEPTH || a.input > 2 * TOKENS_MAX || a.output > 3 * TOKENS_MAX)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *p = (const char *)data;
	char model[MODEL_MAX];
	compare(p, size, METER_JSON);
	compare(p, size, METER_SSE);
	meter_model_of_path(p, size, model);
	if (!memchr(model, 0, sizeof(model)))
		abort();
	return 0;
}
