/*
 * ids.h - the numeric ids of the host that agentbox uses.
 *
 * Far above what distributions hand out (systemd's container range ends at
 * 0x6fffffff but starts at 524288 * 65536; useradd and subuid stay below
 * 0x10000000).  `make install` creates named users and the configuration then
 * carries their ids; an uninstalled tree uses the numbers.
 */
#ifndef BASE_IDS_H
#define BASE_IDS_H

enum {
	/* Each is the number behind the one before: no two are alike, for whoever shares another's
	 * may trace it.  What comes is added at the end. */
	ID_SUPERVISOR = 0x1fff0001, /* uid and gid */
	ID_EGRESS,
	ID_POLICYC,
	ID_IMAGES,    /* mke2fs, while it makes a session's file system */
	ID_SECRETS,   /* root's commands that print a secret */
	ID_AUTHORITY, /* agentbox-authority */
	ID_UNPACK,    /* abctl, while it takes an agent's package apart */
	ID_LISTENER,  /* agentbox-listener; uid and gid */
	ID_HOOKS,     /* root's commands that are told of runs */

	ID_BLOCK = 65536, /* host ids of one jail */
	/* Workspaces are stored under this block; no process ever runs as it. */
	ID_STORE_BASE = 0x20000000,
	/* Block i of the lease table starts at ID_STORE_BASE + i * ID_BLOCK, i from 1. */
	ID_LEASES = 8191,

	/* Inside a jail. */
	ID_INNER_AGENT = 1000,
	ID_INNER_INIT = 65533, /* PID 1: shared with nobody, so nothing inside can signal,
	                          prlimit or trace it, inner root included */
	ID_INNER_TTY = 5,
};

#endif
