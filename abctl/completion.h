/*
 * completion.h - completion scripts of shells, made of the table of verbs: a new verb or option
 * completes without a line here.
 */
#ifndef ABCTL_COMPLETION_H
#define ABCTL_COMPLETION_H

/* Each prints the script on stdout. */
void completion_bash(void);
void completion_zsh(void);
void completion_fish(void);

#endif
