/*
 * kit.h - the unit of the pool: everything of a jail that can be made before
 * anyone asks for it.
 *
 * For one uid block and one policy: user namespace, the namespace that idmapped workspaces
 * use, network namespace with its listeners, ipc and uts namespaces, the root with the
 * mounts that every jail has, cgroup.  kit_make takes about two milliseconds;
 * launch_jail then only joins and attaches what is the run's own.  The calling process must be
 * single-threaded: it enters new namespaces for a moment.  The caller owns the lease of the block
 * and gives it back after kit_free.
 */
#ifndef JAIL_KIT_H
#define JAIL_KIT_H

#include "base/err.h"
#include "jail/cgroup.h"
#include "jail/closer.h"
#include "jail/net.h"
#include "policy/policy.h"
#include "proto/egress.h"

/* Own tmpfs and devpts instances, with their owners fixed at birth.  Home and workspace are
 * detached: a session brings others. */
enum kit_mount { KIT_DEVPTS, KIT_SHM, KIT_TMP, KIT_RUN, KIT_HOME, KIT_WORKSPACE, KIT_MOUNTS };

struct kit {
	uint32_t base; /* first host id of the block */
	int userns;    /* owned, as all fds here; "0 BASE 65536" */
	int idmap;     /* user namespace "ID_STORE_BASE BASE 65536" for idmapped mounts */
	int netns, ipcns, utsns;
	int mntns;                       /* root.h; keeps the files reachable after the end */
	int listeners[EGRESS_LISTENERS]; /* for agentbox-egress; keep them while it may restart */
	struct net_ports ports;          /* likewise */
	int authority; /* its memfd, likewise (authority.h); -1: its policy terminates nothing */
	int mounts[KIT_MOUNTS];
	struct limits limits; /* what mounts and cgroup were made for */
	struct cgroup cgroup;
	const struct cgroup_tree *tree; /* borrowed: for the life of the kit */
	const struct closer *closer;    /* likewise, or NULL */
};

struct kit_spec {
	const struct policy *policy; /* borrowed for the call, as the next two */
	const struct template *root; /* of that policy */
	const struct limits *limits;
	uint32_t base;
	const uint16_t *ports; /* of the policy; nports of them */
	uint32_t nports;
	const char *name; /* of the cgroup; unique among live jails, one path component */
	/* The program that makes authorities; NULL: whatever the policy says, there is none. */
	const char *authority;
	const struct cgroup_tree *tree;
	const struct closer *closer; /* NULL: kit_free waits for the kernel (15 ms) */
};

/* Size of a jail's own tmpfs that takes the place of a disk. */
uint64_t kit_disk_bytes(const struct limits *l);
uint64_t kit_disk_inodes(const struct limits *l);

/* Returns owned, or NULL with *e set and nothing left behind. */
struct kit *kit_make(const struct kit_spec *spec, struct err *e);
/* Nothing in it yet; to be filled in with what a former agentboxd had.  Returns owned. */
struct kit *kit_blank(const struct cgroup_tree *tree, const struct closer *closer);
/* Closes everything and removes the cgroup (killing what is in it).  NULL is fine. */
void kit_free(struct kit *k);

/* Makes tmpfs sizes and cgroup limits those of `l` (a run may be narrower than its pool). */
MUST_USE int kit_fit(struct kit *k, const struct limits *l, struct err *e);

#endif
