/* Inner root with the capabilities of `inner_root: packages`, in jails whose filter allows
 * everything: what it must not do is kept by the capabilities themselves and by what the jail's
 * user namespace does not own. */
#include "tests/t.h"
#include "tests/jail_rig.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

static struct rig rig;

/* perl, because a shell has no system calls: c(NUMBER, ARGS) says errno, or 0. */
#define PERL                                                                                       \
	"perl -MSocket -e 'sub c{my @a=@_;my $n=shift @a;my $r=syscall($n,@a);$r<0?$!+0:0} "       \
	"$|=1; print "

static const struct {
	const char *what, *call;
	int want;
	bool lax; /* root of the host, in namespaces of its own, may: tried as the control */
} tried[] = {
        {"mount a tmpfs", "c(165,\"t\",\"/tmp\",\"tmpfs\",0,0)", EPERM, true},
        {"remount /usr", "c(165,\"\",\"/usr\",\"\",4128,0)", EPERM, false},
        {"mount a bind", "c(165,\"/usr\",\"/tmp\",\"\",4096,0)", EPERM, true},
        {"umount", "c(166,\"/tmp\",2)", EPERM, false},
        {"fsopen", "c(430,\"tmpfs\",0)", EPERM, true},
        {"open_tree", "c(428,-100,\"/tmp\",1)", EPERM, true},
        {"a new mount namespace", "c(272,0x20000)", EPERM, true},
        {"a new user namespace", "c(272,0x10000000)", ENOSPC, true},
        {"a new network namespace", "c(272,0x40000000)", EPERM, true},
        {"a new pid namespace", "c(272,0x20000000)", EPERM, true},
        {"setns into the own mount namespace",
                "(open(F,\"</proc/self/ns/mnt\")&&c(308,fileno(F),0))", EPERM, true},
        {"setns into the own network namespace",
                "(open(F,\"</proc/self/ns/net\")&&c(308,fileno(F),0))", EPERM, true},
        {"mknod a memory device", "c(133,\"/tmp/mem$$\",8630,257)", EACCES, true},
        {"mknod a disk", "c(133,\"/tmp/disk$$\",24576+438,2048)", EACCES, true},
        {"chroot", "c(161,\"/tmp\")", EPERM, true},
        {"pivot_root", "c(155,\"/tmp\",\"/tmp\")", EPERM, false},
        {"set the host name", "c(170,\"x\",1)", EPERM, true},
        {"raw socket", "c(41,2,3,1)", EPERM, true},
        {"packet socket", "c(41,17,3,3)", EPERM, true},
        {"bind port 22",
                "(socket(S,AF_INET,SOCK_STREAM,0)&&bind(S,pack_sockaddr_in(22,INADDR_ANY))?0:$!+0)",
                EACCES, true},
        {"ptrace PID 1", "c(101,16,1,0,0)", EPERM, false},
        {"ptrace PID 1 as its own user", "(c(117,65533,65533,65533)||c(101,16,1,0,0))", EPERM,
                false},
        {"read PID 1's memory as its own user",
                "(c(117,65533,65533,65533)||(open(F,\"</proc/1/mem\")?0:$!+0))", ENOENT, false},
        {"open_by_handle_at", "c(304,-100,pack(\"LLQ\",8,1,2),0)", EPERM, false},
        {"all capabilities back", "c(126,pack(\"LL\",0x20080522,0),pack(\"L6\",(~0&0xffffffff)x6))",
                EPERM, false},
        {"securebits unlocked", "c(157,28,0)", EPERM, true},
        {"the clock", "c(227,0,pack(\"qq\",1,0))", EPERM, false},
        {"an unlimited number of files", "c(160,7,pack(\"QQ\",1<<30,1<<30))", EPERM, false},
        {"the kernel's core pattern", "(open(F,\">\",\"/proc/sys/kernel/core_pattern\")?0:$!+0)",
                EROFS, false},
        {"a root-owned 0600 file of the host", "(open(F,\"</mnt/closed\")?0:$!+0)", EACCES, false},
        {"the same to write", "(open(F,\">>\",\"/mnt/closed\")?0:$!+0)", EACCES, false},
        {"the same given away", "(chown(0,0,\"/mnt/closed\")?0:$!+0)", EPERM, false},
};

static int closed_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, "secret\n", 7) != 7)
		return -1;
	fd_close(fd);
	return open(path, O_PATH | O_CLOEXEC);
}

static const char *inside(const struct launched *j, const char *line, uint32_t flags)
{
	static struct rig_out o;
	if (rig_run(j, line, flags, &o, NULL) < 0)
		return "cannot ask PID 1";
	o.text[strcspn(o.text, "\n")] = '\0';
	return o.text;
}

