/*
 * serve.h - agentbox-egress from its first line to its last: make what needs
 * files, give up every privilege, then serve.
 *
 * Apart from main() so that a test can run all of it in a process of its own.
 */
#ifndef EGRESS_SERVE_H
#define EGRESS_SERVE_H

#include "base/err.h"

#include <sys/types.h>

#define SERVE_CA_FILE "/etc/ssl/certs/ca-certificates.crt"

struct serve_options {
	uid_t uid;
	gid_t gid;
	int control;         /* taken */
	const char *ca_file; /* PEM bundle */
};

/* Returns 0 when it was told to stop or agentboxd went away; else -errno with *e. */
MUST_USE int serve_run(const struct serve_options *o, struct err *e);

#endif
