/* Landlock where each other layer was left out: what a mistake in the mounts shows, what another
 * process of the same user in the same namespaces would allow.  Each attempt is made twice, in the
 * jail and by that other process, and only the second may succeed. */
#include "tests/t.h"
#include "tests/jail_rig.h"
#include "jail/landlock.h"

#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

static struct rig rig;

static const char *inside(const struct launched *j, const char *line)
{
	static struct rig_out o;
	if (rig_run(j, line, 0, &o, NULL) < 0)
		return "cannot ask PID 1";
	o.text[strcspn(o.text, "\n")] = '\0';
	return o.text;
}

static void join_jail(const struct launched *j)
{
	char path[64];
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/pid", j->pid);
	auto_close int pidns = open(path, O_RDONLY | O_CLOEXEC);
	if (setns(pidns, CLONE_NEWPID) < 0 || setns(j->kit->netns, CLONE_NEWNET) < 0 ||
	        setns(j->kit->mntns, CLONE_NEWNS) < 0)
		_exit(9);
}

/* A shell line as the agent's host uid in the jail's namespaces, but not of its domain, its user
 * namespace or its filter.  Its pid there; *ret_out is its stdout. */
static pid_t start_outside(const struct launched *j, const char *line, int *ret_out)
{
	int out[2];
	must(pipe2(out, O_CLOEXEC) == 0, "pipe");
	pid_t pid = fork();
	if (pid == 0) {
		join_jail(j);
		pid_t inner = fork();
		if (inner != 0)
			_exit(inner < 0);
		uint32_t id = j->kit->base + ID_INNER_AGENT;
		if (setgroups(0, NULL) < 0 || setresgid(id, id, id) < 0 ||
		        setresuid(id, id, id) < 0)
			_exit(9);
		(void)dup2(out[1], 1);
		(void)dup2(out[1], 2);
		execl("/bin/sh", "sh", "-c", line, (char *)NULL);
		_exit(9);
	}
	fd_close(out[1]);
	int status = 0;
	must(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0,
	        "a process beside the jail");
	*ret_out = out[0];
	return pid;
}

