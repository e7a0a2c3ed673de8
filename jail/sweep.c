#include "jail/sweep.h"
#include "base/fd.h"
#include "base/mem.h"
#include "jail/mountinfo.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

void sweep_tree_name(const char *state, char out[32])
{
	uint64_t h = 14695981039346656037ull; /* FNV-1a, 64 bits */
	for (const char *p = state; *p; p++)
		h = (h ^ (unsigned char)*p) * 1099511628211ull;
	snprintf(out, 32, "agentbox-%016llx", (unsigned long long)h);
}

/* Strictly inside the directory of one session or of one thing in the trash.  A mount on the state
 * directory, on sessions/ or beside them is the administrator's disk, and stays. */
static bool is_ours(const char *state, const char *at)
{
	static const char *const parts[] = {"/sessions/", "/trash/"};
	size_t n = strlen(state);
	if (strncmp(at, state, n) != 0)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (strncmp(at + n, parts[i], strlen(parts[i])) == 0)
			return at[n + strlen(parts[i])] != '\0';
	return false;
}

int sweep_mounts(const char *state, struct err *e)
{
	auto_free char *text = NULL;
	int r = file_slurp("/proc/self/mountinfo", MOUNTINFO_MAX, &text, NULL);
	if (r < 0)
		return err_set(e, r, "mountinfo: %s", strerror(-r));
	int cleared = 0;
	/* From the last line up: a later mount may lie on an earlier one. */
	for (char *end = text + strlen(text); end > text;) {
		char *line = end - 1;
		*line = '\0'; /* the line feed */
		while (line > text && line[-1] != '\n')
			line--;
		end = line;
		char *at = mountinfo_point(line, NULL);
		if (!at || !is_ours(state, at))
			continue;
		if (umount2(at, MNT_DETACH | UMOUNT_NOFOLLOW) < 0)
			return err_errno(e, "unmounting %s, left by a former daemon", at);
		cleared++;
	}
	return cleared;
}

static bool backed_by(int sys, const char *loop, const char *state)
{
	char path[64];
	auto_free char *file = NULL;
	if (snprintf(path, sizeof(path), "%.32s/loop/backing_file", loop) >= (int)sizeof(path) ||
	        file_slurp_at(sys, path, 8192, &file, NULL) < 0)
		return false; /* not in use */
	size_t n = strlen(state);
	return strncmp(file, state, n) == 0 && file[n] == '/';
}

int sweep_loops(const char *state, struct err *e)
{
	DIR *d = opendir("/sys/block");
	if (!d)
		return 0; /* no sysfs, no way for us to have made one */
	int cleared = 0, r = 0;
	for (struct dirent *at = readdir(d); at && r == 0; at = readdir(d)) {
		if (strncmp(at->d_name, "loop", 4) != 0 || !backed_by(dirfd(d), at->d_name, state))
			continue;
		char path[64];
		snprintf(path, sizeof(path), "/dev/%.32s", at->d_name);
		auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || ioctl(fd, LOOP_CLR_FD) < 0)
			r = err_errno(e, "freeing %s, left by a former daemon", path);
		else
			cleared++;
	}
	closedir(d);
	return r < 0 ? r : cleared;
}
