/*
 * build.h - which build of agentbox a program is of.
 *
 * agentboxd, the supervisor and egress send each other plain structs, so they must be of one build:
 * what differs would be read wrong, or not at all.  Each is linked with the digest of the headers
 * that say those structs; agentboxd begins the arguments of its children with its own:
 *
 *	agentbox-supervisor --build ID ...
 *	agentbox-supervisor --build ID		only answers, by its exit code
 */
#ifndef PROTO_BUILD_H
#define PROTO_BUILD_H

#include "base/err.h"

const char *build_id(void); /* a letter and 16 hexadecimal digits */
/* What `argv` says of agentboxd's: 1: ours, and no more is asked; 0: ours; -EINVAL: another. */
MUST_USE int build_check(int argc, char **argv, struct err *e);

#endif
