#include "supervisor/attempts.h"

#include "base/json.h"
#include "base/mem.h"

#include <stddef.h>
#include <string.h>

struct number {
	const char *key;
	size_t offset;
};
#define AT(field) offsetof(struct attempts, field)

/* All of 64 bits. */
static const struct number numbers[] = {
        {"toolCalls", AT(tool_calls)},
        {"inputTokens", AT(usage.input_tokens)},
        {"outputTokens", AT(usage.output_tokens)},
        {"cachedTokens", AT(usage.cached_tokens)},
        {"turns", AT(usage.turns)},
        {"cpuUs", AT(used.cpu_us)},
        {"memoryPeakBytes", AT(used.memory_peak_bytes)},
        {"pidsPeak", AT(used.pids_peak)},
        {"ioReadBytes", AT(used.io_read_bytes)},
        {"ioWriteBytes", AT(used.io_write_bytes)},
        {"egressBytes", AT(used.egress_bytes)},
        {"diskPeakBytes", AT(used.disk_peak_bytes)},
        {"inodesPeak", AT(used.inodes_peak)},
        {"meteredRequests", AT(spent.sum.requests)},
        {"meteredBytes", AT(spent.sum.bytes)},
        {"meteredTokens", AT(spent.sum.tokens)},
        {"meteredCostMicroUsd", AT(spent.sum.cost_micro)},
        {"meteredUnpriced", AT(spent.unpriced)},
        {"meteredInput", AT(tokens.input)},
        {"meteredOutput", AT(tokens.output)},
        {"meteredCached", AT(tokens.cached)},
        {"meteredStored", AT(tokens.stored)},
};
_Static_assert(sizeof(((struct attempts *)0)->tool_calls) == sizeof(uint64_t) &&
                       sizeof(((struct attempts *)0)->used.cpu_us) == sizeof(uint64_t),
        "numbers are of 64 bits");

static uint64_t greater(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

struct jail_resources attempts_used(const struct attempts *a, const struct jail_resources *now)
{
	const struct jail_resources *b = &a->used;
	return (struct jail_resources){
	        .cpu_us = now->cpu_us + b->cpu_us,
	        .memory_peak_bytes = greater(now->memory_peak_bytes, b->memory_peak_bytes),
	        .pids_peak = greater(now->pids_peak, b->pids_peak),
	        .io_read_bytes = now->io_read_bytes + b->io_read_bytes,
	        .io_write_bytes = now->io_write_bytes + b->io_write_bytes,
	        .egress_bytes = now->egress_bytes + b->egress_bytes,
	        .disk_peak_bytes = greater(now->disk_peak_bytes, b->disk_peak_bytes),
	        .inodes_peak = greater(now->inodes_peak, b->inodes_peak),
	};
}

struct driver_usage attempts_usage(const struct attempts *a, const struct driver_usage *now)
{
	if (!a->failed)
		return *now;
	const struct driver_usage *b = &a->usage;
	return (struct driver_usage){
	        .input_tokens = now->input_tokens + b->input_tokens,
	        .output_tokens = now->output_tokens + b->output_tokens,
	        .cached_tokens = now->cached_tokens + b->cached_tokens,
	        .cost_usd = now->cost_usd < 0 || b->cost_usd < 0 ? -1 : now->cost_usd + b->cost_usd,
	        .turns = now->turns + b->turns,
	};
}

void attempts_add(struct attempts *a, const struct driver_outcome *o,
        const struct jail_resources *used, const struct tokens *tokens,
        const struct spending *spent)
{
	static const struct driver_usage unknown = {.cost_usd = -1};
	a->usage = attempts_usage(a, o ? &o->usage : &unknown);
	a->tool_calls += o ? o->tool_calls : 0;
	a->used = attempts_used(a, used);
	a->tokens = *tokens;
	a->spent = *spent;
	a->failed++;
}

void attempts_write(const struct attempts *a, struct jw *w)
{
	jw_open(w, "soFar", '{');
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		int64_t n;
		memcpy(&n, (const char *)a + numbers[i].offset, sizeof(n));
		jw_int(w, numbers[i].key, n);
	}
	if (a->usage.cost_usd >= 0)
		jw_num(w, "costUsd", a->usage.cost_usd);
	jw_close(w, '}');
}

void attempts_read(struct attempts *ret, const struct json *event)
{
	const struct json *sums = json_get(event, "soFar");
	const struct json *cost = json_get(sums, "costUsd");
	unsigned failed = ret->failed;
	*ret = (struct attempts){.failed = failed + 1};
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		int64_t n = json_int(sums, numbers[i].key, 0);
		memcpy((char *)ret + numbers[i].offset, &n, sizeof(n));
	}
	ret->usage.cost_usd = cost ? json_num(sums, "costUsd", -1) : -1;
}
