/*
 * attach.h - this process's stdin, stdout, stderr, signals and terminal,
 * connected to a command in a jail.
 */
#ifndef ABCTL_ATTACH_H
#define ABCTL_ATTACH_H

#include "client/client.h"
#include "abctl/verb.h"

/* What the command is told of this side's terminal, and what of the rest is shown there. */
struct attach_terminal {
	bool wanted;         /* --tty */
	bool quiet;          /* --quiet: not what was refused to the jail */
	bool tame;           /* nobody asked for this command's stderr: it must not steer */
	unsigned rows, cols; /* of the terminal, 0: unknown */
};
struct attach_terminal attach_terminal(bool wanted);

/* `command` is for messages: what the user called.  Sends the request (with Upgrade), and stays
 * until the command has ended.  Returns abctl's exit code: the command's own, 128 + N for a signal,
 * or one of ours after having said why. */
int attach_run(const struct cli *cli, const char *path, const struct buf *body,
        const struct attach_terminal *t, const char *command);

#endif
