/*
 * hooks.h - one POST to a webhook of root's, signed, and what came of it.
 *
 * The supervisor says which webhook, which event and the bytes; where it goes and
 * what signs it is root's word.  One attempt each: whether there is another is the
 * supervisor's affair.  Whatever happens, agentboxd is told once (EGRESS_HOOKED),
 * unless this process ends first.
 *
 * Traces of runs go the same way, with root's headers instead of a signature.
 *
 * Nothing is followed, the answer's status is all that is read of it (of traces also how
 * many spans were rejected), and addresses are judged as those of a policy's rules are. Connections
 * are apart from those of jails.
 */
#ifndef EGRESS_HOOKS_H
#define EGRESS_HOOKS_H

#include "policy/policy.h"
#include "proto/jail.h"

#include <stdbool.h>

struct hooks; /* opaque */
struct services;

struct hooks *hooks_new(struct services *s); /* of a process that has s->upstream */
void hooks_free(struct hooks *h); /* what is under way is dropped, untold; NULL is fine */

/* `set` (NULL: none yet) and the body's memfd are borrowed for the call. */
void hooks_begin(
        struct hooks *h, const struct policy_set *set, const struct jail_hook *m, int body);
bool hooks_open(const struct hooks *h); /* any under way; NULL: none */

#endif
