/*
 * Two jails at once: what one has, the other must not find.
 *
 * `neighbour hold` takes a name of every kind that could be shared, says "held", and keeps it until
 * its stdin ends.  It runs in one jail while the
 * rows run in another, and on the host while they run in jails that lack a namespace.
 */
#include "attempt.h"

#include <dirent.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>

#define KEY (0x0a000000 + attempts_bait)

static const char *const places[] = {"/tmp", "/dev/shm", "/run"};
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void bait_file(const char *place, char out[64])
{
	char name[16];
	bait_name(name);
	(void)snprintf(out, 64, "%s/%s", place, name);
}

/* ---- the one who has ---- */

static void listen_at(const struct sockaddr *at, socklen_t n)
{
	int s = socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	(void)setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(s, at, n) < 0 || listen(s, 64) < 0)
		printf("# bait: no socket: %s\n", strerror(errno));
}

static void take_names(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(bait_port())};
	struct sockaddr_un name;
	char own[16], path[64];
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listen_at((struct sockaddr *)&at, sizeof(at));
	socklen_t n = bait_abstract(&name);
	listen_at((struct sockaddr *)&name, n);
	if (shmget(KEY, 4096, IPC_CREAT | 0666) < 0 || semget(KEY, 1, IPC_CREAT | 0666) < 0 ||
	        msgget(KEY, IPC_CREAT | 0666) < 0)
		printf("# bait: no System V: %s\n", strerror(errno));
	for (size_t i = 0; i < COUNT(places); i++) {
		bait_file(places[i], path);
		int fd = open(path, O_CREAT | O_RDWR, 0666);
		(void)!write(fd, "bait", 4);
		(void)fchmod(fd, 0666);
	}
	bait_name(own);
	prctl(PR_SET_NAME, own, 0, 0, 0);
}

static void drop_names(void)
{
	char path[64];
	for (size_t i = 0; i < COUNT(places); i++) {
		bait_file(places[i], path);
		(void)unlink(path);
	}
	(void)shmctl(shmget(KEY, 0, 0), IPC_RMID, NULL);
	(void)semctl(semget(KEY, 0, 0), 0, IPC_RMID);
	(void)msgctl(msgget(KEY, 0), IPC_RMID, NULL);
}

/* Held by the open file, which is not closed. */
static void take_clock(void)
{
	int fd = open("/proc/self/ns/time", O_RDONLY);
	/* shared: another such test on this host may hold it too */
	if (fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0)
		printf("# bait: the time namespace is locked by somebody else\n");
}

static void wait_for_end(void)
{
	char byte;
	printf("held\n");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
}

static int hold(void)
{
	take_names();
	take_clock();
	wait_for_end();
	drop_names();
	return 0;
}

/* ---- the other one ---- */

/* Its process id as seen here, or 0. */
static pid_t find_process(void)
{
	DIR *d = opendir("/proc");
	pid_t found = 0;
	char bait[16], own[20];
	bait_name(bait);
	(void)snprintf(own, sizeof(own), "%s\n", bait);
	for (struct dirent *e; d && !found && (e = readdir(d));) {
		char path[300], name[32] = "";
		(void)snprintf(path, sizeof(path), "/proc/%s/comm", e->d_name);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0 && read(fd, name, sizeof(name) - 1) > 0 && strcmp(name, own) == 0)
			found = (pid_t)atoi(e->d_name);
		if (fd >= 0)
			close(fd);
	}
	if (d)
		closedir(d);
	return found;
}

static enum answer process(const struct attempt *a)
{
	(void)a;
	return find_process() ? THROUGH : STOPPED;
}

static enum answer signal_process(const struct attempt *a)
{
	(void)a;
	pid_t pid = find_process();
	return pid && kill(pid, 0) == 0 ? THROUGH : STOPPED;
}

static enum answer file(const struct attempt *a)
{
	char path[64];
	bait_file(a->path, path);
	errno = 0;
	return answer_of(access(path, F_OK), a);
}

static enum answer segment(const struct attempt *a)
{
	return answer_of(shmget(KEY, 4096, 0), a);
}

static enum answer semaphores(const struct attempt *a)
{
	return answer_of(semget(KEY, 1, 0), a);
}

static enum answer queue(const struct attempt *a)
{
	return answer_of(msgget(KEY, 0), a);
}

static enum answer loopback(const struct attempt *a)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(bait_port())};
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return answer_of(connect(s, (struct sockaddr *)&at, sizeof(at)), a);
}

static enum answer abstract_socket(const struct attempt *a)
{
	struct sockaddr_un name;
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t n = bait_abstract(&name);
	return answer_of(connect(s, (struct sockaddr *)&name, n), a);
}

static enum answer lock_clock(const struct attempt *a)
{
	int fd = open("/proc/self/ns/time", O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return MISSING;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return STOPPED;
	printf("#   %s: %s\n", a->what, strerror(errno));
	return errno == EWOULDBLOCK ? THROUGH : BROKEN;
}

#define FILE_IN(place, lax)                                                                        \
	{                                                                                          \
		.id = "F18", .what = "its file in " place, .fn = file, .without = lax,             \
		.want = ENOENT, .path = place                                                      \
	}

/* Tables are read by column. */
/* clang-format off */
static const struct attempt rows[] = {
	{ .id = "P2", .what = "see its process", .fn = process, .without = "pidns,privilege" },
	{ .id = "P2", .what = "signal its process", .fn = signal_process,
		.without = "pidns,privilege" },
	FILE_IN("/dev/shm", "root"),
	FILE_IN("/run", "root"),
	{ .id = "F18", .what = "its file in /tmp", .fn = file, .want = ENOENT, .path = "/tmp",
		.uncontrolled = "also a lax jail has a /tmp of its own, or it would litter" },
	{ .id = "F18", .what = "its shared memory", .fn = segment, .without = "ipcns",
		.want = ENOENT },
	{ .id = "F18", .what = "its semaphores", .fn = semaphores, .without = "ipcns",
		.want = ENOENT },
	{ .id = "F18", .what = "its message queue", .fn = queue, .without = "ipcns",
		.want = ENOENT },
	{ .id = "N25", .what = "its service on loopback", .fn = loopback, .without = "netns",
		.want = ECONNREFUSED },
	{ .id = "N26", .what = "its abstract socket", .fn = abstract_socket, .without = "netns",
		.want = ECONNREFUSED },
	{ .id = "F25", .what = "meet its lock on the time namespace", .fn = lock_clock,
		.without = "timens", .since = KERNEL(5, 6) },
};
/* clang-format on */

int main(int argc, char **argv)
{
	bait_option(&argc, &argv);
	if (argc > 1 && strcmp(argv[1], "hold") == 0)
		return hold();
	return attempts_main(argc, argv, rows, sizeof(rows) / sizeof(rows[0]));
}