/* The control: the same line as the host's root in namespaces nobody else is in. */
static bool goes_through(const char *line)
{
	int out[2];
	if (pipe2(out, O_CLOEXEC) < 0)
		return false;
	pid_t pid = fork();
	if (pid == 0) {
		const int all = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWNET | CLONE_NEWIPC;
		if (unshare(all) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		        mount("t", "/tmp", "tmpfs", 0, NULL) < 0)
			_exit(9);
		(void)dup2(out[1], 1);
		execl("/bin/sh", "sh", "-c", line, (char *)NULL);
		_exit(9);
	}
	fd_close(out[1]);
	char text[16] = "";
	(void)!fd_read_full(out[0], text, sizeof(text) - 1);
	fd_close(out[0]);
	int status = 0;
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 && strcmp(text, "0") == 0;
}

static void attempts(const struct launched *j)
{
	for (size_t i = 0; i < ARRAY_LEN(tried); i++) {
		auto_free char *line = xasprintf(PERL "%s'", tried[i].call);
		auto_free char *want = xasprintf("%d", tried[i].want);
		is_str(inside(j, line, JAIL_MAKE_ROOT), want, "refused: %s (%s)", tried[i].what,
		        strerror(tried[i].want));
		if (tried[i].lax)
			ok(goes_through(line), "and root of the host could");
	}
	is_str(inside(j, "echo alive", 0), "alive", "PID 1 serves on");
}

static void powers(const struct launched *j)
{
	static const struct {
		const char *line, *want, *what;
	} rows[] = {
	        {"grep -E '^Cap(Eff|Prm|Amb)' /proc/self/status | cut -f2 | sort -u",
	                "00000000000000db", "six capabilities"},
	        {"grep ^CapBnd /proc/self/status | cut -f2", "0000000000000000",
	                "none in the bounding set"},
	        {"cd /tmp && echo x >f && chown 42:42 f && chmod 600 f && cat f && stat -c %u f",
	                "x", "files may be given away and are read all the same"},
	        {"cd /workspace && touch agents && chown 1000:1000 agents && chmod 0 agents && "
	         "cat agents && echo fine",
	                "fine", "the agent's too"},
	        {PERL "c(117,42,42,42), c(117,0,0,0)'", "01",
	                "who becomes another user has nothing left to come back with"},
	        /* the inheritable set stays: it means something to file capabilities only */
	        {PERL "c(117,42,42,42); exec qw(grep -cE ^Cap(Prm|Eff|Amb|Bnd).*0000000000000000 "
	              "/proc/self/status)'",
	                "04", "not in any set that counts"},
	        {"cp /bin/true /tmp/t && perl -e '$v=pack(\"L5\",0x2000001,1<<21,0,0,0);"
	         "$p=\"/tmp/t\";$n=\"security.capability\";"
	         "print syscall(188,$p,$n,$v,20,0)<0?$!+0:0'",
	                "1", "no file gets capabilities"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		is_str(inside(j, rows[i].line, JAIL_MAKE_ROOT), rows[i].want, "%s", rows[i].what);
	is_str(inside(j, "grep -c ^Cap.*0000000000000000 /proc/self/status", 0), "5",
	        "the agent has none");
	is_str(inside(j, PERL "c(105,0)'", 0), "1", "and does not become root");
}

int main(void)
{
	if (geteuid() != 0)
		skip_all("making jails takes root");
	struct err e = {.code = 0};
	must(rig_open(&rig, &e) >= 0, "template, cgroup tree and programs (%s)", e.text);
	char path[] = "/var/tmp/agentbox-closed-XXXXXX";
	must(mkdtemp(path) != NULL, "a directory");
	auto_free char *file = xasprintf("%s/closed", path);
	auto_close int closed = closed_file(file);
	must(closed >= 0, "with a file that is root's alone");
	rig.policy.flags |= POLICY_INNER_ROOT_PACKAGES;
	struct launch_bind bind = {.source = closed, .target = "/mnt/closed", .writable = true};
	struct launch_spec spec = rig_spec(&rig, rig_kit(&rig, &e));
	spec.binds = &bind;
	spec.nbinds = 1;
	struct launched j;
	must(spec.kit && launch_jail(&spec, &j, &e) == 0, "a jail (%s)", e.text);
	powers(&j);
	attempts(&j);
	launched_free(&j);
	ok(unlink(file) == 0 && rmdir(path) == 0, "cleaned up");
	rig_close(&rig);
	return done();
}
