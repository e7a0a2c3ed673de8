#include "policy/limits_keys.h"
#include "policy/policy.h"

#include <string.h>

#define MIB ((uint64_t)1 << 20)

/* key, type, field, least, most, default, text */
#define IO_LIMITS(X)                                                                               \
	X("read", KEY_BYTES, io_read_bps, 4096, 0, "none", "Bytes read from disk in a second.")    \
	X("write", KEY_BYTES, io_write_bps, 4096, 0, "none", "Bytes written to disk in a second.")

#define LIMITS_BEFORE_IO(X)                                                                        \
	X("memory", KEY_BYTES, memory_bytes, LIMITS_MEMORY_LEAST, 0, "4G",                         \
	        "Memory of the jail, page cache and tmpfs included.")                              \
	X("pids", KEY_COUNT, pids, LIMITS_PIDS_LEAST, LIMITS_PIDS_MOST, "1024",                    \
	        "Processes and threads.")                                                          \
	X("cpus", KEY_CPUS, cpu_milli, LIMITS_CPUS_LEAST, LIMITS_CPUS_MOST, "2",                   \
	        "Processors, fractions allowed.")

/* nofile, 1048576: the kernel's fs.nr_open as it comes. */
#define LIMITS_AFTER_IO(X)                                                                         \
	X("disk", KEY_BYTES, disk_bytes, LIMITS_DISK_LEAST, 0, "none",                             \
	        "Workspace and home together.")                                                    \
	X("inodes", KEY_COUNT, inodes, LIMITS_INODES_LEAST, 0, "none",                             \
	        "Files of workspace and home.")                                                    \
	X("nofile", KEY_COUNT, nofile, 64, 1048576, "65536", "Open files of one process.")         \
	X("file", KEY_BYTES, file_bytes, MIB, 0, "16G", "Size of one file.")                       \
	X("tmp", KEY_BYTES, tmp_bytes, MIB, 0, "512M", "Size of /tmp.")                            \
	X("shm", KEY_BYTES, shm_bytes, 65536, 0, "256M", "Size of /dev/shm.")                      \
	X("wall", KEY_TIME, wall_ms, 100, 0, "1h", "The longest run.")                             \
	X("output", KEY_BYTES, output_bytes, LIMITS_OUTPUT_LEAST, 0, "none",                       \
	        "Standard output and error together.")

#define ROW(key, kind, field, least, most, may_be_none, default_, text)                            \
	{.name = (key),                                                                            \
	        .type = (kind),                                                                    \
	        .offset = offsetof(struct limits, field),                                          \
	        .min = (least),                                                                    \
	        .max = (most),                                                                     \
	        .none = (may_be_none),                                                             \
	        .dflt = (default_),                                                                \
	        .doc = (text)},
#define POLICY_ROW(key, kind, field, least, most, default_, text)                                  \
	ROW(key, kind, field, least, most, true, default_, text)
#define NARROW_ROW(key, kind, field, least, most, default_, text)                                  \
	ROW(key, kind, field, least, most, false, default_, text)

static const struct key io_rows[] = {IO_LIMITS(POLICY_ROW)};
static const struct key_table io_keys = KEY_TABLE(io_rows);
static const struct key limits_rows[] = {
        LIMITS_BEFORE_IO(POLICY_ROW){.name = "io", .type = KEY_MAP, .sub = &io_keys},
        LIMITS_AFTER_IO(POLICY_ROW)};
const struct key_table limits_keys = KEY_TABLE(limits_rows);

static const struct key narrow_io_rows[] = {IO_LIMITS(NARROW_ROW)};
static const struct key_table narrow_io_keys = KEY_TABLE(narrow_io_rows);
static const struct key narrow_rows[] = {
        LIMITS_BEFORE_IO(NARROW_ROW){.name = "io", .type = KEY_MAP, .sub = &narrow_io_keys},
        LIMITS_AFTER_IO(NARROW_ROW)};
const struct key_table narrow_limits_keys = KEY_TABLE(narrow_rows);

static const struct key *row_of(const struct key_table *t, size_t offset)
{
	for (const struct key *k = t->keys; k < t->keys + t->n; k++) {
		const struct key *found = k->sub ? row_of(k->sub, offset) : k;
		if (found && found->offset == offset)
			return found;
	}
	return NULL;
}

const struct key *limits_row(size_t offset)
{
	return row_of(&narrow_limits_keys, offset);
}

const struct key *limits_named(const char *name)
{
	for (size_t i = 0; i < narrow_limits_keys.n; i++)
		if (strcmp(narrow_limits_keys.keys[i].name, name) == 0)
			return &narrow_limits_keys.keys[i];
	return NULL;
}
