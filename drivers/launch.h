/*
 * launch.h - writing a struct driver_command: argv, environment and files grow
 * one piece at a time.  The lists stay NULL-terminated after each call, so a
 * half-written command can be given to driver_command_done.
 */
#ifndef DRIVERS_LAUNCH_H
#define DRIVERS_LAUNCH_H

#include "base/json.h"
#include "drivers/driver.h"

void launch_arg(struct driver_command *c, const char *arg);
void launch_args(struct driver_command *c, const char *const *args); /* NULL: none */
void launch_env(struct driver_command *c, const char *name, const char *value);
/* A file below the agent's home.  `text` is taken. */
void launch_file(struct driver_command *c, const char *path, char *text);

/* Some agents put variables where a text has a $, or run what is behind a ! at its beginning.  What
 * these are written as for such an agent, so that it takes the text as it is; NULL: as they are. */
struct launch_spelling {
	const char *dollar, *bang;
};
/* A $ for those that take a default in the place of a variable that is not there. */
#define LAUNCH_DEFAULT_DOLLAR "${AGENTBOX_NONE:-$}"
/* A text; "K=V" or "K: V" (sep)'s value so spelled; returns owned.  `how` NULL: as it is. */
char *launch_spelled(const char *text, const struct launch_spelling *how);
char *launch_pair_value(const char *pair, char sep, const struct launch_spelling *how);

/* A server's argv after the program as an array; "K=V" (sep '=') or "K: V" (sep ':') as an object's
 * members, nothing for NULL. */
void launch_put_args(struct jw *w, const char *key, const char *const *command,
        const struct launch_spelling *how);
void launch_put_pairs(struct jw *w, const char *key, const char *const *pairs, char sep,
        const struct launch_spelling *how);

/* May this stand in argv as a session's id?  Letters, digits, - and _; NULL may not. */
bool launch_id_ok(const char *id);
/* Names of tools, without patterns; `key` is where the harness has them. */
MUST_USE int launch_check_names(const char *key, const char *const *names, struct err *e);

/* How an agent's own format of MCP servers tells what a server is. */
struct launch_servers {
	const char *stdio, *http; /* its "type", or NULL: it has none */
	const char *url;          /* name of the member */
	const char *more;         /* further members of each server, or NULL */
	const struct launch_spelling *env, *headers;
	const struct launch_spelling *words; /* of command, args and URL */
};
/* {"mcpServers":{...}}'s inner object as member `key`. */
void launch_put_servers(struct jw *w, const char *key, const struct driver_spec *spec,
        const struct launch_servers *how);

/* What a driver of this row is asked and cannot is refused, by the table; servers and the name of
 * the model are looked at.  -ENOEXEC with the reason. */
MUST_USE int launch_check(const struct driver *d, const struct driver_spec *spec, struct err *e);
/* agent.yaml's arguments, the model by its flag, the system prompt as its file. */
void launch_agent(struct driver_command *c, const struct driver_spec *spec);

#endif
