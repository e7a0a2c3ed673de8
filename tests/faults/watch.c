#include "tests/faults/watch.h"
#include "base/fd.h"
#include "base/ids.h"
#include "base/mem.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static pid_t daemon_pid;
static char tree[4096], trash[4096], sessions[4096];
static int lease_fd;

/* ---- /proc ---- */

static char *proc_file(pid_t pid, const char *name)
{
	char path[64], *text = NULL;
	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return file_slurp(path, 16 << 20, &text, NULL) < 0 ? NULL : text;
}

static int entries(const char *path)
{
	DIR *d = opendir(path);
	int n = 0;
	for (struct dirent *at; d && (at = readdir(d));)
		n += at->d_name[0] != '.';
	if (d)
		closedir(d);
	return n;
}

static int fds_of(pid_t pid)
{
	char path[64];
	(void)snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	return entries(path);
}

static int lines_with(const char *text, const char *what)
{
	int n = 0;
	for (const char *p = text; p && (p = strstr(p, what)); p += strlen(what))
		n++;
	return n;
}

static long field(const char *status, const char *key)
{
	const char *at = status ? strstr(status, key) : NULL;
	return at ? strtol(at + strlen(key), NULL, 10) : -1;
}

/* ---- what is held ---- */

static void find_lease_fd(void)
{
	lease_fd = -1;
	for (int fd = 0; fd < 256 && lease_fd < 0; fd++) {
		char path[64], to[256];
		(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", daemon_pid, fd);
		ssize_t n = readlink(path, to, sizeof(to) - 1);
		to[n > 0 ? n : 0] = '\0';
		if (strstr(to, "/agentbox-leases"))
			lease_fd = fd;
	}
}

void watch_open(pid_t daemon, const char *cgroup, const char *state)
{
	(void)snprintf(trash, sizeof(trash), "%s/trash", state);
	(void)snprintf(sessions, sizeof(sessions), "%s/sessions/", state);
	daemon_pid = daemon;
	(void)str_copy(tree, sizeof(tree), cgroup);
	find_lease_fd();
}

bool watch_is_lease_fd(int fd)
{
	return fd == lease_fd;
}

static int locked_blocks(void)
{
	char name[32];
	(void)snprintf(name, sizeof(name), "fdinfo/%d", lease_fd);
	auto_free char *text = proc_file(daemon_pid, name);
	int n = 0;
	/* neighbours are one range: "lock: 1: OFDLCK ADVISORY WRITE -1 00:2a:7 START END" */
	char *save = NULL;
	for (char *line = text ? strtok_r(text, "\n", &save) : NULL; line;
	        line = strtok_r(NULL, "\n", &save)) {
		char *end = strrchr(line, ' ');
		if (strncmp(line, "lock:", 5) != 0 || !end)
			continue;
		*end = '\0';
		char *start = strrchr(line, ' ');
		n += start ? atoi(end + 1) - atoi(start + 1) + 1 : 0;
	}
	return n;
}

static int cgroups_here(void)
{
	struct stat st;
	return stat(tree, &st) < 0 ? 0 : (int)st.st_nlink - 2;
}

/* Calls `each` for the processes of every cgroup below the tree. */
static void for_tasks(void (*each)(pid_t pid, void *ctx), void *ctx)
{
	DIR *d = opendir(tree);
	for (struct dirent *at; d && (at = readdir(d));) {
		auto_free char *path = xasprintf("%s/%s/cgroup.procs", tree, at->d_name);
		auto_free char *text = NULL;
		if (at->d_name[0] == '.' || file_slurp(path, 1 << 20, &text, NULL) < 0)
			continue;
		char *save = NULL;
		for (char *pid = strtok_r(text, "\n", &save); pid;
		        pid = strtok_r(NULL, "\n", &save))
			each(atoi(pid), ctx);
	}
	if (d)
		closedir(d);
}

static void count_task(pid_t pid, void *ctx)
{
	(void)pid;
	++*(int *)ctx;
}

struct search {
	uint32_t base;
	pid_t found;
};

static void compare_block(pid_t pid, void *ctx)
{
	struct search *s = ctx;
	auto_free char *status = proc_file(pid, "status");
	long uid = field(status, "\nUid:\t");
	if (uid >= (long)s->base && uid < (long)s->base + ID_BLOCK &&
	        !strstr(status, "State:\tZ") && !strstr(status, "State:\tX"))
		s->found = pid;
}

pid_t watch_process_of_block(uint32_t i)
{
	struct search s = {.base = (uint32_t)ID_STORE_BASE + i * (uint32_t)ID_BLOCK};
	for_tasks(compare_block, &s);
	return s.found;
}

/* Those of other daemons on the host are not ours. */
static int loops_here(void)
{
	DIR *d = opendir("/sys/block");
	int n = 0;
	for (struct dirent *at; d && (at = readdir(d));) {
		auto_free char *path = xasprintf("/sys/block/%s/loop/backing_file", at->d_name);
		auto_free char *text = NULL;
		if (strncmp(at->d_name, "loop", 4) == 0 &&
		        file_slurp(path, 1 << 16, &text, NULL) == 0)
			n += strncmp(text, sessions, strlen(sessions)) == 0;
	}
	if (d)
		closedir(d);
	return n;
}

static void count_child(pid_t pid, struct held *h)
{
	auto_free char *status = proc_file(pid, "status");
	if (field(status, "\nPPid:\t") != daemon_pid)
		return;
	h->children++;
	h->zombies += strstr(status, "State:\tZ") != NULL;
	if (strstr(status, "Name:\tagentbox-superv"))
		h->fds_supervisor = fds_of(pid);
	if (strstr(status, "Name:\tagentbox-egress"))
		h->fds_egress = fds_of(pid);
}

void watch_count(struct held *h)
{
	*h = (struct held){.fds = fds_of(daemon_pid),
	        .trash = entries(trash),
	        .files = entries(sessions),
	        .loops = loops_here(),
	        .cgroups = cgroups_here(),
	        .leases = locked_blocks()};
	auto_free char *mounts = proc_file(daemon_pid, "mountinfo");
	h->mounts = lines_with(mounts, "\n");
	for_tasks(count_task, &h->tasks);
	DIR *d = opendir("/proc");
	for (struct dirent *at; d && (at = readdir(d));)
		if (atoi(at->d_name) > 0)
			count_child(atoi(at->d_name), h);
	if (d)
		closedir(d);
}

bool held_more(const struct held *now, const struct held *before, char *out, size_t size)
{
	const struct {
		const char *name;
		int now, before;
	} rows[] = {
	        {"descriptors of agentboxd", now->fds, before->fds},
	        /* the log of a session in use stays open: of one whose deletion failed */
	        {"descriptors of the supervisor", now->fds_supervisor, before->fds_supervisor + 1},
	        {"descriptors of egress", now->fds_egress, before->fds_egress},
	        {"children", now->children, before->children},
	        {"zombies", now->zombies, before->zombies},
	        {"cgroups", now->cgroups, before->cgroups},
	        {"uid blocks", now->leases, before->leases},
	        {"mounts", now->mounts, before->mounts},
	        {"things in the trash", now->trash, before->trash},
	        /* and that session's directory and link */
	        {"names in sessions/", now->files, before->files + 2},
	        {"loop devices", now->loops, before->loops},
	        {"processes in cgroups", now->tasks, before->tasks},
	};
	size_t at = 0;
	out[0] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (rows[i].now <= rows[i].before || at >= size)
			continue;
		int n = snprintf(out + at, size - at, "%s%s %d, were %d", at ? "; " : "",
		        rows[i].name, rows[i].now, rows[i].before);
		at += n > 0 ? (size_t)n : 0;
	}
	/* a service that is being started again counts as not settled */
	if (!at && now->children < before->children) {
		(void)snprintf(out, size, "children %d, were %d", now->children, before->children);
		return true;
	}
	return at > 0;
}

long watch_memory_kb(void)
{
	auto_free char *status = proc_file(daemon_pid, "status");
	return field(status, "RssAnon:\t");
}
