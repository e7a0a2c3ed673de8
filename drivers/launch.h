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

/* Are these servers that an agent can be told of? */
MUST_USE int launch_check_mcp(const struct driver_spec *spec, struct err *e);
/* A server's argv after the program as an array; "K=V" (sep '=') or "K: V" (sep ':') as an object's
 * members, nothing for NULL. */
void launch_put_args(struct jw *w, const char *key, const char *const *command);
void launch_put_pairs(struct jw *w, const char *key, const char *const *pairs, char sep);

/* May this stand in argv as a session's id?  Letters, digits, - and _; NULL may not. */
bool launch_id_ok(const char *id);
/* Names of tools, without patterns; `key` is where the harness has them. */
MUST_USE int launch_check_names(const char *key, const char *const *names, struct err *e);

/* How an agent's own format of MCP servers tells what a server is. */
struct launch_servers {
	const char *stdio, *http; /* its "type", or NULL: it has none */
	const char *url;          /* name of the member */
	const char *more;         /* further members of each server, or NULL */
};
/* {"mcpServers":{...}}'s inner object as member `key`. */
void launch_put_servers(struct jw *w, const char *key, const struct driver_spec *spec,
        const struct launch_servers *how);

/* Agents that are told no tools, turns or permissions: what the harness asks of them beyond that is
 * refused, -ENOEXEC with the reason. */
MUST_USE int launch_check_tools(const struct driver_spec *spec, struct err *e);
MUST_USE int launch_check(const struct driver_spec *spec, struct err *e);
/* agent.yaml's arguments, the model by its flag, the system prompt as its file. */
void launch_agent(struct driver_command *c, const struct driver_spec *spec);

#endif
