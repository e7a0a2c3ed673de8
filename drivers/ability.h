/*
 * ability.h - what an agent may be able to do, by name: one list for the drivers'
 * table, agent.yaml's `cannot`, the API, the CLI and the manual.
 *
 * A driver's row says what its dialect can (`can` of driver.h); an agent may be
 * able to do less.  What an agent cannot and the supervisor enforces by itself
 * (turns, names of tools) ends the run when it is seen: after the fact, which is
 * less than not being offered.
 */
#ifndef DRIVERS_ABILITY_H
#define DRIVERS_ABILITY_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* symbol, name, key of a harness that asks for it or NULL, how the supervisor enforces it where the
 * agent cannot or NULL, what it is */
/* clang-format off */
#define ABILITIES(X)                                                                               \
	X(RESUME, "resume", NULL, NULL,                                                            \
		"a run goes on with the conversation of the one before")                           \
	X(INPUT, "input", NULL, NULL, "it hears a message while it works")                         \
	X(INTERRUPT, "interrupt", NULL, NULL,                                                      \
		"it is asked to stop by its protocol, not by a signal")                            \
	X(ASK, "ask", "permissions: ask", NULL, "it asks before it acts, and waits for an answer") \
	X(DENY, "deny", "permissions: deny", NULL, "it goes without what it would ask for")        \
	X(QUESTIONS, "questions", NULL, NULL, "it puts questions to a person")                     \
	X(SYSTEM_PROMPT, "system_prompt", "the text of the harness", NULL,                         \
		"it is told the text of the harness")                                              \
	X(MODEL, "model", "model", NULL, "it is told which model to use")                          \
	X(TOOLS_ALLOW, "tools_allow", "tools.allow",                                               \
		"a call of another tool ends the run", "it is offered these tools and no other")   \
	X(TOOLS_DENY, "tools_deny", "tools.deny",                                                  \
		"a call of such a tool ends the run", "it is not offered these tools")             \
	X(TOOL_PATTERNS, "tool_patterns", "patterns of tools", NULL,                               \
		"rules look into a call: Bash(git log:*)")                                         \
	X(MCP_STDIO, "mcp_stdio", "tools.mcp with a command", NULL,                                \
		"it uses servers that are programs in the jail")                                   \
	X(MCP_HTTP, "mcp_http", "tools.mcp with a url", NULL, "it uses servers over HTTP")         \
	X(MAX_TURNS, "max_turns", "limits.maxTurns",                                               \
		"the first event of the turn after the last one ends the run",                     \
		"it stops by itself after so many answers of the model")                           \
	X(THINKING, "thinking", NULL, NULL, "it tells what its model thinks")                      \
	X(PLAN, "plan", NULL, NULL, "it tells its plan")                                           \
	X(COST, "cost", NULL, NULL, "it tells what it has cost")                                   \
	X(USAGE, "usage", NULL, NULL, "it tells the tokens it has used")                           \
	X(WARM, "warm", "warm", NULL, "it lives on between runs of a session")
/* clang-format on */

enum ability {
#define ABILITY_ENUM(sym, name, key, enforced, what) ABILITY_##sym,
	ABILITIES(ABILITY_ENUM)
#undef ABILITY_ENUM
	        ABILITY_COUNT
};

/* A driver's row: CAN(RESUME) | CAN(MODEL). */
#define CAN(sym) (UINT32_C(1) << ABILITY_##sym)

static inline bool ability_in(uint32_t can, enum ability a)
{
	return can >> a & 1;
}

const char *ability_name(enum ability a);
const char *ability_key(enum ability a);      /* NULL: no harness asks for it */
const char *ability_enforced(enum ability a); /* how, or NULL: the supervisor cannot */
const char *ability_what(enum ability a);
int ability_by_name(const char *name); /* enum ability, or -1 */
/* All names, NULL-terminated. */
const char *const *ability_names(void);
/* The one wording: -ENOEXEC, "WHERE KEY: agent 'A' cannot do that (NAME); REMEDY".  `where` is
 * "file:line: " or "". */
int ability_refuse(
        struct err *e, const char *where, const char *agent, enum ability a, const char *remedy);
/* yes, no, enforced. */
const char *ability_word(uint32_t can, enum ability a);

#endif
