/*
 * say.h - telling an agent that works: answers to what it asks, and messages.
 *
 * Each returns the exit code, after having said what came of it.
 */
#ifndef ABCTL_SAY_H
#define ABCTL_SAY_H

#include "abctl/verb.h"
#include "base/err.h"

#include <stddef.h>

enum say_kind { SAY_PERMISSION, SAY_QUESTION };

/* `id` NULL: the only one that is open.  `answer`: once, always or deny. */
MUST_USE int say_permission(
        const struct cli *cli, const char *run, const char *id, const char *answer);
/* As the answer to a question (`id` as above), or as a message. */
MUST_USE int say_reply(
        const struct cli *cli, const char *run, const char *id, const char *text, size_t n);
MUST_USE int say_message(const struct cli *cli, const char *run, const char *text, size_t n);

/* Without a word of what came of it, unless it failed. */
MUST_USE int say_answer_quietly(
        const struct cli *cli, const char *run, const char *id, const char *answer);
/* Likewise a message; SAY_LATER: the agent does not hear it now. */
enum { SAY_LATER = -1 };
MUST_USE int say_try(const struct cli *cli, const char *run, const char *text, size_t n);

/* Has a line of this length been cut by the terminal?  Then it says so. */
bool say_cut(size_t n);

/* An operand that is a text, or '-' for all of stdin.  *ret is owned. */
MUST_USE int say_text(const char *operand, char **ret, size_t *ret_len);

#endif
