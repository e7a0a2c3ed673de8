/*
 * snapshot.c - what it costs that a workspace starts from a snapshot, by the snapshot's size.
 *
 *	fork	the directories of a new session, its link to the layer, the merged mount
 *	copy	the same files by cp -a, once
 *
 * The first must not depend on the size: the program exits 1 where the median of 20,000 files
 * is 5 ms or more, or three times that of 20 files.
 *
 * Environment: ROUNDS (default 200).  Needs root.
 */
#include "bench/rig.h"
#include "base/ids.h"
#include "jail/layers.h"
#include "jail/merge.h"
#include "jail/mounts.h"
#include "jail/userns.h"

#include <sched.h>

enum { ROUNDS_MAX = 5000, DIR_FILES = 100, FILE_BYTES = 10 << 10, MOST_US = 5000 };
enum { STORE_ID = ID_STORE_BASE + ID_INNER_AGENT, HOST_BASE = ID_STORE_BASE + ID_BLOCK };

struct bench {
	char root[64];
	struct state state;
	int idmap, mntns;
};

static void fill(int tree, int files)
{
	static char bytes[FILE_BYTES];
	char name[32];
	int dir = -1;
	for (int i = 0; i < files; i++) {
		if (i % DIR_FILES == 0) {
			fd_close(dir);
			(void)snprintf(name, sizeof(name), "d%d", i / DIR_FILES);
			if (mkdirat(tree, name, 0755) < 0)
				die("mkdir");
			dir = openat(tree, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		}
		(void)snprintf(name, sizeof(name), "f%d", i);
		auto_close int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		if (fd < 0 || fd_write_all(fd, bytes, sizeof(bytes)) < 0 ||
		        fchown(fd, STORE_ID, STORE_ID) < 0)
			die("file");
	}
	fd_close(dir);
}

static void new_snapshot(struct bench *b, const char *name, int files)
{
	struct err e = {0};
	auto_layers_new struct layers_new n = LAYERS_NEW_NONE;
	struct jail_snapshot facts = {.version = JAIL_SNAPSHOT_VERSION};
	(void)str_copy(facts.name, sizeof(facts.name), name);
	if (layers_begin(&b->state, &n, &e) < 0)
		die(e.text);
	fill(n.tree, files);
	if (layers_land(&b->state, &n, &facts, false, &e) < 0)
		die(e.text);
}

static int64_t fork_once(struct bench *b, const char *snapshot)
{
	struct err e = {0};
	char id[ID_MAX];
	id_new("ses", id);
	int64_t began = clock_mono_us();
	auto_close int dir = session_dir(&b->state, id, &e);
	int workspace, home, lower;
	if (dir < 0 || layers_choose(&b->state, dir, snapshot, &e) < 0 ||
	        session_places(dir, &workspace, &home, &e) < 0 ||
	        merge_prepare(workspace, STORE_ID, &e) < 0 ||
	        layers_open(&b->state, dir, &lower, &e) < 0)
		die(e.text);
	auto_close int upper = mounts_clone(workspace, "", MOUNTS_NSD, b->idmap, &e);
	const struct merge m = {.lower = lower,
	        .upper = upper,
	        .idmap = b->idmap,
	        .mntns = b->mntns,
	        .id = HOST_BASE + ID_INNER_AGENT};
	auto_close int mount = upper < 0 ? -1 : merge_mount(&m, &e);
	int64_t took = clock_mono_us() - began;
	if (mount < 0 || faccessat(mount, "d0/f0", F_OK, 0) < 0)
		die(e.text);
	fd_close(workspace);
	fd_close(home);
	fd_close(lower);
	return took;
}

static int64_t copy_once(struct bench *b, const char *snapshot)
{
	auto_free char *from = xasprintf("%s/state/snapshots/%s/tree", b->root, snapshot);
	auto_free char *to = xasprintf("%s/copy", b->root);
	const char *const argv[] = {"cp", "-a", from, to, NULL};
	int64_t began = clock_mono_us();
	if (rig_wait(rig_spawn(argv, NULL)) != 0)
		die("cp");
	return clock_mono_us() - began;
}

static void open_bench(struct bench *b)
{
	struct err e = {0};
	(void)str_copy(b->root, sizeof(b->root), "/tmp/agentbox-bench-XXXXXX");
	if (!mkdtemp(b->root) || unshare(CLONE_NEWNS) < 0 || mounts_private(&e) < 0)
		die("own mounts (needs root)");
	auto_free char *path = xasprintf("%s/state", b->root);
	const struct userns_map map = {ID_STORE_BASE, HOST_BASE, ID_BLOCK};
	b->mntns = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	if (b->mntns < 0 || state_open(&b->state, path, &e) < 0)
		die(e.text);
	b->idmap = userns_make(&map, &map, false, &e);
	if (b->idmap < 0)
		die(e.text);
}

static void close_bench(struct bench *b)
{
	const char *const argv[] = {"rm", "-rf", b->root, NULL};
	state_close(&b->state);
	fd_close(b->idmap);
	fd_close(b->mntns);
	if (rig_wait(rig_spawn(argv, NULL)) != 0)
		die("rm");
}

int main(void)
{
	static const struct {
		const char *name;
		int files;
	} sizes[] = {{"small", 20}, {"large", 20000}};
	static int64_t took[ARRAY_LEN(sizes)][ROUNDS_MAX];
	int rounds = rig_rounds(200, ROUNDS_MAX);
	struct bench b = {.state = STATE_NONE};
	open_bench(&b);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
		new_snapshot(&b, sizes[i].name, sizes[i].files);
	for (int r = 0; r < rounds; r++)
		for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
			took[i][r] = fork_once(&b, sizes[i].name);
	double p50[ARRAY_LEN(sizes)];
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		p50[i] = percentile(took[i], rounds, 50);
		printf("snapshot_fork_%d_files_p50\t%.0f\tus\n", sizes[i].files, p50[i]);
		printf("snapshot_fork_%d_files_p99\t%.0f\tus\n", sizes[i].files,
		        percentile(took[i], rounds, 99));
	}
	double copy = (double)copy_once(&b, "large");
	printf("snapshot_copy_%d_files\t%.0f\tus\n", sizes[1].files, copy);
	printf("fork_vs_copy\t%.5f\tx\n", p50[1] / copy);
	close_bench(&b);
	return p50[1] >= MOST_US || p50[1] >= 3 * p50[0] ? 1 : 0;
}
