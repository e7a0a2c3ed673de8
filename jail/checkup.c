#include "jail/checkup.h"
#include "base/fd.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_MAX = 64 << 10, FLOOR_MAJOR = 6, FLOOR_MINOR = 1 };
static const char absent[] = "not in this kernel";

static void found(struct checkup *c, enum check i, enum check_state state, const char *text)
{
	c->state[i] = (uint8_t)state;
	(void)snprintf(c->found[i], CHECK_FOUND_MAX, "%.*s", (int)strcspn(text, "\n"), text);
}

/* The text is owned, or NULL with the finding told. */
static char *read_file(int root, const char *path, struct checkup *c, enum check i)
{
	auto_free char *text = NULL;
	size_t n = 0;
	int r = file_slurp_at(root, path, FILE_MAX, &text, &n);
	if (r == -ENOENT)
		found(c, i, CHECK_OK, absent);
	else if (r < 0)
		found(c, i, CHECK_ADVICE, strerror(-r));
	return r < 0 ? NULL : take(text);
}

/* ---- numbers ---- */

static const struct {
	enum check check;
	const char *path;
	long least, most;         /* fine */
	long bad_least, bad_most; /* cannot work; none where bad_least is above */
} numbers[] = {
        {CHECK_SMT, "sys/devices/system/cpu/smt/active", 0, 0, 1, 0},
        {CHECK_KSM, "sys/kernel/mm/ksm/run", 0, 0, 1, 0},
        {CHECK_USERNS, "proc/sys/user/max_user_namespaces", 1000, LONG_MAX, 0, 0},
        {CHECK_USERNS_CLONE, "proc/sys/kernel/unprivileged_userns_clone", 0, 0, 1, 0},
        {CHECK_IO_URING, "proc/sys/kernel/io_uring_disabled", 1, 1, 2, 2},
        {CHECK_BPF, "proc/sys/kernel/unprivileged_bpf_disabled", 1, 2, 1, 0},
        {CHECK_PERF, "proc/sys/kernel/perf_event_paranoid", 2, LONG_MAX, 1, 0},
        {CHECK_USERFAULTFD, "proc/sys/vm/unprivileged_userfaultfd", 0, 0, 1, 0},
        {CHECK_KPTR, "proc/sys/kernel/kptr_restrict", 1, 2, 1, 0},
        {CHECK_DMESG, "proc/sys/kernel/dmesg_restrict", 1, 1, 1, 0},
        {CHECK_ASLR, "proc/sys/kernel/randomize_va_space", 2, 2, 1, 0},
        {CHECK_YAMA, "proc/sys/kernel/yama/ptrace_scope", 1, 3, 1, 0},
        {CHECK_TIOCSTI, "proc/sys/dev/tty/legacy_tiocsti", 0, 0, 1, 0},
        {CHECK_SYMLINKS, "proc/sys/fs/protected_symlinks", 1, 1, 1, 0},
        {CHECK_HARDLINKS, "proc/sys/fs/protected_hardlinks", 1, 1, 1, 0},
        {CHECK_FIFOS, "proc/sys/fs/protected_fifos", 1, 2, 1, 0},
        {CHECK_REGULAR, "proc/sys/fs/protected_regular", 1, 2, 1, 0},
        {CHECK_SUID_DUMPABLE, "proc/sys/fs/suid_dumpable", 0, 0, 1, 0},
        {CHECK_MEMFD, "proc/sys/vm/memfd_noexec", 0, 1, 2, 2},
        {CHECK_MODULES, "proc/sys/kernel/modules_disabled", 1, 1, 1, 0},
};

static void read_numbers(int root, struct checkup *c)
{
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		auto_free char *text = read_file(root, numbers[i].path, c, numbers[i].check);
		if (!text)
			continue;
		char *end = NULL;
		long n = strtol(text, &end, 10);
		enum check_state state = CHECK_ADVICE;
		if (end == text)
			state = CHECK_ADVICE;
		else if (n >= numbers[i].least && n <= numbers[i].most)
			state = CHECK_OK;
		else if (n >= numbers[i].bad_least && n <= numbers[i].bad_most)
			state = CHECK_BAD;
		found(c, numbers[i].check, state, text);
	}
}

/* ---- the others ---- */

static void read_kernel(int root, struct checkup *c)
{
	auto_free char *text = read_file(root, "proc/sys/kernel/osrelease", c, CHECK_KERNEL);
	if (!text)
		return;
	char *end = NULL;
	long major = strtol(text, &end, 10), minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
	bool old = major < FLOOR_MAJOR || (major == FLOOR_MAJOR && minor < FLOOR_MINOR);
	found(c, CHECK_KERNEL, old ? CHECK_BAD : CHECK_OK, text);
}

static void read_core_pattern(int root, struct checkup *c)
{
	auto_free char *text =
	        read_file(root, "proc/sys/kernel/core_pattern", c, CHECK_CORE_PATTERN);
	if (text)
		found(c, CHECK_CORE_PATTERN, text[0] == '|' ? CHECK_ADVICE : CHECK_OK, text);
}

/* A heading, then a line for each. */
static void read_swap(int root, struct checkup *c)
{
	auto_free char *text = read_file(root, "proc/swaps", c, CHECK_SWAP);
	if (!text)
		return;
	const char *second = strchr(text, '\n');
	bool none = !second || second[1] == '\0';
	found(c, CHECK_SWAP, none ? CHECK_OK : CHECK_ADVICE, none ? "none" : second + 1);
}

/* Each file says "Not affected", "Mitigation: ..." or "Vulnerable...". */
static void read_cpu(int root, struct checkup *c)
{
	char open[CHECK_FOUND_MAX] = "";
	size_t len = 0, n = 0;
	int fd = openat(
	        root, "sys/devices/system/cpu/vulnerabilities", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		fd_close(fd);
		found(c, CHECK_CPU, CHECK_ADVICE, "the kernel does not tell");
		return;
	}
	for (const struct dirent *e; (e = readdir(d));) {
		auto_free char *text = NULL;
		size_t size = 0;
		if (e->d_name[0] == '.' ||
		        file_slurp_at(dirfd(d), e->d_name, FILE_MAX, &text, &size) < 0 ||
		        strncmp(text, "Vulnerable", 10) != 0)
			continue;
		n++;
		if (len < sizeof(open))
			len += (size_t)snprintf(
			        open + len, sizeof(open) - len, "%s%s", len ? ", " : "", e->d_name);
	}
	closedir(d);
	found(c, CHECK_CPU, n ? CHECK_ADVICE : CHECK_OK, n ? open : "none is open");
}

/* Where nothing gives a jail its share, autogroup does for each session: for a program that makes
 * none of its own. */
static void read_shares(int root, bool cpu_shares, struct checkup *c)
{
	auto_free char *text =
	        read_file(root, "proc/sys/kernel/sched_autogroup_enabled", c, CHECK_SHARES);
	if (cpu_shares)
		found(c, CHECK_SHARES, CHECK_OK, "cpu controller: each jail has its own");
	else
		found(c, CHECK_SHARES, CHECK_ADVICE,
		        text && text[0] == '1' ? "no cpu controller: autogroup's, by session"
		                               : "no cpu controller, no autogroup: by process");
}

void checkup_read(const char *root, bool cpu_shares, struct checkup *ret)
{
	memset(ret, 0, sizeof(*ret));
	auto_close int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	read_kernel(fd, ret);
	read_cpu(fd, ret);
	read_shares(fd, cpu_shares, ret);
	read_swap(fd, ret);
	read_core_pattern(fd, ret);
	read_numbers(fd, ret);
}
