#include "jail/kit.h"
#include "base/fd.h"
#include "base/ids.h"
#include "base/mem.h"
#include "jail/authority.h"
#include "jail/home.h"
#include "jail/mounts.h"
#include "jail/root.h"
#include "jail/userns.h"

#include <assert.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* tmpfs sizes where the policy sets no limit: memory.max is then the only ceiling. */
#define DEFAULT_TMP  ((uint64_t)1 << 30)
#define DEFAULT_SHM  ((uint64_t)256 << 20)
#define DEFAULT_DISK ((uint64_t)2 << 30)
#define RUN_BYTES    ((uint64_t)4 << 20)
/* One inode of tmpfs costs about 1 KiB of kernel memory; node_modules of a large project has
 * 100,000 files. */
enum { DEFAULT_INODES = 200000, SMALL_INODES = 16384 };
/* Terminals of one jail.  All instances share kernel.pty.max (4096 as it comes), the host's logins
 * too. */
#define TERMINALS "64"

static uint64_t or_default(uint64_t v, uint64_t dflt)
{
	return v ? v : dflt;
}

uint64_t kit_disk_bytes(const struct limits *l)
{
	return or_default(l->disk_bytes, DEFAULT_DISK);
}

uint64_t kit_disk_inodes(const struct limits *l)
{
	return or_default(l->inodes, DEFAULT_INODES);
}

static uint64_t mount_size(enum kit_mount m, const struct limits *l)
{
	switch (m) {
	case KIT_SHM:
		return or_default(l->shm_bytes, DEFAULT_SHM);
	case KIT_TMP:
		return or_default(l->tmp_bytes, DEFAULT_TMP);
	case KIT_HOME:
	case KIT_WORKSPACE:
		return kit_disk_bytes(l);
	case KIT_RUN:
		return RUN_BYTES;
	case KIT_DEVPTS:
	case KIT_MOUNTS:
		break;
	}
	return 0;
}

static uint64_t mount_inodes(enum kit_mount m, const struct limits *l)
{
	return m == KIT_HOME || m == KIT_WORKSPACE || m == KIT_TMP ? kit_disk_inodes(l)
	                                                           : SMALL_INODES;
}

/* Who owns the root directory of each, as inner ids, and its mode.  Home and workspace are open to
 * the agent's group, which is how inner root without capabilities gets in. */
static const struct {
	uint32_t id;
	const char *mode;
	uint64_t attrs;
} roots[KIT_MOUNTS] = {
        [KIT_SHM] = {0, "1777", MOUNTS_NSD | MOUNT_ATTR_NOEXEC},
        [KIT_TMP] = {0, "1777", MOUNTS_NSD},
        [KIT_RUN] = {0, "1777", MOUNTS_NSD | MOUNT_ATTR_NOEXEC},
        [KIT_HOME] = {ID_INNER_AGENT, "0770", MOUNTS_NSD},
        [KIT_WORKSPACE] = {ID_INNER_AGENT, "0770", MOUNTS_NSD},
};

static int make_devpts(uint32_t base, struct err *e)
{
	char gid[16];
	(void)snprintf(gid, sizeof(gid), "%u", base + ID_INNER_TTY);
	const char *const options[] = {
	        "ptmxmode", "0666", "mode", "0620", "gid", gid, "max", TERMINALS, NULL};
	return mounts_new("devpts", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, options, e);
}

static int make_tmpfs(enum kit_mount m, uint32_t base, const struct limits *l, struct err *e)
{
	char size[24], inodes[24], id[16];
	(void)snprintf(size, sizeof(size), "%llu", (unsigned long long)mount_size(m, l));
	(void)snprintf(inodes, sizeof(inodes), "%llu", (unsigned long long)mount_inodes(m, l));
	(void)snprintf(id, sizeof(id), "%u", base + roots[m].id);
	const char *const options[] = {"size", size, "nr_inodes", inodes, "mode", roots[m].mode,
	        "uid", id, "gid", id, NULL};
	return mounts_new("tmpfs", roots[m].attrs, options, e);
}

static int make_mounts(struct kit *k, struct err *e)
{
	for (int m = 0; m < KIT_MOUNTS; m++) {
		k->mounts[m] = m == KIT_DEVPTS
		                       ? make_devpts(k->base, e)
		                       : make_tmpfs((enum kit_mount)m, k->base, &k->limits, e);
		if (k->mounts[m] < 0)
			return err_wrap(e, "layer %s", m == KIT_DEVPTS ? "dev" : "mountns");
	}
	return 0;
}

static int make_users(struct kit *k, struct err *e)
{
	const struct userns_map own = {0, k->base, ID_BLOCK};
	const struct userns_map stored = {ID_STORE_BASE, k->base, ID_BLOCK};
	k->userns = userns_make(&own, &own, true, e);
	if (k->userns < 0)
		return k->userns;
	/* Nobody ever lives in this one, so there is nothing to seal (eight files of /proc/sys). */
	k->idmap = userns_make(&stored, &stored, false, e);
	return k->idmap < 0 ? k->idmap : 0;
}

