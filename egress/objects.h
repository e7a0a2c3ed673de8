/*
 * objects.h - artifacts in root's bucket: put there whole or in parts, deleted, linked to.
 *
 * The supervisor says which and gives the file; where it goes and what signs it is root's word.
 * What has more bytes than a part goes as a multipart upload, whose requests are repeated here a
 * few times and which is aborted where it fails; whether there is another attempt at all of it is
 * the supervisor's affair.  Whatever happens, agentboxd is told once (EGRESS_OBJECTED), unless this
 * process ends first.
 */
#ifndef EGRESS_OBJECTS_H
#define EGRESS_OBJECTS_H

#include "policy/policy.h"
#include "proto/jail.h"

#include <stdbool.h>

struct objects; /* opaque */
struct services;

struct objects *objects_new(struct services *s); /* of a process that has s->upstream */
void objects_free(struct objects *o); /* what is under way is dropped, untold; NULL is fine */

/* `set` (NULL: none yet) is borrowed for the call; *fd (-1: none) is taken. */
void objects_begin(
        struct objects *o, const struct policy_set *set, const struct jail_object *m, int *fd);
bool objects_open(const struct objects *o); /* any under way; NULL: none */

#endif
