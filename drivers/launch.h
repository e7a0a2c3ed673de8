/*
 * launch.h - writing a struct driver_command: argv, environment and files grow
 * one piece at a time.  The lists stay NULL-terminated after each call, so a
 * half-written command can be given to driver_command_done.
 */
#ifndef DRIVERS_LAUNCH_H
#define DRIVERS_LAUNCH_H

#include "drivers/driver.h"

void launch_arg(struct driver_command *c, const char *arg);
void launch_args(struct driver_command *c, const char *const *args); /* NULL: none */
void launch_env(struct driver_command *c, const char *name, const char *value);
/* A file below the agent's home.  `text` is taken. */
void launch_file(struct driver_command *c, const char *path, char *text);

#endif
