#include "policy/units.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* digits[.digits]: `whole` and the fraction as `part` / `scale`.  Own scanner: strtod obeys the
 * locale and takes hexadecimal, infinities and signs. */
struct decimal {
	uint64_t whole, part, scale;
	const char *unit; /* what follows */
};

static int decimal(const char *p, struct decimal *ret)
{
	struct decimal d = {.scale = 1};
	if (!isdigit((unsigned char)*p))
		return -EINVAL;
	for (; isdigit((unsigned char)*p); p++)
		if (__builtin_mul_overflow(d.whole, 10, &d.whole) ||
		        __builtin_add_overflow(d.whole, (uint64_t)(*p - '0'), &d.whole))
			return -ERANGE;
	if (*p == '.') {
		if (!isdigit((unsigned char)*++p))
			return -EINVAL;
		/* Nine digits are a thousand times finer than anything here. */
		for (; isdigit((unsigned char)*p); p++) {
			if (d.scale == 1000000000)
				return -EINVAL;
			d.part = d.part * 10 + (uint64_t)(*p - '0');
			d.scale *= 10;
		}
	}
	d.unit = p;
	*ret = d;
	return 0;
}

static int times(const struct decimal *d, uint64_t factor, uint64_t *ret)
{
	uint64_t whole, part;
	if (__builtin_mul_overflow(d->whole, factor, &whole) ||
	        __builtin_mul_overflow(d->part, factor, &part) ||
	        __builtin_add_overflow(whole, part / d->scale, &whole))
		return -ERANGE;
	/* 0.0001 cpus is no number of thousandths: an error rather than a silent zero. */
	if (part % d->scale != 0 && factor < 1024)
		return -EINVAL;
	*ret = whole;
	return 0;
}

int units_bytes(const char *text, uint64_t *ret)
{
	struct decimal d;
	int r = decimal(text, &d);
	if (r < 0)
		return r;
	uint64_t factor = 1;
	static const char letters[] = "KMGT";
	const char *at = *d.unit ? strchr(letters, toupper((unsigned char)*d.unit)) : NULL;
	if (at) {
		for (const char *l = letters; l <= at; l++)
			factor *= 1024;
		d.unit++;
		if (strncmp(d.unit, "iB", 2) == 0)
			d.unit += 2;
	}
	if (*d.unit)
		return -EINVAL;
	return times(&d, factor, ret);
}

int units_count(const char *text, uint64_t *ret)
{
	struct decimal d;
	int r = decimal(text, &d);
	if (r < 0)
		return r;
	uint64_t factor = 1;
	if (*d.unit == 'k' || *d.unit == 'K')
		factor = 1000;
	else if (*d.unit == 'M')
		factor = 1000000;
	if (factor > 1)
		d.unit++;
	if (*d.unit)
		return -EINVAL;
	return times(&d, factor, ret);
}

int units_milli(const char *text, uint64_t *ret)
{
	struct decimal d;
	int r = decimal(text, &d);
	if (r < 0)
		return r;
	if (*d.unit)
		return -EINVAL;
	return times(&d, 1000, ret);
}

int units_time_ms(const char *text, uint64_t *ret)
{
	static const struct {
		const char *unit;
		uint64_t ms;
	} units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"min", 60000}, {"h", 3600000},
	        {"d", 86400000}};
	struct decimal d;
	int r = decimal(text, &d);
	if (r < 0)
		return r;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(d.unit, units[i].unit) == 0)
			return times(&d, units[i].ms, ret);
	return -EINVAL;
}

int units_plain(const char *text, uint64_t *ret)
{
	struct decimal d;
	int r = decimal(text, &d);
	if (r < 0)
		return r;
	if (*d.unit || d.scale != 1)
		return -EINVAL;
	*ret = d.whole;
	return 0;
}

int units_real(const char *text, double *ret)
{
	struct decimal d;
	int r = decimal(text, &d);
	if (r < 0)
		return r;
	if (*d.unit)
		return -EINVAL;
	if (d.whole > 1000000000000)
		return -ERANGE;
	*ret = (double)d.whole + (double)d.part / (double)d.scale;
	return 0;
}

void units_print_bytes(uint64_t value, char out[UNITS_TEXT_MAX])
{
	static const char letters[] = "KMGT";
	int l = -1;
	while (value && value % 1024 == 0 && l < 3) {
		value /= 1024;
		l++;
	}
	if (l < 0)
		(void)snprintf(out, UNITS_TEXT_MAX, "%llu", (unsigned long long)value);
	else
		(void)snprintf(
		        out, UNITS_TEXT_MAX, "%llu%c", (unsigned long long)value, letters[l]);
}

void units_print_milli(uint64_t value, char out[UNITS_TEXT_MAX])
{
	int n = snprintf(out, UNITS_TEXT_MAX, "%llu.%03llu", (unsigned long long)(value / 1000),
	        (unsigned long long)(value % 1000));
	while (out[n - 1] == '0')
		out[--n] = '\0';
	if (out[n - 1] == '.')
		out[n - 1] = '\0';
}

void units_print_time_ms(uint64_t value, char out[UNITS_TEXT_MAX])
{
	const char *unit = "ms";
	if (value && value % 3600000 == 0) {
		value /= 3600000;
		unit = "h";
	} else if (value && value % 60000 == 0) {
		value /= 60000;
		unit = "m";
	} else if (value && value % 1000 == 0) {
		value /= 1000;
		unit = "s";
	}
	(void)snprintf(out, UNITS_TEXT_MAX, "%llu%s", (unsigned long long)value, unit);
}
