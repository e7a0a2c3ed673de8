#include "jail/canary.h"
#include "jail/caps.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { AGENT = 1000, TEXT = 4096, ANSWER_MS = 200 };

/* ---- identity ---- */

static void look_at_map(struct canary_record *r)
{
	char text[TEXT], *p = text;
	unsigned long n[3] = {0}; /* inside, outside, count */
	if (text_of("/proc/self/uid_map", text, sizeof(text)) <= 0)
		text[0] = '\0';
	for (int i = 0; i < 3; i++)
		n[i] = strtoul(p, &p, 10);
	if (n[0] != 0 || n[1] == 0 || n[2] != 65536 || strcmp(p, "\n") != 0)
		lacks(LAYER_USERNS, "uid_map is %lu %lu %lu", n[0], n[1], n[2]);
	r->base = (uint32_t)n[1];
	/* Nothing nests: in the kernel's own count, besides the filter. */
	if (text_of("/proc/sys/user/max_user_namespaces", text, sizeof(text)) <= 0 ||
	        strcmp(text, "0\n") != 0)
		lacks(LAYER_USERNS, "user.max_user_namespaces is not 0");
}

void look_at_ids(struct canary_record *r)
{
	uid_t u[3] = {0};
	gid_t g[3] = {0};
	looked(LAYER_USERNS);
	if (getresuid(&u[0], &u[1], &u[2]) < 0 || getresgid(&g[0], &g[1], &g[2]) < 0)
		lacks(LAYER_USERNS, "own ids cannot be asked for");
	for (int i = 0; i < 3; i++)
		if (u[i] != AGENT || g[i] != AGENT)
			lacks(LAYER_USERNS, "runs as %u:%u", u[i], g[i]);
	if (getgroups(0, NULL) != 0)
		lacks(LAYER_USERNS, "has supplementary groups");
	look_at_map(r);
}

/* Whether they are others than the host's shows outside. */
void look_at_spaces(struct canary_record *r)
{
	static const char *const names[] = {
#define CANARY_SPACE(name, layer) "/proc/self/ns/" name,
	        CANARY_SPACES(CANARY_SPACE)
#undef CANARY_SPACE
	};
	for (int i = 0; i < CANARY_SPACE_COUNT; i++) {
		struct stat st;
		r->spaces[i] = stat(names[i], &st) == 0 ? st.st_ino : 0;
	}
	struct utsname name;
	if (uname(&name) < 0 || strcmp(name.nodename, "jail") != 0)
		lacks(LAYER_UTSNS, "the host's name shows");
	if (getppid() != 1)
		lacks(LAYER_PIDNS, "the parent is not PID 1");
	char text[TEXT];
	long n = text_of("/proc/self/cgroup", text, sizeof(text));
	const char *own = n > 0 ? strstr(text, "0::/") : NULL;
	if (!own || own[4] != '\n')
		lacks(LAYER_CGROUPNS, "the host's path of the cgroup shows");
}

/* ---- privilege ---- */

void look_at_privilege(void)
{
	struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct d[2] = {0};
	looked(LAYER_CAPS);
	looked(LAYER_NNP);
	if (syscall(SYS_capget, &h, d) < 0)
		lacks(LAYER_CAPS, "capget: %s", strerror(errno));
	for (int i = 0; i < 2; i++)
		if (d[i].effective || d[i].permitted || d[i].inheritable)
			lacks(LAYER_CAPS, "has capabilities: %08x %08x %08x", d[i].effective,
			        d[i].permitted, d[i].inheritable);
	for (int cap = 0; cap < 64; cap++)
		if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) > 0 ||
		        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, cap, 0, 0) > 0)
			lacks(LAYER_CAPS, "capability %d is in the bounding or ambient set", cap);
	if (prctl(PR_GET_SECUREBITS) != CAPS_SECUREBITS_FINAL)
		lacks(LAYER_CAPS, "securebits are %x", prctl(PR_GET_SECUREBITS));
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		lacks(LAYER_NNP, "not set");
}

