/*
 * policyc.h - the command line of agentbox-policyc: the one place that agentboxd, abctl and the
 * program itself read it from.
 *
 *	agentbox-policyc compile --out FD [--config FD[:LABEL]] [--policy NAME=FD[:LABEL]]...
 *		[--uid N --gid N]
 *
 * Compiles root's files into one struct policy_set (policy/policy.h).  The caller opens the files
 * (they may be 0600) and leaves the descriptors open over execve; LABEL is what messages call the
 * file, its path for instance.  The built-in policies are part of the binary; a --policy of the
 * same name replaces one.  `extends` means a built-in, whatever replaces it by name.
 *
 * --out is an unsealed, empty memfd; the whole set is written to it, generation 0.  It is the
 * caller's to seal and to check with policy_set_check.  Without --config the defaults hold.
 * Started as root the program first drops to --uid/--gid (default ID_POLICYC); it then reads
 * everything it needs, /etc/passwd and /etc/group included, and enters a filter that leaves
 * read, write and memory: what parses has no way to open or to connect.
 *
 * Exit codes: 0 with the set written; 1 with "file:line: what" on stderr, one a line, and nothing
 * written; 100 usage; 111 the system.  Notes on things that are not errors begin "note: ".
 *
 *	agentbox-policyc lint policy|config|harness|agent FILE...
 *	agentbox-policyc explain NAME|FILE [syscall NAME|N [ARG...] | host HOST[:PORT] |
 *		path PATH [read|write]]
 *	agentbox-policyc show NAME|FILE
 *	agentbox-policyc suggest NAME OF <REFUSALS		(policy/suggest.h)
 *	agentbox-policyc pack DIR NAME|- DEFAULT		(policy/pack.h)
 *	agentbox-policyc list
 *	agentbox-policyc syscalls [--debug]
 *	agentbox-policyc keys policy|config|harness|agent [--mdoc]
 *
 * These run as whoever calls them, print to stdout and use the same exit codes; a file or name that
 * is not there is usage.  NAME is looked up in POLICYC_DIR, then among the built-ins.
 */
#ifndef POLICY_POLICYC_H
#define POLICY_POLICYC_H

#define POLICYC_DIR "/etc/agentbox/policy"

enum policyc_exit {
	POLICYC_OK = 0,
	POLICYC_REFUSED = 1, /* the files: nothing was written */
	POLICYC_USAGE = 100,
	POLICYC_SYSTEM = 111,
};

#endif
