/*
 * exec.h - argv, environment and directory of one exec request, as bytes.
 *
 * Packed by the supervisor into a sealed memfd, carried unread by agentboxd,
 * unpacked by PID 1 inside the jail (which maps it and points into it).
 *
 *	struct exec_head, then argc + envc + 1 NUL-terminated strings:
 *	argv..., env..., cwd
 *
 * argv[0] without a slash is looked up in the PATH of the env given.
 */
#ifndef PROTO_EXEC_H
#define PROTO_EXEC_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

#define EXEC_MAGIC 0x45584543u

struct exec_head {
	uint32_t magic;
	uint32_t argc;  /* 1 .. LIMIT_EXEC_ARGS */
	uint32_t envc;  /* 0 .. LIMIT_EXEC_ENVS */
	uint32_t bytes; /* of the strings, head excluded */
};

struct exec_spec {
	const char *const *argv; /* NULL-terminated; borrowed */
	const char *const *env;  /* NULL-terminated "K=V" */
	const char *cwd;
};

/* Sealed memfd (owned) or -errno: -E2BIG beyond LIMIT_EXEC_*, -EINVAL for an empty argv. */
MUST_USE int exec_pack(const struct exec_spec *spec, struct err *e);

/* Splits mapped bytes: fills argv[argc + 1] and env[envc + 1] (NULL-terminated, pointing into
 * `p`) and *cwd.  The arrays have room for LIMIT_EXEC_ARGS + 1 and LIMIT_EXEC_ENVS + 1.
 * No allocation: PID 1 uses it.  -EBADMSG when anything does not add up. */
MUST_USE int exec_unpack(char *p, size_t n, char **argv, char **env, char **ret_cwd);

#endif
