/* What a client is told of the end. */
#include "supervisor/stdio.h"

#include "base/json.h"

#include <signal.h>

static const char *reason(const struct stdio_end *end)
{
	if (end->timed_out)
		return "timeout";
	if (end->gone && end->jail.end == JAIL_END_OOM)
		return "oom";
	if (!end->exited)
		return "killed";
	if (end->exit.error)
		return "start";
	return end->exit.sig ? "signal" : "exit";
}

void stdio_exit_json(const struct stdio_end *end, struct buf *to)
{
	struct jw w = JW_INIT(to);
	jw_open(&w, NULL, '{');
	if (end->exited && end->exit.error)
		jw_int(&w, "code", jails_start_code(&end->exit));
	else if (end->exited && !end->exit.sig && !end->timed_out)
		jw_int(&w, "code", end->exit.code);
	else
		jw_int(&w, "signal", end->exited && end->exit.sig ? end->exit.sig : SIGKILL);
	jw_str(&w, "reason", reason(end));
	if (end->exited && end->exit.error) {
		char why[JAILS_WHY];
		jails_why(&end->exit, why);
		jw_str(&w, "error", why);
	}
	if (end->gone)
		jails_resources(&w, &end->jail.resources);
	jw_close(&w, '}');
}
