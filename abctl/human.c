#include "abctl/human.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Three digits at most: 9.9k, 99k. */
static struct human scaled(double v, const char *const *units, size_t n, const char *gap)
{
	struct human h;
	size_t u = 0;
	/* 999.5 would read as 1000. */
	while (v >= 999.5 && u + 1 < n) {
		v /= 1000;
		u++;
	}
	snprintf(h.s, sizeof(h.s), u > 0 && v < 9.95 ? "%.1f%s%s" : "%.0f%s%s", v, gap, units[u]);
	return h;
}

struct human human_bytes(uint64_t n)
{
	static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
	return scaled((double)n, units, ARRAY_LEN(units), " ");
}

struct human human_count(int64_t n)
{
	static const char *const units[] = {"", "k", "M", "G", "T"};
	return scaled(n < 0 ? 0 : (double)n, units, ARRAY_LEN(units), "");
}

struct human human_duration(int64_t ms)
{
	struct human h;
	if (ms < 0)
		ms = 0;
	int64_t s = ms / 1000;
	if (ms < 1000)
		snprintf(h.s, sizeof(h.s), "%" PRId64 " ms", ms);
	else if (s < 60)
		snprintf(h.s, sizeof(h.s), "%" PRId64 ".%" PRId64 " s", s, ms % 1000 / 100);
	else if (s < 3600)
		snprintf(h.s, sizeof(h.s), "%" PRId64 "m%02" PRId64 "s", s / 60, s % 60);
	else
		snprintf(h.s, sizeof(h.s), "%" PRId64 "h%02" PRId64 "m", s / 3600, s / 60 % 60);
	return h;
}

struct human human_money(double usd)
{
	struct human h;
	/* Calls of small models cost fractions of a cent. */
	snprintf(h.s, sizeof(h.s), usd < 0.1 ? "$%.4f" : "$%.2f", usd);
	return h;
}

struct human human_time(const char *rfc3339)
{
	struct human h = {""};
	if (strlen(rfc3339) >= 19 && rfc3339[10] == 'T')
		snprintf(h.s, sizeof(h.s), "%.5s %.8s", rfc3339 + 5, rfc3339 + 11);
	else
		(void)str_copy(h.s, sizeof(h.s), rfc3339); /* cut is fine: a column of a table */
	return h;
}
