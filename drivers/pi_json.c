#include "base/mem.h"
#include "drivers/emit.h"
#include "drivers/pi.h"

#include <string.h>

/* `pi --mode json`: one prompt, which is its stdin, and no way to be asked anything; what an
 * extension asks is denied. */

static int json_start(struct driver_run *r, struct buf *to_stdin, bool *ret_eof)
{
	auto_free char *prompt = take(r->prompt);
	int rc = buf_put(to_stdin, prompt, r->prompt_len);
	if (rc == 0)
		*ret_eof = true;
	return rc;
}

static void json_line(struct driver_run *r, const char *p, size_t n, bool whole,
        struct buf *to_stdin, bool *ret_eof)
{
	(void)to_stdin, (void)ret_eof; /* stdin was closed after the prompt */
	if (n == 0)
		return;
	auto_json struct json *line = whole ? json_parse(p, n, NULL) : NULL;
	bool understood = json_is_object(line) && pi_event(r, line);
	/* A string of the tree ends at its first NUL, so the line has more than the events say. */
	if (!understood || memmem(p, n, "\\u0000", 6))
		emit_raw(r->sink, NULL, p, n, !whole);
}

static bool json_interrupt(struct driver_run *r, struct buf *to_stdin)
{
	(void)r, (void)to_stdin;
	return false; /* signal it */
}

const struct driver driver_pi_json = {
        .name = "pi-json",
        .check = pi_json_check,
        .command = pi_json_command,
        .open = pi_open,
        .start = json_start,
        .line = json_line,
        .error_line = pi_error_line,
        .interrupt = json_interrupt,
        .end = pi_end,
        .close = pi_close,
};
