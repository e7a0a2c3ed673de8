#include "drivers/prompt.h"
#include "base/mem.h"

#include <string.h>

struct prompt prompt_of(const struct driver_spec *spec)
{
	struct prompt p = {xcalloc(spec->prompt_len + 1, 1), spec->prompt_len};
	if (p.n)
		memcpy(p.p, spec->prompt, p.n);
	return p;
}

int prompt_is_stdin(struct prompt *p, struct buf *to_stdin, bool *ret_eof)
{
	int r = buf_put(to_stdin, p->p, p->n);
	if (r == 0)
		*ret_eof = true;
	prompt_done(p);
	return r;
}

void prompt_done(struct prompt *p)
{
	free(p->p);
	*p = (struct prompt){0};
}
