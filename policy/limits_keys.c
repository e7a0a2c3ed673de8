#include "policy/limits_keys.h"
#include "policy/policy.h"

#define LIMIT(key, kind, field, least, most, default_, text)                                       \
	{                                                                                          \
		.name = (key), .type = (kind), .offset = offsetof(struct limits, field),           \
		.min = (least), .max = (most), .none = true, .dflt = (default_), .doc = (text)     \
	}
#define MIB ((uint64_t)1 << 20)

static const struct key io_rows[] = {
        LIMIT("read", KEY_BYTES, io_read_bps, 4096, 0, "none", "Bytes read from disk in a second."),
        LIMIT("write", KEY_BYTES, io_write_bps, 4096, 0, "none",
                "Bytes written to disk in a second."),
};
static const struct key_table io_keys = KEY_TABLE(io_rows);

static const struct key limits_rows[] = {
        /* 32 MiB: a shell and its tools; node alone takes 40 and then says so by itself. */
        LIMIT("memory", KEY_BYTES, memory_bytes, 32 * MIB, 0, "4G",
                "Memory of the jail, page cache and tmpfs included."),
        LIMIT("pids", KEY_COUNT, pids, 8, 4194304, "1024", "Processes and threads."),
        LIMIT("cpus", KEY_CPUS, cpu_milli, 50, 4096000, "2", "Processors, fractions allowed."),
        {.name = "io", .type = KEY_MAP, .sub = &io_keys},
        LIMIT("disk", KEY_BYTES, disk_bytes, MIB, 0, "none", "Workspace and home together."),
        LIMIT("inodes", KEY_COUNT, inodes, 64, 0, "none", "Files of workspace and home."),
        /* 1048576: the kernel's fs.nr_open as it comes. */
        LIMIT("nofile", KEY_COUNT, nofile, 64, 1048576, "65536", "Open files of one process."),
        LIMIT("file", KEY_BYTES, file_bytes, MIB, 0, "16G", "Size of one file."),
        LIMIT("tmp", KEY_BYTES, tmp_bytes, MIB, 0, "512M", "Size of /tmp."),
        LIMIT("shm", KEY_BYTES, shm_bytes, 65536, 0, "256M", "Size of /dev/shm."),
        LIMIT("wall", KEY_TIME, wall_ms, 100, 0, "1h", "The longest run."),
        LIMIT("output", KEY_BYTES, output_bytes, 4096, 0, "none",
                "Standard output and error together."),
};
const struct key_table limits_keys = KEY_TABLE(limits_rows);
