/*
 * trust.h - the certificate of a jail's authority among those that its programs trust.
 *
 * In /etc/ssl/certs: in the bundle ca-certificates.crt, under its hash, and by itself. With a root
 * of the host's or of an image that is a layer over that directory, in this jail's root alone; with
 * a writable layer over an image it is part of that.
 */
#ifndef JAIL_TRUST_H
#define JAIL_TRUST_H

#include "base/err.h"
#include "policy/policy.h"
#include "proto/authority.h"

#include <stdint.h>

/* To be attached at POLICY_TRUST_DIR of a jail's root: a detached mount (owned) or -errno.  To be
 * called in the mount namespace of the template, whose place for mounts is used for a moment. */
MUST_USE int trust_layer(const struct authority *a, struct err *e);

/* The files themselves, into `dir`.  `root`: where the bundle is that is added to; they belong to
 * `owner`, a host id.  Both borrowed. */
MUST_USE int trust_fill(
        int dir, int root, const struct authority *a, uint32_t owner, struct err *e);

/* The certificate alone, as agentbox-egress.crt, where update-ca-certificates collects from. */
MUST_USE int trust_add(int dir, const struct authority *a, uint32_t owner, struct err *e);

#endif
