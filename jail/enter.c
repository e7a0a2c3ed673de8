/*
 * Theory of operation: everything that needs host root happens first, in
 * namespaces owned by the initial user namespace; setns() into the jail's user
 * namespace comes last, and from there it only goes down.  Full capabilities
 * inside the jail would not mount, route or open raw sockets, because nothing
 * belongs to the user namespace they are valid in.
 *
 * Dumpable belongs to the mm, which is still our maker's: agentboxd becomes
 * non-dumpable as well, as it should be.
 */
#include "jail/enter.h"
#include "jail/mounts.h"
#include "jail/sysc.h"
#include "jail/template.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <linux/ioprio.h>
#include <linux/keyctl.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>

enum {
	CONTROL_FD = 3, /* proto/init.h, proto/worker.h */
	PROGRAM_FD = 4, /* closed by its own exec */
	SAFE_FD = 10,   /* above every number used here */
};

#define PROC_ATTRS (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)
/* Added to the badness of everything in a jail: the host's own daemons die last. */
static const char oom_score[] = "500";

SYSC_CHILD static long join(struct enter *c)
{
	long r = c->netns < 0 ? 0 : sysc(SYS_setns, c->netns, CLONE_NEWNET);
	if (r == 0 && c->ipcns >= 0)
		r = sysc(SYS_setns, c->ipcns, CLONE_NEWIPC);
	if (r == 0 && c->utsns >= 0)
		r = sysc(SYS_setns, c->utsns, CLONE_NEWUTS);
	/* Here rather than at clone3: the root of the new namespace is then certainly the jail's
	 * own cgroup, whichever of CLONE_INTO_CGROUP and CLONE_NEWCGROUP a kernel does first. */
	return r < 0 ? r : sysc(SYS_unshare, CLONE_NEWCGROUP);
}

/* All jails would have the initial one in common, an inode that can be locked and watched.  The
 * exec moves us there (Linux 6.3), or else PID 1's first fork its children. */
SYSC_CHILD static long own_clock(struct enter *c)
{
	(void)c;
	long r = sysc(SYS_unshare, CLONE_NEWTIME);
	return r == -EINVAL ? 0 : r; /* a kernel without them has none to share */
}

SYSC_CHILD static long view(struct enter *c)
{
	return sysc(SYS_setns, c->mntns, CLONE_NEWNS);
}

SYSC_CHILD static long layer(struct enter *c)
{
	return c->overlay ? overlay_mount(c->overlay) : 0;
}

