/*
 * otlp.h - where traces of runs go: agentboxd.yaml's `otlp`, compiled.
 *
 * Pure.  How it is reached (URL, networks, time for an attempt, pauses) is as of a
 * webhook; egress sends (egress/hooks.h), the supervisor makes spans of what the log
 * has of a run (supervisor/traces.h).
 */
#ifndef POLICY_OTLP_H
#define POLICY_OTLP_H

#include "base/err.h"
#include "base/id.h"
#include "policy/webhooks.h"

#include <stdint.h>

enum {
	OTLP_HEADERS = 8,
	OTLP_ATTRIBUTES = 16,
	OTLP_WHOLE = 1000000, /* of `sample`: all */
};

struct otlp_header {
	char name[64];
	char secret[NAME_MAX_LEN]; /* whose value it has, behind `value`; "": none */
	char value[POLICY_TEXT_MAX];
};

struct otlp_attribute {
	char key[NAME_MAX_LEN];
	char value[POLICY_TEXT_MAX];
};

/* The first member is what it has in common with webhooks: keys of both fill it. */
struct otlp {
	struct webhook to; /* url "": none */
	char service[NAME_MAX_LEN];
	uint32_t nheaders, nattributes;
	uint32_t sample; /* of OTLP_WHOLE, of runs that bring no trace of their own */
	uint32_t pad;
	uint64_t delay_ms; /* that spans wait for others */
	struct otlp_header headers[OTLP_HEADERS];
	struct otlp_attribute attributes[OTLP_ATTRIBUTES];
};

/* Everything a reader relies on. */
MUST_USE int otlp_check(const struct otlp *o, struct err *e);

#endif
