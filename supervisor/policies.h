/*
 * policies.h - root's compiled policies as the supervisor holds them: the
 * sealed memfd agentboxd sends, mapped read-only, checked again.
 *
 * A reload replaces the set; the generation in each request tells agentboxd
 * which one the index belongs to.  Beside the set stands what this host has of
 * the layers, so that a run whose policy cannot be met is refused at once.
 */
#ifndef SUPERVISOR_POLICIES_H
#define SUPERVISOR_POLICIES_H

#include "base/buf.h"
#include "base/err.h"
#include "policy/policy.h"
#include "proto/jail.h"

struct jw;
struct policies;

struct policies *policies_new(void);
void policies_free(struct policies *p);

/* Takes fd.  The old set stays when this one does not check. */
MUST_USE int policies_load(struct policies *p, int fd, struct err *e);
bool policies_ready(const struct policies *p); /* one set has been loaded */

/* What this host has: agentboxd's answer to JAIL_DOCTOR.  Before it no policy is met. */
void policies_host(struct policies *p, const struct jail_reply *doctor);
/* As policy_proven and policy_met. */
MUST_USE int policies_met(const struct policies *p, const struct policy *x, struct err *e);
/* Why the self-test could not look at this host, so that nothing is served; "" where it did. */
const char *policies_unproven(const struct policies *p);

/* The set in use (borrowed: for the turn), or NULL before the first load. */
const struct policy_set *policies_set(const struct policies *p);
/* Index of the policy (NULL name: root's default_policy); *ret (borrowed: for the turn).  -ENOENT
 * naming those there are. */
MUST_USE int policies_find(
        const struct policies *p, const char *name, const struct policy **ret, struct err *e);

/* ---- JSON for the API ---- */
/* For whom: a tenant sees those of its key, and of them nothing of this host. */
struct policies_view {
	char *const *names; /* NULL: all */
	bool outside;
};
/* Objects separated by commas. */
void policies_list(const struct policies *p, const struct policies_view *v, struct buf *json);
MUST_USE int policies_show(const struct policies *p, const struct policies_view *v,
        const char *name, struct buf *json, struct err *e);
/* Members of one `struct limits`: "memory":N,... without braces; zero ones are left out. */
void policies_limits_json(const struct limits *l, struct buf *json);
/* Member "ports": those of the jail's own listeners that clients may reach. */
void policies_ports_json(const struct policy *p, struct jw *w);
/* Likewise, of a jail by its policy's name; nothing where there are none. */
void policies_jail_ports_json(const struct policies *p, const char *name, struct jw *w);
/* ["userns","mountns",...] of the bits. */
void policies_layers_json(uint32_t layers, struct buf *json);

#endif
