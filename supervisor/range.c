#include "supervisor/range.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { DIGITS_MAX = 18 }; /* less than 2^63 */

/* Digits only; false where there are none, or too many. */
static bool number(const char **p, uint64_t *ret)
{
	size_t n = strspn(*p, "0123456789");
	if (n == 0 || n > DIGITS_MAX)
		return false;
	*ret = strtoull(*p, NULL, 10);
	*p += n;
	return true;
}

static bool read_one(const char *p, struct range *r)
{
	uint64_t last;
	if (strncasecmp(p, "bytes=", 6) != 0)
		return false;
	p += 6;
	if (*p == '-') {
		r->tail = true;
		p++;
		return number(&p, &r->n) && !*p;
	}
	r->n = UINT64_MAX;
	if (!number(&p, &r->at) || *p++ != '-')
		return false;
	if (!*p)
		return true;
	if (!number(&p, &last) || *p || last < r->at)
		return false;
	r->n = last - r->at + 1;
	return true;
}

void range_read(const char *header, struct range *ret)
{
	struct range r = {.some = true};
	if (header && read_one(header, &r))
		*ret = r;
	else
		*ret = (struct range){.n = UINT64_MAX};
}

bool range_of(const struct range *r, uint64_t size, uint64_t *ret_at, uint64_t *ret_n)
{
	uint64_t at = r->at;
	if (r->tail)
		at = r->n < size ? size - r->n : 0;
	uint64_t left = at < size ? size - at : 0;
	*ret_at = at;
	*ret_n = r->n < left ? r->n : left;
	return !r->some || *ret_n > 0;
}
