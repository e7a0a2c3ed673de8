/*
 * certs.h - the certificate authority of a jail, and what it signs.
 *
 * For names whose TLS is terminated: an authority on P-256 is made once a jail
 * (agentbox-authority), constrained to the names that the jail's policy
 * terminates; egress opens it and signs a certificate a name as they are asked
 * for.  All of them have one key, made when the authority is opened.
 */
#ifndef EGRESS_CERTS_H
#define EGRESS_CERTS_H

#include "base/err.h"
#include "proto/authority.h"

#include <stdbool.h>
#include <stddef.h>

struct certs; /* opaque: one authority and what it has signed */
struct evp_pkey_st;
struct x509_st;

enum {
	/* Names at once with a certificate; more take the place of the oldest.  A build asks for a
	 * handful of registries. */
	CERTS_MAX = 64,
	/* The key ends with the jail, whose life may have no limit; the date is for copies of the
	 * certificate that somebody trusts elsewhere. */
	CERTS_AUTHORITY_DAYS = 365,
	CERTS_LEAF_SECONDS = 2 * 86400, /* signed anew when half of it is over */
};

/* names[n]: host names, those that begin with '.' for all below. */
MUST_USE int certs_make(const char *const *names, size_t n, struct authority *ret, struct err *e);

/* Believes nothing of it.  Returns owned, or NULL with *e. */
struct certs *certs_open(const struct authority *a, struct err *e);
void certs_free(struct certs *c); /* NULL is fine */

/* The certificate for `name` (lower case) and its key, borrowed: until the next call.  -EACCES: the
 * authority is not for this name. */
MUST_USE int certs_for(struct certs *c, const char *name, struct x509_st **ret_cert,
        struct evp_pkey_st **ret_key, struct err *e);

#endif
