/*
 * authority.h - the certificate authority of one jail, from agentboxd's side: asked for, kept,
 * handed on.
 *
 * agentbox-authority makes it (agentboxd has no arithmetic of its own), under an id of its own.
 * agentboxd keeps the memfd as long as the jail, for every agentbox-egress that comes, and shows
 * the certificate to the jail (trust.h).
 */
#ifndef JAIL_AUTHORITY_H
#define JAIL_AUTHORITY_H

#include "base/err.h"
#include "policy/policy.h"
#include "proto/authority.h"

/* 10 ms is what it takes; a loaded machine may take a hundred times that. */
enum { AUTHORITY_MS = 5000 };

/* For the names that the policy terminates: a sealed memfd (owned), or -errno. */
MUST_USE int authority_make(const char *program, const struct policy *p, struct err *e);
/* What is in it; the caller wipes it. */
MUST_USE int authority_read(int memfd, struct authority *ret, struct err *e);

#endif
