#include "base/mem.h"
#include "drivers/claude.h"
#include "drivers/emit.h"
#include "drivers/launch.h"
#include "drivers/rules.h"

#include <string.h>

void claude_set(char **to, const char *with)
{
	free(*to);
	*to = xstrdup(with);
}

/* Claude was told which tools to offer; this is what it says it offers. */
static void check_offer(struct driver_run *r, const struct json *tools, struct buf *to_stdin)
{
	if (!r->allow || r->fault || !json_is_array(tools))
		return;
	for (const struct json *it = json_first(tools); it; it = json_next(it)) {
		const char *name = json_text(it);
		/* One tool of a server cannot be withheld alone: its calls are refused instead. */
		bool listed = !name || rules_is_mcp(name);
		for (char **a = r->allow; *a && !listed; a++)
			listed = rules_names(*a, name);
		if (listed)
			continue;
		r->fault = xasprintf(
		        "%s offers the tool %.80s, which tools.allow does not name", r->name, name);
		emit_error(r->sink, r->fault, "tool_not_allowed", false);
		claude_interrupt(r, to_stdin);
		return;
	}
}

static void check_servers(struct driver_run *r, const struct json *servers)
{
	if (!json_is_array(servers))
		return;
	for (const struct json *s = json_first(servers); s; s = json_next(s)) {
		const char *status = json_str(s, "status", "");
		if (strcmp(status, "failed") != 0 && strcmp(status, "needs-auth") != 0)
			continue;
		auto_free char *text =
		        xasprintf("MCP server %.80s did not start (%s): its tools are missing",
		                json_str(s, "name", "?"), status);
		emit_error(r->sink, text, "mcp_failed", true);
	}
}

static void init_line(struct driver_run *r, const struct json *line, struct buf *to_stdin)
{
	const char *session = json_str(line, "session_id", NULL),
	           *cwd = json_str(line, "cwd", NULL);
	bool again = r->session != NULL; /* each turn has one */
	if (launch_id_ok(session))
		claude_set(&r->session, session);
	if (cwd && cwd[0] == '/' && strlen(cwd) < 4096)
		claude_set(&r->cwd, cwd);
	check_offer(r, json_get(line, "tools"), to_stdin);
	if (!again)
		check_servers(r, json_get(line, "mcp_servers"));
}

static void retry_line(struct driver_run *r, const struct json *line)
{
	long long status = json_int(line, "error_status", 0); /* none: no answer came at all */
	auto_free char *what =
	        status ? xasprintf("answered %lld", status) : xstrdup("did not answer");
	auto_free char *text =
	        xasprintf("the API %s (%.80s): attempt %lld of %lld follows in %lld ms", what,
	                json_str(line, "error", "?"), (long long)json_int(line, "attempt", 0),
	                (long long)json_int(line, "max_retries", 0),
	                (long long)json_int(line, "retry_delay_ms", 0));
	emit_error(r->sink, text, json_str(line, "error", "api_retry"), true);
}

static void background_line(struct driver_run *r, const struct json *line)
{
	const struct json *tasks = json_get(line, "tasks");
	r->subagents = 0;
	if (json_is_array(tasks))
		for (const struct json *t = json_first(tasks); t; t = json_next(t))
			r->subagents += strcmp(json_str(t, "task_type", ""), "local_agent") == 0;
}

/* Lines that are known and say nothing that an event does not say better. */
static bool claude_drops(const char *subtype)
{
	static const char *const nothing[] = {
	        "thinking_tokens", /* a counter while it thinks; the thinking itself follows */
	        "status",          /* requesting, compacting */
	        "task_started",    /* a subagent: its tool.call said so */
	        "task_progress", "task_updated", /* and its messages follow */
	};
	for (size_t i = 0; i < ARRAY_LEN(nothing); i++)
		if (strcmp(subtype, nothing[i]) == 0)
			return true;
	return false;
}

bool claude_system(struct driver_run *r, const struct json *line, struct buf *to_stdin)
{
	const char *subtype = json_str(line, "subtype", "");
	if (strcmp(subtype, "init") == 0)
		init_line(r, line, to_stdin);
	else if (strcmp(subtype, "api_retry") == 0)
		retry_line(r, line);
	else if (strcmp(subtype, "retry") == 0)
		emit_error(
		        r->sink, "the answer broke off and is asked for again", "api_retry", true);
	else if (strcmp(subtype, "permission_denied") == 0)
		claude_permission_denied(r, line);
	else if (strcmp(subtype, "background_tasks_changed") == 0)
		background_line(r, line);
	else
		return claude_drops(subtype);
	return true;
}