/* As net_make: go there, keep descriptors, come back or die. */
static int make_ipc_uts(struct kit *k, struct err *e)
{
	auto_close int home_ipc = open("/proc/self/ns/ipc", O_RDONLY | O_CLOEXEC);
	auto_close int home_uts = open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC);
	if (home_ipc < 0 || home_uts < 0)
		return err_errno(e, "layer ipcns: /proc/self/ns");
	if (unshare(CLONE_NEWIPC | CLONE_NEWUTS) < 0)
		return err_errno(e, "layer ipcns: the kernel refuses ipc and uts namespaces");
	int r = sethostname("jail", 4) < 0 ? err_errno(e, "layer utsns: sethostname") : 0;
	k->ipcns = open("/proc/self/ns/ipc", O_RDONLY | O_CLOEXEC);
	k->utsns = open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC);
	if (r == 0 && (k->ipcns < 0 || k->utsns < 0))
		r = err_errno(e, "layer ipcns: /proc/self/ns");
	struct home ipc = {0}, uts = {0};
	while (home_retry(&ipc, setns(home_ipc, CLONE_NEWIPC), "ipc namespace"))
		;
	while (home_retry(&uts, setns(home_uts, CLONE_NEWUTS), "uts namespace"))
		;
	return r;
}

static int make_authority(struct kit *k, const struct kit_spec *spec, struct err *e)
{
	const struct policy *p = spec->policy;
	if (!spec->authority || !rules_terminate(p->rules, p->nrules))
		return 0;
	k->authority = authority_make(spec->authority, p, e);
	return k->authority < 0 ? k->authority : 0;
}

static int make_root(struct kit *k, const struct kit_spec *spec, struct err *e)
{
	const struct root_mount mounts[] = {{k->mounts[KIT_DEVPTS], "/dev/pts"},
	        {k->mounts[KIT_SHM], "/dev/shm"}, {k->mounts[KIT_TMP], "/tmp"},
	        {k->mounts[KIT_RUN], "/run"}};
	k->mntns = root_make(spec->policy, spec->root, mounts, ARRAY_LEN(mounts), k->authority, e);
	return k->mntns < 0 ? k->mntns : 0;
}

struct kit *kit_blank(const struct cgroup_tree *tree, const struct closer *closer)
{
	struct kit *k = xnew(struct kit);
	*k = (struct kit){.userns = -1,
	        .idmap = -1,
	        .netns = -1,
	        .ipcns = -1,
	        .utsns = -1,
	        .mntns = -1,
	        .authority = -1,
	        .cgroup = CGROUP_NONE,
	        .tree = tree,
	        .closer = closer};
	memset(k->listeners, -1, sizeof(k->listeners));
	memset(k->mounts, -1, sizeof(k->mounts));
	net_ports_init(&k->ports, NULL, 0);
	return k;
}

struct kit *kit_make(const struct kit_spec *spec, struct err *e)
{
	assert(spec->base >= ID_STORE_BASE + ID_BLOCK && spec->base % ID_BLOCK == 0);
	struct kit *k = kit_blank(spec->tree, spec->closer);
	k->base = spec->base;
	k->limits = *spec->limits;
	net_ports_init(&k->ports, spec->ports, spec->nports);
	int r = make_users(k, e);
	if (r == 0) {
		k->netns = net_make(k->listeners, &k->ports, e);
		r = k->netns < 0 ? k->netns : make_ipc_uts(k, e);
	}
	if (r == 0)
		r = make_authority(k, spec, e);
	if (r == 0)
		r = make_mounts(k, e);
	if (r == 0)
		r = make_root(k, spec, e);
	if (r == 0)
		r = cgroup_make(k->tree, spec->name, &k->limits, &k->cgroup, e);
	if (r < 0) {
		kit_free(k);
		return NULL;
	}
	return k;
}

void kit_free(struct kit *k)
{
	if (!k)
		return;
	cgroup_remove(k->tree, &k->cgroup);
	for (int i = 0; i < EGRESS_LISTENERS; i++) {
		if (i == EGRESS_WATCH)
			closer_give(k->closer, k->listeners[i]);
		else
			fd_close(k->listeners[i]);
	}
	net_ports_done(&k->ports);
	for (int m = 0; m < KIT_MOUNTS; m++)
		fd_close(k->mounts[m]);
	fd_close(k->authority);
	fd_close(k->userns);
	fd_close(k->idmap);
	fd_close(k->netns);
	fd_close(k->ipcns);
	fd_close(k->utsns);
	/* The last reference: every mount of the jail goes with it, and the kernel waits. */
	closer_give(k->closer, k->mntns);
	free(k);
}

static int fit_mount(struct kit *k, enum kit_mount m, const struct limits *l, struct err *e)
{
	uint64_t bytes = mount_size(m, l), inodes = mount_inodes(m, l);
	if (bytes == mount_size(m, &k->limits) && inodes == mount_inodes(m, &k->limits))
		return 0;
	char size[24], nr[24];
	(void)snprintf(size, sizeof(size), "%llu", (unsigned long long)bytes);
	(void)snprintf(nr, sizeof(nr), "%llu", (unsigned long long)inodes);
	const char *const options[] = {"size", size, "nr_inodes", nr, NULL};
	return mounts_reconfigure(k->mounts[m], options, e);
}

int kit_fit(struct kit *k, const struct limits *l, struct err *e)
{
	if (memcmp(&k->limits, l, sizeof(*l)) == 0)
		return 0;
	int r = 0;
	for (int m = KIT_SHM; r == 0 && m < KIT_MOUNTS; m++)
		r = fit_mount(k, (enum kit_mount)m, l, e);
	if (r == 0)
		r = cgroup_limit(k->tree, &k->cgroup, l, e);
	if (r == 0)
		k->limits = *l;
	return r;
}