static const char *outside(const struct launched *j, const char *line)
{
	static char text[256];
	auto_close int out = -1;
	(void)start_outside(j, line, &out);
	ssize_t n = fd_read_full(out, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return text;
}

/* As host root in the jail's mounts: what nobody should ever do there. */
static void mistake(const struct launched *j, const char *line)
{
	pid_t pid = fork();
	if (pid == 0) {
		join_jail(j);
		execl("/bin/sh", "sh", "-c", line, (char *)NULL);
		_exit(9);
	}
	int status = 0;
	must(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, "a mistake is made: %s",
	        line);
}

static void mounts(const struct launched *j)
{
	mistake(j, "mount -t tmpfs -o mode=1777 t /var/cache && echo secret >/var/cache/s && "
	           "chmod 644 /var/cache/s && cp /usr/bin/true /var/cache/true");
	static const struct {
		const char *line, *in, *out;
	} rows[] = {
	        {"cat /var/cache/s 2>&1 | sed s/.*:.//", "Permission denied", "secret"},
	        {"cd /var/cache; mkdir $$ 2>&1 | sed s/.*:.//", "Permission denied", ""},
	        {"/var/cache/true 2>&1 && echo ran | sed s/.*:.//; :",
	                "sh: 1: /var/cache/true: Permission denied", "ran"},
	        {"ls /var/cache | grep -x s", "s", "s"}, /* names are not hidden */
	        /* refused by either, but not with the same words */
	        {"mknod /tmp/w b 8 0 2>&1 | sed s/.*:.//", "Permission denied",
	                "Operation not permitted"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		is_str(outside(j, rows[i].line), rows[i].out, "without a domain: %s", rows[i].line);
		is_str(inside(j, rows[i].line), rows[i].in, "in the jail: %s", rows[i].line);
	}
	is_str(inside(j, "cd /tmp && mkdir -p a b && echo x >a/f && mv a/f b/g && ln b/g a/h && "
	                 "cat a/h && cp /bin/true t && ./t && echo fine | tr a-z A-Z"),
	        "x", "what is the jail's own is as before");
}

static void devices(const struct launched *j)
{
	mistake(j, "mkdir /workspace/x && mount -t tmpfs -o dev,mode=755 t /workspace/x && "
	           "mknod -m 666 /workspace/x/null c 1 3");
	static const char line[] = "perl -e 'open F,\"+<\",\"/workspace/x/null\" or die;"
	                           "ioctl(F,0x5401,$b=\"\\0\"x64); print $!+0'";
	is_str(outside(j, line), "25", "without a domain a device outside /dev gets its ioctl");
	is_str(inside(j, line), landlock_abi() >= LANDLOCK_ABI_IOCTL ? "13" : "25",
	        "in the jail it is refused before the driver sees it (from ABI 5)");
	is_str(inside(j, "perl -e 'open F,\"+<\",\"/dev/null\" or die;"
	                 "ioctl(F,0x5401,$b=\"\\0\"x64); print $!+0'"),
	        "25", "those of /dev are the driver's");
}

static void scopes(const struct launched *j)
{
	static const char listen[] =
	        "exec perl -MSocket -e '$|=1; socket(S,AF_UNIX,SOCK_STREAM,0);"
	        "bind(S,pack_sockaddr_un(\"\\0out\")) && listen(S,9) or die; print \"$$\\n\";"
	        "$SIG{USR1}=sub{}; sleep 1 while 1'";
	static const char dial[] = "perl -MSocket -e 'socket(S,AF_UNIX,SOCK_STREAM,0);"
	                           "print connect(S,pack_sockaddr_un(\"\\0out\"))?0:$!+0'";
	auto_close int out = -1;
	(void)start_outside(j, listen, &out);
	char pid[16] = "", line[128];
	must(read(out, pid, sizeof(pid) - 1) > 0 && atoi(pid) > 1, "a server beside the jail");
	(void)snprintf(line, sizeof(line), "perl -e 'print kill(USR1 => %d)?0:$!+0'", atoi(pid));
	bool scoped = landlock_abi() >= LANDLOCK_ABI_SCOPES;
	is_str(outside(j, dial), "0", "its abstract socket answers one of its kind");
	is_str(inside(j, dial), scoped ? "1" : "0", "and the jail %s", scoped ? "not" : "too");
	is_str(outside(j, line), "0", "so do signals");
	is_str(inside(j, line), scoped ? "1" : "0", "and from the jail %s", scoped ? "not" : "too");
	is_str(inside(j,
	               "perl -MSocket -e 'socket(S,AF_UNIX,SOCK_STREAM,0);"
	               "bind(S,pack_sockaddr_un(\"\\0in\")) && listen(S,9) or die;"
	               "if(fork){wait;exit} socket(C,AF_UNIX,SOCK_STREAM,0);"
	               "print connect(C,pack_sockaddr_un(\"\\0in\"))&&kill(0 => getppid)?0:$!+0'"),
	        "0", "programs of one jail have both among themselves");
}

static void own_use(const struct launched *j)
{
	is_str(inside(j, "perl -e '$a=pack(\"Q\",1); $r=syscall(444,$a,8,0); print $r>=0?0:$!+0;"
	                 "print syscall(446,$r,0)'"),
	        "00", "a program may restrict itself further");
}

int main(void)
{
	if (geteuid() != 0)
		skip_all("making jails takes root");
	if (!landlock_abi())
		skip_all("this kernel has no Landlock");
	struct err e = {.code = 0};
	must(rig_open(&rig, &e) >= 0, "template, cgroup tree and programs (%s)", e.text);
	struct kit *k = rig_kit(&rig, &e);
	must(k != NULL, "a kit");
	struct launch_spec spec = rig_spec(&rig, k);
	struct launched j;
	must(launch_jail(&spec, &j, &e) == 0, "a jail (%s)", e.text);
	ok(j.layers & LAYER_BIT(LAYER_LANDLOCK), "the layer is told");
	mounts(&j);
	devices(&j);
	scopes(&j);
	own_use(&j);
	launched_free(&j);
	rig_close(&rig);
	return done();
}
