#include "jail/disk.h"
#include "base/fd.h"
#include "base/mem.h"
#include "jail/image.h"
#include "jail/projects.h"

#include <errno.h>
#include <sys/statfs.h>

#define KIB ((uint64_t)1 << 10)

void disk_in_memory(struct disk *k, int home, int workspace, const struct limits *l)
{
	k->method = JAIL_DISK_TMPFS;
	k->memory[0] = home;
	k->memory[1] = workspace;
	k->bytes = l->disk_bytes;
	k->inodes = l->inodes;
}

static int memory_usage(const struct disk *k, struct image_usage *ret)
{
	*ret = (struct image_usage){.bytes_left = UINT64_MAX, .inodes_left = UINT64_MAX};
	for (size_t i = 0; i < ARRAY_LEN(k->memory); i++) {
		struct statfs fs;
		if (fstatfs(k->memory[i], &fs) < 0)
			return -errno;
		uint64_t block = (uint64_t)fs.f_bsize, left = (uint64_t)fs.f_bavail * block;
		ret->bytes += (uint64_t)(fs.f_blocks - fs.f_bfree) * block;
		ret->inodes += fs.f_files - fs.f_ffree;
		ret->bytes_left = left < ret->bytes_left ? left : ret->bytes_left;
		ret->inodes_left = fs.f_ffree < ret->inodes_left ? fs.f_ffree : ret->inodes_left;
	}
	return 0;
}

static int usage(const struct disk *k, struct image_usage *ret)
{
	struct projects_usage q;
	int r = -ENODATA;
	if (k->method == JAIL_DISK_TMPFS)
		return memory_usage(k, ret);
	if (k->tree >= 0)
		return image_usage(k->tree, ret, NULL);
	if (k->method == JAIL_DISK_QUOTA)
		r = projects_usage(k->state, k->project, &q, NULL);
	if (r == 0)
		*ret = (struct image_usage){.bytes = q.bytes,
		        .inodes = q.inodes,
		        .bytes_left = disk_left(k->bytes, q.bytes),
		        .inodes_left = disk_left(k->inodes, q.inodes)};
	return r;
}

/* What is left when a write has failed is what the kernel asks room for at once: a page, or up to
 * 2 MiB in a large folio, and some blocks that say where they are. */
static uint64_t nearly(uint64_t limit)
{
	uint64_t part = limit / 16;
	return (part > 2048 * KIB ? 2048 * KIB : part) + 64 * KIB;
}

uint32_t disk_look(struct disk *k)
{
	struct image_usage u = {.bytes = 0};
	if (usage(k, &u) < 0)
		return 0;
	k->used_bytes = u.bytes;
	k->left_bytes = u.bytes_left;
	if (u.bytes > k->peak_bytes)
		k->peak_bytes = u.bytes;
	if (u.inodes > k->peak_inodes)
		k->peak_inodes = u.inodes;
	uint32_t met = 0;
	if (k->bytes && u.bytes_left <= nearly(k->bytes))
		met |= JAIL_LIMIT_DISK;
	if (k->inodes && u.inodes_left == 0)
		met |= JAIL_LIMIT_INODES;
	met &= ~k->told;
	k->told |= met;
	return met;
}

/* Less is not worth a process. */
#define LOOSE (64 * KIB)

bool disk_is_loose(const struct disk *k)
{
	return k->above && k->left_bytes >= LOOSE;
}

static int work_tighten(const void *arg, struct job_out *out, struct err *e)
{
	const struct disk *k = arg;
	(void)out;
	return image_limit(k->tree, k->bytes, e);
}

int disk_tighten(const struct disk *k, struct job *ret, struct err *e)
{
	const struct job_spec spec = {work_tighten, k, &k->tree, 1};
	return job_start(&spec, ret, e);
}

void disk_tightened(struct disk *k, int result)
{
	k->above = result <= 0;
}

void disk_done(struct disk *k, const struct closer *closer)
{
	fd_close(take_fd(k->workspace));
	fd_close(take_fd(k->home));
	fd_close(take_fd(k->lower));
	if (k->tree >= 0)
		closer_give(closer, take_fd(k->tree));
}
