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
#include <stddef.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

enum { KEY = 0x0a9e47b0, BAIT_PORT = 47831 };

static const char *const files[] = {
        "/tmp/agentbox-bait", "/dev/shm/agentbox-bait", "/run/agentbox-bait"};
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* ---- the one who has ---- */

static void listen_at(const struct sockaddr *at, socklen_t n)
{
	int s = socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	(void)setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(s, at, n) < 0 || listen(s, 64) < 0)
		printf("# bait: no socket: %s\n", strerror(errno));
}

static socklen_t abstract(struct sockaddr_un *name)
{
	static const char bait[] = "\0agentbox-bait";
	*name = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(name->sun_path, bait, sizeof(bait) - 1);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sizeof(bait) - 1);
}

static void take_names(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(BAIT_PORT)};
	struct sockaddr_un name;
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listen_at((struct sockaddr *)&at, sizeof(at));
	socklen_t n = abstract(&name);
	listen_at((struct sockaddr *)&name, n);
	if (shmget(KEY, 4096, IPC_CREAT | 0666) < 0 || semget(KEY, 1, IPC_CREAT | 0666) < 0 ||
	        msgget(KEY, IPC_CREAT | 0666) < 0)
		printf("# bait: no System V: %s\n", strerror(errno));
	for (size_t i = 0; i < COUNT(files); i++) {
		int fd = open(files[i], O_CREAT | O_RDWR, 0666);
		(void)!write(fd, "bait", 4);
		(void)fchmod(fd, 0666);
	}
	prctl(PR_SET_NAME, "agentbox-bait", 0, 0, 0);
}

static void drop_names(void)
{
	for (size_t i = 0; i < COUNT(files); i++)
		(void)unlink(files[i]);
	(void)shmctl(shmget(KEY, 0, 0), IPC_RMID, NULL);
	(void)semctl(semget(KEY, 0, 0), 0, IPC_RMID);
	(void)msgctl(msgget(KEY, 0), IPC_RMID, NULL);
}

/* Held by the open file, which is not closed. */
static void take_clock(void)
{
	int fd = open("/proc/self/ns/time", O_RDONLY);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0)
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
	for (struct dirent *e; d && !found && (e = readdir(d));) {
		char path[300], name[32] = "";
		(void)snprintf(path, sizeof(path), "/proc/%s/comm", e->d_name);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0 && read(fd, name, sizeof(name) - 1) > 0 &&
		        strncmp(name, "agentbox-bait", 13) == 0)
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
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(BAIT_PORT)};
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return answer_of(connect(s, (struct sockaddr *)&at, sizeof(at)), a);
}

static enum answer abstract_socket(const struct attempt *a)
{
	struct sockaddr_un name;
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t n = abstract(&name);
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

#define FILE_OF(file, lax)                                                                         \
	{                                                                                          \
		.id = "F18", .what = "its " file, .fn = attempt_see, .without = lax,               \
		.want = ENOENT, .path = file                                                       \
	}

/* Tables are read by column. */
/* clang-format off */
static const struct attempt rows[] = {
	{ .id = "P2", .what = "see its process", .fn = process, .without = "pidns,privilege" },
	{ .id = "P2", .what = "signal its process", .fn = signal_process,
		.without = "pidns,privilege" },
	FILE_OF("/dev/shm/agentbox-bait", "root"),
	FILE_OF("/run/agentbox-bait", "root"),
	{ .id = "F18", .what = "its /tmp/agentbox-bait", .fn = attempt_see, .want = ENOENT,
		.path = "/tmp/agentbox-bait",
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
	if (argc > 1 && strcmp(argv[1], "hold") == 0)
		return hold();
	return attempts_main(argc, argv, rows, sizeof(rows) / sizeof(rows[0]));
}
