/*
 * rules.h - the tool rules of a harness: which call does a rule cover?
 *
 *	Read                      every call of the tool
 *	Bash(node:*)              commands that are `node` or begin with `node `
 *	Bash(npm run build)       exactly this command; `*` stands for any text
 *	Write(**.md)              a glob of paths below the workspace, anchored; //etc/x: absolute
 *	WebFetch(domain:*.x.org)  the host of the URL
 *	mcp__server, mcp__server__*, mcp__server__tool
 *
 * A shell command is covered when each of its parts (between ; & | and line
 * ends) is; one that this module cannot take apart with certainty ($(...),
 * backquotes, redirections to files, subshells, comments) is covered by no
 * pattern.  Whoever wants those allows the whole tool.
 */
#ifndef DRIVERS_RULES_H
#define DRIVERS_RULES_H

#include "base/err.h"
#include "base/json.h"

#include <stdbool.h>

/* Is `rule` well formed and, when `enforce`, one that rules_allow can decide?  -ENOEXEC. */
int rules_check(const char *rule, bool enforce, struct err *e);
bool rules_is_mcp(const char *rule);
bool rules_has_pattern(const char *rule);
bool rules_any_pattern(const char *const *rules); /* NULL: none */
/* The tool's name without the pattern; returns owned. */
char *rules_base(const char *rule);
/* Does the rule speak of this tool at all? */
bool rules_names(const char *rule, const char *tool);
/* Is the call covered by the NULL-terminated list?  `cwd` is the agent's working directory. */
bool rules_allow(
        const char *const *rules, const char *tool, const struct json *input, const char *cwd);

#endif
