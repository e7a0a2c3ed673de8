#include "base/clock.h"

#include <stdbool.h>
#include <stdio.h>
#include <time.h>

static int64_t read_us(clockid_t which)
{
	struct timespec t;
	clock_gettime(which, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int64_t clock_mono_ms(void)
{
	return read_us(CLOCK_MONOTONIC) / 1000;
}

int64_t clock_mono_us(void)
{
	return read_us(CLOCK_MONOTONIC);
}

int64_t clock_wall_ms(void)
{
	return read_us(CLOCK_REALTIME) / 1000;
}

void clock_rfc3339(int64_t wall_ms, char out[CLOCK_TEXT_MAX])
{
	time_t secs = (time_t)(wall_ms / 1000);
	struct tm tm;
	gmtime_r(&secs, &tm);
	size_t n = strftime(out, CLOCK_TEXT_MAX, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out + n, CLOCK_TEXT_MAX - n, ".%03dZ", (int)(wall_ms % 1000));
}

/* Days since 1970 of a date of the Gregorian calendar: years begin in March, so that the leap day
 * is the last. */
static int64_t days(int year, int month, int day)
{
	int y = month > 2 ? year : year - 1, m = month > 2 ? month - 3 : month + 9;
	return 365LL * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 719469;
}

int64_t clock_from_rfc3339(const char *text, size_t n)
{
	static const char form[] = "0000-00-00T00:00:00.000Z";
	int f[7] = {0};
	size_t at = 0;
	bool fine = n == sizeof(form) - 1;
	for (size_t i = 0; fine && i < n; i++) {
		bool digit = form[i] == '0';
		fine = digit ? text[i] >= '0' && text[i] <= '9' : text[i] == form[i];
		if (digit)
			f[at] = f[at] * 10 + (text[i] - '0');
		else if (at + 1 < sizeof(f) / sizeof(f[0]))
			at++;
	}
	if (!fine || f[1] < 1 || f[1] > 12 || f[2] < 1 || f[2] > 31 || f[3] > 23 || f[4] > 59 ||
	        f[5] > 60)
		return -1;
	return ((days(f[0], f[1], f[2]) * 24 + f[3]) * 60 + f[4]) * 60000 + f[5] * 1000LL + f[6];
}
