#include "drivers/ending.h"
#include "base/mem.h"
#include "drivers/emit.h"

#include <string.h>

void ending_error_line(struct ending *d, const char *p, size_t n)
{
	while (n && (p[n - 1] == ' ' || p[n - 1] == '\t' || p[n - 1] == '\r'))
		n--;
	if (n == 0)
		return;
	if (n >= sizeof(d->last))
		n = utf8_floor(p, sizeof(d->last) - 1);
	memcpy(d->last, p, n);
	d->last[n] = '\0';
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