/* Each answers otherwise where no filter of ours is: by its arguments, or by going through. */
void look_at_filter(void)
{
	static const struct {
		const char *name;
		long nr, args[3];
		int want;
	} calls[] = {
	        {"keyctl", SYS_keyctl, {0, -3, 0}, ENOSYS},
	        {"clone3", SYS_clone3, {0, 0, 0}, ENOSYS},
	        {"splice", SYS_splice, {-1, 0, -1}, EINVAL},
	        {"personality", SYS_personality, {0x400000, 0, 0}, EPERM},
	        /* XFRM, and a high half that the kernel does not look at */
	        {"socket", SYS_socket, {0x100000010, 3, 6}, EAFNOSUPPORT},
	        {"setsockopt", SYS_setsockopt, {-1, 6, 31}, ENOPROTOOPT},
	};
	looked(LAYER_SECCOMP);
	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 2)
		lacks(LAYER_SECCOMP, "not in filter mode");
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		const long *a = calls[i].args;
		errno = 0;
		long r = syscall(calls[i].nr, a[0], a[1], a[2], 0, 0, 0);
		int error = errno;
		if (r >= 0 && calls[i].nr == SYS_socket)
			close((int)r);
		if (r >= 0 || error != calls[i].want)
			lacks(LAYER_SECCOMP, "%s: %s instead of %s", calls[i].name,
			        r >= 0 ? "goes through" : strerror(error), strerror(calls[i].want));
	}
}

/* ---- limits ---- */

void look_at_rlimits(void)
{
	static const struct {
		int resource;
		const char *name;
		rlim_t most;
	} rows[] = {
	        {RLIMIT_CORE, "core", 1},
	        {RLIMIT_MSGQUEUE, "msgqueue", 0},
	        {RLIMIT_RTPRIO, "rtprio", 0},
	        {RLIMIT_NICE, "nice", 0},
	        {RLIMIT_MEMLOCK, "memlock", 64 << 10},
	        {RLIMIT_NOFILE, "nofile", CANARY_NOFILE},
	        {RLIMIT_FSIZE, "fsize", CANARY_FILE_MAX},
	};
	looked(LAYER_RLIMITS);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rlimit l;
		if (getrlimit(rows[i].resource, &l) < 0 || l.rlim_max > rows[i].most)
			lacks(LAYER_RLIMITS, "%s is more than %llu", rows[i].name,
			        (unsigned long long)rows[i].most);
	}
	int fd = fcntl(STDIN_FILENO, F_DUPFD, CANARY_NOFILE);
	if (fd >= 0) {
		lacks(LAYER_RLIMITS, "a descriptor above nofile was given");
		close(fd);
	}
}

/* Starts children until it is refused; they are left to cgroup.kill, one of them stopped. */
void look_at_processes(struct canary_record *r)
{
	looked(LAYER_LIMIT_PIDS);
	while (r->forked < 2 * CANARY_PIDS) {
		pid_t pid = fork();
		if (pid < 0)
			break;
		if (pid == 0) {
			(void)signal(SIGTERM, SIG_IGN);
			if (r->forked == 0)
				(void)raise(SIGSTOP);
			for (;;)
				pause();
		}
		r->forked++;
	}
	if (r->forked > CANARY_PIDS)
		lacks(LAYER_LIMIT_PIDS, "%u processes, %d are the limit", r->forked, CANARY_PIDS);
	if (r->forked == 0)
		lacks(LAYER_LIMIT_PIDS, "no process can be started: %s", strerror(errno));
}

/* ---- network ---- */

/* To an address where nobody is: the jail's own listener must take it. */
static void look_at_way_out(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(CANARY_PORT)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error = 0;
	socklen_t len = sizeof(error);
	if (fd < 0 || inet_pton(AF_INET, CANARY_ADDRESS, &to.sin_addr) != 1) {
		lacks(LAYER_EGRESS, "no TCP socket: %s", strerror(errno));
		return;
	}
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 && errno != EINPROGRESS)
		error = errno;
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	if (!error && poll(&p, 1, ANSWER_MS) != 1)
		error = ETIMEDOUT;
	if (!error)
		(void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
	if (error)
		lacks(LAYER_EGRESS, "connecting out: %s", strerror(error));
	close(fd);
}

void look_at_network(void)
{
	char text[TEXT];
	looked(LAYER_EGRESS);
	if (text_of("/proc/self/net/dev", text, sizeof(text)) <= 0)
		lacks(LAYER_NETNS, "no list of devices to be seen");
	/* Two lines of headings, then one a device. */
	char *save = NULL, *line = strtok_r(text, "\n", &save);
	for (int i = 0; line; i++, line = strtok_r(NULL, "\n", &save)) {
		const char *name = line + strspn(line, " ");
		if (i >= 2 && strncmp(name, "lo:", 3) != 0)
			lacks(LAYER_NETNS, "device %.*s", (int)strcspn(name, ":"), name);
	}
	look_at_way_out();
}
