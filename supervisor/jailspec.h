/*
 * jailspec.h - what a client asks for with POST /v1/jails and .../exec: read
 * from the body, checked, and put into the words of proto/jail.h.  Pure.
 *
 * {"argv":[],"env":{},"cwd","tty","rows","cols"}; for a jail that is made for it {"policy"}, and
 * {"snapshot"} where that is a session's; for a fresh jail
 * {"agent","user","binds":["HOST:JAIL[:rw]"],"limits":{"memory":"2G",...}}. A bind names a source
 * below one that root's policy lists; limits may only narrow.
 */
#ifndef SUPERVISOR_JAILSPEC_H
#define SUPERVISOR_JAILSPEC_H

#include "base/err.h"
#include "base/json.h"
#include "policy/policy.h"
#include "proto/jail.h"

#include <stdbool.h>
#include <stdint.h>

struct jailspec {
	const char *policy, *cwd; /* borrowed: from the body; cwd NULL: the default */
	const char **argv;        /* owned list of borrowed texts */
	const char **binds;       /* owned list of borrowed texts, or NULL */
	const struct json *env;   /* borrowed: from the body, strings */
	const char *snapshot;     /* borrowed: from the body; NULL, or what a session starts from */
	const char *agent;        /* borrowed: from the body; NULL: none */
	char *const *agent_env;   /* borrowed: "K=V", of that agent; NULL: none */
	struct limits narrow;
	bool tty, root;
	uint16_t rows, cols;
};

/* `fresh`: the members of a fresh jail are allowed.  The body must outlive the spec. */
MUST_USE int jailspec_read(
        const struct json *body, bool fresh, struct jailspec *ret, struct err *e);
void jailspec_done(struct jailspec *j);
static inline void auto_jailspec_(struct jailspec *j)
{
	jailspec_done(j);
}
#define auto_jailspec __attribute__((cleanup(auto_jailspec_)))

/* Fills m->narrow and m->binds against the policy; *ret: the limits that will hold. */
MUST_USE int jailspec_narrow(const struct jailspec *j, const struct policy *p, struct jail_make *m,
        struct limits *ret, struct err *e);
/* argv, environment (a small one of ours, then what was asked) and directory: a memfd (owned). `p`:
 * the jail's policy, NULL where it is not known. */
MUST_USE int jailspec_pack(const struct jailspec *j, const struct policy *p, struct err *e);

#endif
