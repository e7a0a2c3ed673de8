#include "base/mem.h"
#include "drivers/emit.h"
#include "drivers/pi.h"

#include <string.h>

/* `pi --mode json`: one prompt, which is its stdin, and no way to be asked anything; what an
 * extension asks is denied. */

static int json_start(struct driver_run *r, struct buf *to_stdin, bool *ret_eof)
{
	return prompt_is_stdin(&r->prompt, to_stdin, ret_eof);
}

static void json_line(struct driver_run *r, const char *p, size_t n, bool whole,
        struct buf *to_stdin, bool *ret_eof)
{
	(void)to_stdin, (void)ret_eof; /* stdin was closed after the prompt */
	if (n == 0)
		return;
	auto_json struct json *line = whole ? json_parse(p, n, NULL) : NULL;
	bool understood = json_is_object(line) && pi_event(r, line);
	emit_unsaid(r->sink, understood, p, n, whole);
}

const struct driver driver_pi_json = {
        .name = "pi-json",
        .can = CAN(RESUME) | CAN(DENY) | CAN(SYSTEM_PROMPT) | CAN(MODEL) | CAN(TOOLS_ALLOW) |
               CAN(TOOLS_DENY) | CAN(MCP_STDIO) | CAN(MCP_HTTP) | CAN(THINKING) | CAN(COST) |
               CAN(USAGE),
        .check = pi_json_check,
        .command = pi_json_command,
        .open = pi_open,
        .start = json_start,
        .line = json_line,
        .error_line = pi_error_line,
        .turns = pi_turns,
        .end = pi_end,
        .close = pi_close,
};
