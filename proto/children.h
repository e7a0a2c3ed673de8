/*
 * children.h - what agentboxd hands to the programs it starts.
 *
 * They start as root with an environment of PATH alone (the supervisor also has the
 * variables that config.exposed lists), find their descriptors at these numbers
 * (everything else is closed, stdin and stdout are /dev/null, stderr is the log), make
 * their ring, drop to the ids given in argv, and only then read a byte from anyone.
 * EOF on CHILD_CONTROL means that agentboxd is gone or wants them gone: they exit.
 *
 *	agentbox-supervisor --build ID --uid N --gid N --log-level L --log-format F
 *	agentbox-egress     --build ID --uid N --gid N --log-level L --log-format F
 */
#ifndef PROTO_CHILDREN_H
#define PROTO_CHILDREN_H

enum child_fd {
	CHILD_CONTROL = 3, /* SOCK_SEQPACKET to agentboxd (proto/jail.h, proto/egress.h) */
	/* supervisor only */
	CHILD_LISTEN = 4,       /* the control socket's listener, O_NONBLOCK */
	CHILD_STATE = 5,        /* directory <state>/supervisor, owned by the supervisor's uid: db,
	                           events/, artifacts/ */
	CHILD_SHARE = 6,        /* directory with harnesses/ (bundled), read-only use */
	CHILD_HARNESS_DIRS = 7, /* 7..10: directories of config.harness_dirs, /dev/null where
	                           unused; owned by root, the supervisor only reads */
	CHILD_AGENTS = 11,      /* directory of installed agents, or /dev/null; likewise */
	CHILD_REMOTE = 12,      /* SOCK_SEQPACKET: clients of TCP (proto/listener.h) */
	CHILD_FDS = 13,
};

#endif
