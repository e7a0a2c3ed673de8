/*
 * canary.h - the looks that agentbox-canary takes, from inside a jail.
 *
 * Each look judges layers: looked() says that it can, lacks() that something does not hold.  What
 * they try is harmless where it goes through, and is undone.
 */
#ifndef JAIL_CANARY_H
#define JAIL_CANARY_H

#include "proto/canary.h"

#include <stddef.h>

/* ---- canary.c ---- */

void looked(enum layer l);
/* The first reason of each layer is kept. */
void lacks(enum layer l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The beginning of a file as text; its length, or -1. */
long text_of(const char *path, char *buf, size_t size);

/* ---- canary_self.c: what a process is and may ask for ---- */

void look_at_ids(struct canary_record *r);
void look_at_spaces(struct canary_record *r);
void look_at_privilege(void);
void look_at_filter(void);
void look_at_rlimits(void);
void look_at_network(void);
void look_at_processes(struct canary_record *r);

/* ---- canary_files.c: what it sees ---- */

void look_at_mounts(void);
void look_at_proc(void);
void look_at_dev(void);
void look_at_descriptors(void);
void look_at_workspace(void);
void look_at_disk(void);
void look_at_landlock(void);

#endif
