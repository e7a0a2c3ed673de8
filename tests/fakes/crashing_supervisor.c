/* The supervisor as it is, but for its driver `exec`: that dies of a line "crash", as one with a
 * bug would.  Linked with --wrap=driver_find. */
#include "drivers/driver.h"

#include <signal.h>
#include <string.h>

const struct driver *__real_driver_find(const char *name);
const struct driver *__wrap_driver_find(const char *name);

static void line(struct driver_run *r, const char *p, size_t n, bool whole, struct buf *to_stdin,
        bool *ret_eof)
{
	if (n == 5 && memcmp(p, "crash", n) == 0) {
		(void)signal(SIGSEGV, SIG_DFL); /* a sanitizer would end it by an exit */
		(void)raise(SIGSEGV);
	}
	driver_exec.line(r, p, n, whole, to_stdin, ret_eof);
}

const struct driver *__wrap_driver_find(const char *name)
{
	static struct driver crashing;
	const struct driver *d = __real_driver_find(name);
	if (d != &driver_exec)
		return d;
	crashing = *d;
	crashing.line = line;
	return &crashing;
}
