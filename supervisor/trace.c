#include "supervisor/trace.h"

#include "base/digest.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AT_ID = 3, AT_PARENT = 36, AT_FLAGS = 53 };

static bool hex(const char *p, size_t n)
{
	return strspn(p, "0123456789abcdef") >= n;
}

static bool zero(const char *p, size_t n)
{
	return strspn(p, "0") >= n;
}

/* Later versions may have more behind the flags. */
static bool valid(const char *p)
{
	size_t n = strlen(p);
	if (n < TRACE_PARENT || !hex(p, 2) || strncmp(p, "ff", 2) == 0 || p[2] != '-')
		return false;
	bool length = strncmp(p, "00", 2) == 0 ? n == TRACE_PARENT
	                                       : n == TRACE_PARENT || p[TRACE_PARENT] == '-';
	return length && hex(p + AT_ID, 32) && p[AT_PARENT - 1] == '-' && hex(p + AT_PARENT, 16) &&
	       p[AT_FLAGS - 1] == '-' && hex(p + AT_FLAGS, 2) && !zero(p + AT_ID, 32) &&
	       !zero(p + AT_PARENT, 16);
}

static bool state_fine(const char *p)
{
	size_t n = p ? strlen(p) : 0;
	if (n == 0 || n > TRACE_STATE_MAX || !strchr(p, '='))
		return false;
	for (size_t i = 0; i < n; i++)
		if (p[i] < 0x20 || p[i] > 0x7e)
			return false;
	return true;
}

char *trace_take(const char *traceparent, const char *tracestate)
{
	if (!traceparent || !valid(traceparent))
		return NULL;
	bool state = state_fine(tracestate);
	return xasprintf("00%.*s%s%s", TRACE_PARENT - 2, traceparent + 2, state ? " " : "",
	        state ? tracestate : "");
}

char *trace_of_step(const struct trace *pipeline, const char *run, unsigned step)
{
	char span[TRACE_SPAN];
	trace_span(run, "step", step, span);
	return xasprintf("00-%s-%s-%02x%s%s", pipeline->id, span, pipeline->sampled ? 1 : 0,
	        pipeline->state ? " " : "", pipeline->state ? pipeline->state : "");
}

static void digits(const char *run, const char *what, unsigned n, char *ret, size_t size)
{
	char text[DIGEST_TEXT], number[32];
	int k = snprintf(number, sizeof(number), "%u", n);
	struct digest *d = digest_new();
	digest_add(d, run, strlen(run) + 1); /* with NUL: no two joins alike */
	digest_add(d, what, strlen(what) + 1);
	digest_add(d, number, (size_t)k);
	digest_end(d, text);
	memcpy(ret, text, size - 1);
	ret[size - 1] = '\0';
}

void trace_of(const char *run, const char *text, struct trace *ret)
{
	*ret = (struct trace){.given = false};
	size_t n = text ? strcspn(text, " ") : 0;
	ret->given = n == TRACE_PARENT;
	if (!ret->given) {
		digits(run, "trace", 0, ret->id, sizeof(ret->id));
		return;
	}
	memcpy(ret->id, text + AT_ID, sizeof(ret->id) - 1);
	memcpy(ret->parent, text + AT_PARENT, sizeof(ret->parent) - 1);
	ret->sampled = strtoul(text + AT_FLAGS, NULL, 16) & 1;
	ret->state = text[n] ? text + n + 1 : NULL;
}

bool trace_taken(const struct trace *t, uint32_t part)
{
	if (t->given)
		return t->sampled;
	uint64_t low = strtoull(t->id + 18, NULL, 16); /* 56 bits */
	return low % 1000000 < part;
}

void trace_span(const char *run, const char *what, unsigned n, char ret[TRACE_SPAN])
{
	digits(run, what, n, ret, TRACE_SPAN);
}
