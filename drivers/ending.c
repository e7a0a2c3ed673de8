#include "drivers/ending.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "drivers/emit.h"

#include <string.h>

/* Length of what sets a colour at p (ESC [ numbers m), which is for a terminal; 0: none. */
static size_t colour(const char *p, size_t n)
{
	size_t k = 2;
	if (n < 3 || p[0] != '\033' || p[1] != '[')
		return 0;
	while (k < n && (p[k] == ';' || (p[k] >= '0' && p[k] <= '9')))
		k++;
	return k < n && p[k] == 'm' ? k + 1 : 0;
}

void ending_error_line(struct ending *d, const char *p, size_t n)
{
	char line[sizeof(d->last) + 4]; /* more than fits, to see where a character ends */
	size_t len = 0;
	for (size_t i = 0; i < n && len < sizeof(line);) {
		size_t skip = colour(p + i, n - i);
		if (!skip)
			line[len++] = p[i];
		i += skip ? skip : 1;
	}
	while (len && (line[len - 1] == ' ' || line[len - 1] == '\t' || line[len - 1] == '\r'))
		len--;
	if (len == 0)
		return;
	if (len >= sizeof(d->last))
		len = utf8_floor(line, sizeof(d->last) - 1);
	memcpy(d->last, line, len);
	d->last[len] = '\0';
}

void ending_reason_line(struct ending *d, const char *const *noise, const char *p, size_t n)
{
	for (; noise && *noise; noise++)
		if (n >= strlen(*noise) && memcmp(p, *noise, strlen(*noise)) == 0)
			return;
	if (d->kept)
		return;
	ending_error_line(d, p, n);
	d->kept = strncmp(d->last, "Error: ", 7) == 0;
}

char *ending_text(const struct ending *d, const struct driver_exit *x)
{
	const char *colon = *d->last ? ": " : "";
	if (x->sig > 0)
		return xasprintf("was killed by signal %d (SIG%s)%s%s", x->sig,
		        sigabbrev_np(x->sig) ? sigabbrev_np(x->sig) : "?", colon, d->last);
	if (x->code < 0)
		return xasprintf("ended in an unknown way%s%s", colon, d->last);
	return xasprintf("exited with code %d%s%s", x->code, colon, d->last);
}
