/*
 * layers.h - the layers a jail is made of, as one list: names for humans,
 * bits for records.
 *
 * A policy says for each layer whether it is required (a host that lacks it
 * refuses the run) or only warned about.  Isolation layers are always required
 * in the shipped policies; limits warn in `default`.
 */
#ifndef POLICY_LAYERS_H
#define POLICY_LAYERS_H

#include <stdint.h>

/*     symbol         name             kind       what is missing without it */
#define LAYERS(X)                                                                                  \
	X(USERNS, "userns", ISOLATION, "own user ids")                                             \
	X(MOUNTNS, "mountns", ISOLATION, "own view of files")                                      \
	X(PIDNS, "pidns", ISOLATION, "own process ids")                                            \
	X(NETNS, "netns", ISOLATION, "own network, no route out")                                  \
	X(IPCNS, "ipcns", ISOLATION, "own System V IPC")                                           \
	X(UTSNS, "utsns", ISOLATION, "own host name")                                              \
	X(CGROUPNS, "cgroupns", ISOLATION, "own view of cgroups")                                  \
	X(CGROUP, "cgroup", ISOLATION, "killing and counting a jail as one")                       \
	X(ROOTFS, "rootfs", ISOLATION, "read-only root on a mount tree of our own")                \
	X(INODES, "inodes", ISOLATION, "own inodes of shared files, where locks and watches end")  \
	X(PROC, "proc", ISOLATION, "masked /proc of the jail's own processes")                     \
	X(DEV, "dev", ISOLATION, "minimal /dev")                                                   \
	X(IDMAP, "idmap", ISOLATION, "workspaces stored under ids nobody runs as")                 \
	X(CAPS, "caps", ISOLATION, "no capabilities, locked securebits")                           \
	X(NNP, "nnp", ISOLATION, "no_new_privs")                                                   \
	X(SECCOMP, "seccomp", ISOLATION, "system call filter")                                     \
	X(LANDLOCK, "landlock", ISOLATION, "second layer on files, signals and abstract sockets")  \
	X(KEYRING, "keyring", ISOLATION, "own session keyring")                                    \
	X(RLIMITS, "rlimits", ISOLATION, "per-process resource limits")                            \
	X(EGRESS, "egress", ISOLATION, "the one way out, decided outside the jail")                \
	X(LIMIT_MEMORY, "limit.memory", LIMIT, "memory limit")                                     \
	X(LIMIT_PIDS, "limit.pids", LIMIT, "process limit")                                        \
	X(LIMIT_CPU, "limit.cpu", LIMIT, "cpu limit")                                              \
	X(LIMIT_IO, "limit.io", LIMIT, "io limit")                                                 \
	X(LIMIT_DISK, "limit.disk", LIMIT, "disk limit of the workspace")

enum layer {
#define LAYER_ENUM(sym, name, kind, lack) LAYER_##sym,
	LAYERS(LAYER_ENUM)
#undef LAYER_ENUM
	        LAYER_COUNT
};

#define LAYER_BIT(l) ((uint32_t)1 << (l))
/* One line of what was found of a layer, or of what to do where it is missing. */
enum { LAYER_TEXT_MAX = 200 };

enum layer_kind { LAYER_KIND_ISOLATION, LAYER_KIND_LIMIT };

const char *layer_name(enum layer l);
const char *layer_lack(enum layer l); /* what is missing without it */
enum layer_kind layer_kind(enum layer l);
int layer_by_name(const char *name); /* enum layer, or -1 */
uint32_t layers_of_kind(enum layer_kind kind);

#endif
