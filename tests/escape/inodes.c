/*
 * What the kernel keeps by inode, of files that two jails see: does it reach from one to the other?
 *
 * `inodes hold` opens all that it can of a sample of every mount, takes each lock that it is given,
 * watches each inode, says "held", and keeps it all until its stdin ends; then it says what it saw
 * of others.  `inodes try`, in another jail meanwhile, opens the same, says which locks are
 * somebody else's, and reads a little of each.
 */
#include "attempt.h"

#include <dirent.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>

enum { PATHS = 2000, EACH = 24, TEXT = 64 << 10, TRIES = 250, PAUSE_US = 20000 };
#define WATCHED (IN_OPEN | IN_ACCESS | IN_CLOSE | IN_MODIFY | IN_ATTRIB)

static char *paths[PATHS];
static int npaths;

/* ---- what is looked at ---- */

/* Pipes are its own stdio: who holds the other end as well never sees the end of it. */
static void add(const char *path)
{
	struct stat st;
	if (stat(path, &st) == 0 && !S_ISFIFO(st.st_mode) && npaths < PATHS)
		paths[npaths++] = strdup(path);
}

static int is_sampled(const struct dirent *e)
{
	/* processes are each jail's own, and differ */
	return e->d_name[0] != '.' && (e->d_name[0] < '0' || e->d_name[0] > '9');
}

/* Itself and the first of what is in it, by name. */
static void sample(const char *dir, int most)
{
	struct dirent **entries;
	add(dir);
	int n = scandir(dir, &entries, is_sampled, alphasort);
	for (int i = 0; i < n; i++) {
		char path[512];
		(void)snprintf(path, sizeof(path), "%s/%s", strcmp(dir, "/") == 0 ? "" : dir,
		        entries[i]->d_name);
		if (i < most)
			add(path);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
}

static void sample_mounts(void)
{
	static char text[TEXT];
	int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	ssize_t n = 0, got;
	while (fd >= 0 && (got = read(fd, text + n, sizeof(text) - 1 - (size_t)n)) > 0)
		n += got;
	char *save = NULL;
	for (char *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
		char at[512];
		if (sscanf(l, "%*s %*s %*s %*s %511s", at) == 1)
			sample(at, EACH);
	}
	close(fd);
}

static void sample_all(void)
{
	static const char *const more[] = {"/usr/bin", "/usr/lib", "/usr/share", "/etc", "/dev",
	        "/proc/sys/kernel", "/proc/sys/fs", "/proc/self/ns", "/var", "/var/lib", "/home",
	        "/root", "/opt", "/sys"};
	sample_mounts();
	for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++)
		sample(more[i], EACH);
	sample("/proc", PATHS);
	add("/usr/bin/env");
	add("/usr/bin/sh");
}

/* For writing where that is allowed: a lock against readers takes it.  Nothing that could wait, and
 * no terminal but by its name. */
static int open_any(const char *path)
{
	int fd = open(path, O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd >= 0 ? fd : open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static bool is_writable(int fd)
{
	return (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR;
}

static int lock_record(int fd)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
	return fcntl(fd, F_OFD_SETLK, &l);
}

/* ---- the one who has ---- */

static int notified;

static void on_notice(int sig)
{
	(void)sig;
	notified++;
}

/* Shared: where files are, another such test on this host may hold the same.  What tries for them
 * there lets go in a moment. */
static bool lock_shared(int fd)
{
	static int tries = TRIES;
	int r;
	while ((r = flock(fd, LOCK_SH | LOCK_NB)) < 0 && errno == EWOULDBLOCK && tries > 0) {
		tries--;
		(void)usleep(PAUSE_US);
	}
	return r == 0;
}

static void take(int fd, int *locks, int *leases)
{
	*locks += lock_shared(fd);
	*locks += is_writable(fd) && lock_record(fd) == 0;
	*leases += fcntl(fd, F_SETLEASE, F_RDLCK) == 0;
	if (fcntl(fd, F_SETSIG, SIGUSR1) == 0)
		(void)fcntl(fd, F_NOTIFY, DN_ACCESS | DN_MODIFY | DN_ATTRIB | DN_MULTISHOT);
}

/* Which path a watch is of. */
static void note(int n, int *wd_path, bool *seen)
{
	char events[16384] __attribute__((aligned(8)));
	ssize_t got;
	while ((got = read(n, events, sizeof(events))) > 0)
		for (ssize_t at = 0; at < got;) {
			struct inotify_event *e = (void *)(events + at);
			if (seen && e->wd > 0 && e->wd < PATHS)
				seen[wd_path[e->wd]] = true;
			at += (ssize_t)(sizeof(*e) + e->len);
		}
}

static int hold(void)
{
	static int wd_path[PATHS];
	static bool seen[PATHS];
	int locks = 0, leases = 0, watches = 0;
	int n = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	(void)signal(SIGUSR1, on_notice);
	for (int i = 0; i < npaths; i++) {
		int fd = open_any(paths[i]); /* kept */
		if (fd >= 0)
			take(fd, &locks, &leases);
	}
	(void)lock_shared(eventfd(0, 0));
	for (int i = 0; i < npaths; i++) {
		int wd = inotify_add_watch(n, paths[i], WATCHED);
		watches += wd > 0;
		if (wd > 0 && wd < PATHS)
			wd_path[wd] = i;
	}
	note(n, wd_path, NULL);
	notified = 0;
	printf("held: %d paths, %d locks, %d leases, %d watches\n", npaths, locks, leases, watches);
	fflush(stdout);
	struct pollfd p = {0, POLLIN, 0};
	char byte;
	while (poll(&p, 1, 50) <= 0 || read(0, &byte, 1) > 0)
		note(n, wd_path, seen);
	note(n, wd_path, seen);
	for (int i = 0; i < npaths; i++)
		if (seen[i])
			printf("saw %s\n", paths[i]);
	if (notified)
		printf("saw a directory, by signal\n");
	return 0;
}

/* ---- the other one ---- */

static void use(const char *path, int fd)
{
	char byte;
	(void)!read(fd, &byte, 1);
	DIR *d = opendir(path);
	if (d) {
		(void)readdir(d);
		closedir(d);
	}
}

static int try(void)
{
	int opened = 0;
	for (int i = 0; i < npaths; i++) {
		int fd = open_any(paths[i]);
		if (fd < 0)
			continue;
		opened++;
		/* a lock of this program's own, where two names are one inode: another open file */
		if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
			printf("locked %s\n", paths[i]);
		if (is_writable(fd) && lock_record(fd) < 0 && (errno == EAGAIN || errno == EACCES))
			printf("record-locked %s\n", paths[i]);
		use(paths[i], fd);
		close(fd);
	}
	printf("tried: %d of %d\n", opened, npaths);
	int event = eventfd(0, 0);
	printf("a descriptor without a file: %s\n",
	        flock(event, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK ? "locked" : "free");
	return 0;
}

int main(int argc, char **argv)
{
	sample_all();
	if (argc > 1 && strcmp(argv[1], "hold") == 0)
		return hold();
	if (argc > 1 && strcmp(argv[1], "try") == 0)
		return try();
	(void)fprintf(stderr, "inodes hold|try\n");
	return 100;
}
