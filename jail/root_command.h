/*
 * root_command.h - a program of root's own, run to its end in a child of agentboxd (job.h).
 *
 * It runs under an id of its own without any capability, with PATH and what is given
 * as its environment, in a process group that ends with it.
 */
#ifndef JAIL_ROOT_COMMAND_H
#define JAIL_ROOT_COMMAND_H

#include "base/err.h"
#include "policy/forms.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct root_command {
	const char *field; /* path and arguments: form_command */
	uint32_t nargs;
	const char *const *env; /* NULL-terminated, or NULL */
	uid_t uid;
	int stdin_fd;     /* 0: /dev/null */
	int64_t until_ms; /* monotonic */
	/* Of a secret only what it prints counts, all of it, and its errors are thrown away (they
	 * could hold the secret).  Else both streams are kept as far as they fit, and whoever it
	 * leaves behind is not waited for. */
	bool secret;
};

/* What it printed: how many bytes, and its wait status.  -ETIME: it did not end in time; -E2BIG: a
 * secret that fills `size`. */
MUST_USE int root_command(
        const struct root_command *c, char *to, size_t size, int *ret_status, struct err *e);

#endif
