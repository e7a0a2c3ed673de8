/*
 * watch.h - what a daemon holds, counted from outside.
 *
 * Of agentboxd, its children and its cgroup subtree: everything that a jail costs and that has to
 * be back after its end.
 */
#ifndef FAULTS_WATCH_H
#define FAULTS_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct held {
	int fds;            /* of agentboxd */
	int fds_supervisor; /* of its children */
	int fds_egress;
	int children, zombies;
	int cgroups; /* in the subtree */
	int leases;  /* blocks locked in the lease table */
	int mounts;  /* in agentboxd's mount namespace */
	int trash;   /* what waits to be deleted */
	int files;   /* names of sessions and their directories */
	int loops;   /* loop devices on files of the state */
	int tasks;   /* processes whose uid is in the lease range and which live in the subtree */
};

void watch_open(pid_t daemon, const char *cgroup, const char *state);
void watch_count(struct held *h);
bool held_more(const struct held *now, const struct held *before, char *out, size_t size);
long watch_memory_kb(void); /* of agentboxd: anonymous and resident */
bool watch_is_lease_fd(int fd);
/* A living process of the subtree under an id of block i, or 0. */
pid_t watch_process_of_block(uint32_t i);

#endif