SYSC_CHILD static long attach_strict(const struct enter_mount *m)
{
	long at = sysc_place(m->target);
	if (at < 0)
		return at;
	long r = sysc(SYS_move_mount, m->fd, "", at, "",
	        MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
	sysc(SYS_close, at);
	return r;
}

SYSC_CHILD static long attach(struct enter *c)
{
	long r = 0;
	for (size_t i = 0; c->make_root && r == 0 && i < c->nmounts; i++) {
		const struct enter_mount *m = &c->mounts[i];
		r = m->strict ? attach_strict(m)
		              : sysc(SYS_move_mount, m->fd, "", AT_FDCWD, m->target,
		                        MOVE_MOUNT_F_EMPTY_PATH);
	}
	return r;
}

SYSC_CHILD static long make_proc(bool strict)
{
	long fs = sysc(SYS_fsopen, "proc", FSOPEN_CLOEXEC);
	if (fs < 0)
		return fs;
	long r = sysc(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "hidepid", "invisible", 0);
	if (r == 0 && strict)
		r = sysc(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "subset", "pid", 0);
	if (r == 0)
		r = sysc(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, 0, 0, 0);
	if (r == 0)
		r = sysc(SYS_fsmount, fs, FSMOUNT_CLOEXEC, PROC_ATTRS);
	sysc(SYS_close, fs);
	return r;
}

/* Through a /proc of our own pid namespace, while it is still detached and writable.  With
 * CLONE_VFORK the score stays the child's although the mm is shared. */
SYSC_CHILD static long raise_oom_score(long proc)
{
	long fd = sysc(SYS_openat, proc, "self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return fd;
	long n = sysc(SYS_write, fd, oom_score, sizeof(oom_score) - 1);
	sysc(SYS_close, fd);
	return n == (long)sizeof(oom_score) - 1 ? 0 : n < 0 ? n : -EIO;
}

/* Files are covered by /dev/null and directories by the empty /sys. */
SYSC_CHILD static long mask(uint64_t bits)
{
	for (unsigned i = 0; bits >> i; i++) {
		if (!(bits >> i & 1))
			continue;
		int dir;
		const char *path = template_mask(i, &dir);
		/* One old-style call where the new ones take three; the flags of the source stay.
		 */
		long r = sysc(SYS_mount, dir ? "/sys" : "/dev/null", path, 0, MS_BIND, 0);
		if (r < 0)
			return r;
	}
	return 0;
}

SYSC_CHILD static long proc(struct enter *c)
{
	if (!c->make_root)
		return 0;
	long fd = make_proc(c->strict_proc);
	if (fd < 0)
		return fd;
	long r = raise_oom_score(fd);
	struct mount_attr ro = {.attr_set = MOUNT_ATTR_RDONLY};
	if (r == 0)
		r = sysc(SYS_mount_setattr, fd, "", AT_EMPTY_PATH, &ro, sizeof(ro));
	if (r == 0)
		r = sysc(SYS_move_mount, fd, "", AT_FDCWD, "/proc", MOVE_MOUNT_F_EMPTY_PATH);
	sysc(SYS_close, fd);
	/* subset=pid has nothing to mask */
	return r < 0 || c->strict_proc ? r : mask(c->masks);
}

/* The same files below other inodes, as in root.h: a detached mount, or -errno. */
SYSC_CHILD static long own_layer(long dir)
{
	long fs = sysc(SYS_fsopen, "overlay", FSOPEN_CLOEXEC);
	if (fs < 0)
		return fs;
	long r = sysc(SYS_fchdir, dir);
	if (r == 0)
		r = sysc(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "lowerdir", ".:" TEMPLATE_EMPTY, 0);
	if (r == 0)
		r = sysc(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, 0, 0, 0);
	if (r == 0)
		r = sysc(SYS_fsmount, fs, FSMOUNT_CLOEXEC, MOUNTS_RO);
	sysc(SYS_close, fs);
	return r;
}

/* What agentboxd could not know when it made the root: which agent comes. */
SYSC_CHILD static long own_inodes(struct enter *c)
{
	if (!c->own)
		return 0;
	long dir = sysc(SYS_open, c->own, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return dir;
	long mount = own_layer(dir);
	sysc(SYS_close, dir);
	long r = mount < 0 ? mount : sysc(SYS_chdir, "/");
	if (r == 0)
		r = sysc(SYS_move_mount, mount, "", AT_FDCWD, c->own, MOVE_MOUNT_F_EMPTY_PATH);
	if (mount >= 0)
		sysc(SYS_close, mount);
	return r;
}

/* The wanted limit, or the one we have where it is lower already: without CAP_SYS_RESOURCE nothing
 * can be raised, and lower is never weaker.  It is read back. */
SYSC_CHILD static long rlimit(const struct enter_rlimit *l)
{
	struct rlimit64 have = {0}, set = {0}, got = {0};
	long r = sysc(SYS_prlimit64, 0, l->resource, 0, &have);
	if (r < 0)
		return r;
	set.rlim_max = l->hard < have.rlim_max ? l->hard : have.rlim_max;
	set.rlim_cur = l->soft < set.rlim_max ? l->soft : set.rlim_max;
	r = sysc(SYS_prlimit64, 0, l->resource, &set, 0);
	if (r == 0)
		r = sysc(SYS_prlimit64, 0, l->resource, 0, &got);
	if (r < 0)
		return r;
	return got.rlim_cur == set.rlim_cur && got.rlim_max == set.rlim_max ? 0 : -EPERM;
}

/* After close_range: with many jails our copy of the descriptor table is above the new
 * RLIMIT_NOFILE, and an open would fail. */
SYSC_CHILD static long rlimits(struct enter *c)
{
	long r = 0;
	for (size_t i = 0; r == 0 && i < c->nrlimits; i++)
		r = rlimit(&c->rlimits[i]);
	return r;
}

/* Whatever agentboxd was started with or gave itself: a jail goes before nobody. */
SYSC_CHILD static long scheduling(struct enter *c)
{
	(void)c;
	const struct sched_param none = {0};
	long policy = sysc(SYS_sched_getscheduler, 0), r = policy < 0 ? policy : 0;
	policy &= ~SCHED_RESET_ON_FORK;
	if (r == 0 && policy != SCHED_BATCH && policy != SCHED_IDLE)
		r = sysc(SYS_sched_setscheduler, 0, SCHED_OTHER, &none);
	long nice = r < 0 ? 0 : sysc(SYS_getpriority, PRIO_PROCESS, 0); /* 20 - nice */
	if (nice < 0)
		r = nice;
	else if (nice > 20)
		r = sysc(SYS_setpriority, PRIO_PROCESS, 0, 0);
	if (r == 0)
		r = sysc(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, 0);
	return r == -ENOSYS ? 0 : r; /* a kernel without block devices */
}

SYSC_CHILD static long null_stdio(struct enter *c)
{
	(void)c;
	long fd = sysc(SYS_open, "/dev/null", O_RDWR);
	for (long i = 0; fd >= 0 && i < 3; i++) {
		long r = fd == i ? 0 : sysc(SYS_dup3, fd, i, 0);
		if (r < 0)
			return r;
	}
	return fd < 0 ? fd : 0;
}

/* While everything may still be opened; files of a jail's own mounts are closed to PID 1's id. */
SYSC_CHILD static long rules(struct enter *c)
{
	if (!c->landlock)
		return 0;
	c->ruleset = landlock_make(c->landlock, c->rules, c->nrules);
	return c->ruleset < 0 ? c->ruleset : 0;
}

/* After no_new_privs, without which the kernel wants a capability; before the descriptors go. */
SYSC_CHILD static long enforce(struct enter *c)
{
	return c->landlock ? landlock_enforce(c->ruleset) : 0;
}

SYSC_CHILD static long own_users(struct enter *c)
{
	return sysc(SYS_setns, c->userns, CLONE_NEWUSER);
}

SYSC_CHILD static long securebits(struct enter *c)
{
	(void)c;
	return caps_securebits();
}

SYSC_CHILD static long ids(struct enter *c)
{
	return caps_ids(&c->who);
}

SYSC_CHILD static long drop(struct enter *c)
{
	return caps_drop(&c->who);
}

/* A kernel without keyrings has none to share. */
SYSC_CHILD static long keyring(struct enter *c)
{
	(void)c;
	long r = sysc(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, 0);
	return r < 0 && r != -ENOSYS ? r : 0;
}

/* After the ids: changing those clears the parent-death signal and dumpable again. */
SYSC_CHILD static long process(struct enter *c)
{
	(void)c;
	uint64_t none = 0;
	long r = sysc(SYS_setsid); /* EPERM: leads its session already */
	if (r == -EPERM || r > 0)
		r = sysc(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (r == 0)
		r = sysc(SYS_prctl, PR_SET_DUMPABLE, 0);
	if (r == 0)
		r = sysc(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
	if (r == 0)
		r = sysc(SYS_rt_sigprocmask, SIG_SETMASK, &none, 0, sizeof(none));
	return r;
}

SYSC_CHILD static long verify(struct enter *c)
{
	return caps_verify(&c->who);
}

SYSC_CHILD static long descriptors(struct enter *c)
{
	long control = sysc(SYS_fcntl, c->control, F_DUPFD, SAFE_FD);
	long program = sysc(SYS_fcntl, c->program, F_DUPFD, SAFE_FD);
	if (control < 0 || program < 0)
		return control < 0 ? control : program;
	long r = sysc(SYS_dup3, control, CONTROL_FD, 0);
	if (r >= 0)
		r = sysc(SYS_dup3, program, PROGRAM_FD, O_CLOEXEC);
	if (r >= 0)
		r = sysc(SYS_close_range, PROGRAM_FD + 1, ~0U, 0);
	return r < 0 ? r : 0;
}

SYSC_CHILD static long seccomp(struct enter *c)
{
	if (!c->filter)
		return 0;
	union { /* the kernel only reads it */
		const struct sock_filter *const_filter;
		struct sock_filter *filter;
	} f = {.const_filter = c->filter};
	struct sock_fprog p = {.len = c->nfilter, .filter = f.filter};
	return sysc(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &p);
}

SYSC_CHILD static long exec(struct enter *c)
{
	const char *argv[] = {c->name, NULL}, *envp[] = {NULL};
	return sysc(SYS_execveat, PROGRAM_FD, "", argv, envp, AT_EMPTY_PATH);
}

static const struct {
	const char *name;
	long (*fn)(struct enter *c);
} steps[] = {
        {"layer netns: joining the network, ipc, uts and cgroup namespaces", join},
        {"layer inodes: a time namespace of its own", own_clock},
        {"layer mountns: entering the jail's mounts", view},
        {"layer rootfs: mounting the writable layer over the image", layer},
        {"layer mountns: attaching the jail's mounts", attach},
        {"layer inodes: the agent's files (remedy: overlayfs in the kernel)", own_inodes},
        {"layer proc: /proc and its masks", proc},
        {"scheduling: giving up priority", scheduling},
        {"layer dev: opening /dev/null", null_stdio},
        {"layer landlock: making the rules", rules},
        {"layer userns: entering the jail's user namespace", own_users},
        {"layer caps: securebits", securebits},
        {"layer userns: changing ids", ids},
        {"layer caps: dropping capabilities", drop},
        {"layer keyring: new session keyring", keyring},
        {"layer nnp: no_new_privs", process},
        {"layer caps: what the kernel says is not what was set", verify},
        {"layer landlock: enforcing the rules", enforce},
        {"descriptors of the program", descriptors},
        {"layer rlimits: setting resource limits", rlimits},
        {"layer seccomp: installing the filter", seccomp},
        {"exec of the jail's program", exec},
};

const char *enter_step_name(int step)
{
	return step >= 0 && (size_t)step < sizeof(steps) / sizeof(steps[0]) ? steps[step].name
	                                                                    : "unknown step";
}

bool enter_last_step(int step)
{
	return (size_t)step + 1 == sizeof(steps) / sizeof(steps[0]);
}

SYSC_CHILD int enter_main(void *arg)
{
	struct enter *c = arg;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		c->step = (int)i;
		long r = steps[i].fn(c);
		if (r < 0) {
			c->error = (int)-r;
			return 1;
		}
	}
	return 1;
}
